//! Who may ask a member of a thread now: one process at a time.
//!
//! A lease is a lock of the system on `.turn-<member>.lock` in the thread's folder, so that a killed holder holds nothing.
//! What the file says is for display. Programs of others do not know it: what they stream is told by their stream files.

use crate::beneath::Folder;
use crate::error::Error;
use crate::layout;
use crate::lock::{self, Lock};
use crate::thread::{Thread, beside_within};
use std::ffi::OsStr;
use std::time::Duration;

/// How long a thread's lock is waited for, far above the time of a write: who waits longer is told that another process
/// asks the member, which is not so.
const MOMENT: Duration = Duration::from_millis(200);

/// The right to ask a member of a thread. Dropping it gives it back.
#[derive(Debug)]
pub struct Lease {
    _lock: Lock,
}

impl Lease {
    /// Takes the lease if it is free. The first lease of a member makes its lock file, under the lock of the thread: only if
    /// another process writes there for longer than [`MOMENT`], it is not free.
    pub fn try_take(thread: &Thread, member: &str) -> Result<Option<Lease>, Error> {
        let Some((folder, name)) = place(thread, member, MOMENT)? else {
            return Ok(None);
        };
        let lock = Lock::try_take_in(folder, name.as_ref())?;
        Ok(lock.map(|lock| Lease { _lock: lock }))
    }

    /// Takes the lease, waiting for as long as another process has it. The system wakes it; only a thread's lock that is
    /// held while the lock file is made is polled.
    pub fn wait(thread: &Thread, member: &str) -> Result<Lease, Error> {
        let (folder, name) = loop {
            if let Some(place) = place(thread, member, lock::WAIT)? {
                break place;
            }
        };
        let lock = Lock::wait_in(folder, name.as_ref())?;
        Ok(Lease { _lock: lock })
    }

    /// Whether a process holds the lease now. Creates no file.
    pub fn is_held(thread: &Thread, member: &str) -> Result<bool, Error> {
        let name = layout::turn_lock(member);
        if thread.folder().look(&name)?.is_none() {
            return Ok(false);
        }
        Ok(Lock::try_take_in(thread.folder(), name.as_ref())?.is_none())
    }

    /// The process that said last that it holds the lease, for display only.
    pub fn holder(thread: &Thread, member: &str) -> Option<u32> {
        let name = layout::turn_lock(member);
        lock::holder(thread.folder(), OsStr::new(&name))
    }
}

/// The lock file of a member's lease, made if it is missing. `None` when another process held the lock of the thread for
/// longer than `wait`.
fn place<'t>(
    thread: &'t Thread,
    member: &str,
    wait: Duration,
) -> Result<Option<(&'t Folder, String)>, Error> {
    let (folder, name) = (thread.folder(), layout::turn_lock(member));
    if folder.look(&name)?.is_none() {
        // A new name in the folder: the index is to know of it.
        let make = || folder.lock_file(OsStr::new(&name)).map(drop);
        match beside_within(folder, wait, make) {
            Err(Error::LockBusy { .. }) => return Ok(None),
            made => made?,
        }
    }
    Ok(Some((folder, name)))
}
