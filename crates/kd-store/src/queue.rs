//! The king's words that are not answered yet: `.kd-queue-<session>.jsonl`, one file for each session that has any.
//!
//! A line either keeps a delivery (a later one with the same id takes its place) or forgets it. The session holds a lock
//! on its file while it lives, so that the next one can tell what a killed one has left and take it over. A torn last
//! line is a delivery that was never promised.

use crate::beneath::Folder;
use crate::error::Error;
use crate::layout;
use crate::thread::{Thread, beside};
use kd_core::Delivery;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file larger than this is no queue: its bounds are far below.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Keep(Box<Delivery>),
    Forget(String),
}

/// What one session keeps.
#[derive(Debug)]
pub struct Queue {
    folder: PathBuf,
    /// Made when there is something to keep, locked while it is open.
    file: Option<(PathBuf, File)>,
    /// What is kept and not forgotten.
    ids: BTreeSet<String>,
}

impl Queue {
    /// A queue for a new session, and what sessions that are dead have left, oldest first. What they left is this
    /// session's from now on.
    pub fn open(thread: &Thread) -> Result<(Queue, Vec<Delivery>), Error> {
        let mut queue = Queue {
            folder: thread.path().to_path_buf(),
            file: None,
            ids: BTreeSet::new(),
        };
        if found(thread.path())?.is_empty() {
            return Ok((queue, Vec::new()));
        }
        let left = beside(thread.folder(), || {
            let mut left: Vec<Delivery> = Vec::new();
            let mut dead = Vec::new();
            for path in found(thread.path())? {
                let Ok(file) = File::open(&path) else {
                    continue;
                };
                // Whoever lives holds the lock.
                if file.try_lock().is_err() {
                    continue;
                }
                for delivery in read(&file).map_err(Error::io("read", &path))? {
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
            Ok(left)
        })?;
        Ok((queue, left))
    }

    /// Keeps a delivery. When this returns, a killed process cannot lose it.
    pub fn keep(&mut self, delivery: &Delivery) -> Result<(), Error> {
        if self.file.is_none() {
            let folder = Folder::open(&self.folder)?;
            beside(&folder, || self.create())?;
        }
        self.put(&Line::Keep(Box::new(delivery.clone())))?;
        self.ids.insert(delivery.id.clone());
        Ok(())
    }

    /// Forgets a delivery. The file goes with the last one.
    pub fn forget(&mut self, id: &str) -> Result<(), Error> {
        if !self.ids.remove(id) {
            return Ok(());
        }
        self.put(&Line::Forget(id.to_owned()))?;
        if self.ids.is_empty()
            && let Some((path, _lock)) = self.file.take()
        {
            let folder = Folder::open(&self.folder)?;
            beside(&folder, || {
                fs::remove_file(&path).map_err(Error::io("remove", &path))
            })?;
        }
        Ok(())
    }

    /// Makes this session's file. The caller holds the thread's lock.
    fn create(&mut self) -> Result<(), Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let session = format!("{}-{count}", std::process::id());
            let path = layout::queue_file(&self.folder, &session);
            let made = OpenOptions::new().append(true).create_new(true).open(&path);
            match made {
                Ok(file) => {
                    // Nobody else sweeps while we hold the thread's lock.
                    let _ = file.try_lock();
                    self.file = Some((path, file));
                    return Ok(());
                }
                // A session of a dead process with our number, that lives on by another name.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::io("create", &path)(e)),
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

/// The queue files of a thread's folder, by age.
fn found(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| Error::io("list", folder)(e);
    let mut files = Vec::new();
    for item in fs::read_dir(folder).map_err(failed)? {
        let path = item.map_err(failed)?.path();
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

/// What a file keeps, in the order in which it was said.
fn read(file: &File) -> io::Result<Vec<Delivery>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
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
            // Of another version: what it says of other deliveries still holds.
            Err(_) => {}
        }
    }
    Ok(kept)
}
