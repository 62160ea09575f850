//! A queue of turns, shared by the protocols that ask one by one.

use super::{Assignment, Call, Move, Spoke, Table, Yield, done};
use crate::ids::SeatName;
use crate::prompt::Manner;
use crate::speech::Speech;
use std::collections::VecDeque;

/// The remaining turns. Their number only decreases.
#[derive(Debug, Default)]
pub(super) struct Turns {
    coming: VecDeque<SeatName>,
    /// Number of finished turns of the round that were processed.
    seen: usize,
    /// Number of turns of the round that had finished before the first of these.
    began: Option<usize>,
}

impl Turns {
    /// Creates a queue of these members, in this order.
    pub(super) fn new(coming: impl IntoIterator<Item = SeatName>) -> Self {
        Self {
            coming: coming.into_iter().collect(),
            seen: 0,
            began: None,
        }
    }

    /// Appends turns.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = SeatName>) {
        self.coming.extend(more);
    }

    /// Returns the next turn. Members mentioned since the last one go first, members that failed in this round or may
    /// no longer be asked are skipped, and the round ends when none is left.
    pub(super) fn next(&mut self, table: &Table<'_>) -> Move {
        let fresh = table.spoke.get(self.seen..).unwrap_or_default();
        self.seen = table.spoke.len();
        let mentioned = fresh
            .iter()
            .flat_map(|s| s.mentions.iter().filter(|m| **m != s.seat));
        self.bring_forward(mentioned);
        let began = *self.began.get_or_insert(table.spoke.len());
        if table.over {
            let heard = |seat: &SeatName| table.spoke.iter().any(|s| &s.seat == seat);
            let before = self.coming.len();
            self.coming.retain(|seat| !heard(seat));
            if self.coming.is_empty() && before > 0 {
                let why = "you spoke again, so the turns end here".to_owned();
                return Move::Yield(Yield { why: Some(why) });
            }
        }
        if let Some(why) = self.quiet(table.spoke.get(began..).unwrap_or_default(), table) {
            self.coming.clear();
            return Move::Yield(Yield { why: Some(why) });
        }
        while let Some(seat) = self.coming.pop_front() {
            if table.seats.contains(&seat) && !table.has_failed(&seat) {
                let manner = match (table.call, table.spoke.iter().any(|s| s.answered)) {
                    (_, true) => Manner::Discuss,
                    (Call::Named, false) if self.coming.is_empty() && table.spoke.is_empty() => {
                        Manner::Alone
                    }
                    _ => Manner::Answer,
                };
                return Move::Ask(vec![Assignment { seat, manner }]);
            }
        }
        done()
    }

    /// Returns the remaining turns in order, assuming no mention and no failure.
    pub(super) fn ahead(&self, table: &Table<'_>) -> Vec<SeatName> {
        let able = |seat: &&SeatName| table.seats.contains(seat) && !table.has_failed(seat);
        self.coming.iter().filter(able).cloned().collect()
    }

    /// Returns the reason why the discussion ends early: two members add nothing new, or all have passed.
    /// `None` until all members that are due have answered.
    fn quiet(&self, mine: &[Spoke], table: &Table<'_>) -> Option<String> {
        let heard = |seat: &SeatName| table.spoke.iter().any(|s| &s.seat == seat);
        let mut coming = self
            .coming
            .iter()
            .filter(|s| table.seats.contains(s))
            .peekable();
        if coming.peek().is_none() || !coming.all(heard) {
            return None;
        }
        if let [.., a, b] = mine
            && a.seat != b.seat
            && [a, b]
                .iter()
                .all(|s| s.answered && s.speech != Speech::Words)
            && [a, b].iter().any(|s| s.speech == Speech::Nod)
        {
            return Some(format!(
                "{} and {} add nothing new, so the round ends here",
                a.seat, b.seat
            ));
        }
        let passed = |seat: &SeatName| {
            let last = mine.iter().rev().find(|s| &s.seat == seat);
            last.is_some_and(|s| s.speech == Speech::Pass)
        };
        table
            .able()
            .all(passed)
            .then(|| "no member has anything to add, so the round ends here".to_owned())
    }

    /// Moves the next turn of each named member to the front, in the given order. Members without a remaining turn get
    /// none.
    fn bring_forward<'s>(&mut self, names: impl Iterator<Item = &'s SeatName>) {
        let mut front: Vec<SeatName> = Vec::new();
        for name in names {
            if front.contains(name) {
                continue;
            }
            if let Some(at) = self.coming.iter().position(|s| s == name)
                && let Some(seat) = self.coming.remove(at)
            {
                front.push(seat);
            }
        }
        for seat in front.into_iter().rev() {
            self.coming.push_front(seat);
        }
    }
}

/// Returns the number of turns that follow the answers: none after a mention or the first message; otherwise the user's
/// setting, or `unset` if there is none.
pub(super) fn extra_turns(table: &Table<'_>, unset: usize) -> usize {
    let talk = match table.call {
        Call::Named => false,
        Call::Everyone => !table.first,
        Call::All => true,
    };
    match table.auto_messages {
        _ if !talk => 0,
        Some(n) => n as usize,
        None => unset,
    }
}

/// Repeats the members in order until there are `n` turns.
pub(super) fn cycle(seats: &[SeatName], n: usize) -> impl Iterator<Item = SeatName> {
    seats.iter().cycle().take(n).cloned()
}
