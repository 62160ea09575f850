//! The user's marks of verdicts: one SQLite file in the user's own data folder, never in a repository.
//!
//! Returns the newest mark of each verdict; earlier ones are kept until they are forgotten.

mod clock;
mod forget;
mod sums;

pub use self::forget::MarkedThread;
use self::sums::{add_up, index, sum_up};
use crate::brief;
use kd_core::Timestamp;
use kd_core::formats::{self, Format, MARK, MARKS};
use kd_eval::marks::{Evidence, MARK_BYTES_MAX, Mark, Published, RECENT, Sum, Sums};
use kd_store::error::Error;
use kd_store::private;
use kd_store::user_dirs::{UserDirs, make_private};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the file.
const FILE_VERSION: i64 = MARKS.version as i64;
/// Time limit of a writer that waits for others.
const BUSY: Duration = Duration::from_secs(20);
/// Maximum bytes of a row: it has the mark twice, and the names of its models.
const ROW_BYTES_MAX: i32 = 4 * MARK_BYTES_MAX as i32;
const SCHEMA: &str = "CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    thread TEXT NOT NULL,
    message INTEGER NOT NULL,
    current INTEGER NOT NULL,
    mark TEXT NOT NULL
);
CREATE INDEX marks_of ON marks (project, thread, message);";
/// Version 2: what a decision needs is found without reading all marks.
const SCHEMA_2: &str = "ALTER TABLE marks ADD COLUMN kind TEXT;
ALTER TABLE marks ADD COLUMN council TEXT;
ALTER TABLE marks ADD COLUMN marked_us INTEGER;
CREATE INDEX marks_of_kind ON marks (kind, marked_us, id) WHERE current = 1;
CREATE INDEX marks_of_council ON marks (council, marked_us, id) WHERE current = 1;
CREATE TABLE sums (
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    right INTEGER NOT NULL,
    questions INTEGER NOT NULL,
    PRIMARY KEY (kind, model)
) WITHOUT ROWID;";

/// Version 3: marks are also stored in a format that is faster to read.
const SCHEMA_3: &str = "ALTER TABLE marks ADD COLUMN brief BLOB;";

/// Version 4: the indexes have that form, so that the newest marks are read in one piece, without the rows of the table.
const SCHEMA_4: &str = "DROP INDEX marks_of_kind;
DROP INDEX marks_of_council;
CREATE INDEX marks_of_kind ON marks (kind, marked_us, id, brief) WHERE current = 1;
CREATE INDEX marks_of_council ON marks (council, marked_us, id, brief) WHERE current = 1;";

/// The result of importing marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Marks of verdicts without a mark.
    pub added: u64,
    /// Marks that replaced an earlier one.
    pub replaced: u64,
    /// Marks that were not imported, because the verdict has one that is as new or newer.
    pub kept: u64,
}

/// The marks that can be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readable {
    /// The newest mark of each verdict, in the order of marking.
    pub marks: Vec<Mark>,
    /// The numbers of the rows that cannot be read, each with the reason.
    pub unreadable: Vec<(i64, String)>,
}

/// The user's marks.
pub struct Marks {
    path: PathBuf,
    db: Connection,
}

/// Returns the path of the file, which need not exist.
///
/// # Errors
/// [`Error::NoHome`] if no data folder is known.
pub fn path(dirs: &UserDirs) -> Result<PathBuf, Error> {
    Ok(dirs.data()?.join("marks.db"))
}

/// Reads the newest mark of each verdict, in the order of marking; empty if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn read(dirs: &UserDirs) -> Result<Vec<Mark>, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.all(),
        None => Ok(Vec::new()),
    }
}

/// Reads the marks that can be read; empty if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn read_readable(dirs: &UserDirs) -> Result<Readable, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.all_readable(),
        None => Ok(Readable::default()),
    }
}

/// Counts the verdicts with a mark, readable or not; 0 if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn count(dirs: &UserDirs) -> Result<u64, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.count(),
        None => Ok(0),
    }
}

