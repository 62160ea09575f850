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

mod draft;
mod exchange;
mod prompts;
pub mod seats;
pub mod splitter;
mod turn;

#[cfg(test)]
mod tests;

use crate::clean::{clean_line, clean_text};
use crate::config::ThinkConfig;
use crate::event::{DuetEnd, DuetPhase, Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::ids::{SeatName, ThreadId, TimerId, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Address, Message};
use crate::op::Op;
use crate::prompt::{self, PromptRules};
use crate::request::{Delta, Request, Usage};
use exchange::Exchange;
use jiff::{SignedDuration, Timestamp};
use prompts::Part;
use seats::Seats;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use turn::{End, Heard, Turn};

/// The tokens that a reply is thought to need where nothing limits it.
const REPLY_TOKENS: u64 = 1024;
/// A reply is never limited to fewer tokens than this, or it would say nothing.
const REPLY_TOKENS_MIN: u64 = 64;
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

/// The answering of one question.
#[derive(Debug, Default)]
struct Round {
    /// The number of the king's message.
    question: u32,
    exchange: Exchange,
    usage: Usage,
    /// Tokens used, as told or guessed.
    tokens: u64,
    /// Seats that failed, and why.
    failed: Vec<(SeatName, String)>,
    /// Why the king must be answered now.
    deciding: Option<DuetEnd>,
    /// Seats that were asked to decide.
    asked: Vec<SeatName>,
    /// What a deciding seat wrote inside tags only.
    wrapped: Option<(SeatName, String)>,
    /// The last message that told the king something.
    told: Option<u32>,
    /// Who is to speak next.
    next: Option<SeatName>,
    /// Whether the last reply was to be checked, and held no message of its own.
    verify: bool,
    answer: Option<u32>,
    timer: Option<TimerId>,
    interrupted: bool,
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
            Input::Found { message } => self.add(message, None, &mut fx),
            // A duet keeps nothing until it is answered, and follows nobody.
            Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
            | Input::Kept { .. }
            | Input::KeepFailed { .. } => {}
            Input::Woke { timer } => self.woke(timer, &mut fx),
        }
        self.settle(now, &mut fx);
        fx
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
                    let draft = draft::king(body, now);
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
                        Self::finish(*round, fx);
                    }
                }
            }
        }
    }

    /// Opens the next turn; false if the question is done with.
    fn proceed(&mut self, now: Timestamp, round: &mut Round, fx: &mut Effects) -> bool {
        if round.interrupted || self.closed || round.answer.is_some() {
            return false;
        }
        if round.deciding.is_none() && !self.can_debate(round) {
            round.deciding = Some(DuetEnd::Budget);
            fx.events.push(notice(
                "the tokens would not last for another message: the answer is asked for".into(),
            ));
        }
        if round.deciding.is_some() {
            return self.decide(now, round, fx);
        }
        let Some(seat) = round.next.take() else {
            return false;
        };
        let part = match (round.exchange.count, round.verify) {
            (0, _) => Part::First,
            (_, true) => Part::Verify,
            (n, false) => Part::Debate {
                n: n + 1,
                max: self.limits.exchanges_max,
            },
        };
        let phase = match part {
            Part::First => DuetPhase::FirstLook,
            _ => DuetPhase::Debate,
        };
        self.ask(round, &seat, phase, part, fx);
        true
    }

    /// Asks whoever must answer next: the arbiter, the rigorous seat, the fast one, each once.
    fn decide(&mut self, now: Timestamp, round: &mut Round, fx: &mut Effects) -> bool {
        let why = round.deciding.unwrap_or(DuetEnd::Cap);
        let mut order = [
            self.seats.arbiter.as_ref(),
            Some(&self.seats.rigorous),
            Some(&self.seats.fast),
        ];
        if why == DuetEnd::Alone {
            // The other seat goes on; there is nothing to arbitrate.
            order.rotate_left(1);
        }
        let seat = order
            .into_iter()
            .flatten()
            .map(|m| &m.name)
            .find(|s| !round.asked.contains(s) && !round.has_failed(s))
            .cloned();
        if let Some(seat) = seat {
            round.asked.push(seat.clone());
            let part = match why {
                DuetEnd::Alone if round.exchange.count == 0 => Part::Alone,
                _ => Part::Decide { why: reason(why) },
            };
            self.ask(round, &seat, DuetPhase::Decision, part, fx);
            return true;
        }
        if let Some((seat, text)) = round.wrapped.take() {
            fx.events.push(notice(format!(
                "{seat} put the whole answer into tags: it is shown without them"
            )));
            self.unwrap(now, seat, text, fx);
            return true;
        }
        if let Some(told) = round.told {
            fx.events.push(notice(format!(
                "nobody could give the final answer: message {told} is the last that was said"
            )));
        }
        false
    }

    /// Makes an answer of what a seat wrote inside tags when it had to answer the king.
    fn unwrap(&mut self, now: Timestamp, seat: SeatName, text: String, fx: &mut Effects) {
        self.turns += 1;
        let mut turn = Turn::new(TurnId(self.turns), seat, DuetPhase::Decision, 0);
        turn.spoken.clone_from(&text);
        fx.events.push(Event::TurnQueued {
            turn: turn.id,
            seat: turn.seat.clone(),
            purpose: Purpose::Conclude,
            replaces: None,
        });
        fx.events.push(Event::TurnDelta {
            turn: turn.id,
            delta: Delta::Text { text },
        });
        let end = End {
            result: Ok(()),
            usage: None,
            finish: None,
            council: None,
        };
        self.turn = Some(turn);
        self.write(now, end, fx);
    }

    /// Whether another message between the seats leaves enough tokens for the answer.
    fn can_debate(&self, round: &Round) -> bool {
        let Some(most) = self.limits.tokens_max else {
            return true;
        };
        let text: usize = self.transcript(round).map(|m| m.body.len()).sum();
        let prompt = (text as u64).div_ceil(4) + 200;
        // The first look is had even if nothing can follow: nobody has answered yet.
        round.exchange.count == 0 || round.tokens + 2 * (prompt + 2 * REPLY_TOKENS_MIN) <= most
    }

    fn transcript<'a>(&'a self, round: &'a Round) -> impl Iterator<Item = &'a Message> {
        let before = self.history.iter().filter(|m| m.seq <= round.question);
        before.chain(&round.exchange.said)
    }

    fn ask(
        &mut self,
        round: &Round,
        seat: &SeatName,
        phase: DuetPhase,
        part: Part<'_>,
        fx: &mut Effects,
    ) {
        let Some(member) = self.seats.get(seat) else {
            return;
        };
        let other = self.seats.other(seat);
        let names = [&self.seats.fast.name, &self.seats.rigorous.name];
        let history = prompt::render(self.transcript(round), names);
        let prompt = prompts::build(&self.prompts, member, other, history, part);
        let prompt_tokens = (prompt.as_text().len() as u64).div_ceil(4);
        let mut sampling = member.sampling.clone();
        if let Some(most) = self.limits.tokens_max {
            let left = most.saturating_sub(round.tokens + prompt_tokens);
            let share = match phase {
                DuetPhase::Decision => left,
                DuetPhase::FirstLook | DuetPhase::Debate => left / 2,
            };
            let share = share.clamp(REPLY_TOKENS_MIN, u64::from(u32::MAX));
            let own = sampling.max_tokens.map_or(REPLY_TOKENS, u64::from);
            sampling.max_tokens = u32::try_from(own.min(share)).ok();
        }
        let request = Request {
            seat: seat.clone(),
            prompt,
            sampling,
            schema: None,
            deadlines: member.deadlines,
            writable: member.writable,
            tools: None,
        };
        self.turns += 1;
        let turn = Turn::new(TurnId(self.turns), seat.clone(), phase, prompt_tokens);
        fx.events.push(Event::TurnQueued {
            turn: turn.id,
            seat: seat.clone(),
            purpose: match phase {
                DuetPhase::Decision => Purpose::Conclude,
                DuetPhase::FirstLook | DuetPhase::Debate => Purpose::Answer,
            },
            replaces: None,
        });
        fx.events.push(Event::PhaseBegan {
            turn: turn.id,
            seat: seat.clone(),
            phase,
            exchanged: round.exchange.count,
            exchanges_max: self.limits.exchanges_max,
        });
        fx.commands.push(Command::Ask {
            turn: turn.id,
            request: Box::new(request),
        });
        self.turn = Some(turn);
    }

    fn running(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|t| t.id == id && t.end.is_none())
    }

    /// A piece of a reply.
    fn hear(&mut self, now: Timestamp, id: TurnId, delta: Delta, fx: &mut Effects) {
        let bytes_max = self.limits.text_bytes_max;
        let Some(turn) = self.running(id) else {
            return;
        };
        match turn.hear(delta, bytes_max) {
            Heard::More(delta) => {
                fx.events
                    .extend(delta.map(|delta| Event::TurnDelta { turn: id, delta }));
            }
            Heard::TooLong => {
                fx.commands.push(Command::Cancel { turn: id });
                let failure = Failure::new(
                    FailureKind::Decode,
                    format!("the answer grew longer than {bytes_max} bytes"),
                )
                .advise("ask for a shorter answer, or set `max_tokens` for this member");
                self.failed(now, id, failure, fx);
            }
            Heard::Whole {
                rest,
                finish,
                usage,
                council,
                restated,
            } => {
                if !rest.is_empty() && !restated {
                    fx.events.push(Event::TurnDelta {
                        turn: id,
                        delta: Delta::Text { text: rest },
                    });
                }
                let silent = turn.body().is_empty();
                let result = if silent && council.is_none() {
                    Err(Failure::new(FailureKind::Decode, "empty response"))
                } else {
                    Ok(())
                };
                if !silent {
                    let text = restated.then(|| turn.spoken.clone());
                    fx.events.push(Event::TurnDelta {
                        turn: id,
                        delta: Delta::Finished {
                            finish,
                            text,
                            usage,
                            choices: Vec::new(),
                        },
                    });
                }
                let end = End {
                    result,
                    usage,
                    finish: Some(finish),
                    council,
                };
                self.write(now, end, fx);
            }
        }
    }

    /// A turn's stream broke off.
    fn failed(&mut self, now: Timestamp, id: TurnId, mut failure: Failure, fx: &mut Effects) {
        let late = matches!(&self.stage, Stage::Speaking(round) if round.deciding == Some(DuetEnd::Time) && !round.interrupted);
        let Some(turn) = self.running(id) else {
            return;
        };
        if turn.stopped {
            let why = if late && turn.phase != DuetPhase::Decision {
                "the time for the exchange was up"
            } else {
                "stopped by the king"
            };
            failure = Failure::new(FailureKind::Cancelled, why);
        }
        failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        let end = End {
            result: Err(failure),
            usage: None,
            finish: None,
            council: None,
        };
        self.write(now, end, fx);
    }

    /// The open turn is over: its message is written; a turn with nothing for the king is closed at once.
    fn write(&mut self, now: Timestamp, end: End, fx: &mut Effects) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        if end.result.is_ok() && turn.body().is_empty() {
            self.close(now, turn, end, None, fx);
            return;
        }
        let update = self.goes_on(&turn, &end);
        let draft = draft::of_turn(&turn, &end, self.seats.get(&turn.seat), update, now);
        fx.commands.push(Command::Save(Box::new(draft)));
        turn.end = Some(end);
        self.turn = Some(turn);
    }

    /// Whether the other seat is asked after this reply.
    fn goes_on(&self, turn: &Turn, end: &End) -> bool {
        let Stage::Speaking(round) = &self.stage else {
            return false;
        };
        turn.phase != DuetPhase::Decision
            && end.result.is_ok()
            && (end.council.is_some() || self.must_check(round))
    }

    /// Whether a reply without a message is checked by the other seat all the same.
    fn must_check(&self, round: &Round) -> bool {
        round.exchange.count < self.limits.exchanges_min.min(self.limits.exchanges_max)
    }

    /// A message is on disk.
    fn saved(&mut self, now: Timestamp, id: Option<TurnId>, message: Message, fx: &mut Effects) {
        let seq = message.seq;
        match id {
            Some(id) => {
                let Some(mut turn) = self.turn.take_if(|t| t.id == id && t.end.is_some()) else {
                    return;
                };
                if let Stage::Speaking(round) = &mut self.stage {
                    round.exchange.said.push(message.clone());
                }
                self.add(message, Some(id), fx);
                if let Some(end) = turn.end.take() {
                    self.close(now, turn, end, Some(seq), fx);
                }
            }
            None => {
                let Stage::Saving(ask) = self.stage else {
                    return;
                };
                self.add(message, None, fx);
                self.stage = Stage::Idle;
                if ask {
                    let mut round = Round {
                        question: seq,
                        next: Some(self.seats.fast.name.clone()),
                        ..Round::default()
                    };
                    if let Some(at) = self
                        .limits
                        .seconds_max
                        .and_then(|s| i64::try_from(s).ok())
                        .and_then(|s| now.checked_add(SignedDuration::from_secs(s)).ok())
                    {
                        self.timers += 1;
                        let timer = TimerId(self.timers);
                        round.timer = Some(timer);
                        fx.commands.push(Command::Wake { timer, at });
                    }
                    self.stage = Stage::Speaking(Box::new(round));
                } else {
                    fx.events.push(Event::FloorYielded {
                        outcome: Outcome::Interrupted,
                        usage: Usage::default(),
                    });
                }
            }
        }
    }

    /// A message could not be written.
    fn save_failed(&mut self, now: Timestamp, id: Option<TurnId>, why: &str, fx: &mut Effects) {
        let why = clean_line(why, LINE_CHARS_MAX);
        match id {
            Some(id) => {
                let Some(mut turn) = self.turn.take_if(|t| t.id == id && t.end.is_some()) else {
                    return;
                };
                fx.events.push(Event::SaveFailed {
                    turn: Some(id),
                    why: why.clone(),
                });
                if let Some(mut end) = turn.end.take() {
                    if end.result.is_ok() {
                        end.result = Err(Failure::new(
                            FailureKind::Crashed,
                            format!("the answer could not be written: {why}"),
                        )
                        .advise("look at the disk and the rights of the thread's folder, then ask again"));
                    }
                    self.close(now, turn, end, None, fx);
                }
            }
            None => {
                if let Stage::Saving(_) = self.stage {
                    self.stage = Stage::Idle;
                    fx.events.push(Event::SaveFailed { turn: None, why });
                    fx.events.push(Event::FloorYielded {
                        outcome: Outcome::Failed,
                        usage: Usage::default(),
                    });
                }
            }
        }
    }

    /// A turn is over for good: what it means for the question.
    fn close(
        &mut self,
        now: Timestamp,
        turn: Turn,
        end: End,
        message: Option<u32>,
        fx: &mut Effects,
    ) {
        let goes_on = self.goes_on(&turn, &end);
        let other = self.seats.other(&turn.seat).clone();
        let Stage::Speaking(round) = &mut self.stage else {
            return;
        };
        round.tokens += match &end.usage {
            Some(used) => used.input_tokens + used.output_tokens,
            None => turn.prompt_tokens + turn.reply_tokens(),
        };
        if let Some(used) = &end.usage {
            round.usage.add(used);
        }
        let deciding = turn.phase == DuetPhase::Decision;
        let (id, seat) = (turn.id, turn.seat.clone());
        match (end.result, message) {
            (Ok(()), Some(message)) => {
                fx.events.push(Event::TurnFinished {
                    turn: id,
                    seat: seat.clone(),
                    message: Some(message),
                    usage: end.usage,
                });
                round.told = Some(message);
                if !goes_on {
                    round.answer = Some(message);
                    round.deciding.get_or_insert(DuetEnd::Agreed);
                }
            }
            (Ok(()), None) => {
                fx.events.push(Event::TurnFinished {
                    turn: id,
                    seat: seat.clone(),
                    message: None,
                    usage: end.usage,
                });
                if deciding {
                    round.wrapped = end.council.clone().map(|text| (seat.clone(), text));
                }
            }
            (Err(failure), message) => {
                let late = turn.stopped && round.deciding == Some(DuetEnd::Time) && !deciding;
                let why = failure.message.clone();
                fx.events.push(Event::TurnFailed {
                    turn: id,
                    seat: seat.clone(),
                    failure,
                    message,
                });
                if !late && !round.interrupted {
                    round.failed.push((seat.clone(), why.clone()));
                    if !deciding {
                        round.deciding.get_or_insert(DuetEnd::Alone);
                        fx.events.push(notice(format!(
                            "{seat} failed ({why}): {other} goes on without it"
                        )));
                    }
                }
                return;
            }
        }
        if let Some(text) = &end.council {
            fx.events.push(Event::CouncilSaid {
                turn: id,
                from: seat.clone(),
                to: other.clone(),
                chars: text.chars().count() as u64,
                text: Some(text.clone()),
            });
        }
        if !goes_on {
            return;
        }
        round.verify = end.council.is_none();
        let circle = match &end.council {
            Some(text) => round.exchange.council(&seat, &other, text, now),
            None => {
                round.exchange.count += 1;
                false
            }
        };
        round.next = Some(other);
        let over = if circle {
            Some((DuetEnd::Cycle, "the seats repeat themselves"))
        } else if round.exchange.count >= self.limits.exchanges_max.max(1) && !round.verify {
            Some((DuetEnd::Cap, "that was the last message they may exchange"))
        } else {
            None
        };
        if let (Some((why, words)), None) = (over, round.deciding) {
            round.deciding = Some(why);
            fx.events
                .push(notice(format!("{words}: the answer is asked for")));
        }
    }

    /// Takes a message on disk into the history, once.
    fn add(&mut self, mut message: Message, turn: Option<TurnId>, fx: &mut Effects) {
        if let std::borrow::Cow::Owned(clean) = clean_text(&message.body) {
            message.body = clean;
        }
        let key = |m: &Message| (m.seq, m.from.clone());
        let place = key(&message);
        if !self.history.iter().any(|m| key(m) == place) {
            self.history.push(message.clone());
            fx.events.push(Event::MessageAdded { message, turn });
        }
    }

    /// Says how it ended, and gives the floor back.
    fn finish(round: Round, fx: &mut Effects) {
        let outcome = match (round.answer, round.told) {
            _ if round.interrupted => Outcome::Interrupted,
            (Some(_), _) if round.failed.is_empty() => Outcome::Complete,
            (Some(_), _) | (None, Some(_)) => Outcome::Partial,
            (None, None) => Outcome::Failed,
        };
        let why = match outcome {
            Outcome::Interrupted => DuetEnd::Interrupted,
            Outcome::Failed => DuetEnd::Failed,
            _ => round.deciding.unwrap_or(DuetEnd::Agreed),
        };
        fx.events.push(Event::DuetEnded {
            why,
            exchanged: round.exchange.count,
            answer: round.answer.or(round.told),
        });
        fx.events.push(Event::FloorYielded {
            outcome,
            usage: round.usage,
        });
    }
}

impl Round {
    fn has_failed(&self, seat: &SeatName) -> bool {
        self.failed.iter().any(|(failed, _)| failed == seat)
    }
}

/// Why a seat must decide, as it is told.
fn reason(why: DuetEnd) -> &'static str {
    match why {
        DuetEnd::Cycle => "the two of you repeat yourselves",
        DuetEnd::Budget => "there are no tokens left for more",
        DuetEnd::Time => "the time is up",
        DuetEnd::Alone => "the other cannot go on",
        DuetEnd::Cap | DuetEnd::Agreed | DuetEnd::Interrupted | DuetEnd::Failed => {
            "you have exchanged as many messages as you may"
        }
    }
}

fn notice(text: String) -> Event {
    Event::Noticed { text }
}
