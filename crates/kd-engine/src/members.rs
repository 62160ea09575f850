//! Follows the members in a thread's file, which other processes change: a chat in another window that adds or removes
//! one. A removed member is muted here, so that no window asks it. The mutes of the user are kept apart: a member that is
//! added again stays muted if the user muted it.

use kd_core::request::Delta;
use kd_core::{Input, Member, Op, SeatName, ThreadId};
use kd_store::{MembersFile, Thread};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns whether a machine may ask a member because of an input.
pub(crate) fn may_ask(input: &Input) -> bool {
    match input {
        Input::Delta { delta, .. } => matches!(delta, Delta::Finished { .. }),
        Input::Op(op) => matches!(op, Op::Say { .. } | Op::Retry { .. } | Op::Resume),
        Input::FoundDelta { .. } => false,
        _ => true,
    }
}

/// Members that other processes have removed from a thread.
pub(crate) struct Removals {
    file: MembersFile,
    /// The members of this session.
    seats: Vec<SeatName>,
    /// The members in the file, when it was read last.
    members: Vec<SeatName>,
    removed: BTreeSet<SeatName>,
    /// The members that the user muted, removed or not.
    muted: BTreeSet<SeatName>,
}

/// A change of the members by another process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A member of this session was removed.
    Removed(SeatName),
    /// It was added again.
    Back(SeatName),
    /// A member that this session does not have was added.
    Added(SeatName),
}

impl Change {
    /// Returns the notice for the user.
    pub(crate) fn told(&self, thread: &ThreadId) -> String {
        match self {
            Change::Removed(name) => {
                format!(
                    "another window removed {name} from this thread: it is not asked here either; /add {name} brings it back"
                )
            }
            Change::Back(name) => format!("another window added {name} again"),
            Change::Added(name) => {
                format!(
                    "another window added {name}: /thread {} opens this thread with it",
                    thread.0
                )
            }
        }
    }

    fn op(self) -> Option<Op> {
        match self {
            Change::Removed(seat) => Some(Op::Mute { seat }),
            Change::Back(seat) => Some(Op::Unmute { seat }),
            Change::Added(_) => None,
        }
    }
}

impl Removals {
    /// Follows a thread for a session with these members.
    pub(crate) fn new(thread: Arc<Thread>, seats: &[Member]) -> Self {
        Self {
            file: MembersFile::new(&thread),
            seats: seats.iter().map(|member| member.name.clone()).collect(),
            members: thread.members(),
            removed: BTreeSet::new(),
            muted: BTreeSet::new(),
        }
    }

    /// Takes note of the user's own mutes. Returns why an op is refused: a removed member is not asked by unmuting it.
    pub(crate) fn note(&mut self, op: &Op) -> Option<String> {
        match op {
            Op::Mute { seat } if self.seats.contains(seat) => {
                self.muted.insert(seat.clone());
                None
            }
            Op::Unmute { seat } => {
                self.muted.remove(seat);
                self.removed.contains(seat).then(|| {
                    format!(
                        "another window removed {seat} from this thread: /add {seat} brings it back"
                    )
                })
            }
            _ => None,
        }
    }

    /// Returns what the session does about a change: nothing for members that the user muted.
    pub(crate) fn op(&self, change: Change) -> Option<Op> {
        let op = change.op()?;
        let (Op::Mute { seat } | Op::Unmute { seat }) = &op else {
            return Some(op);
        };
        (!self.muted.contains(seat)).then_some(op)
    }

    /// Returns the changes since the last call; `None` if there are none.
    pub(crate) fn changes(&mut self) -> Option<Vec<Change>> {
        let now = self.file.changed()?;
        let before = std::mem::replace(&mut self.members, now);
        let mut changes = Vec::new();
        for name in before.iter().filter(|name| !self.members.contains(name)) {
            if self.seats.contains(name) && self.removed.insert(name.clone()) {
                changes.push(Change::Removed(name.clone()));
            }
        }
        for name in self.members.iter().filter(|name| !before.contains(name)) {
            if self.removed.remove(name) {
                changes.push(Change::Back(name.clone()));
            } else if !self.seats.contains(name) {
                changes.push(Change::Added(name.clone()));
            }
        }
        Some(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_store::Layout;

    #[test]
    fn a_removed_member_is_muted_until_it_is_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::find_or_create(folder.path(), &|_| None)
            .unwrap()
            .layout;
        let [ann, bob, cyd] = ["ann", "bob", "cyd"].map(|name| SeatName::new(name).unwrap());
        let both = [ann.clone(), bob.clone()];
        let thread = Arc::new(Thread::create(&layout, &both).unwrap());
        let seats = both.clone().map(|name| Member::new(name, "x"));
        let mut removals = Removals::new(thread.clone(), &seats);
        assert_eq!(removals.changes(), None, "nothing changed");
        let other = Thread::open_folder(thread.path()).unwrap();
        other.set_members(&[ann.clone(), cyd.clone()]).unwrap();
        let changes = removals.changes().unwrap();
        assert_eq!(changes, [Change::Removed(bob.clone()), Change::Added(cyd)]);
        assert_eq!(removals.changes(), None, "once");
        std::fs::write(thread.path().join("thread.json"), "{").unwrap();
        assert_eq!(removals.changes(), None, "a torn file removes nobody");
        std::fs::remove_file(thread.path().join("thread.json")).unwrap();
        assert_eq!(removals.changes(), None, "a missing one neither");
        other.set_members(&both).unwrap();
        assert_eq!(removals.changes().unwrap(), [Change::Back(bob)]);
    }

    #[test]
    fn a_removal_is_apart_from_the_users_mutes() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::find_or_create(folder.path(), &|_| None)
            .unwrap()
            .layout;
        let [ann, bob] = ["ann", "bob"].map(|name| SeatName::new(name).unwrap());
        let both = [ann.clone(), bob.clone()];
        let thread = Arc::new(Thread::create(&layout, &both).unwrap());
        let seats = both.clone().map(|name| Member::new(name, "x"));
        let mut removals = Removals::new(thread.clone(), &seats);
        let other = Thread::open_folder(thread.path()).unwrap();
        let (mute, unmute) = (
            Op::Mute { seat: bob.clone() },
            Op::Unmute { seat: bob.clone() },
        );
        let mut follow = |members: &[SeatName], user: &[&Op]| {
            let refused: Vec<bool> = user.iter().map(|op| removals.note(op).is_some()).collect();
            other.set_members(members).unwrap();
            let mut changes = removals.changes().unwrap();
            (refused, removals.op(changes.remove(0)))
        };
        let only = [ann];
        // Nothing is done about a member that the user muted, neither when it is removed nor when it is back.
        assert_eq!(follow(&only, &[&mute]), (vec![false], None));
        assert_eq!(follow(&both, &[]), (vec![], None));
        let removed = follow(&only, &[&unmute]);
        assert_eq!(removed, (vec![false], Some(mute.clone())));
        // A removed member is not unmuted; one that is muted meanwhile stays so.
        assert_eq!(
            follow(&both, &[&unmute]),
            (vec![true], Some(unmute.clone()))
        );
        assert_eq!(follow(&only, &[]), (vec![], Some(mute.clone())));
        assert_eq!(follow(&both, &[&mute]), (vec![false], None));
    }
}
