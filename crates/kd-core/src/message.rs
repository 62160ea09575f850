//! A message: one finished file in a thread.

use crate::clean::clean_text;
use crate::draft::{FINISH, LENGTH};
use crate::ids::{ALL, KING, SeatName, TurnId};
use crate::text::Text;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How a member's turn ended, as the front matter of its message says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The answer came whole.
    Complete,
    /// The turn failed; the body holds what came, or the error.
    Error,
    /// The turn outlasted its time; the body holds what came.
    Timeout,
    /// The king stopped the turn; the body holds what came.
    Interrupted,
}

impl Status {
    /// The word in the front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Error => "error",
            Status::Timeout => "timeout",
            Status::Interrupted => "interrupted",
        }
    }

    /// The status a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "complete" => Status::Complete,
            "error" => Status::Error,
            "timeout" => Status::Timeout,
            "interrupted" => Status::Interrupted,
            _ => return None,
        })
    }
}

/// Front matter of an answer that was asked for again: the number of the failed message whose place it takes.
pub const REPLACES: &str = "replaces";
/// Front matter of an answer that says that there is nothing to say: `pass: yes`.
pub const PASS: &str = "pass";

/// Whom a message is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// Every member.
    #[default]
    All,
    /// The person.
    King,
    /// Exactly these seats.
    Seats(Vec<SeatName>),
}

impl fmt::Display for Address {
    /// The form of the `to` field: `all`, `king`, `claude`, or `claude, codex`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::All => f.write_str(ALL),
            Address::King => f.write_str(KING),
            Address::Seats(seats) => {
                for (i, seat) in seats.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{seat}")?;
                }
                Ok(())
            }
        }
    }
}

impl Address {
    /// Whether this seat is meant.
    pub fn is_for(&self, seat: &SeatName) -> bool {
        match self {
            Address::All => true,
            Address::King => false,
            Address::Seats(seats) => seats.contains(seat),
        }
    }

    /// Reads a `to` field. Names that cannot be seats are left out; an empty field is [`Address::All`].
    pub fn parse(field: &str) -> Self {
        match field.trim() {
            "" | ALL => Address::All,
            KING => Address::King,
            names => {
                let seats: Vec<_> = names
                    .split(',')
                    .filter_map(|n| SeatName::sender(n.trim()).ok())
                    .collect();
                if seats.is_empty() {
                    Address::All
                } else {
                    Address::Seats(seats)
                }
            }
        }
    }
}

/// What is known of how a body came to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// The backend that answered, for example `claude_code`, `openai`, `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The model's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who says so: `observed`, `configured` or `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_source: Option<String>,
    /// The reasoning effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Who says so: `configured` or `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort_source: Option<String>,
    /// First line of `--version` of an agent program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cli_version: Option<String>,
    /// 32 hex digits that tie a queued message of the king to its replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
}

/// A message that is not on disk yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The turn that produced it; none for the king's own words.
    pub turn: Option<TurnId>,
    /// `king`, a member, or a service.
    pub from: String,
    /// Whom it is for.
    pub to: Address,
    /// When it was finished.
    pub at: Timestamp,
    /// None on the king's messages.
    pub status: Option<Status>,
    /// Files it refers to.
    pub refs: Vec<String>,
    /// How it came to be.
    pub provenance: Provenance,
    /// Further front matter, written after the known keys in this order.
    pub extra: BTreeMap<String, String>,
    /// The text.
    pub body: String,
}

impl Draft {
    /// Returns the message that it is under this number.
    pub fn stored(self, seq: u32) -> Message {
        Message {
            seq,
            from: self.from,
            to: self.to,
            at: self.at,
            status: self.status,
            refs: self.refs,
            provenance: self.provenance,
            extra: self.extra,
            body: self.body.into(),
        }
    }
}

/// One finished file in a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its number in the thread, counted from 1.
    pub seq: u32,
    /// `king`, a member, or a service.
    pub from: String,
    /// Whom it is for.
    pub to: Address,
    /// When it was finished, to the second.
    pub at: Timestamp,
    /// None on the king's messages and in old files.
    pub status: Option<Status>,
    /// Files it refers to.
    pub refs: Vec<String>,
    /// How it came to be.
    pub provenance: Provenance,
    /// Front matter that we do not know, kept as it was.
    pub extra: BTreeMap<String, String>,
    /// The text.
    pub body: Text,
}

impl Message {
    /// Takes control characters out of the body: files may hold anything.
    pub(crate) fn clean(&mut self) {
        if let Cow::Owned(clean) = clean_text(&self.body) {
            self.body = clean.into();
        }
    }

    /// Whether the person wrote it.
    pub fn is_king(&self) -> bool {
        self.from == KING
    }

