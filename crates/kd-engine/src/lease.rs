//! The leases of a session: no two processes ask the same member of a thread at the same time.
//!
//! Decides whether a turn may begin now, and which turns may begin later. A session may ask a member several times at
//! once (a deliberation seats it twice): its turns share the lease. A separate thread waits for the lock, because
//! waiting for a file lock cannot be cancelled; a lease that is no longer needed when it is granted is returned at
//! once.

use kd_core::{Message, TurnId};
use kd_store::{Lease, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Newest messages to read when a member is free again: no more are written while waiting, and older ones are known.
const NEWEST: usize = 64;

/// The leases of one session.
pub(crate) struct Leases {
    thread: Arc<Thread>,
    held: BTreeMap<String, Held>,
    /// Members leased by another process, with the turns waiting for them.
    wanted: BTreeMap<String, BTreeSet<TurnId>>,
    freed: mpsc::UnboundedSender<Freed>,
}

struct Held {
    /// `None` where the system provides no locks: then nothing is held.
    _lease: Option<Lease>,
    turns: BTreeSet<TurnId>,
}

/// A member that another process was asking and has released.
pub(crate) struct Freed {
    member: String,
    lease: Option<Lease>,
    /// The newest messages of the thread.
    pub(crate) found: Vec<Message>,
}

/// Whether a turn may begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Yes.
    Ours,
    /// Another process is asking the member; its ID, if the lock file contains it.
    Theirs(Option<u32>),
}

impl Leases {
    /// Creates an empty set of leases for a thread, and the receiver of released members.
    pub(crate) fn new(thread: Arc<Thread>) -> (Self, mpsc::UnboundedReceiver<Freed>) {
        let (freed, told) = mpsc::unbounded_channel();
        let leases = Self {
            thread,
            held: BTreeMap::new(),
            wanted: BTreeMap::new(),
            freed,
        };
        (leases, told)
    }

    /// Takes a member's lease for a turn, or starts a thread that waits for it. Blocks only for a concurrent write to
    /// the thread. In a folder that cannot hold locks, such as a read-only one, the turn begins without a lease.
    pub(crate) fn take(&mut self, turn: TurnId, member: &str) -> Taken {
        if let Some(held) = self.held.get_mut(member) {
            held.turns.insert(turn);
            return Taken::Ours;
        }
        if !self.wanted.contains_key(member) {
            match Lease::try_take(&self.thread, member) {
                Ok(None) if self.wait(member).is_ok() => {}
                Ok(lease) => {
                    self.hold(member.to_owned(), lease, BTreeSet::from([turn]));
                    return Taken::Ours;
                }
                Err(_) => {
                    self.hold(member.to_owned(), None, BTreeSet::from([turn]));
                    return Taken::Ours;
                }
            }
        }
        let turns = self.wanted.entry(member.to_owned()).or_default();
        turns.insert(turn);
        Taken::Theirs(Lease::holder(&self.thread, member))
    }

    fn hold(&mut self, member: String, lease: Option<Lease>, turns: BTreeSet<TurnId>) {
        let held = Held {
            _lease: lease,
            turns,
        };
        self.held.insert(member, held);
    }

    fn wait(&self, member: &str) -> std::io::Result<()> {
        let (thread, freed) = (self.thread.clone(), self.freed.clone());
        let member = member.to_owned();
        std::thread::Builder::new()
            .name("kd-lease".into())
            .spawn(move || {
                let lease = Lease::wait(&thread, &member).ok();
                let found = thread.tail(NEWEST).map(|read| read.messages);
                // If the session is gone, the failed send drops the lease here.
                let _ = freed.send(Freed {
                    member,
                    lease,
                    found: found.unwrap_or_default(),
                });
            })
            .map(drop)
    }

    /// Returns the turns that may begin now. Releases the lease if there are none.
    pub(crate) fn free(&mut self, freed: Freed) -> BTreeSet<TurnId> {
        let turns = self.wanted.remove(&freed.member).unwrap_or_default();
        if !turns.is_empty() {
            self.hold(freed.member, freed.lease, turns.clone());
        }
        turns
    }

    /// Releases the lease of a turn that ended or no longer waits.
    pub(crate) fn give(&mut self, turn: TurnId) {
        for turns in self.wanted.values_mut() {
            turns.remove(&turn);
        }
        self.held.retain(|_, held| {
            held.turns.remove(&turn);
            !held.turns.is_empty()
        });
    }
}
