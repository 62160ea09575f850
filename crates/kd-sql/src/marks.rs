//! The user's marks of verdicts: one SQLite file in the user's own data folder, never in a repository.
//!
//! Returns the newest mark of each verdict; earlier ones are kept until they are forgotten.

use kd_core::formats::{self, Format, MARK, MARKS};
use kd_eval::marks::Mark;
use kd_store::error::Error;
use kd_store::private;
use kd_store::user_dirs::{UserDirs, make_private};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use rustix::fs::OFlags;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the file.
const FILE_VERSION: i64 = MARKS.version as i64;
/// Time limit of a writer that waits for others.
const BUSY: Duration = Duration::from_secs(20);
/// Maximum bytes of one mark.
const MARK_BYTES_MAX: i32 = 1 << 20;
const SCHEMA: &str = "CREATE TABLE marks (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    thread TEXT NOT NULL,
    message INTEGER NOT NULL,
    current INTEGER NOT NULL,
    mark TEXT NOT NULL
);
CREATE INDEX marks_of ON marks (project, thread, message);";

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
        private::open(&path, OFlags::RDWR | OFlags::CREATE)?;
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
            db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MARK_BYTES_MAX)?;
            db.busy_timeout(BUSY)?;
            // Forgotten marks must not remain in free pages.
            db.execute_batch("PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;")?;
            let tx = rusqlite::Transaction::new_unchecked(
                &db,
                rusqlite::TransactionBehavior::Immediate,
            )?;
            let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if version == 0 {
                tx.execute_batch(SCHEMA)?;
                tx.pragma_update(None, "user_version", FILE_VERSION)?;
            }
            tx.commit()?;
            Ok(version)
        };
        match prepare().map_err(failed)? {
            0 | FILE_VERSION => Ok(Self { path, db }),
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

    /// Adds a mark. Returns the previous mark of the same verdict.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, mark: &Mark) -> Result<Option<Mark>, Error> {
        let old = self.add_all(std::slice::from_ref(mark))?;
        Ok(old.into_iter().next().flatten())
    }

    /// Adds all of these marks or none. Returns the previous mark of each verdict.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn add_all(&mut self, marks: &[Mark]) -> Result<Vec<Option<Mark>>, Error> {
        let path = self.path.clone();
        let failed = |source| refused(&path, source);
        let texts: Vec<String> = marks
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()
            .map_err(|source| Error::Json {
                path: path.clone(),
                source,
            })?;
        let tx = self.db.transaction().map_err(failed)?;
        let put = |mark: &Mark, text: &str| -> Result<Option<String>, rusqlite::Error> {
            let of = params![mark.project, mark.thread, mark.message];
            let here = "project = ?1 AND thread = ?2 AND message = ?3 AND current = 1";
            let old = tx
                .query_row(&format!("SELECT mark FROM marks WHERE {here}"), of, |row| {
                    row.get(0)
                })
                .optional()?;
            tx.execute(&format!("UPDATE marks SET current = 0 WHERE {here}"), of)?;
            tx.execute(
                "INSERT INTO marks (project, thread, message, current, mark) VALUES (?1, ?2, ?3, 1, ?4)",
                params![mark.project, mark.thread, mark.message, text],
            )?;
            Ok(old)
        };
        let mut old = Vec::new();
        for (mark, text) in marks.iter().zip(&texts) {
            old.push(put(mark, text).map_err(failed)?);
        }
        tx.commit().map_err(failed)?;
        old.into_iter()
            .map(|text| text.map(|text| self.parse(&text)).transpose())
            .collect()
    }

    /// Forgets the marks of a thread, or of some of its messages, including all earlier ones. Returns the number of
    /// verdicts that had a mark; changes nothing in a dry run.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn forget(
        &mut self,
        project: &str,
        thread: &str,
        messages: Option<&[u32]>,
        dry: bool,
    ) -> Result<usize, Error> {
        let path = self.path.clone();
        let mut forget = || -> Result<usize, rusqlite::Error> {
            let tx = self.db.transaction()?;
            let mut gone = 0;
            let here = "project = ?1 AND thread = ?2";
            let numbers: Vec<u32> = {
                let mut found =
                    tx.prepare(&format!("SELECT DISTINCT message FROM marks WHERE {here}"))?;
                let rows = found.query_map(params![project, thread], |row| row.get(0))?;
                rows.collect::<Result<_, _>>()?
            };
            for number in numbers {
                if messages.is_none_or(|messages| messages.contains(&number)) {
                    gone += 1;
                    if !dry {
                        tx.execute(
                            &format!("DELETE FROM marks WHERE {here} AND message = ?3"),
                            params![project, thread, number],
                        )?;
                    }
                }
            }
            tx.commit()?;
            Ok(gone)
        };
        forget().map_err(|source| refused(&path, source))
    }

    /// Forgets all marks. Returns the number of verdicts that had one.
    ///
    /// # Errors
    /// Those of [`Marks::add`].
    pub fn forget_all(&mut self) -> Result<usize, Error> {
        let path = self.path.clone();
        let mut forget = || -> Result<usize, rusqlite::Error> {
            let tx = self.db.transaction()?;
            let count = tx.execute("DELETE FROM marks WHERE current = 1", [])?;
            tx.execute("DELETE FROM marks", [])?;
            tx.commit()?;
            self.db.execute_batch("VACUUM")?;
            Ok(count)
        };
        forget().map_err(|source| refused(&path, source))
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn parse(&self, text: &str) -> Result<Mark, Error> {
        let json = |source| Error::Json {
            path: self.path.clone(),
            source,
        };
        check(&self.path, &MARK, formats::stated(text.as_bytes(), "v"))?;
        serde_json::from_str(text).map_err(json)
    }
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
mod tests {
    use super::*;
    use kd_core::Timestamp;
    use kd_eval::marks::By;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn dirs(home: &Path) -> UserDirs {
        UserDirs::from_env(&|name: &str| (name == "HOME").then(|| home.as_os_str().to_owned()))
    }

    fn mark(thread: &str, message: u32, credit: f64) -> Mark {
        Mark {
            v: MARK.version,
            project: "p-1".into(),
            thread: thread.into(),
            message,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: "council".into(),
            members: Vec::new(),
            winner: Some("MARKER-391".into()),
            credit,
            answer: None,
            calls: 3,
            usd: 0.0,
        }
    }

    #[test]
    fn the_newest_mark_of_a_verdict_counts() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        assert_eq!(read(&dirs).unwrap(), []);
        assert!(!path(&dirs).unwrap().exists(), "reading makes no file");
        let mut marks = Marks::open(&dirs).unwrap();
        assert_eq!(marks.add(&mark("council-1", 5, 1.0)).unwrap(), None);
        assert_eq!(marks.add(&mark("council-2", 5, 1.0)).unwrap(), None);
        let old = marks
            .add(&mark("council-1", 5, 0.0))
            .unwrap()
            .expect("corrected");
        assert_eq!(old.credit, 1.0);
        let mut elsewhere = mark("council-1", 5, 0.5);
        elsewhere.project = "p-2".into();
        marks.add(&elsewhere).unwrap();
        let credits: Vec<f64> = read(&dirs).unwrap().iter().map(|m| m.credit).collect();
        assert_eq!(credits, [1.0, 0.0, 0.5]);
        let mode = std::fs::metadata(marks.path())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn nothing_of_a_forgotten_mark_is_left_in_the_file() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        let mut marks = Marks::open(&dirs).unwrap();
        for message in [3, 5] {
            marks.add(&mark("council-1", message, 1.0)).unwrap();
            marks.add(&mark("council-1", message, 0.0)).unwrap();
        }
        let mut other = mark("council-2", 5, 1.0);
        other.winner = None;
        marks.add(&other).unwrap();
        assert_eq!(marks.forget("p-1", "council-1", None, true).unwrap(), 2);
        assert_eq!(marks.all().unwrap().len(), 3);
        assert_eq!(
            marks.forget("p-1", "council-1", Some(&[5]), false).unwrap(),
            1
        );
        assert_eq!(marks.forget("p-2", "council-1", None, false).unwrap(), 0);
        assert_eq!(marks.forget("p-1", "council-1", None, false).unwrap(), 1);
        assert_eq!(marks.all().unwrap(), [other]);
        let bytes = std::fs::read(marks.path()).unwrap();
        assert!(!bytes.windows(10).any(|w| w == b"MARKER-391"));
        assert_eq!(marks.forget_all().unwrap(), 1);
        assert_eq!(marks.all().unwrap(), []);
    }

    #[test]
    fn files_that_are_not_ours_are_refused_and_left() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        drop(Marks::open(&dirs).unwrap());
        let file = path(&dirs).unwrap();
        let db = Connection::open(&file).unwrap();
        db.pragma_update(None, "user_version", 2).unwrap();
        drop(db);
        let newer = read(&dirs).unwrap_err().to_string();
        assert!(
            newer.contains("version 2 of the database of marks"),
            "{newer}"
        );
        std::fs::write(&file, "not a database, but long enough to be read as one").unwrap();
        assert!(read(&dirs).is_err());
        assert!(std::fs::read(&file).unwrap().starts_with(b"not a database"));
        std::fs::remove_file(&file).unwrap();
        let elsewhere = home.path().join("elsewhere.db");
        symlink(&elsewhere, &file).unwrap();
        assert!(Marks::open(&dirs).is_err());
        assert!(!elsewhere.exists());
    }
}
