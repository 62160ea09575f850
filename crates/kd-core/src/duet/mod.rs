//! The duet: a machine in which a fast and a rigorous seat answer together. What a reply holds outside `<council>` tags
//! goes to the king as it streams; what it holds inside goes to the other seat alone.
//!
//! In: [`Input`]s. Out: [`Effects`]. The road of a question: save the king's words → the fast seat looks first → as long
//! as a reply has a message for the other seat, that one is asked → a reply without one is the answer. A cap, a circle,
//! the tokens or the time end the exchange; then the arbiter or the rigorous seat must answer. A seat that fails is left
//! out, and the other answers alone. Nobody's answer is empty: if those who must answer write only inside tags, what
//! they wrote is the answer, for nobody else is there to read it.
//!
//! Source: the seed of the debate in tags. Corrected here: its original showed the tags, and ended without an answer.

mod course;
mod draft;
mod exchange;
mod prompts;
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
use crate::ids::{SeatName, ThreadId, TimerId};
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

/// The most characters of a reason.
const LINE_CHARS_MAX: usize = 400;

/// What a duet is opened with.
#[derive(Clone, Debug)]
pub struct OpenDuet {
    /// The thread.
    pub thread: ThreadId,
    /// Who sits.
    pub seats: Seats,
    /// What every member is told before its part.
    pub prompts: PromptRules,
    /// What the thread holds already, in its order.
    pub history: Vec<Message>,
    /// The bounds.
    pub limits: DuetLimits,
}

/// The bounds of a duet, for one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuetLimits {
    /// The most messages between the seats.
    pub exchanges_max: u32,
    /// The fewest: a reply before that is shown, and goes to the other seat to be checked.
    pub exchanges_min: u32,
    /// The most tokens of all prompts and replies, the answer included.
    pub tokens_max: Option<u64>,
    /// The most seconds until the answer is asked for.
    pub seconds_max: Option<u64>,
    /// The most bytes of one reply.
    pub text_bytes_max: usize,
    /// The most questions that may wait.
    pub waiting_max: usize,
}

impl Default for DuetLimits {
    /// Six messages, 16 MiB a reply, 64 waiting questions, no other bound.
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
    /// What the seats may spend in all.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            tokens: self.tokens_max,
            ..Ceiling::default()
        }
    }

    /// The bounds that the settings give these seats. The built-in model hardly ever asks by itself, so what it says first
    /// is checked.
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

/// The machine of one thread.
#[derive(Debug)]
pub struct Duet {
    seats: Seats,
    prompts: PromptRules,
    history: Vec<Message>,
    limits: DuetLimits,
    stage: Stage,
    /// The open turn: one seat speaks at a time.
    turn: Option<Turn>,
    /// Questions that wait, and whether they are to be answered.
    waiting: VecDeque<(String, bool)>,
    turns: u64,
    timers: u64,
    closed: bool,
}

/// What the duet is at.
#[derive(Debug)]
enum Stage {
    /// The king has the floor.
    Idle,
    /// His words are being written; whether they are to be answered.
    Saving(bool),
    /// The seats speak.
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
            // A duet keeps nothing until it is answered, and follows nobody.
            Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
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
    /// Opens a duet on a thread. The effects hold its first fact, [`Event::ThreadOpened`].
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

    /// Whether nothing is open, waiting or being written.
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
            Op::Resume => None,
            Op::Mute { .. }
            | Op::Unmute { .. }
            | Op::Retry { .. }
            | Op::Mode { .. }
            | Op::Auto { .. } => {
                Some("two seats think together here: ask again instead".to_owned())
            }
        };
        fx.events
            .extend(refused.map(|why| Event::OpRefused { why }));
    }

    fn say(&mut self, body: &str, fx: &mut Effects) -> Option<String> {
        let body = clean_text(body).trim().to_owned();
        if self.closed {
            return Some("the thread is being closed: open it again to go on".into());
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

    /// Stops everything; the king's waiting words are kept, unanswered.
    fn interrupt(&mut self, fx: &mut Effects) {
        self.waiting.iter_mut().for_each(|(_, ask)| *ask = false);
        match &mut self.stage {
            Stage::Speaking(round) => round.interrupted = true,
            Stage::Saving(ask) => *ask = false,
            Stage::Idle => {}
        }
        self.cancel(fx);
    }

    /// Stops one seat: the other goes on.
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

    /// The time of a question is up: whoever speaks is stopped, and the answer is asked for.
    fn woke(&mut self, timer: TimerId, fx: &mut Effects) {
        let Stage::Speaking(round) = &mut self.stage else {
            return;
        };
        if round.timer == Some(timer) && round.deciding.is_none() && !round.interrupted {
            round.deciding = Some(DuetEnd::Time);
            self.cancel(fx);
        }
    }

    /// Goes on as far as it can without hearing more.
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
