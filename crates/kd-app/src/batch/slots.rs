//! The questions that a process may ask at the same time, shared by the loops of its batches. A free slot goes to the loop that has the
//! fewest, so that no batch waits until another is over; without others that want one, a loop takes all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The slots of a process.
#[derive(Clone, Debug)]
pub(super) struct Slots(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    free: usize,
    takers: BTreeMap<u64, Taker>,
    /// The number of the next taker, and the number of the next turn.
    next: u64,
    turn: u64,
}

#[derive(Debug, Default)]
struct Taker {
    held: usize,
    /// Whether it would take more.
    wants: bool,
    /// When it last took some: who has waited longest comes first.
    turn: u64,
    freed: Arc<Notify>,
}

/// The handle with which the loop of a batch takes slots.
#[derive(Debug)]
pub(super) struct Share {
    slots: Slots,
    id: u64,
    freed: Arc<Notify>,
}

/// The right to ask a question. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    of: u64,
}

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            free: count,
            ..Shared::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the share of a loop.
    pub(super) fn share(&self) -> Share {
        let mut shared = self.lock();
        let id = shared.next;
        shared.next += 1;
        let taker = Taker::default();
        let freed = Arc::clone(&taker.freed);
        shared.takers.insert(id, taker);
        Share {
            slots: self.clone(),
            id,
            freed,
        }
    }
}

impl Shared {
    /// Returns how many of the free slots each loop that wants some would get: one after the other goes to the loop that has the
    /// fewest, of those to the one that has waited longest.
    fn entitled(&self) -> BTreeMap<u64, usize> {
        let mut entitled = BTreeMap::new();
        let wants = || self.takers.iter().filter(|(_, taker)| taker.wants);
        if wants().nth(1).is_none() {
            entitled.extend(wants().map(|(id, _)| (*id, self.free)));
            return entitled;
        }
        for _ in 0..self.free {
            let has = |id: &u64, taker: &Taker| taker.held + entitled.get(id).copied().unwrap_or(0);
            let next = wants().min_by_key(|(id, taker)| (has(id, taker), taker.turn, **id));
            let Some(id) = next.map(|(id, _)| *id) else {
                break;
            };
            *entitled.entry(id).or_default() += 1;
        }
        entitled
    }

    /// Wakes the loops that may take slots now, except one that is awake.
    fn wake(&self, awake: u64) {
        if self.free == 0
            || !self
                .takers
                .iter()
                .any(|(id, taker)| *id != awake && taker.wants)
        {
            return;
        }
        for id in self.entitled().into_keys().filter(|id| *id != awake) {
            if let Some(taker) = self.takers.get(&id) {
                taker.freed.notify_one();
            }
        }
    }
}

impl Share {
    /// Takes up to `most` of the slots that this loop may have now. It wants more until [`Share::wants`] says otherwise.
    pub(super) fn take(&self, most: usize) -> Vec<Slot> {
        let mut shared = self.slots.lock();
        if let Some(taker) = shared.takers.get_mut(&self.id) {
            taker.wants = true;
        }
        let entitled = shared.entitled().get(&self.id).copied().unwrap_or(0);
        let count = entitled.min(most);
        if count > 0 {
            shared.free -= count;
            shared.turn += 1;
            let turn = shared.turn;
            if let Some(taker) = shared.takers.get_mut(&self.id) {
                taker.held += count;
                taker.turn = turn;
            }
        }
        shared.wake(self.id);
        let slot = || Slot {
            slots: self.slots.clone(),
            of: self.id,
        };
        (0..count).map(|_| slot()).collect()
    }

    /// Tells whether this loop would take more slots.
    pub(super) fn wants(&self, wants: bool) {
        let mut shared = self.slots.lock();
        if let Some(taker) = shared.takers.get_mut(&self.id) {
            taker.wants = wants;
        }
        shared.wake(self.id);
    }

    /// Waits until this loop may take slots that another has given back, or leaves to it.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shared = self.slots.lock();
        shared.takers.remove(&self.id);
        shared.wake(self.id);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut shared = self.slots.lock();
        shared.free += 1;
        if let Some(taker) = shared.takers.get_mut(&self.of) {
            taker.held -= 1;
        }
        // Its own loop is awake: it hears of the question that has ended.
        shared.wake(self.of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_alone_takes_all_slots_and_two_share_them_as_they_become_free() {
        let slots = Slots::new(8);
        let (large, small) = (slots.share(), slots.share());
        let mut held = large.take(usize::MAX);
        assert_eq!(held.len(), 8, "nobody else wants any");
        assert!(small.take(usize::MAX).is_empty());
        let mut others = Vec::new();
        for _ in 0..20 {
            held.pop();
            held.extend(large.take(usize::MAX));
            others.extend(small.take(usize::MAX));
        }
        assert_eq!((held.len(), others.len()), (4, 4));
        // Those that end are replaced by their own.
        others.pop();
        assert!(large.take(usize::MAX).is_empty());
        others.extend(small.take(usize::MAX));
        assert_eq!(others.len(), 4);
        // One that has nothing more to ask leaves its slots.
        small.wants(false);
        others.clear();
        held.extend(large.take(usize::MAX));
        assert_eq!(held.len(), 8);
        assert!(small.take(3).is_empty());
        drop(small);
        held.truncate(2);
        assert_eq!(large.take(5).len(), 5, "one that has ended wants nothing");
    }

    #[test]
    fn one_slot_goes_around() {
        let slots = Slots::new(1);
        let shares: Vec<Share> = (0..3).map(|_| slots.share()).collect();
        let mut asked = Vec::new();
        let mut held = shares[0].take(9);
        for share in &shares[1..] {
            assert!(share.take(9).is_empty());
        }
        for _ in 0..6 {
            drop(held);
            held = Vec::new();
            for (at, share) in shares.iter().enumerate() {
                let some = share.take(9);
                if !some.is_empty() {
                    asked.push(at);
                    held = some;
                }
            }
        }
        assert_eq!(asked, [1, 2, 0, 1, 2, 0]);
    }

    #[tokio::test]
    async fn who_wants_slots_is_woken_when_another_gives_them_back() {
        let slots = Slots::new(2);
        let (one, other) = (slots.share(), slots.share());
        let held = one.take(9);
        assert!(other.take(9).is_empty());
        drop(held);
        other.freed().await;
        let some = other.take(9);
        assert_eq!(some.len(), 1, "the first wants more, too");
        one.freed().await;
        one.wants(false);
        other.freed().await;
        assert_eq!(other.take(9).len(), 1);
        drop(some);
        let woken = tokio::time::timeout(std::time::Duration::from_millis(50), one.freed()).await;
        assert!(woken.is_err(), "it wants none");
    }
}
