//! Who may ask a member of a thread now: one process at a time.
//!
//! A lease is a lock of the system on `.turn-<member>.lock` in the thread's folder, so that a killed holder holds nothing.
//! What the file says is for display. Programs of others do not know it: what they stream is told by their stream files.

use crate::beneath::Folder;
use crate::error::Error;
use crate::layout;
use crate::lock::{self, Lock};
use crate::thread::{Thread, beside};
use std::ffi::OsStr;

/// The right to ask a member of a thread. Dropping it gives it back.
#[derive(Debug)]
pub struct Lease {
    _lock: Lock,
}

impl Lease {
    /// Takes the lease if it is free.
    pub fn try_take(thread: &Thread, member: &str) -> Result<Option<Lease>, Error> {
        let (folder, name) = place(thread, member)?;
        let lock = Lock::try_take_in(folder, name.as_ref())?;
        Ok(lock.map(|lock| Lease { _lock: lock }))
    }

    /// Takes the lease, waiting for as long as another process has it. The system wakes it; nothing polls.
    pub fn wait(thread: &Thread, member: &str) -> Result<Lease, Error> {
        let (folder, name) = place(thread, member)?;
        let lock = Lock::wait_in(folder, name.as_ref())?;
        Ok(Lease { _lock: lock })
    }

    /// The process that said last that it holds the lease, for display only.
    pub fn holder(thread: &Thread, member: &str) -> Option<u32> {
        let name = layout::turn_lock(member);
        lock::holder(thread.folder(), OsStr::new(&name))
    }
}

/// Where the lease of a member lies, with its file there.
fn place<'t>(thread: &'t Thread, member: &str) -> Result<(&'t Folder, String), Error> {
    let (folder, name) = (thread.folder(), layout::turn_lock(member));
    if folder.look(&name)?.is_none() {
        // A new name in the folder: the index is to know of it.
        beside(folder, || folder.lock_file(OsStr::new(&name)).map(drop))?;
    }
    Ok((folder, name))
}
