//! The user's unanswered messages: `queue-<session>.jsonl`, one file per session that has any, in the user's state
//! folder. They are sent in the user's name, so nothing of them comes from the project.
//!
//! A line either keeps a delivery (replacing an earlier one with the same id) or forgets it. A running session holds a
//! lock on its file, so that the next one can detect and take over what a killed session left. An incomplete last line
//! is a delivery that was never confirmed.

use crate::error::Error;
use crate::layout;
use crate::lock::{self, Lock};
use crate::private;
use crate::user_dirs::make_private;
use kd_core::Delivery;
use kd_core::formats::{self, QUEUE};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A larger file is not a queue: its own limits are far lower.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of sessions taken over at once.
const FILES_MAX: usize = 1000;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Keep(Box<Delivery>),
    Forget(String),
}

/// The queue of one session.
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    /// Created on first use, locked while it is open.
    file: Option<(PathBuf, File)>,
    /// Deliveries that are kept and not forgotten.
    ids: BTreeSet<String>,
}

impl Queue {
    /// Opens a queue for a new session in a thread's folder ([`crate::Layout::queue_folder`]); returns the deliveries
    /// of dead sessions too, oldest first, which this session takes over.
    ///
    /// # Errors
    /// The folder exists and cannot be read or written, or a newer kd left messages; then nothing is changed.
    pub fn open(folder: &Path) -> Result<(Queue, Vec<Delivery>), Error> {
        let mut queue = Queue {
            folder: folder.to_path_buf(),
            file: None,
            ids: BTreeSet::new(),
        };
        if found(folder)?.is_empty() {
            return Ok((queue, Vec::new()));
        }
        let _lock = queue.lock()?;
        let mut left: Vec<Delivery> = Vec::new();
        let mut dead = Vec::new();
        for path in found(folder)? {
            let Some(file) = private::open(&path, OFlags::RDONLY)? else {
                continue;
            };
            // The lock is held by a running session.
            if file.try_lock().is_err() {
                continue;
            }
            for delivery in read(&file, &path)? {
                if !left.iter().any(|known| known.id == delivery.id) {
                    left.push(delivery);
                }
            }
            dead.push((path, file));
        }
        if !left.is_empty() {
            queue.create()?;
            for delivery in &left {
                queue.put(&Line::Keep(Box::new(delivery.clone())))?;
                queue.ids.insert(delivery.id.clone());
            }
        }
        for (path, _lock) in dead {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        Ok((queue, left))
    }

    /// Keeps a delivery. Once this returns, a killed process cannot lose it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep(&mut self, delivery: &Delivery) -> Result<(), Error> {
        if self.file.is_none() {
            let _lock = self.lock()?;
            self.create()?;
        }
        self.put(&Line::Keep(Box::new(delivery.clone())))?;
        self.ids.insert(delivery.id.clone());
        Ok(())
    }

    /// Forgets a delivery. Removes the file if it was the last delivery.
    ///
    /// # Errors
    /// Those of [`Queue::keep`].
    pub fn forget(&mut self, id: &str) -> Result<(), Error> {
        if !self.ids.remove(id) {
            return Ok(());
        }
        self.put(&Line::Forget(id.to_owned()))?;
        if self.ids.is_empty()
            && let Some((path, _locked)) = self.file.take()
        {
            let _lock = self.lock()?;
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        Ok(())
    }

    /// Returns whether a message of another running session waits until it is sent.
    pub fn waits_elsewhere(&self) -> bool {
        let own = self.file.as_ref().map(|(path, _)| path);
        let mut others = found(&self.folder).unwrap_or_default();
        others.retain(|path| Some(path) != own);
        if others.is_empty() {
            return false;
        }
        // A file that is locked to see whether its session runs must not look locked to a session that takes it over.
        let Ok(_lock) = self.lock() else {
            return false;
        };
        others.iter().any(|path| {
            let file = private::open(path, OFlags::RDONLY).ok().flatten();
            let file = file.filter(|file| file.try_lock().is_err());
            let waiting = file.and_then(|file| read(&file, path).ok());
            waiting.is_some_and(|all| all.iter().any(|delivery| delivery.asked.is_none()))
        })
    }

    /// Takes the lock shared by all sessions of the thread. Creates the folder.
    fn lock(&self) -> Result<Lock, Error> {
        make_private(&self.folder)?;
        Lock::take(&layout::queue_lock(&self.folder), lock::WAIT)
    }

    /// Creates this session's file. The caller holds the lock.
    fn create(&mut self) -> Result<(), Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let session = format!("{}-{count}", std::process::id());
            let path = layout::queue_file(&self.folder, &session);
            // Left by a dead process with the same id, and taken over under another name.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
            if let Some(file) = private::open(&path, flags)? {
                // No other session sweeps while we hold the shared lock.
                let _ = file.try_lock();
                self.file = Some((path, file));
                return Ok(());
            }
        }
    }

    fn put(&mut self, line: &Line) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let mut text = serde_json::to_vec(line).map_err(|source| Error::Json {
            path: path.clone(),
            source,
        })?;
        text.push(b'\n');
        file.write_all(&text)
            .and_then(|()| file.sync_data())
            .map_err(Error::io("write", path))
    }
}

/// Lists the queue files of a folder, by age; empty if it does not exist.
fn found(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let items = match fs::read_dir(folder) {
        Ok(items) => items,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list", folder)(e)),
    };
    let mut files = Vec::new();
    for item in items.take(FILES_MAX) {
        let path = item.map_err(Error::io("list", folder))?.path();
        if layout::is_queue_file(&path)
            && let Ok(meta) = path.symlink_metadata()
            && meta.is_file()
        {
            files.push((meta.modified().ok(), path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Reads the deliveries of a file, in order.
fn read(file: &File, path: &Path) -> Result<Vec<Delivery>, Error> {
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(Error::io("read", path))?;
    let mut kept: Vec<Delivery> = Vec::new();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        match serde_json::from_slice(line) {
            Ok(Line::Keep(delivery)) => match kept.iter_mut().find(|d| d.id == delivery.id) {
                Some(old) => *old = *delivery,
                None => kept.push(*delivery),
            },
            Ok(Line::Forget(id)) => kept.retain(|d| d.id != id),
            Err(_) => {
                let version = formats::stated(line, "v");
                QUEUE.check(version).map_err(|newer| Error::Newer {
                    path: path.to_owned(),
                    newer,
                })?;
            }
        }
    }
    Ok(kept)
}
