//! The interface of state machines: inputs in, effects out.

use crate::delivery::Delivery;
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::{MachineId, SeatName, TimerId, TurnId};
use crate::message::{Draft, Message};
use crate::op::Op;
use crate::request::{Delta, Request};
use crate::spending::{Ceiling, Keep};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A pure state machine.
pub trait Machine {
    /// Processes one input and returns immediately. Never fails, blocks or panics, whatever the input.
    fn step(&mut self, now: Timestamp, input: Input) -> Effects;

    /// Returns the number of the machine in its session, which its turns and timers share.
    fn id(&self) -> MachineId {
        MachineId::default()
    }

    /// Returns the spending limit of all its requests together.
    fn ceiling(&self) -> Ceiling {
        Ceiling::default()
    }

    /// Returns the reserve that a request of this turn must leave for others, for example for a final answer.
    fn keeps(&self, _turn: TurnId) -> Keep {
        Keep::default()
    }
}

/// An external event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// An operation.
    Op(Op),
    /// A piece of a turn's answer, [`Delta::Finished`] included.
    Delta {
        /// The turn.
        turn: TurnId,
        /// The piece.
        delta: Delta,
    },
    /// The turn's stream failed or ended early.
    Failed {
        /// The turn.
        turn: TurnId,
        /// The reason.
        failure: Failure,
    },
    /// A turn had to wait because another process asked the same member in this thread. The machine responds with a
    /// [`Command::Ask`] for the same turn with a new request, an [`Event::TurnFailed`] that withdraws it, or nothing,
    /// which keeps the original request.
    Freed {
        /// The turn.
        turn: TurnId,
        /// Messages written meanwhile, if other processes are not followed: they are added to the request and not
        /// announced.
        found: Vec<Message>,
    },
    /// A draft is on disk.
    Saved {
        /// The turn it came from.
        turn: Option<TurnId>,
        /// The message on disk.
        message: Message,
    },
    /// A draft could not be written.
    SaveFailed {
        /// The turn it came from.
        turn: Option<TurnId>,
        /// The reason.
        why: String,
    },
    /// Another process wrote a message to the thread.
    Found {
        /// The message.
        message: Message,
    },
    /// Another process streams a member's answer in this thread.
    FoundDelta {
        /// The member.
        seat: SeatName,
        /// The piece.
        delta: Delta,
    },
    /// The stream of another process is over: its file is gone or no longer written.
    FoundEnd {
        /// The member.
        seat: SeatName,
    },
    /// Message files were removed: their numbers, and the senders in their names.
    FoundGone {
        /// Number and sender of each.
        messages: Vec<(u32, String)>,
    },
    /// A message of the user waits in another process until the members have answered.
    FoundWaiting,
    /// A delivery is on disk until it is forgotten.
    Kept {
        /// Its id.
        id: String,
    },
    /// A delivery could not be kept: only this process knows it.
    KeepFailed {
        /// Its id.
        id: String,
        /// The reason.
        why: String,
    },
    /// A timer fired.
    Woke {
        /// The timer.
        timer: TimerId,
    },
}

/// A command to the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Ask a member; its deltas are returned under this turn.
    Ask {
        /// The turn.
        turn: TurnId,
        /// The request. Boxed: it holds the history.
        request: Box<Request>,
    },
    /// Stop a turn. A `Failed` of kind `Cancelled` must follow.
    Cancel {
        /// The turn.
        turn: TurnId,
    },
    /// Write a message. A `Saved` or `SaveFailed` must follow.
    Save(Box<Draft>),
    /// Keep a delivery on disk so that it survives a killed process; a later one with the same id replaces it. A `Kept`
    /// or `KeepFailed` must follow.
    Keep(Box<Delivery>),
    /// Delete a finished delivery.
    Forget {
        /// Its id.
        id: String,
    },
    /// Set a timer.
    Wake {
        /// The timer.
        timer: TimerId,
        /// The time.
        at: Timestamp,
    },
}

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Commands, to be executed in this order.
    pub commands: Vec<Command>,
    /// Events, to be published in this order.
    pub events: Vec<Event>,
}
