//! The rules for who speaks next: one file each, one row each.
//!
//! In: a [`Table`], that is, what the council lets a protocol see. Out: a [`Move`]. A protocol is asked only when
//! nobody speaks. It may forget everything between two messages of the king: a table where nobody has spoken begins a
//! new round.
//!
//! What all modes share: a mention of members by the king asks exactly those, once. The first message of a thread is
//! answered once by everybody and then the king has the floor, unless he says `@all`. After the answers to a later
//! message come up to `council.auto_messages` turns more, one after another, each seeing everything so far.

mod broadcast;
mod manual;
mod natural;
mod sequential;
mod turns;

pub use crate::council::table::{Call, Spoke, Table};

use crate::config::Mode;
use crate::ids::SeatName;
use crate::prompt::Manner;
use std::fmt;

/// A rule for who speaks next.
pub trait Protocol: Send + fmt::Debug {
    /// Who speaks next. Called when the floor is empty.
    fn next(&mut self, table: &Table<'_>) -> Move;

    /// Who speaks after the turns of the last move, one by one. Empty where that depends on what they say.
    fn ahead(&self, _table: &Table<'_>) -> Vec<SeatName> {
        Vec::new()
    }
}

/// What a protocol wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Ask these, at once.
    Ask(Vec<Assignment>),
    /// Give the floor back to the king.
    Yield(Yield),
}

/// Whom to ask, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Who.
    pub seat: SeatName,
    /// In which way.
    pub manner: Manner,
}

/// The end of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Yield {
    /// One line for the king, where the end may surprise him.
    pub why: Option<String>,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct ProtocolKind {
    /// The word in `council.mode`.
    pub name: &'static str,
    /// What it does, for people.
    pub doc: &'static str,
    /// Makes one. The seed fixes its chance.
    pub new: fn(seed: u64) -> Box<dyn Protocol>,
}

impl fmt::Debug for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProtocolKind({})", self.name)
    }
}

/// Every protocol.
pub const PROTOCOLS: &[ProtocolKind] = &[
    broadcast::KIND,
    sequential::KIND,
    natural::KIND,
    manual::KIND,
];

/// The protocol of a name.
pub fn find(name: &str) -> Option<&'static ProtocolKind> {
    PROTOCOLS.iter().find(|kind| kind.name == name)
}

impl From<Mode> for ProtocolKind {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Broadcast => broadcast::KIND,
            Mode::Sequential => sequential::KIND,
            Mode::Natural => natural::KIND,
            Mode::Manual => manual::KIND,
        }
    }
}

/// Asks everybody on the table at once.
fn ask_all(table: &Table<'_>) -> Move {
    let manner = if table.call == Call::Named && table.seats.len() == 1 {
        Manner::Alone
    } else {
        Manner::Answer
    };
    let ask = |seat: &SeatName| Assignment {
        seat: seat.clone(),
        manner,
    };
    Move::Ask(table.seats.iter().map(ask).collect())
}

/// Gives the floor back without a word.
fn done() -> Move {
    Move::Yield(Yield::default())
}

/// Gives the floor back at once: there is nobody to ask.
fn nobody() -> Move {
    Move::Yield(Yield {
        why: Some("nobody can be asked: every member is muted".to_owned()),
    })
}

#[cfg(test)]
mod laws;
