//! Chat protocols, which decide who speaks next: one file and one table row each.
//!
//! Input: a [`Table`], the part of the council's state that a protocol sees. Output: a [`Move`]. A protocol is asked
//! only when no member is speaking. It may lose its state between two messages of the user: a table without turns
//! begins a new round.
//!
//! Common to all modes: if the user mentions members, exactly those are asked, once. The first message of a thread is
//! answered once by all members and then it is the user's turn, unless the message says `@all`. After the answers to a
//! later message, up to `council.auto_messages` further turns follow one by one, each seeing everything so far.

mod broadcast;
mod manual;
mod natural;
mod sequential;
mod turns;

pub use crate::council::table::{Call, Spoke, Table};

use crate::ids::SeatName;
use crate::prompt::Manner;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A rule that decides who speaks next.
pub trait Protocol: Send + fmt::Debug {
    /// Returns the next move. Called when no member is speaking.
    fn next(&mut self, table: &Table<'_>) -> Move;

    /// Returns the members that speak one by one after the last move. Empty if that depends on their replies.
    fn ahead(&self, _table: &Table<'_>) -> Vec<SeatName> {
        Vec::new()
    }
}

/// A protocol's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Ask these members at once.
    Ask(Vec<Assignment>),
    /// Return the turn to the user.
    Yield(Yield),
}

/// A member to ask, and the kind of turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The member.
    pub seat: SeatName,
    /// The kind of turn.
    pub manner: Manner,
}

/// The end of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Yield {
    /// An explanation for the user if the end may be unexpected.
    pub why: Option<String>,
}

/// A protocol.
#[derive(Clone, Copy)]
pub struct ProtocolKind {
    /// Its name in `council.mode`.
    pub name: &'static str,
    /// Description for users.
    pub doc: &'static str,
    /// Whether all members are asked at once after every message, so that their programs can be started early.
    pub at_once: bool,
    /// Whether turns that follow one another have the order of the members.
    pub in_order: bool,
    /// Creates an instance. The seed fixes its random choices.
    pub new: fn(seed: u64) -> Box<dyn Protocol>,
}

impl fmt::Debug for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProtocolKind({})", self.name)
    }
}

/// All protocols. The first is the default.
pub const PROTOCOLS: &[ProtocolKind] = &[
    broadcast::KIND,
    sequential::KIND,
    natural::KIND,
    manual::KIND,
];

/// Finds a protocol by name.
pub fn find(name: &str) -> Option<&'static ProtocolKind> {
    PROTOCOLS.iter().find(|kind| kind.name == name)
}

/// Their names.
pub const NAMES: &[&str] = &names();

const fn names() -> [&'static str; PROTOCOLS.len()] {
    let mut names = [""; PROTOCOLS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PROTOCOLS[at].name;
        at += 1;
    }
    names
}

impl Default for ProtocolKind {
    fn default() -> Self {
        PROTOCOLS[0]
    }
}

impl PartialEq for ProtocolKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Serialize for ProtocolKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for ProtocolKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        find(&name)
            .copied()
            .ok_or_else(|| D::Error::unknown_variant(&name, NAMES))
    }
}

/// Asks all members at once.
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

/// Ends the round without an explanation.
fn done() -> Move {
    Move::Yield(Yield::default())
}

/// Ends the round at once because there is nobody to ask.
fn nobody() -> Move {
    Move::Yield(Yield {
        why: Some("no member can be asked: every member is muted".to_owned()),
    })
}

#[cfg(test)]
mod laws;
