//! Checks a forum file before SQLite may act on it. A foreign file can name other files in its journal, which SQLite
//! then deletes, and can have computed columns, which use any amount of memory.

use super::db::Db;
use super::error::ForumError;
use super::schema::{self, Entry, entries};
use kd_core::clean::clean_line;

/// Maximum number of concurrent migrations by other processes that the check tolerates.
const LOOKS: usize = 5;

/// Rejects an SQLite store whose tables do not match its version.
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
