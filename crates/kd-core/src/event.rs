//! Facts, in the past tense. Every face folds the same events into the same view.

use crate::deliberation::Fact;
use crate::failure::Failure;
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::message::{Address, Message};
use crate::request::{Delta, Usage};
use crate::review::Report;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The version of the event format that `--jsonl` prints and the log keeps.
pub const FORMAT: u32 = crate::formats::EVENTS.version;

/// An event with its place in time: one line of `--jsonl` and of the thread's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format: [`FORMAT`].
    pub v: u32,
    /// Number of the event in this run, from 1, without gaps.
    pub seq: u64,
    /// When it happened.
    pub ts: Timestamp,
    /// The thread.
    pub thread: ThreadId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Why a seat is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To answer the king.
    Answer,
    /// To conclude from the answers of the others.
    Conclude,
    /// To plan who sits and how they decide.
    Plan,
    /// To judge the answers of the others, without knowing whose they are.
    Review,
    /// To fill in a ballot.
    Vote,
    /// To answer once more, knowing what the others said.
    Revise,
    /// To sum up what was said, for those who speak next.
    Compress,
    /// To break a tie.
    Arbitrate,
    /// To speak to another seat, out of the king's sight.
    Exchange,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everybody who was asked answered.
    Complete,
    /// Some did.
    Partial,
    /// Nobody did.
    Failed,
    /// The king stopped it.
    Interrupted,
}

/// What a seat of a duet is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuetPhase {
    /// It looks at the question first.
    FirstLook,
    /// It answers what the other seat wrote to it.
    Debate,
    /// It must answer the king: the exchange is over, or it is alone.
    Decision,
}

/// Why the exchange of a duet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DuetEnd {
    /// A reply had nothing for the other seat.
    Agreed,
    /// There were as many messages as allowed.
    Cap,
    /// A message said what one before it had said.
    Cycle,
    /// The tokens would not have lasted for another message and the answer.
    Budget,
    /// The time was up.
    Time,
    /// One seat failed, and the other went on without it.
    Alone,
    /// The king stopped it.
    Interrupted,
    /// Nobody was left to answer.
    Failed,
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The thread is open; these members sit in it.
    ThreadOpened {
        /// Members in order.
        members: Vec<SeatName>,
        /// How many messages it already holds.
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
    /// The king said something while others spoke: it waits until the floor is his again.
    SayQueued {
        /// The words.
        body: String,
        /// Whom they are for.
        to: Address,
    },
    /// What waited was taken back by the king: it was not said.
    SayTakenBack {
        /// The words.
        body: String,
        /// Whom they were for.
        to: Address,
    },
    /// A seat will be asked.
    TurnQueued {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// Why.
        purpose: Purpose,
        /// The number of the failed message whose place the answer will take, where it is asked for again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<u32>,
        /// Who speaks after it, one by one, as far as that is known.
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
    /// A piece of an answer that another process streams into this thread. Its message follows as `MessageAdded`.
    StreamFound {
        /// Who speaks.
        seat: SeatName,
        /// The piece.
        delta: Delta,
    },
    /// The stream of another process ended, and no message came of it.
    StreamLost {
        /// Who spoke.
        seat: SeatName,
    },
    /// A turn ended with a whole answer; its message, if the answer is part of the conversation, is on disk.
    TurnFinished {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// The number of its message; none where the answer is kept in the log alone: a ballot, a plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<u32>,
        /// What it used.
        usage: Option<Usage>,
        /// How often a tool was used.
        #[serde(default, skip_serializing_if = "is_zero")]
        tools: u32,
        /// Characters of thinking.
        #[serde(default, skip_serializing_if = "is_zero")]
        thought: u32,
    },
    /// A turn ended without a whole answer; what came is on disk.
    TurnFailed {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// Why.
        failure: Failure,
        /// The number of its message, if one could be written.
        message: Option<u32>,
    },
    /// A seat was muted or unmuted.
    SeatMuted {
        /// The seat.
        seat: SeatName,
        /// Muted now?
        muted: bool,
    },
    /// From the next message on, this rule says who speaks next.
    ModeSet {
        /// Its name.
        mode: String,
        /// How many turns may follow the answers; none leaves it to the mode.
        auto_messages: Option<u32>,
    },
    /// An op could not be done; nothing was changed by it.
    OpRefused {
        /// Why, and what can be done instead.
        why: String,
    },
    /// A message could not be written.
    SaveFailed {
        /// The turn whose message it was.
        turn: Option<TurnId>,
        /// Why.
        why: String,
    },
    /// Nobody is asked any more until the king speaks.
    FloorYielded {
        /// How the round ended.
        outcome: Outcome,
        /// What the whole round used.
        usage: Usage,
    },
    /// A turn of a duet began: what it is for.
    PhaseBegan {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// What it is at.
        phase: DuetPhase,
        /// How many messages the seats have exchanged.
        exchanged: u32,
        /// The most they may.
        exchanges_max: u32,
    },
    /// A seat of a duet wrote to the other. The king is told that, not what.
    CouncilSaid {
        /// The turn.
        turn: TurnId,
        /// Who wrote.
        from: SeatName,
        /// To whom.
        to: SeatName,
        /// How long it is, in characters.
        chars: u64,
        /// The words, where they may be told: in the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// The exchange of a duet ended.
    DuetEnded {
        /// Why.
        why: DuetEnd,
        /// How many messages the seats exchanged.
        exchanged: u32,
        /// The number of the message that is the answer; none if there is no answer.
        answer: Option<u32>,
    },
    /// A fact of a deliberation: what was planned, asked, said, counted and decided.
    Deliberated {
        /// The fact.
        fact: Box<Fact>,
    },
    /// A review ended: its findings, with who agreed.
    Reviewed {
        /// The report.
        report: Box<Report>,
    },
    /// What the project folder asks for and the user did not allow: it takes no part in this run.
    HeldBack {
        /// Settings, by their keys.
        settings: Vec<String>,
        /// Members that are left out.
        members: Vec<String>,
    },
    /// Something the king should know.
    Noticed {
        /// One line.
        text: String,
    },
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Event {
    /// The turn that the event is about, if it is about one.
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

    /// The same, to be changed.
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