/// Reads the evidence of the user's marks about a kind of question. Uses only published results if nothing was ever
/// marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn of_kind(dirs: &UserDirs, kind: &str, now: Timestamp) -> Result<Evidence, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.of_kind(kind, now),
        None => Ok(Evidence::default().with(Published::all())),
    }
}

/// Reads the evidence of the user's marks about a verdict. Uses only published results if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn like(dirs: &UserDirs, verdict: &Mark, now: Timestamp) -> Result<Evidence, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.like(verdict, now),
        None => Ok(Evidence::default().with(Published::all())),
    }
}

/// Returns a text that changes with every mark and every forgotten one; empty if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn state(dirs: &UserDirs) -> Result<String, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.state(),
        None => Ok(String::new()),
    }
}

impl Marks {
    /// Opens the file, creating it if it does not exist.
    ///
    /// # Errors
    /// It is not the user's own, is not a database of marks, or was written by a newer `kd`.
    pub fn open(dirs: &UserDirs) -> Result<Self, Error> {
        make_private(dirs.data()?)?;
        Self::at(&path(dirs)?)
    }

    /// Opens the file at this path, in an existing folder.
    pub(crate) fn at(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        if let Some(file) = private::open(&path, OFlags::RDWR | OFlags::CREATE)? {
            file.set_permissions(Permissions::from_mode(0o600))
                .map_err(Error::io("restrict", &path))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let failed = |source: rusqlite::Error| refused(&path, source);
        let db = Connection::open_with_flags(&path, flags).map_err(failed)?;
        let prepare = || -> Result<i64, rusqlite::Error> {
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            db.set_limit(Limit::SQLITE_LIMIT_LENGTH, ROW_BYTES_MAX)?;
            db.busy_timeout(BUSY)?;
            // Forgotten marks must not remain in free pages.
            db.execute_batch("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;")?;
            let version = |db: &Connection| -> Result<i64, rusqlite::Error> {
                db.query_row("PRAGMA user_version", [], |row| row.get(0))
            };
            // A decision only reads, and waits for no writer.
            let found = version(&db)?;
            if found == FILE_VERSION {
                return Ok(found);
            }
            let tx = Transaction::new_unchecked(&db, TransactionBehavior::Immediate)?;
            let version = version(&tx)?;
            if version == 0 {
                tx.execute_batch(SCHEMA)?;
            }
            if (0..FILE_VERSION).contains(&version) {
                if version < 2 {
                    tx.execute_batch(SCHEMA_2)?;
                }
                if version < 3 {
                    tx.execute_batch(SCHEMA_3)?;
                }
                tx.execute_batch(SCHEMA_4)?;
                index(&tx)?;
                tx.pragma_update(None, "user_version", FILE_VERSION)?;
            }
            tx.commit()?;
            Ok(version)
        };
        match prepare().map_err(failed)? {
            0..=FILE_VERSION => Ok(Self { path, db }),
            other => {
                let other = u64::try_from(other).ok();
                check(&path, &MARKS, other)?;
                Err(Error::Unsafe {
                    path,
                    why: "it states no version that kd knows",
                })
            }
        }
    }

    /// Returns the newest mark of each verdict, in the order of marking.
    ///
    /// # Errors
    /// The file cannot be read, or a mark in it has another version.
    pub fn all(&self) -> Result<Vec<Mark>, Error> {
        let texts = || -> Result<Vec<String>, rusqlite::Error> {
            let mut found = self
                .db
                .prepare("SELECT mark FROM marks WHERE current = 1 ORDER BY id")?;
            let rows = found.query_map([], |row| row.get(0))?;
            rows.collect()
        };
        let texts = texts().map_err(|source| refused(&self.path, source))?;
        texts.iter().map(|text| self.parse(text)).collect()
    }

    /// Returns the newest mark of each verdict that can be read, in the order of marking, and of each other one where it is
    /// and why it cannot be read.
    ///
    /// # Errors
    /// The file cannot be read, or a mark in it has a newer version.
    pub fn all_readable(&self) -> Result<Readable, Error> {
        let failed = |source| refused(&self.path, source);
        let query = "SELECT id, mark FROM marks WHERE current = 1 ORDER BY id";
        let mut found = self.db.prepare(query).map_err(failed)?;
        let mut rows = found.query([]).map_err(failed)?;
        let mut all = Readable::default();
        while let Some(row) = rows.next().map_err(failed)? {
            let id: i64 = row.get(0).map_err(failed)?;
            // A column of texts may hold values of any type.
            let read = match row.get::<_, String>(1) {
                Ok(text) => self.parse(&text),
                Err(source) => Err(failed(source)),
            };
            match read {
                Ok(mark) => all.marks.push(mark),
                Err(newer @ Error::Newer { .. }) => return Err(newer),
                Err(Error::Json { source, .. }) => all.unreadable.push((id, source.to_string())),
                Err(_) => all.unreadable.push((id, "it is not text".to_owned())),
            }
        }
        Ok(all)
    }

    /// Returns the number of verdicts with a mark, readable or not.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn count(&self) -> Result<u64, Error> {
        let query = "SELECT count(*) FROM marks WHERE current = 1";
        let count = self.db.query_row(query, [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|source| refused(&self.path, source))?;
        Ok(count.max(0) as u64)
    }

    /// Returns the sums of all marks, and the newest marks of a kind of question. `now`: no mark can be newer.
    ///
    /// # Errors
    /// Those of [`Marks::all`].
    pub fn of_kind(&self, kind: &str, now: Timestamp) -> Result<Evidence, Error> {
        Ok(Evidence {
            sums: self.sums()?,
            recent: self.newest("kind", kind, now)?,
            published: Published::all(),
        })
    }

    /// Returns the sums of all marks, and the newest marks of verdicts like this one. If it is marked itself, that mark
    /// is among them. `now`: no mark can be newer.
    ///
    /// # Errors
    /// Those of [`Marks::all`].
    pub fn like(&self, verdict: &Mark, now: Timestamp) -> Result<Evidence, Error> {
        let mut recent = self.newest("council", &council(verdict), now)?;
        if !recent.iter().any(|mark| mark.is_of(verdict)) {
            let own = || {
                let query = "SELECT mark FROM marks WHERE project = ?1 AND thread = ?2 AND message = ?3 AND current = 1";
                let of = params![verdict.project, verdict.thread, verdict.message];
                let mut found = self.db.prepare_cached(query)?;
                found
                    .query_row(of, |row| row.get::<_, String>(0))
                    .optional()
            };
            let own = own().map_err(|source| refused(&self.path, source))?;
            recent.extend(own.map(|text| self.parse(&text)).transpose()?);
        }
        Ok(Evidence {
            sums: self.sums()?,
            recent,
            published: Published::all(),
        })
    }

    /// Returns a text that changes with every mark and every forgotten one.
    ///
    /// # Errors
    /// Those of [`Marks::all`].
    pub fn state(&self) -> Result<String, Error> {
        let query = "SELECT count(*) || ' ' || coalesce(max(id), 0) FROM marks";
        let state = self.db.query_row(query, [], |row| row.get(0));
        state.map_err(|source| refused(&self.path, source))
    }

    /// Returns the newest marks with this value in an indexed column, oldest first: see [`clock::in_order`].
    fn newest(&self, column: &str, value: &str, now: Timestamp) -> Result<Vec<Mark>, Error> {
        let failed = |source| refused(&self.path, source);
        let query = newest_of(column);
        let mut found = self.db.prepare_cached(&query).map_err(failed)?;
        let mut rows = found.query([value]).map_err(failed)?;
        let mut marks = Vec::with_capacity(RECENT);
        while let Some(row) = rows.next().map_err(failed)? {
            let bytes = row.get_ref(0).map_err(failed)?;
            let mark = match bytes.as_blob_or_null() {
                Ok(Some(bytes)) => brief::read(bytes).filter(|mark| mark.v == MARK.version),
                _ => None,
            };
            let id: i64 = row.get(1).map_err(failed)?;
            let mark = mark.map_or_else(|| self.by_id(id), Ok)?;
            marks.push((id, mark));
        }
        Ok(clock::in_order(marks, now))
    }

    fn by_id(&self, id: i64) -> Result<Mark, Error> {
        let query = "SELECT mark FROM marks WHERE id = ?1";
        let text = self
            .db
            .query_row(query, [id], |row| row.get::<_, String>(0));
        self.parse(&text.map_err(|source| refused(&self.path, source))?)
    }

    fn sums(&self) -> Result<Sums, Error> {
        let read = || -> Result<Sums, rusqlite::Error> {
            let query = "SELECT kind, model, right, questions FROM sums";
            let mut found = self.db.prepare_cached(query)?;
            let mut rows = found.query([])?;
            let mut sums = Sums::default();
            while let Some(row) = rows.next()? {
                let count =
                    |column| Ok::<u64, rusqlite::Error>(row.get::<_, i64>(column)?.max(0) as u64);
                let sum = Sum {
                    right: count(2)?,
                    questions: count(3)?,
                };
                sums.set(row.get(0)?, row.get(1)?, sum);
            }
            Ok(sums)
        };
        read().map_err(|source| refused(&self.path, source))
    }

    /// Adds a mark. Returns the previous mark of the same verdict, if it can be read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, mark: &Mark) -> Result<Option<Mark>, Error> {
        let old = self.add_all(std::slice::from_ref(mark))?;
        Ok(old.into_iter().next().flatten())
    }

