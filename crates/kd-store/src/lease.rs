//! Leases: only one process at a time may ask a member of a thread.
//!
//! A lease is a system lock on `.turn-<member>.lock` in the thread's folder, so a killed holder releases it. The file's
//! content is for display only. Other programs do not use leases: their activity shows in their stream files.

use crate::beneath::Folder;
use crate::error::Error;
use crate::layout;
use crate::lock::{self, Lock};
use crate::thread::{Thread, beside_within};
use std::ffi::OsStr;
use std::time::Duration;

/// Time limit for acquiring a thread's lock, far above the time of a write. A longer wait would be reported as another
/// process asking the member, which would be false.
const MOMENT: Duration = Duration::from_millis(200);

/// The right to ask a member of a thread. Released on drop.
#[derive(Debug)]
pub struct Lease {
    _lock: Lock,
}

impl Lease {
    /// Takes the lease if it is free. The first lease of a member that the thread began without creates its lock file, under
    /// the lock of the thread: if
    /// another process holds that for longer than [`MOMENT`], the lease counts as taken.
    ///
    /// # Errors
    /// If the lock file cannot be created or locked.
    pub fn try_take(thread: &Thread, member: &str) -> Result<Option<Lease>, Error> {
        let Some((folder, name)) = place(thread, member, MOMENT)? else {
            return Ok(None);
        };
        let lock = Lock::try_take_in(folder, name.as_ref())?;
        Ok(lock.map(|lock| Lease { _lock: lock }))
    }

    /// Takes the lease, waiting as long as another process holds it. The system wakes the waiting process. Only the
    /// thread's lock, which is needed to create the lock file, is polled.
    ///
    /// # Errors
    /// If the lock file cannot be created or locked.
    pub fn wait(thread: &Thread, member: &str) -> Result<Lease, Error> {
        let (folder, name) = loop {
            if let Some(place) = place(thread, member, lock::WAIT)? {
                break place;
            }
        };
        let lock = Lock::wait_in(folder, name.as_ref())?;
        Ok(Lease { _lock: lock })
    }

    /// Returns whether a process holds the lease now. Creates no file.
    ///
    /// # Errors
    /// If the lock file cannot be opened or locked.
    pub fn is_held(thread: &Thread, member: &str) -> Result<bool, Error> {
        let name = layout::turn_lock(member);
        if thread.folder().look(&name)?.is_none() {
            return Ok(false);
        }
        Ok(Lock::try_take_in(thread.folder(), name.as_ref())?.is_none())
    }

    /// Returns the last process that took the lease, for display only.
    pub fn holder(thread: &Thread, member: &str) -> Option<u32> {
        let name = layout::turn_lock(member);
        lock::holder(thread.folder(), OsStr::new(&name))
    }
}

/// Returns the lock file of a member's lease, creating it if it is missing. `None` if another process held the lock of
/// the thread for longer than `wait`.
fn place<'t>(
    thread: &'t Thread,
    member: &str,
    wait: Duration,
) -> Result<Option<(&'t Folder, String)>, Error> {
    let (folder, name) = (thread.folder(), layout::turn_lock(member));
    if folder.look(&name)?.is_none() {
        // A new name in the folder: the index must stay valid.
        let make = || folder.lock_file(OsStr::new(&name)).map(drop);
        match beside_within(folder, wait, make) {
            Err(Error::LockBusy { .. }) => return Ok(None),
            made => made?,
        }
    }
    Ok(Some((folder, name)))
}
