//! Events, named in the past tense. Every front end folds the same events into the same view.

use crate::deliberation::Fact;
use crate::failure::Failure;
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::message::{Address, Message};
use crate::request::Delta;
use crate::review::Report;
use crate::usage::Usage;
use jiff::Timestamp;
use kd_eval::marks::Standing;
use serde::{Deserialize, Serialize};

/// The version of the event format printed by `--jsonl` and kept in the log.
pub const FORMAT: u32 = crate::formats::EVENTS.version;

/// An event with its number and time: one line of `--jsonl` and of the thread's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format: [`FORMAT`].
    pub v: u32,
    /// Number of the event in this run, from 1, without gaps.
    pub seq: u64,
    /// The time when it happened.
    pub ts: Timestamp,
    /// The thread.
    pub thread: ThreadId,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The purpose of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Answer the user.
    Answer,
    /// Conclude from the answers of the others.
    Conclude,
    /// Plan the members and the procedure.
    Plan,
    /// Judge the answers of the others, without knowing their authors.
    Review,
    /// Fill in a ballot.
    Vote,
    /// Answer again, knowing the answers of the others.
    Revise,
    /// Summarize for the members that speak next.
    Compress,
    /// Break a tie.
    Arbitrate,
    /// Write to another member in private.
    Exchange,
    /// Put the answer of the round into a JSON schema.
    Format,
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All members answered.
    Complete,
    /// Some members answered.
    Partial,
    /// No member answered.
    Failed,
    /// The user stopped it.
    Interrupted,
}

/// The phase of a member in a debate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuetPhase {
    /// Replies to the question first.
    FirstLook,
    /// Answers the other member's message.
    Debate,
    /// Must answer the user: the exchange is over, or the other member failed.
    Decision,
}

