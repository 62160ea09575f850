//! Locks between processes: `flock` on a file of its own, named `.<name>.lock` as other programs of the house name it.
//!
//! In: the path of a lock file. Out: a guard; dropping it releases the lock. The lock file stays: removing it would
//! let two holders lock two different files of one name. Should somebody remove it all the same, the check of the
//! inode after locking notices.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a writer waits by default. The lock is held for well under a millisecond at a time, so that this is only
/// reached when a holder hangs (a stopped process, a dead network disk).
pub const WAIT: Duration = Duration::from_secs(20);

/// A held lock.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, waiting at most `wait`.
    pub fn take(path: &Path, wait: Duration) -> Result<Lock, Error> {
        let (folder, name) = Folder::of_file(path)?;
        Lock::take_in(&folder, name, wait)
    }

    /// Takes the lock of a file in an open folder, waiting at most `wait`.
    pub(crate) fn take_beside(folder: &Folder, file: &str, wait: Duration) -> Result<Lock, Error> {
        Lock::take_in(folder, format!(".{file}.lock").as_ref(), wait)
    }

    /// The same for a lock file in an open folder.
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
            // A waiter that sleeps longer and longer starves beside fresh ones, so the pause stays short.
            std::thread::sleep(pause.min(wait - waited));
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Takes the lock if it is free.
    pub fn try_take(path: &Path) -> Result<Option<Lock>, Error> {
        let (folder, name) = Folder::of_file(path)?;
        Lock::try_take_in(&folder, name)
    }

    /// The same for a lock file in an open folder.
    pub(crate) fn try_take_in(folder: &Folder, name: &OsStr) -> Result<Option<Lock>, Error> {
        Lock::lock_in(folder, name, |file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        })
    }

    /// The same, waiting for as long as it takes: for locks that are held longer than a moment.
    pub(crate) fn wait_in(folder: &Folder, name: &OsStr) -> Result<Lock, Error> {
        let locked = Lock::lock_in(folder, name, |file| file.lock().map(|()| true))?;
        locked.ok_or_else(|| {
            Error::io("lock", &folder.path().join(name))(io::ErrorKind::WouldBlock.into())
        })
    }

    /// Locks a file in an open folder by `take`, which tells whether it could.
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
            // Somebody may have removed the file between opening and locking.
            if folder.look(name)?.is_some_and(|named| named.is_same(&ours)) {
                // Only for the message of a waiter in vain; a failure to write it changes nothing. A file with a second
                // name may be somebody else's: it is locked and not written.
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
        // Closing releases it as well; a child that inherited the descriptor would keep it, so release it outright.
        let _ = self.file.unlock();
    }
}

/// Where the lock of a file stands: `.<name>.lock` beside it.
pub fn lock_path(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.lock"))
}

fn held_by(folder: &Folder, name: &OsStr) -> String {
    holder(folder, name)
        .map(|pid| format!(" by process {pid}"))
        .unwrap_or_default()
}

/// The process that took a lock last, as its file says: for display only.
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
