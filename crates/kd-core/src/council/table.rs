//! The input of a protocol.

use crate::ids::SeatName;
use crate::speech::Speech;

/// The members that a message of the user addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// No names: the message is for everybody.
    Everyone,
    /// `@all`.
    All,
    /// Mentions of members.
    Named,
}

/// A finished turn of this round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoke {
    /// The member.
    pub seat: SeatName,
    /// Whether it gave a complete answer.
    pub answered: bool,
    /// The members mentioned in the answer, in the order of first mention.
    pub mentions: Vec<SeatName>,
    /// The effect of the answer on the discussion.
    pub speech: Speech,
}

/// The input of a protocol.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// Members that may be asked now: called by the user and not muted. In roster order, or in the order of mentions.
    pub seats: &'a [SeatName],
    /// The members that the message addresses.
    pub call: Call,
    /// Whether no member had answered in this thread before the message.
    pub first: bool,
    /// `council.auto_messages`: maximum turns after the answers; `None` leaves it to the protocol.
    pub auto_messages: Option<u32>,
    /// Whether the user has spoken again: members that have answered are not asked again in this round.
    pub over: bool,
    /// The finished turns of this round, in the order they ended.
    pub spoke: &'a [Spoke],
}

impl Table<'_> {
    /// Returns whether a member's last turn in this round failed.
    pub fn has_failed(&self, seat: &SeatName) -> bool {
        let last = self.spoke.iter().rev().find(|s| &s.seat == seat);
        last.is_some_and(|s| !s.answered)
    }

    /// Returns the members that may be asked and have not failed in this round.
    pub fn able(&self) -> impl Iterator<Item = &SeatName> {
        self.seats.iter().filter(|s| !self.has_failed(s))
    }
}
