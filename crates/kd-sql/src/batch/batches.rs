//! The file of batches: every access is one transaction.

use super::jobs::{self, Finished, Job};
use super::new::{Asked, NewBatch};
use super::retry::{self, Retried};
use super::rows::{self, Batch};
use super::{money, schema};
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_core::batch::{Dead, MemberFailures};
use kd_core::formats::BATCHES;
use kd_core::spending::Spent;
use kd_store::error::Error;
use kd_store::lock::Lock;
use kd_store::private;
use kd_store::user_dirs::{UserDirs, make_private};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The batches of a project.
pub struct Batches {
    path: PathBuf,
    db: Connection,
}

/// Returns the path of a project's file, which need not exist. `project` is its key.
///
/// # Errors
/// [`Error::NoHome`] if no data folder is known.
pub fn path(dirs: &UserDirs, project: &str) -> Result<PathBuf, Error> {
    Ok(dirs.data()?.join("batches").join(format!("{project}.db")))
}

impl Batches {
    /// Opens a project's file; `None` if it does not exist.
    ///
    /// # Errors
    /// It is not the user's own, is not a database of batches, or was written by a newer `kd`.
    pub fn find(dirs: &UserDirs, project: &str) -> Result<Option<Self>, Error> {
        let path = path(dirs, project)?;
        match private::open(&path, OFlags::RDONLY)? {
            Some(_) => Self::at(&path).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a project's file, creating it if it does not exist.
    ///
    /// # Errors
    /// As [`Batches::find`], or if it cannot be created.
    pub fn open(dirs: &UserDirs, project: &str) -> Result<Self, Error> {
        let path = path(dirs, project)?;
        make_private(dirs.data()?)?;
        if let Some(folder) = path.parent() {
            make_private(folder)?;
        }
        Self::at(&path)
    }

    /// Opens the file at this path, in an existing folder.
    ///
    /// # Errors
    /// As [`Batches::open`].
    pub fn at(path: &Path) -> Result<Self, Error> {
        private::open(path, OFlags::RDWR | OFlags::CREATE)?;
        let failed = |source: rusqlite::Error| refused(path, source);
        let (db, version) = schema::open(path).map_err(failed)?;
        BATCHES
            .check(u64::try_from(version).ok())
            .map_err(|newer| Error::Newer {
                path: path.to_owned(),
                newer,
            })?;
        let path = path.to_owned();
        match version {
            schema::VERSION => Ok(Self { path, db }),
            _ => Err(Error::Unsafe {
                path,
                why: "it states no version that kd knows",
            }),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock of a batch, which the process that runs it holds; `None` if another process has it. The lock ends
    /// with the process.
    ///
    /// # Errors
    /// The lock file cannot be created.
    pub fn lock(&self, batch: &str) -> Result<Option<Lock>, Error> {
        Lock::try_take(&self.path.with_extension(format!("{batch}.lock")))
    }

    /// Creates a batch with its questions, all or none. A question that was answered before is answered at once, unless the
    /// batch is fresh; the same question twice is one job.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(
        &mut self,
        new: &NewBatch,
        questions: &[Asked],
        now: Timestamp,
    ) -> Result<(), Error> {
        self.write(|tx| rows::create(tx, new, questions, now))
    }

    /// Returns the unfinished batch of a command, or its newest batch if all are finished.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_key(&self, key: &str) -> Result<Option<Batch>, Error> {
        self.read(|db| rows::of_key(db, key))
    }

    /// Returns all batches, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn all(&self) -> Result<Vec<Batch>, Error> {
        self.read(rows::all)
    }

    /// Returns a batch by its id.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn get(&self, batch: &str) -> Result<Option<Batch>, Error> {
        self.read(|db| rows::get(db, batch))
    }

