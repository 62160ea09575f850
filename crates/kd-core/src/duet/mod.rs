//! The debate: a state machine in which a fast and a rigorous member answer together. Text outside `<council>` tags is
//! streamed to the user; text inside goes only to the other member.
//!
//! Input: [`Input`]s. Output: [`Effects`]. The course of a question: save the message → the fast member replies first →
//! as long as a reply contains a message for the other member, that one is asked → a reply without one is the answer.
//! The message limit, repetition, tokens or time end the exchange; then the arbiter or the rigorous member must answer.
//! If a member fails, the other answers alone. No answer is empty: if the members that must answer write only inside
//! tags, that text is the answer.
//!
//! Based on the original debate in tags, which showed the tags and could end without an answer.

mod course;
mod draft;
mod exchange;
pub(crate) mod prompts;
mod reply;
mod round;
pub mod seats;
pub mod splitter;
mod turn;

#[cfg(test)]
mod tests;

use crate::clean::clean_text;
use crate::config::ThinkConfig;
use crate::event::{DuetEnd, Event};
use crate::ids::{MachineId, SeatName, ThreadId, TimerId};
use crate::last_round::RoundKind;
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Address, Message};
use crate::op::Op;
use crate::prompt::PromptRules;
use crate::spending::Ceiling;
use jiff::Timestamp;
use round::Round;
use seats::Seats;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use turn::Turn;

/// Maximum characters of a reason.
const LINE_CHARS_MAX: usize = 400;

/// The parameters of a debate.
#[derive(Clone, Debug)]
pub struct OpenDuet {
    /// The thread.
    pub thread: ThreadId,
    /// The members.
    pub seats: Seats,
    /// The rules for every prompt.
    pub prompts: PromptRules,
    /// The existing messages of the thread, in order.
    pub history: Vec<Message>,
    /// The limits.
    pub limits: DuetLimits,
}

/// The limits of a debate, per question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuetLimits {
    /// Maximum messages between the members.
    pub exchanges_max: u32,
    /// Minimum messages: an earlier reply is shown, and sent to the other member for checking.
    pub exchanges_min: u32,
    /// Maximum tokens of all prompts and replies, including the answer.
    pub tokens_max: Option<u64>,
    /// Maximum seconds until the answer is requested.
    pub seconds_max: Option<u64>,
    /// Maximum bytes per reply.
    pub text_bytes_max: usize,
    /// Maximum number of waiting questions.
    pub waiting_max: usize,
}

impl Default for DuetLimits {
    /// Six messages, 16 MiB per reply, 64 waiting questions, no other limit.
    fn default() -> Self {
        Self {
            exchanges_max: 6,
            exchanges_min: 0,
            tokens_max: None,
            seconds_max: None,
            text_bytes_max: 16 << 20,
            waiting_max: 64,
        }
    }
}

impl DuetLimits {
    /// Returns the spending limit of the members.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            tokens: self.tokens_max,
            ..Ceiling::default()
        }
    }

    /// Returns the configured limits for these members. The built-in model hardly ever asks on its own, so its first
    /// reply is checked.
    pub fn of(think: &ThinkConfig, seats: &Seats) -> Self {
        Self {
            exchanges_max: think.exchanges_max,
            exchanges_min: think
                .exchanges_min
                .unwrap_or_else(|| seats.built_in().into()),
            tokens_max: think.tokens_max,
            seconds_max: think.seconds_max,
            ..Self::default()
        }
    }
}

/// The state machine of one thread.
#[derive(Debug)]
pub struct Duet {
    seats: Seats,
    prompts: PromptRules,
    history: Vec<Message>,
    limits: DuetLimits,
    stage: Stage,
    /// The open turn: one member speaks at a time.
    turn: Option<Turn>,
    /// Waiting questions, and whether they should be answered.
    waiting: VecDeque<(String, bool)>,
    /// The machine whose turns and timers it counts.
    id: MachineId,
    turns: u32,
    timers: u32,
    closed: bool,
}

/// The stage of the debate.
#[derive(Debug)]
enum Stage {
    /// Waiting for the user.
    Idle,
    /// The question is being written; whether it should be answered.
    Saving(bool),
    /// The members are speaking.
    Speaking(Box<Round>),
}

impl Machine for Duet {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Op(op) => self.op(op, &mut fx),
            Input::Delta { turn, delta } => self.hear(now, turn, delta, &mut fx),
            Input::Failed { turn, failure } => self.failed(now, turn, failure, &mut fx),
            Input::Saved { turn, message } => self.saved(now, turn, message, &mut fx),
            Input::SaveFailed { turn, why } => self.save_failed(now, turn, &why, &mut fx),
            Input::Found { message } => self.add(message, None, true, &mut fx),
            // A debate keeps no deliveries and follows no other process.
            Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
            | Input::FoundGone { .. }
            | Input::FoundWaiting
            | Input::Kept { .. }
            | Input::KeepFailed { .. }
            | Input::Freed { .. } => {}
            Input::Woke { timer } => self.woke(timer, &mut fx),
        }
        self.settle(now, &mut fx);
        fx
    }

    fn ceiling(&self) -> Ceiling {
        self.limits.ceiling()
    }
}

