//! The requests of all runs that are being sent, with the most that each may cost. Each run has a file, locked while the run
//! lives: what the file of a killed run contains may have been spent.
//!
//! Input: requests as they are sent and end. Output: the sum of other runs, and the requests of runs that are gone. Except
//! for [`InFlight::end`], callers hold the lock of the ledger.

use super::Line;
use crate::error::Error;
use crate::layout;
use crate::private;
use kd_core::formats::LEDGER;
use kd_core::ledger::Entry;
use kd_core::spending::pico;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a run's file from which it is rewritten, without the requests that have ended.
const FILE_BYTES: u64 = 1 << 20;
/// Maximum bytes of the file of another run.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The requests of this run, and where the requests of others are.
#[derive(Debug)]
pub(super) struct InFlight {
    folder: PathBuf,
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    file: Option<RunFile>,
    open: Open,
}

/// The file of this run.
#[derive(Debug)]
struct RunFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

/// A line about a request that is being sent.
#[derive(Debug, Serialize, Deserialize)]
struct Sent {
    request: u64,
    #[serde(flatten)]
    at_most: Entry,
}

/// A line about a request that has ended.
#[derive(Serialize, Deserialize)]
struct Ended {
    v: u32,
    ended: u64,
}

/// The open requests of a run.
#[derive(Debug, Default)]
struct Open(BTreeMap<u64, Vec<Sent>>);

impl Open {
    fn add(&mut self, sent: Sent) {
        self.0.entry(sent.request).or_default().push(sent);
    }

    /// Removes a request. If two accounts gave the same number, the cheaper one: what stays is then not too little.
    fn remove(&mut self, request: u64) -> bool {
        let Some(all) = self.0.get_mut(&request) else {
            return false;
        };
        let cheapest = all.iter().enumerate().min_by_key(|(_, sent)| cost(sent));
        if let Some((at, _)) = cheapest {
            all.swap_remove(at);
        }
        if all.is_empty() {
            self.0.remove(&request);
        }
        true
    }

    fn all(&self) -> impl Iterator<Item = &Sent> {
        self.0.values().flatten()
    }

    fn cost(&self) -> u64 {
        self.all().map(cost).fold(0, u64::saturating_add)
    }
}

/// Returns what a request may cost, in pico-dollars.
fn cost(sent: &Sent) -> u64 {
    pico(sent.at_most.paid_usd())
}

impl InFlight {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            own: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the requests of this run may cost, in pico-dollars.
    pub(super) fn of_this_run(&self) -> u64 {
        self.lock().open.cost()
    }

    /// Records a request.
    pub(super) fn add(&self, request: u64, at_most: Entry) -> Result<(), Error> {
        let mut own = self.lock();
        let sent = Sent { request, at_most };
        if own.file.as_ref().is_none_or(|own| own.bytes > FILE_BYTES) {
            let mut file = RunFile::begin(&self.folder)?;
            for sent in own.open.all() {
                file.write(sent)?;
            }
            // Until the old file is removed, its requests count twice.
            if let Some(old) = own.file.replace(file) {
                private::remove(&old.path)?;
            }
        }
        if let Some(file) = &mut own.file {
            file.write(&sent)?;
        }
        own.open.add(sent);
        Ok(())
    }

    /// Records the end of a request.
    pub(super) fn end(&self, request: u64) {
        let mut own = self.lock();
        if !own.open.remove(request) {
            return;
        }
        let (v, ended) = (LEDGER.version, request);
        if let Some(file) = &mut own.file {
            // If this cannot be written, other runs count the request until this one ends.
            let _ = file.write(&Ended { v, ended });
        }
    }

    /// Returns the files of other runs.
    pub(super) fn of_others(&self) -> Result<Vec<PathBuf>, Error> {
        let mut files = private::files(&self.folder)?;
        let own = self.lock();
        files.retain(|path| own.file.as_ref().is_none_or(|own| own.path != *path));
        Ok(files)
    }

    /// Returns what the requests of other living runs may cost, in pico-dollars; `None` if a newer version wrote a line.
    /// Passes the requests of a run that is gone to `book`, and removes its file.
    pub(super) fn others(
        &self,
        mut book: impl FnMut(&Entry) -> Result<(), Error>,
    ) -> Result<Option<u64>, Error> {
        let mut sum = 0_u64;
        for path in self.of_others()? {
            let Some(file) = private::open(&path, OFlags::RDWR)? else {
                continue;
            };
            let Some(open) = read(&path)? else {
                return Ok(None);
            };
            if lives(&file, &path)? {
                sum = sum.saturating_add(open.cost());
                continue;
            }
            for sent in open.all() {
                book(&sent.at_most)?;
            }
            private::remove(&path)?;
        }
        Ok(Some(sum))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let own = self.lock();
        if let Some(file) = own.file.as_ref().filter(|_| own.open.0.is_empty()) {
            // A file that stays is removed by the next run.
            let _ = private::remove(&file.path);
        }
    }
}

impl RunFile {
    /// Creates a file, and locks it.
    fn begin(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(format!("{}.jsonl", layout::chance()?));
        let file = private::appending(&path)?;
        file.lock().map_err(Error::io("lock", &path))?;
        let bytes = 0;
        Ok(Self { path, file, bytes })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Error> {
        let mut bytes = serde_json::to_vec(line).map_err(|source| Error::Json {
            path: self.path.clone(),
            source,
        })?;
        bytes.push(b'\n');
        self.bytes += bytes.len() as u64;
        let written = self.file.write_all(&bytes);
        written.map_err(Error::io("write", &self.path))
    }
}

/// Returns whether a run holds the lock of its file.
fn lives(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(Error::io("lock", path)(e)),
    }
}

/// Reads the open requests of a run; `None` if a newer version wrote a line.
fn read(path: &Path) -> Result<Option<Open>, Error> {
    let bytes = private::read(path, FILE_BYTES_MAX)?.unwrap_or_default();
    let mut open = Open::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Line::Newer = Line::read(line) {
            return Ok(None);
        }
        // Another line was not written to its end: its request was not sent, or has perhaps not ended.
        if let Ok(sent) = serde_json::from_slice::<Sent>(line) {
            open.add(sent);
        } else if let Ok(Ended { ended, .. }) = serde_json::from_slice(line) {
            open.remove(ended);
        }
    }
    Ok(Some(open))
}