    /// Adds all of these marks or none. Returns the previous mark of each verdict, if it can be read.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn add_all(&mut self, marks: &[Mark]) -> Result<Vec<Option<Mark>>, Error> {
        let path = self.path.clone();
        let failed = |source| refused(&path, source);
        let tx = writing(&mut self.db).map_err(failed)?;
        let old = put_all(&tx, &path, marks)?;
        tx.commit().map_err(failed)?;
        Ok(old)
    }

    /// Adds imported marks, all or none. A mark of the same verdict is replaced only by a newer one. Returns how many were
    /// added, replaced and kept.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn import(&mut self, marks: &[Mark]) -> Result<Imported, Error> {
        let mut found = Imported::default();
        let mut newest: BTreeMap<(&str, &str, u32), &Mark> = BTreeMap::new();
        for mark in marks {
            let place = (mark.project.as_str(), mark.thread.as_str(), mark.message);
            match newest.entry(place) {
                Entry::Vacant(entry) => {
                    entry.insert(mark);
                }
                Entry::Occupied(mut entry) => {
                    found.kept += 1;
                    if mark.at > entry.get().at {
                        entry.insert(mark);
                    }
                }
            }
        }
        let tx = writing(&mut self.db).map_err(|source| refused(&self.path, source))?;
        let mut old = BTreeMap::new();
        {
            let query = "SELECT project, thread, message, marked_us FROM marks WHERE current = 1";
            let read = || -> Result<Vec<(String, String, u32, i64)>, rusqlite::Error> {
                let mut all = tx.prepare(query)?;
                let rows = all.query_map([], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?;
                rows.collect()
            };
            for (project, thread, message, at) in
                read().map_err(|source| refused(&self.path, source))?
            {
                old.insert((project, thread, message), at);
            }
        }
        let mut taken = Vec::new();
        for mark in marks {
            let place = (mark.project.as_str(), mark.thread.as_str(), mark.message);
            if !newest
                .get(&place)
                .is_some_and(|one| std::ptr::eq(*one, mark))
            {
                continue;
            }
            let place = (mark.project.clone(), mark.thread.clone(), mark.message);
            match old.get(&place) {
                None => found.added += 1,
                Some(at) if mark.at.as_microsecond() > *at => found.replaced += 1,
                Some(_) => {
                    found.kept += 1;
                    continue;
                }
            }
            taken.push(mark.clone());
        }
        put_all(&tx, &self.path, &taken)?;
        tx.commit().map_err(|source| refused(&self.path, source))?;
        Ok(found)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn parse(&self, text: &str) -> Result<Mark, Error> {
        let read = serde_json::from_str::<Mark>(text);
        // Its version is looked up in the text only if that matters: a decision reads a thousand marks.
        if !read.as_ref().is_ok_and(|mark| mark.v == MARK.version) {
            check(&self.path, &MARK, formats::stated(text.as_bytes(), "v"))?;
        }
        read.map_err(|source| Error::Json {
            path: self.path.clone(),
            source,
        })
    }
}

