//! Locks between processes: `flock` on a separate file, named `.<name>.lock` as in kingdom-cli.
//!
//! Input: the path of a lock file. Output: a guard; dropping it releases the lock. The lock file is never removed:
//! otherwise two holders could lock two different files of one name. If another program removes it, comparing inodes
//! after locking detects that.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Default time limit of a writer that waits for the lock. The lock is held for well under a millisecond at a time, so
/// a writer waits this long only if a holder hangs (a stopped process, a dead network disk).
pub const WAIT: Duration = Duration::from_secs(20);

/// A held lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, waiting at most `wait`.
    ///
    /// # Errors
    /// [`Error::LockBusy`] if another process holds it for longer; also if the lock file cannot be opened or created.
    pub fn take(path: &Path, wait: Duration) -> Result<Lock, Error> {
        let (folder, name) = Folder::of_file(path)?;
        Lock::take_in(&folder, name, wait)
    }

    /// Takes the lock of a file in an open folder, waiting at most `wait`.
    ///
    /// # Errors
    /// Those of [`Lock::take`].
    pub fn take_beside(folder: &Folder, file: &str, wait: Duration) -> Result<Lock, Error> {
        Lock::take_in(folder, format!(".{file}.lock").as_ref(), wait)
    }

    /// Takes a lock file in an open folder, waiting at most `wait`.
    pub(crate) fn take_in(folder: &Folder, name: &OsStr, wait: Duration) -> Result<Lock, Error> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some(lock) = Lock::try_take_in(folder, name)? {
                return Ok(lock);
            }
            let waited = began.elapsed();
            if waited >= wait {
                return Err(Error::LockBusy {
                    path: folder.path().join(name),
                    holder: held_by(folder, name),
                    waited,
                });
            }
            // A waiter with growing pauses would starve beside new ones, so the pause stays short.
            std::thread::sleep(pause.min(wait - waited));
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// If the lock file cannot be opened or created.
    pub fn try_take(path: &Path) -> Result<Option<Lock>, Error> {
        let (folder, name) = Folder::of_file(path)?;
        Lock::try_take_in(&folder, name)
    }

    /// Takes a lock file in an open folder if it is free.
    pub(crate) fn try_take_in(folder: &Folder, name: &OsStr) -> Result<Option<Lock>, Error> {
        Lock::lock_in(folder, name, |file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        })
    }

    /// Takes a lock file in an open folder, waiting as long as needed: for locks that are held for long.
    pub(crate) fn wait_in(folder: &Folder, name: &OsStr) -> Result<Lock, Error> {
        let locked = Lock::lock_in(folder, name, |file| file.lock().map(|()| true))?;
        locked.ok_or_else(|| {
            Error::io("lock", &folder.path().join(name))(io::ErrorKind::WouldBlock.into())
        })
    }

    /// Locks a file in an open folder with `take`, which returns whether it succeeded.
    fn lock_in(
        folder: &Folder,
        name: &OsStr,
        take: impl Fn(&File) -> io::Result<bool>,
    ) -> Result<Option<Lock>, Error> {
        loop {
            let (file, ours) = folder.lock_file(name)?;
            if !take(&file).map_err(|e| Error::io("lock", &folder.path().join(name))(e))? {
                return Ok(None);
            }
            // The file may have been removed between opening and locking.
            if folder.look(name)?.is_some_and(|named| named.is_same(&ours)) {
                // Only for the message of a waiter that times out; a failed write does not matter. A file with a second
                // hard link may be another user's: it is locked but not written.
                if !ours.has_second_name() {
                    let pid = format!("{:>10}\n", std::process::id());
                    let _ = file.write_all_at(pid.as_bytes(), 0);
                }
                return Ok(Some(Lock { file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing releases it too, but a child that inherited the descriptor would keep it: release it explicitly.
        let _ = self.file.unlock();
    }
}

/// Returns the lock file of a file: `.<name>.lock` beside it.
pub fn lock_path(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.lock"))
}

fn held_by(folder: &Folder, name: &OsStr) -> String {
    holder(folder, name)
        .map(|pid| format!(" by process {pid}"))
        .unwrap_or_default()
}

/// Returns the last process that took a lock, according to its file: for display only.
pub(crate) fn holder(folder: &Folder, name: &OsStr) -> Option<u32> {
    let bytes = folder.read(name, bounds::LOCK).ok().flatten()?;
    String::from_utf8(bytes).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_waits_in_vain_and_learns_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".x.lock");
        let held = Lock::take(&path, WAIT).unwrap();
        let error = Lock::take(&path, Duration::from_millis(5)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("by process {}", std::process::id())),
            "{text}"
        );
        drop(held);
        Lock::take(&path, Duration::ZERO).unwrap();
    }

    #[test]
    fn a_removed_lock_file_does_not_give_two_holders_the_same_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".x.lock");
        let folder = Folder::open(dir.path()).unwrap();
        let (_old, was) = folder.lock_file(".x.lock".as_ref()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _lock = Lock::take(&path, WAIT).unwrap();
        assert!(!folder.look(".x.lock").unwrap().unwrap().is_same(&was));
        assert!(Lock::try_take(&path).unwrap().is_none());
    }

    #[test]
    fn lock_files_are_named_as_their_files() {
        assert_eq!(
            lock_path(Path::new("/a/sessions/claude.json")),
            Path::new("/a/sessions/.claude.json.lock")
        );
    }
}
