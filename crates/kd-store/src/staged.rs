//! Threads that appear complete: a fork or an import has its messages from the start.
//!
//! The folder is filled under a hidden name and then renamed, so that a partial thread is never visible, not even after
//! a kill. Folders left by killed processes are removed by the next one, and by `kd forget`. A running process locks
//! its folder.

use crate::beneath::{Folder, Kind};
use crate::error::Error;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::thread::Thread;
use kd_core::ids::ThreadId;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};

/// Prefix of a hidden folder that the `.gitignore` of `.kd` covers.
const PREFIX: &str = ".kd-new-";
const SUFFIX: &str = ".jsonl";
const TRIES_MAX: u32 = 24;

/// A thread under construction, or a folder that goes with its process. Removed on drop.
#[derive(Debug)]
pub(crate) struct Staged {
    threads: Folder,
    name: String,
    folder: Folder,
    is_done: bool,
}

impl Staged {
    /// Creates the hidden folder, and removes those left by killed processes.
    pub(crate) fn new(layout: &Layout) -> Result<Self, Error> {
        Self::new_in(&swept(layout)?)
    }

    /// Creates the hidden folder in a folder that was swept before.
    pub(crate) fn new_in(threads: &Folder) -> Result<Self, Error> {
        for _ in 0..TRIES_MAX {
            let name = format!("{PREFIX}{}{SUFFIX}", crate::layout::chance()?);
            if !threads.create_folder(&name)? {
                continue;
            }
            let Some(folder) = threads.folder(&name)? else {
                continue;
            };
            // On a file system without locks, folders of other processes are never removed.
            let swept = matches!(folder.as_file().try_lock(), Err(TryLockError::WouldBlock));
            if !swept && is_at(threads, &name, &folder)? {
                return Ok(Self {
                    threads: threads.clone(),
                    name,
                    folder,
                    is_done: false,
                });
            }
        }
        Err(crowded(threads))
    }

    /// The folder to be filled.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Its hidden name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Creates and locks the folder again if another program has removed it: without a lock, other processes would remove what is
    /// written there later.
    pub(crate) fn hold(&mut self) -> Result<(), Error> {
        if is_at(&self.threads, &self.name, &self.folder)? {
            return Ok(());
        }
        self.threads.create_folder(&self.name)?;
        if let Some(folder) = self.threads.folder(&self.name)? {
            // If it is swept at this moment, the next call creates it again.
            let _ = folder.as_file().try_lock();
            self.folder = folder;
        }
        Ok(())
    }

    /// Gives the thread its id and makes it visible.
    pub(crate) fn finish(mut self, meta: impl Fn(&ThreadId) -> Meta) -> Result<Thread, Error> {
        for attempt in 0..TRIES_MAX {
            let id = crate::layout::new_id(attempt)?;
            if self.threads.has(&id.0) {
                continue;
            }
            drop(Thread::begin(self.folder.clone(), meta(&id))?);
            let (from, to) = (self.name.as_ref(), id.0.as_ref());
            if self.threads.move_to(from, &self.threads, to)? {
                self.is_done = true;
                return Thread::open_folder(&self.threads.path().join(&id.0));
            }
        }
        Err(crowded(&self.threads))
    }
}

impl Staged {
    /// Makes a thread visible that has its description already. Returns whether the id was free.
    pub(crate) fn finish_as(mut self, id: &ThreadId) -> Result<bool, Error> {
        let (from, to) = (self.name.as_ref(), id.0.as_ref());
        self.is_done = self.threads.move_to(from, &self.threads, to)?;
        Ok(self.is_done)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = self.threads.remove_all(&self.name);
        }
    }
}

/// Opens the folder of threads, without the folders that killed processes have left there.
pub(crate) fn swept(layout: &Layout) -> Result<Folder, Error> {
    let threads = layout.make_threads_folder()?;
    sweep(&threads)?;
    Ok(threads)
}

