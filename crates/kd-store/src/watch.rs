//! Reports changes in a folder, as notified by the file system: one wake-up per burst of changes; the caller has to
//! look what changed.
//!
//! Network file systems do not report changes by other machines. To see those too, look at intervals: use the limit of
//! [`Watch::wait`]. A system that has no notification left is replaced by looking at intervals.

use crate::beneath::Folder;
use crate::error::Error;
use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Interval at which a folder is looked at that the system does not watch.
const POLL: Duration = Duration::from_millis(300);

/// A watched folder, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    woken: Receiver<()>,
    _watching: Watching,
}

/// A watched folder whose changes call a function, until this is dropped.
pub struct Watching {
    _watcher: Box<dyn Watcher + Send>,
}

impl std::fmt::Debug for Watching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}

/// Watches a folder, not its subfolders, until the watcher is dropped: by the system's notifications, or by looking at
/// intervals where these are not to be had (some network disks, no handles left). `tell` is called on another thread.
///
/// # Errors
/// If neither can be started.
pub fn watcher(
    folder: &Path,
    tell: impl Fn(notify::Result<Event>) + Clone + Send + 'static,
) -> notify::Result<Box<dyn Watcher + Send>> {
    let system = RecommendedWatcher::new(tell.clone(), Config::default());
    if let Ok(mut system) = system
        && system.watch(folder, RecursiveMode::NonRecursive).is_ok()
    {
        return Ok(Box::new(system));
    }
    polling(folder, tell)
}

fn polling(
    folder: &Path,
    tell: impl Fn(notify::Result<Event>) + Send + 'static,
) -> notify::Result<Box<dyn Watcher + Send>> {
    let mut poll = PollWatcher::new(tell, Config::default().with_poll_interval(POLL))?;
    poll.watch(folder, RecursiveMode::NonRecursive)?;
    Ok(Box::new(poll))
}

impl Watching {
    /// Watches a folder, not its subfolders. `changed` is called on another thread for each change.
    ///
    /// # Errors
    /// If the folder does not exist, is a link, or cannot be watched.
    pub fn new(
        folder: &Path,
        changed: impl Fn() + Clone + Send + 'static,
    ) -> Result<Watching, Error> {
        // The watcher would follow a link.
        Folder::open(folder)?;
        let failed = |e: notify::Error| Error::io("watch", folder)(io::Error::other(e));
        let watcher = watcher(folder, move |event| {
            if is_change(&event) {
                changed();
            }
        });
        Ok(Watching {
            _watcher: watcher.map_err(failed)?,
        })
    }
}

impl Watch {
    /// Watches a folder, not its subfolders.
    ///
    /// # Errors
    /// Those of [`Watching::new`].
    pub fn new(folder: &Path) -> Result<Watch, Error> {
        // Holds at most one wake-up: a burst counts as one change.
        let (wake, woken) = sync_channel(1);
        let watching = Watching::new(folder, move || {
            let _ = wake.try_send(());
        })?;
        Ok(Watch {
            woken,
            _watching: watching,
        })
    }

    /// Waits up to `limit` for a change; returns false if there was none.
    pub fn wait(&self, limit: Duration) -> bool {
        match self.woken.recv_timeout(limit) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            // The watcher lives as long as `self`.
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }
}

/// Returns whether an event is a change. Reads do not count: the woken caller reads files, and would wake itself again.
fn is_change(event: &notify::Result<Event>) -> bool {
    match event.as_ref().map(|event| event.kind) {
        Ok(EventKind::Access(AccessKind::Close(AccessMode::Write))) => true,
        Ok(EventKind::Access(_)) => false,
        // An error may have been a change.
        Ok(_) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_that_the_system_does_not_watch_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let (wake, woken) = sync_channel(100);
        let _watcher = polling(folder.path(), move |event| {
            if is_change(&event) {
                let _ = wake.try_send(());
            }
        })
        .unwrap();
        fs::write(folder.path().join("a"), "x").unwrap();
        assert_eq!(woken.recv_timeout(Duration::from_secs(30)), Ok(()));
    }

    #[test]
    fn a_change_wakes_and_a_look_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "x").unwrap();
        let watch = Watch::new(folder.path()).unwrap();
        let short = Duration::from_millis(300);
        while watch.wait(short) {}
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        fs::read_dir(folder.path()).unwrap().for_each(drop);
        assert!(!watch.wait(short), "reading is no change");
        let long = Duration::from_secs(30);
        fs::write(&file, "y").unwrap();
        assert!(watch.wait(long));
        while watch.wait(short) {}
        fs::write(folder.path().join("b"), "").unwrap();
        assert!(watch.wait(long));
        while watch.wait(short) {}
        fs::remove_file(&file).unwrap();
        assert!(watch.wait(long));
        while watch.wait(short) {}
        // Moved elsewhere, or removed: the folder itself is a change too.
        let moved = folder.path().with_extension("moved");
        fs::rename(folder.path(), &moved).unwrap();
        assert!(watch.wait(long));
        while watch.wait(short) {}
        fs::remove_dir_all(&moved).unwrap();
        assert!(watch.wait(long));
    }
}