    /// Begins a run of a batch and returns its number. Every earlier run is over, and its maximum spending counts.
    /// Questions that it left are asked again, up to `attempts` times.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&mut self, batch: &str, attempts: u32, now: Timestamp) -> Result<i64, Error> {
        self.write(|tx| {
            money::close(tx, batch)?;
            jobs::begin(tx, batch, attempts, now)
        })
    }

    /// Takes up to `most` jobs that are due. None if the batch was cancelled.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn claim(
        &mut self,
        batch: &str,
        run: i64,
        most: usize,
        now: Timestamp,
    ) -> Result<Vec<Job>, Error> {
        self.write(|tx| jobs::claim(tx, batch, run, most, now))
    }

    /// Returns when the next job that waits is due; `None` if none waits.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next_due(&self, batch: &str) -> Result<Option<Timestamp>, Error> {
        self.read(|db| jobs::next_due(db, batch))
    }

    /// Writes the result of a job and ends it, in one transaction. `keep` says that the same question need not be asked
    /// again. Returns the new lines, in the order of the file: for this question and for equal questions. Empty if
    /// the job no longer belongs to this run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self, run: i64, finished: &Finished<'_>) -> Result<Vec<Row>, Error> {
        self.write(|tx| jobs::finish(tx, run, finished))
    }

    /// Puts a job back that may succeed later, not before `due`. `asked` counts the attempt.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put_back(
        &mut self,
        (batch, run): (&str, i64),
        place: u64,
        due: Timestamp,
        reason: Option<&str>,
        asked: bool,
    ) -> Result<(), Error> {
        self.write(|tx| jobs::put_back(tx, (batch, run), place, due, reason, asked))
    }

    /// Puts back everything that a run is asking: the attempts do not count.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn release(&mut self, batch: &str, run: i64) -> Result<(), Error> {
        self.write(|tx| jobs::release(tx, batch, run))
    }

    /// Continues a batch by this command. Gives the questions that have not ended the keys of these: they are asked in
    /// another way than when the batch was created.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn go_on(&mut self, batch: &str, command: &str, questions: &[Asked]) -> Result<(), Error> {
        self.write(|tx| {
            let set = "UPDATE batches SET command = ?2 WHERE id = ?1";
            tx.execute(set, [batch, command])?;
            jobs::rekey(tx, batch, questions)
        })
    }

    /// Returns whether a question was answered before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn knows(&self, key: &str) -> Result<bool, Error> {
        self.read(|db| Ok(jobs::kept_line(db, key)?.is_some()))
    }

    /// Asks failed and cancelled questions of a batch again; also takes back its cancellation. A question whose equal was
    /// answered in the meantime is answered at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn retry(&mut self, batch: &str, now: Timestamp) -> Result<Retried, Error> {
        self.write(|tx| retry::retry(tx, batch, now))
    }

    /// Cancels a batch: its waiting questions are not asked. Returns how many those are.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn cancel(&mut self, batch: &str) -> Result<u64, Error> {
        self.write(|tx| jobs::cancel(tx, batch))
    }

    /// Calls `each` with every line of results, in the order of the questions.
    ///
    /// # Errors
    /// The file cannot be read, a line has another version, or the error of `each`.
    pub fn results<E: From<Error>>(
        &self,
        batch: &str,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source| E::from(refused(&self.path, source));
        let mut found = self.db.prepare_cached(rows::RESULTS).map_err(failed)?;
        let mut lines = found.query([batch]).map_err(failed)?;
        while let Some(line) = lines.next().map_err(failed)? {
            let line: String = line.get(0).map_err(failed)?;
            each(&line)?;
        }
        Ok(())
    }

    /// Returns the failed questions of a batch with their reasons: the first `most`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn dead(&self, batch: &str, most: usize) -> Result<Vec<Dead>, Error> {
        self.read(|db| rows::dead(db, batch, most))
    }

    /// Returns the failed questions of a batch by the kind of the first failure of a member; `other` without one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn failure_kinds(&self, batch: &str) -> Result<BTreeMap<String, u64>, Error> {
        self.read(|db| rows::failure_kinds(db, batch))
    }

    /// Returns the members that failed in answered questions, the most frequent `most` first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn member_failures(&self, batch: &str, most: usize) -> Result<Vec<MemberFailures>, Error> {
        self.read(|db| rows::member_failures(db, batch, most))
    }

    /// Records how long a run has been asking.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_time(&mut self, batch: &str, time: Duration) -> Result<(), Error> {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.write(|tx| rows::add_time(tx, batch, millis))
    }

    /// Records that a request of a run is about to be sent: at most this is spent.
    ///
    /// # Errors
    /// The file cannot be written: the request must not be sent.
    pub fn sending(&mut self, of: (&str, i64), request: u64, most: &Spent) -> Result<(), Error> {
        self.write(|tx| money::sending(tx, of, request, most))
    }

    /// Records what such a request has spent.
    ///
    /// # Errors
    /// The file cannot be written: the maximum stays recorded.
    pub fn settled(&mut self, of: (&str, i64), request: u64, spent: &Spent) -> Result<(), Error> {
        self.write(|tx| money::settled(tx, of, request, spent))
    }

    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        read(&self.db).map_err(|source| refused(&self.path, source))
    }

    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let run = || {
            let tx = self
                .db
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = write(&tx)?;
            tx.commit()?;
            Ok(done)
        };
        run().map_err(|source| refused(&self.path, source))
    }
}

fn refused(path: &Path, source: rusqlite::Error) -> Error {
    Error::io("use", path)(std::io::Error::other(source))
}
