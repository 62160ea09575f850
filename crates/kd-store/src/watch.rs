//! Reports changes in a folder, as notified by the file system: one wake-up per burst of changes; the caller has to
//! look what changed.
//!
//! Network file systems do not report changes by other machines. To see those too, look at intervals: use the limit of
//! [`Watch::wait`].

use crate::beneath::Folder;
use crate::error::Error;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A watched folder, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    woken: Receiver<()>,
    _watching: Watching,
}

/// A watched folder whose changes call a function, until this is dropped.
#[derive(Debug)]
pub struct Watching {
    _watcher: RecommendedWatcher,
}

impl Watching {
    /// Watches a folder, not its subfolders. `changed` is called on another thread for each change.
    ///
    /// # Errors
    /// If the folder does not exist, is a link, or cannot be watched.
    pub fn new(folder: &Path, changed: impl Fn() + Send + 'static) -> Result<Watching, Error> {
        // The watcher would follow a link.
        Folder::open(folder)?;
        let failed = |e: notify::Error| Error::io("watch", folder)(io::Error::other(e));
        let mut watcher = notify::recommended_watcher(move |event| {
            if is_change(&event) {
                changed();
            }
        })
        .map_err(failed)?;
        watcher
            .watch(folder, RecursiveMode::NonRecursive)
            .map_err(failed)?;
        Ok(Watching { _watcher: watcher })
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
