//! The folder of a worker: threads on their way into the database of a fleet. No other process lists, fetches or
//! removes its content, even if several processes share a project.
//!
//! Input: the paths of a project. Output: a hidden and locked folder, which is removed with the worker. Folders left by killed
//! workers are removed by the next one.

use crate::beneath::Folder;
use crate::error::Error;
use crate::layout::Layout;
use crate::staged::{self, Staged};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum attempts to remove the threads of a batch, and the pause between them: an interrupted question may still
/// be writing.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// A worker's own folder. Removed on drop.
#[derive(Debug)]
pub struct Passing {
    name: String,
    staged: Mutex<Staged>,
}

impl Passing {
    /// Creates the folder, and removes those left by killed workers.
    ///
    /// # Errors
    /// It cannot be created, or the folder of batches cannot be read.
    pub fn new(layout: &Layout) -> Result<Self, Error> {
        layout.protect();
        let batches = Folder::make(&layout.batches_folder())?;
        staged::sweep(&batches)?;
        let staged = Staged::new_in(&batches)?;
        Ok(Self {
            name: staged.name().to_owned(),
            staged: Mutex::new(staged),
        })
    }

    fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns its name in the folder of batches, for [`Layout::passing`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates and locks it again if another program has removed it, for example `git clean`.
    ///
    /// # Errors
    /// It cannot be looked at or created.
    pub fn hold(&self) -> Result<(), Error> {
        self.staged().hold()
    }

    /// Removes the threads and files of a batch. Blocks for up to a second if a thread is still being written.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, batch: &str) -> Result<(), Error> {
        for _ in 1..TRIES {
            if self.staged().folder().remove_all(batch).is_ok() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        self.staged().folder().remove_all(batch)
    }
}

/// Removes the folders that killed workers have left in a project.
///
/// # Errors
/// The folder of batches cannot be read.
pub fn sweep(layout: &Layout) -> Result<(), Error> {
    match Folder::find(&layout.batches_folder())? {
        Some(batches) => staged::sweep(&batches),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carried;
    use crate::thread::Thread;
    use std::fs;

    #[test]
    fn threads_of_a_worker_are_seen_by_no_other_process_and_go_with_it() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        let here = layout.in_fleet("batch-1");
        let kept = Thread::create(&here, &[]).unwrap();
        let (one, other) = (
            Passing::new(&layout).unwrap(),
            Passing::new(&layout).unwrap(),
        );
        let place = here.passing(one.name());
        let thread = Thread::create(&place, &[]).unwrap();
        let theirs = Thread::create(&here.passing(other.name()), &[]).unwrap();
        let of_batches = || -> Vec<_> {
            let all = layout.batch_threads().unwrap();
            all.into_iter().map(|place| place.id).collect()
        };
        assert_eq!(of_batches(), [kept.id().clone()], "hidden");
        let incoming = carried::Incoming::open(&here).unwrap();
        assert!(
            !incoming.has(thread.id()),
            "it is fetched from the database"
        );
        assert!(
            !carried::read(&place, thread.id(), 9999)
                .unwrap()
                .unwrap()
                .is_empty()
        );
        // One cannot remove what is not its own.
        carried::remove(&place, theirs.id()).unwrap();
        carried::remove(&place, kept.id()).unwrap();
        one.remove("batch-1").unwrap();
        assert!(!thread.path().exists() && theirs.path().exists());
        // The folder of a running worker is not removed; the folder of a killed worker has no lock.
        let folder = |worker: &Passing| layout.batches_folder().join(worker.name());
        let (name, of_one) = (folder(&other), folder(&one));
        sweep(&layout).unwrap();
        assert!(name.exists() && of_one.exists());
        drop(one);
        assert!(!of_one.exists());
        // One that lost its folder to another program holds it again.
        let lost = Passing::new(&layout).unwrap();
        for is_made_again in [false, true] {
            fs::remove_dir_all(folder(&lost)).unwrap();
            if is_made_again {
                Thread::create(&here.passing(lost.name()), &[]).unwrap();
            }
            lost.hold().unwrap();
            sweep(&layout).unwrap();
            assert!(folder(&lost).exists(), "{is_made_again}");
        }
        let of_lost = folder(&lost);
        drop(lost);
        assert!(!of_lost.exists());
        let left = layout
            .batches_folder()
            .join(".kd-new-0000000000000001.jsonl");
        fs::create_dir_all(left.join("batch-1/threads/council-1")).unwrap();
        sweep(&layout).unwrap();
        assert!(!left.exists() && theirs.path().exists());
        drop(other);
        assert_eq!(of_batches(), [kept.id().clone()]);
        let names = fs::read_dir(layout.batches_folder()).unwrap().count();
        assert_eq!(names, 1);
    }
}