/// Removes the hidden folders that killed processes have left in a folder.
pub(crate) fn sweep(folder: &Folder) -> Result<(), Error> {
    for left in left_in(folder)? {
        // A folder that cannot be removed does no harm.
        let _ = left.remove();
    }
    Ok(())
}

/// A folder left by a killed process. It is locked, so no other process uses it meanwhile.
#[derive(Debug)]
pub(crate) struct Left {
    threads: Folder,
    name: String,
    _folder: Folder,
}

impl Left {
    pub(crate) fn path(&self) -> PathBuf {
        self.threads.path().join(&self.name)
    }

    pub(crate) fn remove(&self) -> Result<(), Error> {
        self.threads.remove_all(&self.name)
    }
}

/// Lists the folders left by killed processes in a branch.
pub(crate) fn left(threads: &Path) -> Result<Vec<Left>, Error> {
    match Folder::find(threads)? {
        Some(threads) => left_in(&threads),
        None => Ok(Vec::new()),
    }
}

fn left_in(threads: &Folder) -> Result<Vec<Left>, Error> {
    let mut found = Vec::new();
    for item in threads.items()? {
        let Ok(name) = item.name.into_string() else {
            continue;
        };
        if item.kind != Kind::Folder || !is_name(&name) {
            continue;
        }
        let Some(folder) = threads.folder(&name)? else {
            continue;
        };
        if folder.as_file().try_lock().is_ok() && is_at(threads, &name, &folder)? {
            found.push(Left {
                threads: threads.clone(),
                name,
                _folder: folder,
            });
        }
    }
    Ok(found)
}

fn is_name(name: &str) -> bool {
    let digits = name
        .strip_prefix(PREFIX)
        .and_then(|n| n.strip_suffix(SUFFIX));
    digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns whether a name still refers to an open folder.
fn is_at(threads: &Folder, name: &str, folder: &Folder) -> Result<bool, Error> {
    let own = crate::beneath::Look::of_file(folder.as_file());
    let own = own.map_err(Error::io("look at", &threads.path().join(name)))?;
    Ok(threads.look(name)?.is_some_and(|named| named.is_same(&own)))
}

fn crowded(threads: &Folder) -> Error {
    let path: PathBuf = threads.path().to_path_buf();
    Error::Crowded {
        path,
        tries: TRIES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use std::fs;

    #[test]
    fn a_thread_is_seen_whole_or_not_at_all() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        let hidden = || fs::read_dir(layout.threads_folder()).unwrap().count();
        let message = |staged: &Staged| {
            let file = staged.folder().create("0001-king.md").unwrap();
            std::io::Write::write_all(&mut file.unwrap(), b"Only here.").unwrap();
        };
        let staged = Staged::new(&layout).unwrap();
        message(&staged);
        assert_eq!(layout.threads().unwrap(), []);
        // A concurrent process does not touch it, nor does `kd forget`.
        let other = Staged::new(&layout).unwrap();
        assert_eq!(hidden(), 2);
        assert!(left(&layout.threads_folder()).unwrap().is_empty());
        drop(other);
        assert_eq!(hidden(), 1, "one that failed is gone");
        let meta = |id: &ThreadId| Meta::new(id.clone(), [], Timestamp::UNIX_EPOCH);
        let made = staged.finish(meta).unwrap();
        let threads = layout.threads().unwrap();
        assert_eq!((threads.len(), &threads[0].id), (1, made.id()));
        assert_eq!(made.path(), threads[0].path);
        assert_eq!(made.count().unwrap(), 1);
        assert_eq!(hidden(), 1);
        // The folder of a killed process has no lock, and is swept.
        let mut killed = Staged::new(&layout).unwrap();
        message(&killed);
        killed.is_done = true;
        drop(killed);
        assert_eq!(left(&layout.threads_folder()).unwrap().len(), 1);
        assert_eq!(layout.threads().unwrap().len(), 1);
        drop(Staged::new(&layout).unwrap());
        assert_eq!(hidden(), 1);
    }
}
