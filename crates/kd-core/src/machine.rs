//! The shape of every machine: inputs in, effects out.

use crate::conversation::Aside;
use crate::delivery::Delivery;
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::{SeatName, TimerId, TurnId};
use crate::message::{Draft, Message};
use crate::op::Op;
use crate::request::{Delta, Request};
use crate::spending::{Ceiling, Keep};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A pure state machine. The council is one; the forum is another.
pub trait Machine {
    /// Hears one input and answers at once. Never fails, blocks or panics, whatever comes in.
    fn step(&mut self, now: Timestamp, input: Input) -> Effects;

    /// What its requests may spend in all. An aside has limits of its own ([`Aside::ceiling`]).
    fn ceiling(&self) -> Ceiling {
        Ceiling::default()
    }

    /// What a request of this turn must leave for others: a final answer, for example.
    fn keeps(&self, _turn: TurnId) -> Keep {
        Keep::default()
    }

    /// Answers a question otherwise than usual, where the machine can.
    fn aside(&mut self, _now: Timestamp, _aside: Aside) -> Effects {
        Effects {
            commands: Vec::new(),
            events: vec![Event::OpRefused {
                why: "only a conversation can do that: `kd chat`".to_owned(),
            }],
        }
    }
}

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// A wish.
    Op(Op),
    /// A piece of a turn's answer, [`Delta::Finished`] included.
    Delta {
        /// The turn.
        turn: TurnId,
        /// The piece.
        delta: Delta,
    },
    /// The turn's stream ended with a failure, or before its end.
    Failed {
        /// The turn.
        turn: TurnId,
        /// Why.
        failure: Failure,
    },
    /// A turn had to wait because another process asked the same member in this thread. The answer is a [`Command::Ask`] for the same turn with a new request, an
    /// [`Event::TurnFailed`] that takes it back, or nothing: then it is asked as it was.
    Freed {
        /// The turn.
        turn: TurnId,
        /// What was said meanwhile, where nobody follows what other processes say: it belongs into the request, and is
        /// not announced.
        found: Vec<Message>,
    },
    /// A draft is on disk.
    Saved {
        /// The turn it came from.
        turn: Option<TurnId>,
        /// As it is on disk.
        message: Message,
    },
    /// A draft could not be written.
    SaveFailed {
        /// The turn it came from.
        turn: Option<TurnId>,
        /// Why.
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
    /// The stream of another process is over: its file is gone, or nobody writes it any more.
    FoundEnd {
        /// The member.
        seat: SeatName,
    },
    /// A delivery is safe until it is forgotten.
    Kept {
        /// Its id.
        id: String,
    },
    /// A delivery could not be kept: only this process knows of it.
    KeepFailed {
        /// Its id.
        id: String,
        /// Why.
        why: String,
    },
    /// A timer rang.
    Woke {
        /// Which.
        timer: TimerId,
    },
}

/// An order to the outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Ask a seat; its deltas come back under this turn.
    Ask {
        /// The turn.
        turn: TurnId,
        /// The question. Boxed: it holds the history.
        request: Box<Request>,
    },
    /// Stop a turn. A `Failed` with kind `Cancelled` must come back.
    Cancel {
        /// The turn.
        turn: TurnId,
    },
    /// Write a message. A `Saved` or `SaveFailed` must come back.
    Save(Box<Draft>),
    /// Keep a delivery where a killed process cannot lose it; a later one with the same id takes its place. A `Kept` or
    /// `KeepFailed` must come back.
    Keep(Box<Delivery>),
    /// A delivery is done with.
    Forget {
        /// Its id.
        id: String,
    },
    /// Ring a timer.
    Wake {
        /// Which.
        timer: TimerId,
        /// When.
        at: Timestamp,
    },
}

/// What one step asks for and tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Orders, to be carried out in this sequence.
    pub commands: Vec<Command>,
    /// Facts, to be published in this sequence.
    pub events: Vec<Event>,
}
