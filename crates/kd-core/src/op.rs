//! Wishes that come in: from a face, a script or another program.

use crate::ids::SeatName;
use crate::message::Address;
use serde::{Deserialize, Serialize};

/// A wish. Imperative, in the words of the person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// The king says something.
    Say {
        /// The words.
        body: String,
        /// Whom they are for.
        to: Address,
    },
    /// Stop every open turn, and ask nobody until the next `Say` or `Retry`.
    Interrupt,
    /// Stop one seat's open turn.
    Stop {
        /// Whose.
        seat: SeatName,
    },
    /// Skip a member from now on.
    Mute {
        /// Whom.
        seat: SeatName,
    },
    /// Ask a member again from now on.
    Unmute {
        /// Whom.
        seat: SeatName,
    },
    /// Ask again: one member, or all whose last turn failed.
    Retry {
        /// Whom; none means everybody who failed.
        seat: Option<SeatName>,
    },
    /// Another rule for who speaks next, from the next message on.
    Mode {
        /// Its name: a row of [`PROTOCOLS`](crate::protocols::PROTOCOLS).
        mode: String,
    },
    /// How many turns may follow the answers, from the next message on; none leaves it to the mode.
    Auto {
        /// How many.
        messages: Option<u32>,
    },
    /// Take up what a session that ended too early has left: see [`OpenCouncil::queue`](crate::OpenCouncil::queue).
    Resume,
    /// Take no more work; running turns may end.
    Close,
}