impl Duet {
    /// Opens a debate on a thread. The effects contain its first event, [`Event::ThreadOpened`].
    pub fn open(open: OpenDuet) -> (Self, Effects) {
        let members = [&open.seats.fast, &open.seats.rigorous];
        let opened = Event::ThreadOpened {
            members: members.map(|m| m.name.clone()).to_vec(),
            messages: open.history.len().try_into().unwrap_or(u32::MAX),
        };
        let duet = Self {
            seats: open.seats,
            prompts: open.prompts,
            history: open.history,
            limits: open.limits,
            stage: Stage::Idle,
            turn: None,
            waiting: VecDeque::new(),
            id: MachineId::default(),
            turns: 0,
            timers: 0,
            closed: false,
        };
        let effects = Effects {
            commands: Vec::new(),
            events: vec![opened],
        };
        (duet, effects)
    }

    /// Returns this duet as another machine of its session.
    #[must_use]
    pub(crate) fn numbered(mut self, id: MachineId) -> Self {
        self.id = id;
        self
    }

    /// Returns whether nothing is open, waiting or being written.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle) && self.turn.is_none() && self.waiting.is_empty()
    }

    fn op(&mut self, op: Op, fx: &mut Effects) {
        let refused = match op {
            Op::Say { body, .. } => self.say(&body, fx),
            Op::Interrupt => {
                self.interrupt(fx);
                None
            }
            Op::Stop { seat } => self.stop(&seat, fx),
            Op::Close => {
                self.closed = true;
                self.waiting.iter_mut().for_each(|(_, ask)| *ask = false);
                None
            }
            Op::Resume | Op::TakeBack => None,
            Op::Mute { .. }
            | Op::Unmute { .. }
            | Op::Choose { .. }
            | Op::Retry { .. }
            | Op::Mode { .. }
            | Op::Auto { .. } => {
                Some("not possible in a debate of `kd think`: ask again instead".to_owned())
            }
        };
        fx.events
            .extend(refused.map(|why| Event::OpRefused { why }));
    }

    fn say(&mut self, body: &str, fx: &mut Effects) -> Option<String> {
        let body = clean_text(body).trim().to_owned();
        if self.closed {
            return Some("the thread is closing: open it again to continue".into());
        }
        if body.is_empty() {
            return Some("the message is empty".into());
        }
        if self.waiting.len() >= self.limits.waiting_max {
            return Some("too many messages are waiting: wait, or interrupt first".into());
        }
        if !self.is_idle() {
            fx.events.push(Event::SayQueued {
                body: body.clone(),
                to: Address::All,
            });
        }
        self.waiting.push_back((body, true));
        None
    }

    /// Stops everything; waiting questions are saved without an answer.
    fn interrupt(&mut self, fx: &mut Effects) {
        self.waiting.iter_mut().for_each(|(_, ask)| *ask = false);
        match &mut self.stage {
            Stage::Speaking(round) => round.interrupted = true,
            Stage::Saving(ask) => *ask = false,
            Stage::Idle => {}
        }
        self.cancel(fx);
    }

    /// Stops one member; the other continues.
    fn stop(&mut self, seat: &SeatName, fx: &mut Effects) -> Option<String> {
        if self.turn.as_ref().is_none_or(|t| &t.seat != seat) {
            return Some(format!("{seat} is not speaking"));
        }
        self.cancel(fx);
        None
    }

    fn cancel(&mut self, fx: &mut Effects) {
        if let Some(turn) = self.turn.as_mut().filter(|t| t.end.is_none() && !t.stopped) {
            turn.stopped = true;
            fx.commands.push(Command::Cancel { turn: turn.id });
        }
    }

    /// Handles the time limit of a question: the current turn is stopped, and the answer requested.
    fn woke(&mut self, timer: TimerId, fx: &mut Effects) {
        let Stage::Speaking(round) = &mut self.stage else {
            return;
        };
        if round.timer == Some(timer) && round.deciding.is_none() && !round.interrupted {
            round.deciding = Some(DuetEnd::Time);
            self.cancel(fx);
        }
    }

    /// Advances as far as possible without further input.
    fn settle(&mut self, now: Timestamp, fx: &mut Effects) {
        while self.turn.is_none() {
            match std::mem::replace(&mut self.stage, Stage::Idle) {
                Stage::Idle => {
                    let Some((body, ask)) = self.waiting.pop_front() else {
                        return;
                    };
                    let mut draft = crate::draft::king(body, Address::All, None, now);
                    RoundKind::Debate.mark(&mut draft);
                    fx.commands.push(Command::Save(Box::new(draft)));
                    self.stage = Stage::Saving(ask);
                    return;
                }
                saving @ Stage::Saving(_) => {
                    self.stage = saving;
                    return;
                }
                Stage::Speaking(mut round) => {
                    if self.proceed(now, &mut round, fx) {
                        self.stage = Stage::Speaking(round);
                    } else {
                        round.finish(fx);
                    }
                }
            }
        }
    }
}

fn notice(text: String) -> Event {
    Event::Noticed { text }
}