/// Begins to write, after waiting for other writers: SQLite does not wait for them once a transaction has read.
fn writing(db: &mut Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Adds marks in a transaction, with long answers shortened. Returns the previous mark of each verdict, if it can be read.
fn put_all(tx: &Transaction<'_>, path: &Path, marks: &[Mark]) -> Result<Vec<Option<Mark>>, Error> {
    let failed = |source| refused(path, source);
    let mut marks = marks.to_vec();
    marks.iter_mut().for_each(Mark::shorten);
    let texts: Vec<String> = marks
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()
        .map_err(|source| Error::Json {
            path: path.to_owned(),
            source,
        })?;
    let put = |mark: &Mark, text: &str| -> Result<Option<Mark>, rusqlite::Error> {
        let of = params![mark.project, mark.thread, mark.message];
        let here = "project = ?1 AND thread = ?2 AND message = ?3 AND current = 1";
        let old = tx
            .query_row(&format!("SELECT mark FROM marks WHERE {here}"), of, |row| {
                Ok(known(row.get_ref(0)?))
            })
            .optional()?;
        tx.execute(&format!("UPDATE marks SET current = 0 WHERE {here}"), of)?;
        tx.execute(
            "INSERT INTO marks (project, thread, message, current, mark, kind, council, marked_us, brief)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
            params![
                mark.project,
                mark.thread,
                mark.message,
                text,
                mark.kind,
                council(mark),
                clock::place(tx, mark)?,
                brief::write(mark)
            ],
        )?;
        if let Some(None) = old {
            // What it added to the sums is unknown.
            sum_up(tx)?;
            return Ok(None);
        }
        let old = old.flatten();
        if let Some(old) = &old {
            add_up(tx, &Sums::of([old]), -1)?;
        }
        add_up(tx, &Sums::of([mark]), 1)?;
        Ok(old)
    };
    let mut old = Vec::new();
    for (mark, text) in marks.iter().zip(&texts) {
        old.push(put(mark, text).map_err(failed)?);
    }
    Ok(old)
}

/// Returns the query for the newest marks with a value in an indexed column, which its index answers alone.
fn newest_of(column: &str) -> String {
    format!(
        "SELECT brief, id FROM marks WHERE {column} = ?1 AND current = 1
         ORDER BY marked_us DESC, id DESC LIMIT {RECENT}"
    )
}

/// Returns the text that is the same for verdicts alike: kind of question, protocol, the rule that stops it, and models.
fn council(mark: &Mark) -> String {
    let mut parts = vec![mark.kind.as_str(), mark.protocol.as_str()];
    parts.extend(mark.stopping.as_deref());
    parts.extend(mark.models());
    parts.join("\n")
}

/// Returns a mark that this version understands.
fn known(text: ValueRef<'_>) -> Option<Mark> {
    serde_json::from_str(text.as_str().ok()?)
        .ok()
        .filter(|mark: &Mark| mark.v == MARK.version)
}

fn check(path: &Path, format: &'static Format, found: Option<u64>) -> Result<(), Error> {
    format.check(found).map_err(|newer| Error::Newer {
        path: path.to_owned(),
        newer,
    })
}

fn refused(path: &Path, source: rusqlite::Error) -> Error {
    Error::io("use", path)(std::io::Error::other(source))
}

#[cfg(test)]
mod tests;
