//! Identifiers of members, threads, turns and timers.

use crate::clean::is_invisible;
use crate::names::{self, ALL, KING};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a member or of a service such as the chair.
///
/// It is one line without whitespace and path separators, and never one of [`names::RESERVED`] or similar to one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SeatName(String);

/// The reason why a text is not a valid member name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` cannot name a member: {why}")]
pub struct BadSeatName {
    /// The refused text.
    pub name: String,
    /// The reason it is invalid.
    pub why: &'static str,
}

impl SeatName {
    /// Validates a text as the name of a member.
    ///
    /// # Errors
    /// If the name is reserved, or as [`SeatName::sender`].
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
    ///
    /// # Errors
    /// If the name is reserved and neither a guest's nor the reader's, or as [`SeatName::sender`].
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
    ///
    /// # Errors
    /// If the name is empty, longer than 64 bytes, `king`, `all` or `null`, has no letter or digit, has only digits, or
    /// contains `---` or another character than letters, digits, `-`, `_` and `.`.
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
            return bad("`king` and `all` cannot send answers");
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

/// One of the machines that share a session: 0 is the machine that the session was opened with, its asides count from
/// 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MachineId(pub u32);

impl MachineId {
    /// A turn of this machine.
    pub const fn turn(self, number: u32) -> TurnId {
        TurnId {
            machine: self,
            number,
        }
    }

    /// A timer of this machine.
    pub const fn timer(self, number: u32) -> TimerId {
        TimerId {
            machine: self,
            number,
        }
    }
}

/// One seat producing one message.
///
/// Recorded as a single number, with the machine in its upper half, so that the turns of a session's first machine read
/// 1, 2, 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct TurnId {
    /// The machine that asks.
    pub machine: MachineId,
    /// Counted from 1 within one machine's life.
    pub number: u32,
}

impl TurnId {
    /// A turn of the machine that the session was opened with.
    pub const fn new(number: u32) -> Self {
        MachineId(0).turn(number)
    }

    /// Returns this turn for a session that has only its machine: the record of a deliberation is complete in itself.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self::new(self.number)
    }
}

impl From<u64> for TurnId {
    fn from(recorded: u64) -> Self {
        let (machine, number) = halves(recorded);
        machine.turn(number)
    }
}

impl From<TurnId> for u64 {
    fn from(turn: TurnId) -> Self {
        whole(turn.machine, turn.number)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn-{}", u64::from(*self))
    }
}

/// A timer that a machine asked for. Recorded like a [`TurnId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct TimerId {
    /// The machine that asked for it.
    pub machine: MachineId,
    /// Its number within that machine.
    pub number: u32,
}

impl TimerId {
    /// A timer of the machine that the session was opened with.
    pub const fn new(number: u32) -> Self {
        MachineId(0).timer(number)
    }
}

impl From<u64> for TimerId {
    fn from(recorded: u64) -> Self {
        let (machine, number) = halves(recorded);
        machine.timer(number)
    }
}

impl From<TimerId> for u64 {
    fn from(timer: TimerId) -> Self {
        whole(timer.machine, timer.number)
    }
}

fn halves(recorded: u64) -> (MachineId, u32) {
    (MachineId((recorded >> 32) as u32), recorded as u32)
}

fn whole(machine: MachineId, number: u32) -> u64 {
    u64::from(machine.0) << 32 | u64::from(number)
}

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
    #[test]
    fn a_turn_is_recorded_as_one_number() {
        for (turn, recorded) in [
            (TurnId::new(7), 7),
            (MachineId(1).turn(2), (1 << 32) + 2),
            (MachineId(u32::MAX).turn(u32::MAX), u64::MAX),
        ] {
            assert_eq!(serde_json::json!(turn), serde_json::json!(recorded));
            assert_eq!(TurnId::from(recorded), turn);
            assert_eq!(turn.alone(), TurnId::new(turn.number));
        }
    }
}
