//! The user's marks of verdicts: one SQLite file in the user's own data folder, never in a repository.
//!
//! Returns the newest mark of each verdict; earlier ones are kept until they are forgotten.

use crate::brief;
use kd_core::formats::{self, Format, MARK, MARKS};
use kd_eval::marks::{Evidence, Mark, Published, RECENT, Sum, Sums};
use kd_store::error::Error;
use kd_store::private;
use kd_store::user_dirs::{UserDirs, make_private};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use rustix::fs::OFlags;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
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

/// Version 3: marks are also kept in a form that is read faster.
const SCHEMA_3: &str = "ALTER TABLE marks ADD COLUMN brief BLOB;";

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

/// Reads what the user's marks say about a kind of question; only what is published if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn of_kind(dirs: &UserDirs, kind: &str) -> Result<Evidence, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.of_kind(kind),
        None => Ok(Evidence::default().with(Published::all())),
    }
}

/// Reads what the user's marks say about a verdict; only what is published if nothing was ever marked.
///
/// # Errors
/// Those of [`Marks::open`].
pub fn like(dirs: &UserDirs, verdict: &Mark) -> Result<Evidence, Error> {
    match private::open(&path(dirs)?, OFlags::RDONLY)? {
        Some(_) => Marks::open(dirs)?.like(verdict),
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
            }
            if (0..FILE_VERSION).contains(&version) {
                if version < 2 {
                    tx.execute_batch(SCHEMA_2)?;
                }
                tx.execute_batch(SCHEMA_3)?;
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

    /// Returns the sums of all marks, and the newest marks of a kind of question.
    ///
    /// # Errors
    /// Those of [`Marks::all`].
    pub fn of_kind(&self, kind: &str) -> Result<Evidence, Error> {
        Ok(Evidence {
            sums: self.sums()?,
            recent: self.newest("kind", kind)?,
            published: Published::all(),
        })
    }

    /// Returns the sums of all marks, and the newest marks of verdicts like this one. If it is marked itself, that mark
    /// is among them.
    ///
    /// # Errors
    /// Those of [`Marks::all`].
    pub fn like(&self, verdict: &Mark) -> Result<Evidence, Error> {
        let mut recent = self.newest("council", &council(verdict))?;
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

    /// Returns the newest marks with this value in an indexed column, oldest first.
    fn newest(&self, column: &str, value: &str) -> Result<Vec<Mark>, Error> {
        let failed = |source| refused(&self.path, source);
        let mut found = self
            .db
            .prepare_cached(&format!(
                "SELECT brief, id FROM marks WHERE {column} = ?1 AND current = 1
                 ORDER BY marked_us DESC, id DESC LIMIT {RECENT}"
            ))
            .map_err(failed)?;
        let mut rows = found.query([value]).map_err(failed)?;
        let mut marks = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let bytes = row.get_ref(0).map_err(failed)?;
            let mark = match bytes.as_blob_or_null() {
                Ok(Some(bytes)) => brief::read(bytes).filter(|mark| mark.v == MARK.version),
                _ => None,
            };
            marks.push(match mark {
                Some(mark) => mark,
                None => self.by_id(row.get(1).map_err(failed)?)?,
            });
        }
        marks.reverse();
        Ok(marks)
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
                "INSERT INTO marks (project, thread, message, current, mark, kind, council, marked_us, brief)
                 VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)",
                params![
                    mark.project,
                    mark.thread,
                    mark.message,
                    text,
                    mark.kind,
                    council(mark),
                    mark.at.as_microsecond(),
                    brief::write(mark)
                ],
            )?;
            if let Some(old) = old.as_deref().and_then(known) {
                add_up(&tx, &Sums::of([&old]), -1)?;
            }
            add_up(&tx, &Sums::of([mark]), 1)?;
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
            if gone > 0 && !dry {
                sum_up(&tx)?;
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
            tx.execute("DELETE FROM sums", [])?;
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

/// Returns the text that is the same for verdicts alike: kind of question, protocol and models.
fn council(mark: &Mark) -> String {
    let mut parts = vec![mark.kind.as_str(), mark.protocol.as_str()];
    parts.extend(mark.models());
    parts.join("\n")
}

/// Returns a mark that this version understands.
fn known(text: &str) -> Option<Mark> {
    serde_json::from_str(text)
        .ok()
        .filter(|mark: &Mark| mark.v == MARK.version)
}

/// Fills the columns that earlier versions did not have, and the sums.
fn index(tx: &rusqlite::Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut found = tx.prepare("SELECT id, mark FROM marks")?;
    let mut rows = found.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(mark) = known(&row.get::<_, String>(1)?) {
            tx.execute(
                "UPDATE marks SET kind = ?2, council = ?3, marked_us = ?4, brief = ?5 WHERE id = ?1",
                params![
                    row.get::<_, i64>(0)?,
                    mark.kind,
                    council(&mark),
                    mark.at.as_microsecond(),
                    brief::write(&mark)
                ],
            )?;
        }
    }
    sum_up(tx)
}

/// Computes the sums of all marks.
fn sum_up(tx: &rusqlite::Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut sums = Sums::default();
    {
        let mut found = tx.prepare("SELECT mark FROM marks WHERE current = 1")?;
        let mut rows = found.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(mark) = known(&row.get::<_, String>(0)?) {
                sums.add(&mark);
            }
        }
    }
    tx.execute("DELETE FROM sums", [])?;
    add_up(tx, &sums, 1)
}

