//! Identifiers of members, threads, turns and timers.

use crate::clean::is_invisible;
use crate::names;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of the user in every thread.
pub const KING: &str = "king";
/// The word that addresses all members.
pub const ALL: &str = "all";

/// The name of a member or of a service such as the chair.
///
/// It is one line without whitespace and path separators, and never one of [`names::RESERVED`] or similar to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SeatName(String);

/// Why a text is not a valid member name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot name a member: {why}")]
pub struct BadSeatName {
    /// The refused text.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl SeatName {
    /// Validates a text as the name of a member.
    pub fn new(name: impl Into<String>) -> Result<Self, BadSeatName> {
        let name = name.into();
        match names::reserved(&name) {
            Some(reserved) => Err(BadSeatName {
                name,
                why: reserved.why,
            }),
            None => Self::sender(name),
        }
    }

    /// Validates the name of a writer in a forum: a member or a guest.
    pub fn writer(name: impl Into<String>) -> Result<Self, BadSeatName> {
        let name = name.into();
        match name.strip_prefix(names::GUEST) {
            Some(rest) if !rest.is_empty() => Self::sender(name),
            _ if name == names::READER => Self::sender(name),
            _ => Self::new(name),
        }
    }

    /// Validates the name of a sender in a thread on disk. It may be a name that kd signs with, such as `council`: only
    /// for displaying messages, never for adding a member.
    pub fn sender(name: impl Into<String>) -> Result<Self, BadSeatName> {
        let name = name.into();
        let bad = |why| {
            Err(BadSeatName {
                name: name.clone(),
                why,
            })
        };
        if name.is_empty() {
            return bad("it is empty");
        }
        if name.len() > 64 {
            return bad("it is longer than 64 bytes");
        }
        if name == KING || name == ALL {
            return bad("`king` and `all` are no senders of answers");
        }
        if !name
            .chars()
            .all(|c| c.is_alphanumeric() && !is_invisible(c) || matches!(c, '-' | '_' | '.'))
        {
            return bad("a name is made of letters, digits, `-`, `_` and `.`");
        }
        if !name.chars().any(char::is_alphanumeric) {
            return bad("it has no letter or digit");
        }
        // The front matter of message files has no quoting, and some readers end it at any `---`.
        if name.contains("---") {
            return bad("thread files cannot hold `---` in a name");
        }
        if name == "null" {
            return bad("in thread files `null` means nobody");
        }
        let number = name.strip_prefix('-').unwrap_or(&name);
        if number.chars().all(|c| c.is_ascii_digit()) {
            return bad("thread files read a name of digits alone as a number");
        }
        Ok(Self(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SeatName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SeatName {
    type Error = BadSeatName;
    fn try_from(name: String) -> Result<Self, BadSeatName> {
        Self::new(name)
    }
}

impl From<SeatName> for String {
    fn from(name: SeatName) -> String {
        name.0
    }
}

/// The id of a thread, such as `council-a8b3`, which is also the name of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadId(pub String);

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One turn of one member, counted from 1 per machine. If several machines share a session, as a council and its asides
/// do, the upper half is the number of the machine: 0 is the council.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub u64);

impl TurnId {
    /// Returns the machine of the session it belongs to.
    pub fn sitting(self) -> u64 {
        self.0 >> 32
    }

    /// Converts to the numbering of its own machine.
    #[must_use]
    pub fn in_its_sitting(self) -> Self {
        Self(self.0 & u64::from(u32::MAX))
    }

    /// Converts a machine's turn to the numbering of the session.
    #[must_use]
    pub fn in_sitting(self, sitting: u64) -> Self {
        Self(sitting << 32 | self.in_its_sitting().0)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn-{}", self.0)
    }
}

/// A timer set by a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimerId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_forge_or_escape_are_refused() {
        for bad in [
            "",
            "king",
            "all",
            "a b",
            "a/b",
            "../x",
            "a\nb",
            "a:b",
            "...",
            "\u{1b}[2J",
            "a---b",
            "null",
            "007",
            "-5",
            "a\u{3164}b",
            "a\u{200d}b",
            "\u{115f}",
        ] {
            assert!(SeatName::new(bad).is_err(), "{bad:?}");
        }
        for good in ["claude", "gpt-5.1", "Ünïcode_x", "模型", "a--b", "2nd"] {
            assert!(SeatName::new(good).is_ok(), "{good:?}");
        }
    }
}
