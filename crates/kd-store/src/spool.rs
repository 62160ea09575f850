//! Where a message is written before it has a number: files in `.kd-new/`, one for each writer.
//!
//! A writer holds a lock on its file for as long as it lives, so that the file of a killed writer can be told and
//! removed. The files stand in a folder of their own because creating them there does not touch the thread folder's
//! time, by which the index is known to be true; their names end in `.jsonl` so that git ignores them.

use crate::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a name may be taken or a fresh file be swept away before that is an error.
const TRIES_MAX: u32 = 1000;

/// The spool folder of a thread.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
}

/// A whole text without a number. Its file goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Spooled {
    path: PathBuf,
    /// Holds the lock that says that we live.
    file: File,
}

impl Spooled {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the text a name outside the spool; it stays locked for as long as what is given back lives.
    pub(crate) fn link(&self, to: &Path) -> Result<File, Error> {
        fs::hard_link(&self.path, to).map_err(Error::io("create", to))?;
        self.file.try_clone().map_err(Error::io("open", to))
    }

    /// Presses the text onto the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(Error::io("write", &self.path))
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // One that stays is swept by the next writer who lists the folder.
        let _ = fs::remove_file(&self.path);
    }
}

impl Spool {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes a text.
    pub(crate) fn put(&self, text: &[u8]) -> Result<Spooled, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for _ in 0..TRIES_MAX {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = self
                .folder
                .join(format!("{}-{count}.jsonl", std::process::id()));
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                // A dead process had our number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir(&self.folder)
                        .or_else(|e| {
                            if e.kind() == io::ErrorKind::AlreadyExists {
                                Ok(())
                            } else {
                                Err(e)
                            }
                        })
                        .map_err(Error::io("create", &self.folder))?;
                    continue;
                }
                Err(e) => return Err(Error::io("create", &path)(e)),
            };
            // Between its birth and this lock a sweeper may take it for a dead writer's: then it holds the lock, or
            // the name is gone.
            if file.try_lock().is_err() || !path.exists() {
                continue;
            }
            let written = file.write_all(text);
            let spooled = Spooled { path, file };
            return match written {
                Ok(()) => Ok(spooled),
                Err(e) => Err(Error::io("write", &spooled.path)(e)),
            };
        }
        Err(Error::Crowded {
            path: self.folder.clone(),
            tries: TRIES_MAX,
        })
    }

    /// Makes the folder if it is missing, and removes the files of writers who are dead.
    pub(crate) fn clean(&self) -> Result<(), Error> {
        let items = match fs::read_dir(&self.folder) {
            Ok(items) => items,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match fs::create_dir(&self.folder) {
                    Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                        Err(Error::io("create", &self.folder)(e))
                    }
                    _ => Ok(()),
                };
            }
            Err(e) => return Err(Error::io("list", &self.folder)(e)),
        };
        for item in items.flatten() {
            if let Ok(file) = File::open(item.path())
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(item.path());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_dead_writers_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::new(dir.path().join(".kd-new"));
        let alive = spool.put(b"alive").unwrap();
        fs::write(spool.path().join("1-1.jsonl"), "dead").unwrap();
        spool.clean().unwrap();
        let left: Vec<_> = fs::read_dir(spool.path())
            .unwrap()
            .map(|i| i.unwrap().path())
            .collect();
        assert_eq!(left, [alive.path()]);
        drop(alive);
        assert_eq!(fs::read_dir(spool.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_name_left_by_a_dead_process_of_our_number_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::new(dir.path().to_path_buf());
        for count in 0..50 {
            fs::write(
                dir.path()
                    .join(format!("{}-{count}.jsonl", std::process::id())),
                "old",
            )
            .unwrap();
        }
        let new = spool.put(b"new").unwrap();
        new.sync().unwrap();
        assert_eq!(fs::read(new.path()).unwrap(), b"new");
    }
}
