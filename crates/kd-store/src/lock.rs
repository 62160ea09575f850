//! Locks between processes: `flock` on a file of its own, named `.<name>.lock` as other programs of the house name it.
//!
//! In: the path of a lock file. Out: a guard; dropping it releases the lock. The lock file stays: removing it would
//! let two holders lock two different files of one name. Should somebody remove it all the same, the check of the
//! inode after locking notices.

use crate::error::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
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
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some(lock) = Lock::try_take(path)? {
                return Ok(lock);
            }
            let waited = began.elapsed();
            if waited >= wait {
                return Err(Error::LockBusy {
                    path: path.to_path_buf(),
                    holder: holder(path),
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
        loop {
            let file = open(path).map_err(Error::io("open the lock", path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(e)) => return Err(Error::io("lock", path)(e)),
            }
            if same_file(&file, path) {
                // Only for the message of whoever waits in vain; a failure to write it changes nothing.
                let _ = file.write_all_at(format!("{:>10}\n", std::process::id()).as_bytes(), 0);
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

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Whether the path still names the file that is open.
fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(named)) => ours.ino() == named.ino() && ours.dev() == named.dev(),
        _ => false,
    }
}

fn holder(path: &Path) -> String {
    std::fs::read_to_string(path)
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .map(|pid| format!(" by process {pid}"))
        .unwrap_or_default()
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
        let old = open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lock = Lock::take(&path, WAIT).unwrap();
        assert!(!same_file(&old, &path));
        assert!(same_file(&lock.file, &path));
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
