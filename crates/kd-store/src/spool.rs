//! The files in which messages are written before they have a number: in `.kd-new/`, one per writer.
//!
//! A running writer holds a lock on its file, so that the file of a killed writer can be recognized and removed. The
//! files are in a separate folder because creating them there does not change the thread folder's time, which validates
//! the index; their names end in `.jsonl` so that git ignores them.

use crate::beneath::{Folder, Kind};
use crate::error::Error;
use crate::layout::SPOOL_FOLDER;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum attempts if a name is taken or another process removes a new file.
const TRIES_MAX: u32 = 1000;

/// The spool folder of a thread.
#[derive(Debug)]
pub(crate) struct Spool {
    thread: Folder,
    /// The open folder, once it was used.
    open: Mutex<Option<Folder>>,
}

/// A complete text without a number. Its file is removed on drop.
#[derive(Debug)]
pub(crate) struct Spooled {
    folder: Folder,
    name: String,
    /// Holds the lock that marks the writer as running.
    file: File,
}

impl Spooled {
    /// Links the text to a name in another folder; fails if that is taken.
    pub(crate) fn publish(&self, to: &Folder, name: &str) -> io::Result<()> {
        self.folder.publish(self.name.as_ref(), to, name.as_ref())
    }

    /// Links the text to a name outside the spool; it stays locked as long as the returned file is open.
    pub(crate) fn link(&self, to: &Folder, name: &str) -> Result<File, Error> {
        let path = to.path().join(name);
        self.publish(to, name).map_err(Error::io("create", &path))?;
        self.file.try_clone().map_err(Error::io("open", &path))
    }

    /// Syncs the text to disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let path = self.folder.path().join(&self.name);
        self.file.sync_data().map_err(Error::io("write", &path))
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // If this fails, the next writer that lists the folder removes it.
        let _ = self.folder.remove(&self.name);
    }
}

impl Spool {
    pub(crate) fn new(thread: Folder) -> Self {
        Self {
            thread,
            open: Mutex::new(None),
        }
    }

    /// Opens the folder, creating it if it is missing.
    pub(crate) fn folder(&self) -> Result<Folder, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = &*open {
            return Ok(folder.clone());
        }
        let folder = self.thread.make_folder(SPOOL_FOLDER)?;
        *open = Some(folder.clone());
        Ok(folder)
    }

    /// Writes a text.
    pub(crate) fn put(&self, text: &[u8]) -> Result<Spooled, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..TRIES_MAX {
            let folder = self.folder()?;
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{count}.jsonl", std::process::id());
            let mut file = match folder.create(&name) {
                Ok(Some(file)) => file,
                // A dead process had the same id.
                Ok(None) => continue,
                // The folder was removed since we opened it.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    continue;
                }
                Err(e) => return Err(e),
            };
            // Before this lock, another process that cleans up may assume that the writer is dead. In that case it
            // holds the lock, or the name is gone.
            if file.try_lock().is_err() || !folder.has(&name) {
                continue;
            }
            let written = file.write_all(text);
            let path = folder.path().join(&name);
            let spooled = Spooled { folder, name, file };
            return match written {
                Ok(()) => Ok(spooled),
                Err(e) => Err(Error::io("write", &path)(e)),
            };
        }
        Err(Error::Crowded {
            path: self.thread.path().join(SPOOL_FOLDER),
            tries: TRIES_MAX,
        })
    }

    /// Creates the folder if it is missing, and removes the files of dead writers. Keeps other names, and anything that
    /// is not a regular file.
    pub(crate) fn clean(&self) -> Result<(), Error> {
        let folder = self.folder()?;
        for item in folder.items()? {
            let ours = item.kind == Kind::File && item.name.to_str().is_some_and(is_ours);
            if ours
                && let Ok(Some(file)) = folder.file(&item.name)
                && file.try_lock().is_ok()
            {
                let _ = folder.remove(&item.name);
            }
        }
        Ok(())
    }
}

/// Returns whether a name is `<process>-<count>.jsonl`, or the name of an index that is being written.
fn is_ours(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(stem) = name.strip_suffix(".jsonl") else {
        return false;
    };
    stem.split_once('-')
        .is_some_and(|(first, count)| digits(count) && (first == "index" || digits(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs;
    use std::path::Path;

    fn spool(thread: &Path) -> Spool {
        Spool::new(Folder::open(thread).unwrap())
    }

    fn names(folder: &Path) -> Vec<String> {
        let items = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = items
            .map(|i| i.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_the_files_of_dead_writers_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let spool = spool(dir.path());
        let alive = spool.put(b"alive").unwrap();
        let folder = dir.path().join(SPOOL_FOLDER);
        for dead in ["1-1.jsonl", "index-7.jsonl"] {
            fs::write(folder.join(dead), "dead").unwrap();
        }
        let others = [
            "-1.jsonl",
            "1-1.jsonl.md",
            "a-1.jsonl",
            "id_rsa",
            "1-.jsonl",
        ];
        for other in others {
            fs::write(folder.join(other), "not ours").unwrap();
        }
        std::os::unix::fs::symlink("id_rsa", folder.join("2-2.jsonl")).unwrap();
        fs::create_dir(folder.join("3-3.jsonl")).unwrap();
        spool.clean().unwrap();
        let mut left: Vec<String> = others.map(str::to_owned).to_vec();
        left.extend([alive.name.clone(), "2-2.jsonl".into(), "3-3.jsonl".into()]);
        left.sort_unstable();
        assert_eq!(names(&folder), left);
        drop(alive);
        assert_eq!(names(&folder).len(), left.len() - 1);
    }

    #[test]
    fn a_removed_folder_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let spool = spool(dir.path());
        drop(spool.put(b"one").unwrap());
        fs::remove_dir(dir.path().join(SPOOL_FOLDER)).unwrap();
        let two = spool.put(b"two").unwrap();
        assert!(dir.path().join(SPOOL_FOLDER).join(&two.name).is_file());
    }

    #[test]
    fn a_name_left_by_a_dead_process_of_our_number_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(SPOOL_FOLDER);
        fs::create_dir(&folder).unwrap();
        for count in 0..50 {
            let name = format!("{}-{count}.jsonl", std::process::id());
            fs::write(folder.join(name), "old").unwrap();
        }
        let new = spool(dir.path()).put(b"new").unwrap();
        new.sync().unwrap();
        assert_eq!(fs::read(folder.join(&new.name)).unwrap(), b"new");
    }
}
