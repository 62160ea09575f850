//! The leases of a session: no two processes ask one member of one thread at the same time.
//!
//! Comes in: turns that are to begin and turns that have ended. Goes out: whether a turn may begin, and later the turns
//! that may. One session may ask a member several times at once (a deliberation seats it twice): its turns share the lease.
//! Who waits is woken by the system, on a thread of its own, because a wait for a lock cannot be given up: a lease that
//! comes when nobody wants it any more is given back at once.

use kd_core::{Message, TurnId};
use kd_store::{Lease, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many of the newest messages are read when a member is free again: more are not written meanwhile, and older ones
/// are known.
const NEWEST: usize = 64;

/// The leases of one session.
pub(crate) struct Leases {
    thread: Arc<Thread>,
    held: BTreeMap<String, Held>,
    /// Members whose lease another process has, with the turns that wait for it.
    wanted: BTreeMap<String, BTreeSet<TurnId>>,
    freed: mpsc::UnboundedSender<Freed>,
}

struct Held {
    /// `None` where the system could give none: then nothing is held.
    _lease: Option<Lease>,
    turns: BTreeSet<TurnId>,
}

/// A member that another process has asked, and asks no more.
pub(crate) struct Freed {
    member: String,
    lease: Option<Lease>,
    /// The newest messages of the thread.
    pub(crate) found: Vec<Message>,
}

/// Whether a turn may begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It may.
    Ours,
    /// Another process asks the member: which, if its file tells.
    Theirs(Option<u32>),
}

impl Leases {
    /// None yet, in a thread; and where it is told what became free.
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

    /// Takes a member's lease for a turn, or has a thread wait for it. Waits itself only for a write in the thread. In a folder that cannot hold
    /// locks, a read-only one for example, the turn begins without a lease.
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
                // A session that is gone wants no lease: it is given back here.
                let _ = freed.send(Freed {
                    member,
                    lease,
                    found: found.unwrap_or_default(),
                });
            })
            .map(drop)
    }

    /// The turns that may begin now. The lease is given back if there are none.
    pub(crate) fn free(&mut self, freed: Freed) -> BTreeSet<TurnId> {
        let turns = self.wanted.remove(&freed.member).unwrap_or_default();
        if !turns.is_empty() {
            self.hold(freed.member, freed.lease, turns.clone());
        }
        turns
    }

    /// A turn has ended, or does not wait any more.
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
