//! Tells when something in a folder changes, by the file system's own word. Comes in: a folder. Goes out: a wake-up for
//! each burst of changes; what changed is found by looking.
//!
//! Network disks tell nothing of other machines. Whoever must not miss those looks now and then all the same: see the
//! limit of [`Watch::wait`].

use crate::beneath::Folder;
use crate::error::Error;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A folder under watch, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    woken: Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches a folder, not those in it.
    pub fn new(folder: &Path) -> Result<Watch, Error> {
        // The watcher would follow a link.
        Folder::open(folder)?;
        // One word waits at most: a burst is one change.
        let (wake, woken) = sync_channel(1);
        let failed = |e: notify::Error| Error::io("watch", folder)(io::Error::other(e));
        let mut watcher = notify::recommended_watcher(move |_| {
            let _ = wake.try_send(());
        })
        .map_err(failed)?;
        watcher
            .watch(folder, RecursiveMode::NonRecursive)
            .map_err(failed)?;
        Ok(Watch {
            woken,
            _watcher: watcher,
        })
    }

    /// Waits until something changed, at most so long; false when nothing did.
    pub fn wait(&self, limit: Duration) -> bool {
        match self.woken.recv_timeout(limit) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            // The watcher lives as long as we do.
            Err(RecvTimeoutError::Disconnected) => false,
        }
    }
}