/// The reason why the exchange of a debate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuetEnd {
    /// A reply had no message for the other member.
    Agreed,
    /// A reply had no message for the other member, but it, or one before it, was cut off, or asked for again because it
    /// repeated its prompt: that shows no agreement.
    Unclear,
    /// The maximum number of messages was reached.
    Cap,
    /// A message repeated an earlier one.
    Cycle,
    /// Too few tokens were left for another message and the answer.
    Budget,
    /// The time was up.
    Time,
    /// One member failed, and the other continued alone.
    Alone,
    /// The user stopped it.
    Interrupted,
    /// No member was left to answer.
    Failed,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The thread is open, with these members.
    ThreadOpened {
        /// Members in order.
        members: Vec<SeatName>,
        /// Number of existing messages.
        messages: u32,
    },
    /// A message file exists.
    MessageAdded {
        /// Whether another process wrote it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        found: bool,
        /// The message.
        message: Message,
        /// The turn it came from.
        turn: Option<TurnId>,
    },
    /// A message of the user waits for the current round to end.
    SayQueued {
        /// The text.
        body: String,
        /// The recipients.
        to: Address,
    },
    /// A message of the user was not sent: the user took it back while it waited, or it could not be written.
    SayTakenBack {
        /// The text.
        body: String,
        /// The recipients.
        to: Address,
    },
    /// A member will be asked.
    TurnQueued {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The purpose.
        purpose: Purpose,
        /// The number of the failed message that the answer will replace, on a retry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<u32>,
        /// The members that follow one by one, as far as known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ahead: Vec<SeatName>,
    },
    /// A piece of an answer arrived.
    TurnDelta {
        /// The turn.
        turn: TurnId,
        /// The piece.
        delta: Delta,
    },
    /// A piece of an answer streamed by another process. Its message follows as `MessageAdded`.
    StreamFound {
        /// The member.
        seat: SeatName,
        /// The piece.
        delta: Delta,
    },
    /// Another process's stream ended without a message.
    StreamLost {
        /// The member.
        seat: SeatName,
    },
    /// A turn ended with a complete answer; if it is part of the conversation, its message is on disk.
    TurnFinished {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The number of its message; `None` if the answer is only in the log, such as a ballot or a plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<u32>,
        /// Its usage.
        usage: Option<Usage>,
        /// Number of tool uses.
        #[serde(default, skip_serializing_if = "is_zero")]
        tools: u32,
        /// Characters of thinking.
        #[serde(default, skip_serializing_if = "is_zero")]
        thought: u32,
    },
    /// A turn ended without a complete answer; a partial answer is on disk.
    TurnFailed {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The reason.
        failure: Failure,
        /// The number of its message, if it was written.
        message: Option<u32>,
    },
    /// A member was muted or unmuted.
    SeatMuted {
        /// The member.
        seat: SeatName,
        /// Whether it is now muted.
        muted: bool,
    },
    /// This mode decides who speaks next, from the next message on.
    ModeSet {
        /// Its name.
        mode: String,
        /// Maximum turns after the answers; `None` leaves it to the mode.
        auto_messages: Option<u32>,
    },
    /// An operation was refused and changed nothing.
    OpRefused {
        /// The reason, and what can be done instead.
        why: String,
    },
    /// A message could not be written.
    SaveFailed {
        /// The turn whose message it was.
        turn: Option<TurnId>,
        /// The reason.
        why: String,
    },
    /// The round is over: no member is asked until the user speaks.
    FloorYielded {
        /// The outcome of the round.
        outcome: Outcome,
        /// The usage of the whole round, without turns that put its answer into a JSON schema.
        usage: Usage,
    },
    /// A turn of a debate began.
    PhaseBegan {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// Its phase.
        phase: DuetPhase,
        /// Number of messages exchanged so far.
        exchanged: u32,
        /// The maximum.
        exchanges_max: u32,
    },
    /// A member of a debate wrote to the other. The user sees that it did, not the text.
    CouncilSaid {
        /// The turn.
        turn: TurnId,
        /// The author.
        from: SeatName,
        /// The recipient.
        to: SeatName,
        /// Length in characters.
        chars: u64,
        /// The text; only in the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The exchange of a debate ended.
    DuetEnded {
        /// The reason.
        why: DuetEnd,
        /// Number of messages exchanged.
        exchanged: u32,
        /// The number of the answer's message; `None` if there is no answer.
        answer: Option<u32>,
    },
    /// A fact of a deliberation: a plan, request, reply, count or decision.
    Deliberated {
        /// The fact.
        fact: Box<Fact>,
    },
    /// The promise about the new verdict, from the marks of the person who asked. No decision depends on it.
    Promised {
        /// The number of the verdict's message.
        message: u32,
        /// The promise, or why there is none.
        promise: Box<Standing>,
    },
    /// A review ended: its findings, and who agreed.
    Reviewed {
        /// The report.
        report: Box<Report>,
    },
    /// Settings of the project folder that the user has not allowed; they have no effect in this run.
    HeldBack {
        /// The keys of the settings.
        settings: Vec<String>,
        /// Members left out.
        members: Vec<String>,
    },
    /// A notice for the user.
    Noticed {
        /// One line.
        text: String,
    },
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Event {
    /// Returns the turn that the event is about, if any.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Event::TurnQueued { turn, .. }
            | Event::TurnDelta { turn, .. }
            | Event::TurnFinished { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::PhaseBegan { turn, .. }
            | Event::CouncilSaid { turn, .. } => Some(*turn),
            Event::MessageAdded { turn, .. } | Event::SaveFailed { turn, .. } => *turn,
            _ => None,
        }
    }

    /// Returns a mutable reference to that turn.
    pub fn turn_mut(&mut self) -> Option<&mut TurnId> {
        match self {
            Event::TurnQueued { turn, .. }
            | Event::TurnDelta { turn, .. }
            | Event::TurnFinished { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::PhaseBegan { turn, .. }
            | Event::CouncilSaid { turn, .. } => Some(turn),
            Event::MessageAdded { turn, .. } | Event::SaveFailed { turn, .. } => turn.as_mut(),
            _ => None,
        }
    }
}
