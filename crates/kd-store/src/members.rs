//! The members in a thread's `thread.json`, while other processes may change them.

use crate::beneath::Folder;
use crate::layout::THREAD_FILE;
use crate::meta::Meta;
use crate::thread::Thread;
use kd_core::ids::SeatName;
use std::time::SystemTime;

/// Notices when the members in a thread's file were replaced.
#[derive(Debug)]
pub struct MembersFile {
    folder: Folder,
    /// Size and modification time of the file that was read last.
    seen: Option<(u64, SystemTime)>,
}

impl MembersFile {
    /// Follows the file of a thread from now on.
    pub fn new(thread: &Thread) -> Self {
        let folder = thread.folder().clone();
        let seen = look(&folder);
        Self { folder, seen }
    }

    /// Returns the members if the file has changed since the last call. A file that is missing or cannot be read changes
    /// nothing.
    pub fn changed(&mut self) -> Option<Vec<SeatName>> {
        let now = look(&self.folder)?;
        if self.seen == Some(now) {
            return None;
        }
        let meta = Meta::read(&self.folder).ok().flatten()?;
        self.seen = Some(now);
        Some(meta.seats())
    }
}

fn look(folder: &Folder) -> Option<(u64, SystemTime)> {
    let look = folder.look(THREAD_FILE).ok().flatten()?;
    Some((look.bytes, look.modified))
}
