//! Checks a forum file before SQLite may act on it. A foreign file can name other files in its journal, which SQLite
//! then deletes, and can have computed columns, which use any amount of memory.

use super::db::Db;
use super::error::ForumError;
use super::schema;
use kd_core::clean::clean_line;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The end of a journal that belongs to a transaction over several files, preceded by the name of the file that lists
/// them. A forum is a single file, so its own journals never end like this.
const SUPER_JOURNAL_END: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Maximum number of tables, indexes and the search's internal tables.
const ENTRIES_MAX: usize = 200;
/// How many concurrent migrations by other processes are tolerated during the check.
const LOOKS: usize = 5;

/// One row of `sqlite_schema`: type, name, table and text.
pub(super) type Entry = [String; 4];

/// Rejects a database whose journal names another file.
///
/// # Errors
/// It does, or it cannot be read.
pub(super) fn check_journal(database: &Path) -> Result<(), ForumError> {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    let path = Path::new(&name);
    let failed = |why: String| ForumError::File {
        path: path.to_path_buf(),
        why,
    };
    let opened = File::options()
        .read(true)
        .custom_flags((rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits() as i32)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e.to_string())),
    };
    let meta = file.metadata().map_err(|e| failed(e.to_string()))?;
    if !meta.is_file() {
        return Err(failed("it is not a regular file".into()));
    }
    let mut end = [0; SUPER_JOURNAL_END.len()];
    let Some(at) = meta.len().checked_sub(end.len() as u64) else {
        return Ok(());
    };
    file.read_exact_at(&mut end, at)
        .map_err(|e| failed(e.to_string()))?;
    if end == SUPER_JOURNAL_END {
        return Err(ForumError::NotOurs {
            place: database.display().to_string(),
            why: "its journal names another file, which SQLite would delete".into(),
        });
    }
    Ok(())
}

/// Rejects an SQLite store whose tables are not those of its version.
///
/// # Errors
/// Something was added, left out or changed, or the database fails.
pub(super) fn check_tables(db: &mut Db, place: &str) -> Result<(), ForumError> {
    let mut strange = None;
    for _ in 0..LOOKS {
        let form = schema::version(db)?;
        let (Some(known), found) = (schema::tables(form)?, entries(db)?) else {
            // A newer version: it is rejected later, with the required version.
            return Ok(());
        };
        strange = first_strange(known, &found);
        // Another process may be migrating the store right now.
        if strange.is_none() || schema::version(db)? == form {
            break;
        }
    }
    match strange {
        None => Ok(()),
        Some(name) => Err(ForumError::NotOurs {
            place: place.to_owned(),
            why: format!("its `{}` is not as kd makes it", clean_line(&name, 60)),
        }),
    }
}

/// Returns the rows of `sqlite_schema`. Nothing in them has been evaluated by then.
///
/// # Errors
/// The database fails, or contains more than any forum.
pub(super) fn entries(db: &mut Db) -> Result<Vec<Entry>, ForumError> {
    let sql = format!(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' \
         ORDER BY name LIMIT {ENTRIES_MAX}"
    );
    let rows = db.rows(&sql, &[])?;
    let entries = rows
        .iter()
        .map(|row| Ok([row.raw(0)?, row.raw(1)?, row.raw(2)?, row.raw(3)?]));
    entries.collect()
}

/// Returns the name of the first entry that is not in both.
fn first_strange(known: &[Entry], found: &[Entry]) -> Option<String> {
    let extra = found.iter().find(|one| !known.iter().any(|k| fits(k, one)));
    let missing = || known.iter().find(|k| !found.iter().any(|one| fits(k, one)));
    extra.or_else(missing).map(|[_, name, ..]| name.clone())
}

/// Returns whether an entry is as we would create it. The search's internal tables are created by SQLite, whose
/// versions differ: for them only the names count, and that nothing is computed.
fn fits(known: &Entry, found: &Entry) -> bool {
    let [kind, name, table, sql] = known;
    let same = [kind, name, table] == [&found[0], &found[1], &found[2]];
    let by_sqlite = name.starts_with("words_");
    let computed = || {
        let text = found[3].to_ascii_lowercase();
        text.matches('(').count() > 2
            || ["generated", " as", "check", "default"]
                .iter()
                .any(|word| text.contains(word))
    };
    same && (*sql == found[3] || by_sqlite && !computed())
}