    /// The number of the failed message whose place it takes, if it says so.
    pub fn replaces(&self) -> Option<u32> {
        self.extra.get(REPLACES)?.parse().ok()
    }

    /// Whether the member passed: it had nothing to add.
    pub fn is_pass(&self) -> bool {
        self.extra.contains_key(PASS)
    }

    /// Tells whether the token limit cut the answer off.
    pub fn is_cut(&self) -> bool {
        self.extra
            .get(FINISH)
            .is_some_and(|finish| finish == LENGTH)
    }

    /// Whether its body stands in a prompt: what is sound, and what the king stopped, as far as it came.
    pub fn is_told(&self) -> bool {
        let stopped = self.status == Some(Status::Interrupted) && self.body.trim() != INTERRUPTED;
        self.is_sound() || stopped
    }

    /// Whether it says all that was to be said: the king's words, and whole answers.
    ///
    /// Old files carry no status; there the body tells (`*Error: …*`, `*Interrupted*`, `*Empty response…`).
    pub fn is_sound(&self) -> bool {
        match self.status {
            Some(Status::Complete) => true,
            Some(_) => false,
            None => {
                self.is_king()
                    || !["*Error: ", "*Interrupted*", "*Empty response"]
                        .iter()
                        .any(|mark| self.body.starts_with(mark))
            }
        }
    }
}

/// The body of a message whose turn the king stopped before a word came, as kingdom-cli writes it.
pub(crate) const INTERRUPTED: &str = "*Interrupted*";
/// What stands behind the words of a turn that the king stopped, as kingdom-cli writes it.
pub(crate) const BROKEN_OFF: &str = "*[Interrupted — response may be incomplete]*";

/// The messages of a thread as they are to be read. `messages` are in the order of their numbers. An answer that was
/// asked for again stands where the failed one stood, and the failed one is left out. No sound message is ever left out.
pub fn settled(messages: &[Message]) -> Vec<&Message> {
    if !messages.iter().any(|m| m.extra.contains_key(REPLACES)) {
        return messages.iter().collect();
    }
    let failed: BTreeSet<(u32, &str)> = messages
        .iter()
        .filter(|m| !m.is_sound())
        .map(|m| (m.seq, m.from.as_str()))
        .collect();
    let place = |m: &Message| match m.replaces() {
        // Anybody may write a file: only the own failure can be replaced, and only later.
        Some(seq) if seq < m.seq && failed.contains(&(seq, m.from.as_str())) => seq,
        _ => m.seq,
    };
    // What stands last at a place, sound before failed.
    let mut best: BTreeMap<(u32, &str), (bool, u32)> = BTreeMap::new();
    for message in messages {
        let rank = (message.is_sound(), message.seq);
        let held = best
            .entry((place(message), message.from.as_str()))
            .or_insert(rank);
        *held = rank.max(*held);
    }
    let mut read: Vec<&Message> = messages
        .iter()
        .filter(|m| m.is_sound() || best.get(&(place(m), m.from.as_str())) == Some(&(false, m.seq)))
        .collect();
    read.sort_by_key(|m| (place(m), m.from.as_str(), m.seq));
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(seq: u32, from: &str, status: Status, replaces: Option<&str>) -> Message {
        let replaces = replaces.map(|seq| (REPLACES.to_owned(), seq.to_owned()));
        Message {
            seq,
            from: from.into(),
            to: Address::King,
            at: Timestamp::UNIX_EPOCH,
            status: Some(status),
            refs: Vec::new(),
            provenance: Provenance::default(),
            extra: replaces.into_iter().collect(),
            body: "x".into(),
        }
    }

    #[test]
    fn what_was_asked_again_stands_where_it_failed() {
        let thread = [
            message(1, "claude", Status::Error, None),
            message(2, "codex", Status::Complete, None),
            message(3, "claude", Status::Timeout, Some("1")),
            message(4, "claude", Status::Complete, Some("1")),
            // Not its own failure, no failure, not before it, no number.
            message(5, "codex", Status::Complete, Some("1")),
            message(6, "codex", Status::Complete, Some("2")),
            message(7, "claude", Status::Error, Some("9")),
            message(9, "claude", Status::Complete, Some("x")),
        ];
        let order =
            |n: usize| -> Vec<u32> { settled(&thread[..n]).iter().map(|m| m.seq).collect() };
        assert_eq!(order(2), [1, 2]);
        assert_eq!(order(3), [3, 2], "of two failures the later one is shown");
        assert_eq!(order(4), [4, 2]);
        assert_eq!(order(8), [4, 2, 5, 6, 7, 9]);
    }

    #[test]
    fn an_address_reads_back_as_written() {
        for text in ["all", "king", "claude", "claude, codex"] {
            assert_eq!(Address::parse(text).to_string(), text);
        }
        assert_eq!(Address::parse(" , /"), Address::All);
    }
}