/// Adds to the kept sums; subtracts if `sign` is -1.
fn add_up(tx: &rusqlite::Transaction<'_>, sums: &Sums, sign: i64) -> Result<(), rusqlite::Error> {
    let mut add = tx.prepare_cached(
        "INSERT INTO sums (kind, model, right, questions) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (kind, model) DO UPDATE SET
         right = right + excluded.right, questions = questions + excluded.questions",
    )?;
    for (kind, model, sum) in sums.iter() {
        let signed = |n: u64| sign * n as i64;
        add.execute(params![
            kind,
            model,
            signed(sum.right),
            signed(sum.questions)
        ])?;
    }
    if sign < 0 {
        tx.execute("DELETE FROM sums WHERE questions <= 0", [])?;
    }
    Ok(())
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
    use std::os::unix::fs::symlink;

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
        // A file that others can read is closed to them before it is used.
        let path = marks.path().to_owned();
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert_eq!(read(&dirs).unwrap().len(), 3);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    /// A mark of a council with one member each, right or wrong.
    fn council_mark(at: i64, kind: &str, model: &str, right: bool) -> Mark {
        Mark {
            at: Timestamp::from_second(at).unwrap(),
            kind: kind.into(),
            members: vec![kd_eval::marks::Member {
                name: "ann".into(),
                model: model.into(),
                key: Some("391".into()),
                backs: true,
                confidence: None,
            }],
            ..mark(&format!("council-{at}"), 5, f64::from(u8::from(right)))
        }
    }

    #[test]
    fn what_a_decision_reads_is_what_all_marks_say() {
        let home = tempfile::tempdir().unwrap();
        let mut marks = Marks::open(&dirs(home.path())).unwrap();
        let agree = |marks: &Marks, what: &str| {
            let all = marks.all().unwrap();
            let evidence = marks.of_kind("number").unwrap();
            assert_eq!(evidence.sums, Sums::of(&all), "{what}");
            let here: Vec<&Mark> = all.iter().filter(|mark| mark.kind == "number").collect();
            let recent: Vec<&Mark> = evidence.recent.iter().collect();
            assert_eq!(recent, here, "{what}");
        };
        for at in 0..30 {
            let kind = if at % 3 == 0 { "choice" } else { "number" };
            let model = format!("m-{}", at % 2);
            marks
                .add(&council_mark(at, kind, &model, at % 5 > 0))
                .unwrap();
        }
        agree(&marks, "marked");
        let found = marks
            .like(&council_mark(99, "number", "m-1", true))
            .unwrap();
        assert_eq!(found.recent.len(), 10);
        let own = marks.like(&council_mark(4, "choice", "m-1", true)).unwrap();
        assert!(
            own.recent.iter().any(|mark| mark.thread == "council-4"),
            "its own mark"
        );
        let state = marks.state().unwrap();
        // Corrected at its time, so the order stays.
        marks.add(&council_mark(4, "choice", "m-9", false)).unwrap();
        let sums = marks.of_kind("number").unwrap().sums;
        assert_eq!(sums, Sums::of(&marks.all().unwrap()), "corrected");
        assert_ne!(marks.state().unwrap(), state);
        marks.forget("p-1", "council-4", None, false).unwrap();
        agree(&marks, "forgotten");
        marks.forget_all().unwrap();
        agree(&marks, "all forgotten");
    }

    #[test]
    fn the_newest_marks_are_read_and_no_more() {
        let home = tempfile::tempdir().unwrap();
        let mut marks = Marks::open(&dirs(home.path())).unwrap();
        let many = RECENT as i64 + 5;
        // The oldest are added last, as by an import.
        let all: Vec<Mark> = (0..many)
            .rev()
            .map(|at| council_mark(at, "number", "m", true))
            .collect();
        marks.add_all(&all).unwrap();
        let found = marks.like(&council_mark(-1, "number", "m", true)).unwrap();
        let times: Vec<i64> = found
            .recent
            .iter()
            .map(|mark| mark.at.as_second())
            .collect();
        assert!(times.iter().copied().eq(5..many), "{times:?}");
        let sums: Vec<_> = found.sums.iter().collect();
        assert_eq!(sums[0].2.questions, RECENT as u64 + 5);
    }

    #[test]
    fn a_file_of_version_1_becomes_one_of_this_version() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        drop(Marks::open(&dirs).unwrap());
        let file = path(&dirs).unwrap();
        std::fs::remove_file(&file).unwrap();
        let db = Connection::open(&file).unwrap();
        db.execute_batch(SCHEMA).unwrap();
        db.pragma_update(None, "user_version", 1).unwrap();
        for at in 0..20 {
            let mark = council_mark(at, "number", "m", at > 2);
            db.execute(
                "INSERT INTO marks (project, thread, message, current, mark) VALUES ('p-1', ?1, 5, 1, ?2)",
                params![mark.thread, serde_json::to_string(&mark).unwrap()],
            )
            .unwrap();
        }
        drop(db);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let marks = Marks::open(&dirs).unwrap();
        let found = marks.like(&council_mark(99, "number", "m", true)).unwrap();
        assert_eq!(
            found,
            Evidence::of(marks.all().unwrap()).with(Published::all())
        );
        assert_eq!(found.recent.len(), 20);
        // A mark whose short form is missing or broken is read from its text.
        let db = Connection::open(&file).unwrap();
        let broken = "UPDATE marks SET brief = CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN x'0102' ELSE brief END";
        assert_eq!(db.execute(broken, []).unwrap(), 20);
        let again = marks.like(&council_mark(99, "number", "m", true)).unwrap();
        assert_eq!(again, found);
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
        db.pragma_update(None, "user_version", 4).unwrap();
        drop(db);
        let newer = read(&dirs).unwrap_err().to_string();
        assert!(
            newer.contains("version 4 of the database of marks"),
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
