//! What a protocol may see.

use crate::ids::SeatName;
use crate::speech::Speech;

/// How the king called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// He named nobody: his words are for everybody.
    Everyone,
    /// He said `@all`.
    All,
    /// He named members.
    Named,
}

/// A turn of this round that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoke {
    /// Whose.
    pub seat: SeatName,
    /// Whether a whole answer came.
    pub answered: bool,
    /// Whom the answer mentions, in the order of first mention.
    pub mentions: Vec<SeatName>,
    /// What the answer weighs in the discussion.
    pub speech: Speech,
}

/// What a protocol may see.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    /// Who may be asked now: called by the king and not muted. In the order of the roster, or of the king's mentions.
    pub seats: &'a [SeatName],
    /// How the king called.
    pub call: Call,
    /// Whether no member had answered anything in this thread before the king's message.
    pub first: bool,
    /// `council.auto_messages`: how many turns may follow the answers; none leaves it to the protocol.
    pub auto_messages: Option<u32>,
    /// Whether the king has spoken again: who has answered is not to be asked again in this round.
    pub over: bool,
    /// The turns of this round that have ended, in the order of their ends.
    pub spoke: &'a [Spoke],
}

impl Table<'_> {
    /// Whether a seat's last turn in this round failed.
    pub fn has_failed(&self, seat: &SeatName) -> bool {
        let last = self.spoke.iter().rev().find(|s| &s.seat == seat);
        last.is_some_and(|s| !s.answered)
    }

    /// Who may be asked and has not failed in this round.
    pub fn able(&self) -> impl Iterator<Item = &SeatName> {
        self.seats.iter().filter(|s| !self.has_failed(s))
    }
}
