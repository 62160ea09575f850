//! Operations requested by a front end, a script or another program.

use crate::ids::SeatName;
use crate::message::Address;
use serde::{Deserialize, Serialize};

/// An operation, named in the imperative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// Send a message of the user.
    Say {
        /// The text.
        body: String,
        /// The recipients.
        to: Address,
    },
    /// Record that the user chooses a member's newest answer. Nobody is asked; the members see it in their next turn.
    Choose {
        /// The member.
        seat: SeatName,
    },
    /// Stop every open turn, and ask nobody until the next `Say` or `Retry`.
    Interrupt,
    /// Take back the messages that wait, so that they are not sent.
    TakeBack,
    /// Stop one member's open turn.
    Stop {
        /// The member.
        seat: SeatName,
    },
    /// Skip a member from now on.
    Mute {
        /// The member.
        seat: SeatName,
    },
    /// Ask a member again from now on.
    Unmute {
        /// The member.
        seat: SeatName,
    },
    /// Ask again: one member, or all whose last turn failed.
    Retry {
        /// The member; `None` means all that failed.
        seat: Option<SeatName>,
    },
    /// Set the mode that decides who speaks next, from the next message on.
    Mode {
        /// Its name: a row of [`PROTOCOLS`](crate::protocols::PROTOCOLS).
        mode: String,
    },
    /// Set the maximum turns after the answers, from the next message on; `None` leaves it to the mode.
    Auto {
        /// The number of turns.
        messages: Option<u32>,
    },
    /// Resume what a session that ended early left: see [`OpenCouncil::queue`](crate::OpenCouncil::queue).
    Resume,
    /// Accept no more work; running turns may end.
    Close,
}
