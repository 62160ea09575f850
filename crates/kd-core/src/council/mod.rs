//! The council: a state machine that processes the user's messages in a thread, one after another.
//!
//! Input: [`Input`]s. Output: [`Effects`]. The course of a message: `Say` → save the message → ask the members chosen
//! by the protocol → receive pieces → save each answer → once all turns have ended, the protocol picks the next members
//! or yields → the chair concludes, if wanted → the user can speak again. Messages sent meanwhile wait.
//!
//! The machine does not trust its input: pieces and results of turns that are not open are ignored, and everything that
//! grows has a limit in [`Budget`].

mod drafts;
mod floor;
mod ops;
mod others;
mod queue;
mod round;
pub mod table;

use crate::clean::clean_line;
use crate::deliberation::wire_bytes;
use crate::delivery::Delivery;
use crate::event::{Event, Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::ids::{SeatName, ThreadId, TurnId};
use crate::last_round::LastRound;
use crate::machine::{Command, Effects, Input, Machine};
use crate::mention::mentions;
use crate::message::{Address, Message, settled};
use crate::prompt::{self, History, Manner, PromptRules};
use crate::protocols::{Assignment, Move, Protocol, ProtocolKind, Yield};
use crate::request::{Delta, Request};
use crate::roster::{Member, Roster};
use crate::speech::{Speech, weigh};
use crate::spending::{Keep, Price, Spent};
use crate::usage::Usage;
pub use drafts::{PURPOSE, concludes};
use floor::{End, Floor, Heard};
use jiff::Timestamp;
use others::Others;
use queue::Queue;
use round::{Conclusion, Round, any_answer};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use table::{Call, Spoke, Table};

/// The parameters of a council.
#[derive(Clone, Debug)]
pub struct OpenCouncil {
    /// The thread.
    pub thread: ThreadId,
    /// The members.
    pub roster: Roster,
    /// The protocol that decides who speaks next.
    pub protocol: ProtocolKind,
    /// The rules for every prompt.
    pub prompts: PromptRules,
    /// The existing messages of the thread, in order.
    pub history: Vec<Message>,
    /// Seed for the protocol's random choices.
    pub seed: u64,
    /// The limits.
    pub limits: Budget,
    /// Whether the chair concludes if two or more members have answered.
    pub conclude: bool,
    /// Messages left unanswered by a session that ended early, oldest first; `Op::Resume` continues them. `None`: the
    /// user's messages are not kept until answered.
    pub queue: Option<Vec<Delivery>>,
    /// The newest round in the thread's log. `None`: a called member without a message counts as failed.
    pub last: Option<LastRound>,
}

/// The limits of a council.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// `council.auto_messages`: turns after the answers; `None` leaves it to the protocol.
    pub auto_messages: Option<u32>,
    /// Maximum turns per message of the user, without conclusions.
    pub turns_max: u32,
    /// Maximum bytes per answer.
    pub text_bytes_max: usize,
    /// Maximum number of waiting messages.
    pub waiting_max: usize,
    /// Maximum bytes per message of the user.
    pub say_bytes_max: usize,
    /// The price of the conclusion, if limits are set: its worst case is reserved before the answers.
    pub conclusion: Option<Price>,
}

impl Default for Budget {
    /// 256 turns, 16 MiB per answer, 64 waiting messages of up to 16 MiB.
    fn default() -> Self {
        Self {
            auto_messages: None,
            turns_max: 256,
            text_bytes_max: 16 << 20,
            waiting_max: 64,
            say_bytes_max: 16 << 20,
            conclusion: None,
        }
    }
}

/// The state machine of one thread.
#[derive(Debug)]
pub struct Council {
    thread: ThreadId,
    roster: Roster,
    members: Vec<SeatName>,
    /// The settings of the user's next message.
    rules: Rules,
    protocol: Box<dyn Protocol>,
    /// The [`Rules::set`] of the protocol.
    running: u32,
    seed: u64,
    prompts: PromptRules,
    history: Vec<Message>,
    limits: Budget,
    conclude: bool,
    floor: Floor,
    stage: Stage,
    /// The current or the last round.
    round: Option<Round>,
    /// Waiting messages of the user.
    waiting: VecDeque<Words>,
    queue: Queue,
    others: Others,
    /// An aside is running: the user's messages wait for its end.
    held: bool,
    /// The open turns were interrupted: another interrupt before they end takes back waiting messages.
    stopped: bool,
    closed: bool,
}

/// The stage of the council.
#[derive(Debug)]
enum Stage {
    /// Waiting for the user.
    Idle,
    /// The user's message is being written.
    Saving(Words),
    /// The protocol decides.
    Talking,
    /// Failed turns are asked again; the protocol is not consulted.
    Retrying,
    /// The protocol has yielded; the chair may conclude.
    Concluding,
}

/// The settings of a message of the user: those in force when it was sent.
#[derive(Clone, Copy, Debug)]
struct Rules {
    kind: ProtocolKind,
    /// How often the protocol was set before.
    set: u32,
    /// Maximum turns after the answers.
    auto_messages: Option<u32>,
}

/// A message of the user that is not on disk yet.
#[derive(Debug)]
struct Words {
    /// The id of its delivery, if deliveries are kept.
    id: Option<String>,
    body: String,
    to: Address,
    call: Call,
    rules: Rules,
    /// Whether members should answer; not if the thread was closed before.
    ask: bool,
    /// Whether the round was interrupted before it began.
    halted: bool,
    /// Whether front ends know that it waits.
    told: bool,
    /// The number of the answer that the user chooses with it.
    chosen: Option<u32>,
}

/// Tokens reserved for a conclusion under a limit. It may use more if more is left.
const CONCLUSION_TOKENS: u32 = 1024;
/// Bytes per answer token in the prompt of the conclusion, which counts one token per byte. English words take 4 to 5,
/// other scripts up to 6.
const ANSWER_TOKEN_BYTES: u64 = 6;
/// Maximum characters of a notice or a reason.
const LINE_CHARS_MAX: usize = 400;
/// The reason why a turn is skipped.
const MUTED: &str = "muted while it waited";
const SPOKE_AGAIN: &str = "you sent a new message: no further turns";
/// The note for waiting messages when the user stopped all members.
const UNASKED: &str = "the queued message is in the thread, but no member was asked: members read it with your next message";

impl Machine for Council {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Op(op) => self.op(now, op, &mut fx),
            Input::Delta { turn, delta } => self.hear(now, turn, delta, &mut fx),
            Input::Failed { turn, failure } => {
                let stopped = self.floor.running(turn).is_some_and(|t| t.stopped);
                let failure = if stopped {
                    Failure::new(FailureKind::Cancelled, "stopped by the user")
                } else {
                    failure
                };
                self.end_turn(now, turn, Err(failure), &mut fx);
            }
            Input::Saved { turn, message } => self.saved(turn, message, &mut fx),
            Input::SaveFailed { turn, why } => self.save_failed(turn, &why, &mut fx),
            Input::Found { message } => self.found(message, &mut fx),
            Input::FoundDelta { seat, delta } => self.found_delta(seat, delta, &mut fx),
            Input::FoundEnd { seat } => self.found_end(seat, &mut fx),
            Input::FoundGone { messages } => self.gone(&messages, &mut fx),
            Input::FoundWaiting => self.waits_elsewhere(),
            Input::Kept { id } => self.kept(&id, None, &mut fx),
            Input::KeepFailed { id, why } => {
                self.kept(&id, Some(clean_line(&why, LINE_CHARS_MAX)), &mut fx);
            }
            Input::Freed { turn, found } => self.freed(turn, found, &mut fx),
            Input::Woke { .. } => {}
        }
        self.settle(now, &mut fx);
        fx
    }

    fn keeps(&self, turn: TurnId) -> Keep {
        let answers = self.floor.purpose(turn) == Some(Purpose::Answer);
        match (&self.round, self.limits.conclusion) {
            (Some(round), Some(price)) if answers && round.concludes => {
                let mut others = round.called(&self.members);
                others
                    .retain(|s| !self.floor.holds(s) && !round.spoke.iter().any(|t| t.seat == *s));
                let others = others.len() as u64;
                // They read the answer too.
                let bytes = ANSWER_TOKEN_BYTES.saturating_mul(others + 1);
                Keep {
                    fixed: round.closing,
                    each_token: Spent {
                        calls: 0,
                        tokens: bytes,
                        pico_usd: price.input.saturating_mul(bytes),
                        ..Spent::default()
                    },
                    others,
                }
            }
            _ => Keep::default(),
        }
    }
}

impl Council {
    /// Opens a council on a thread. The effects contain its first event, [`Event::ThreadOpened`].
    pub fn open(open: OpenCouncil) -> (Self, Effects) {
        let members: Vec<SeatName> = open
            .roster
            .members()
            .iter()
            .map(|m| m.name.clone())
            .collect();
        let mut history = open.history;
        history.sort_by(|a, b| (a.seq, &a.from).cmp(&(b.seq, &b.from)));
        let round = round_from(&history, &members, open.last.as_ref());
        let mut events = vec![Event::ThreadOpened {
            members: members.clone(),
            messages: history.len().try_into().unwrap_or(u32::MAX),
        }];
        if open.queue.is_some() {
            // A conversation, in which the mode can change.
            events.push(Event::ModeSet {
                mode: open.protocol.name.to_owned(),
                auto_messages: open.limits.auto_messages,
            });
        }
        let council = Self {
            thread: open.thread,
            members,
            roster: open.roster,
            rules: Rules {
                kind: open.protocol,
                set: 0,
                auto_messages: open.limits.auto_messages,
            },
            protocol: (open.protocol.new)(open.seed),
            running: 0,
            seed: open.seed,
            prompts: open.prompts,
            history,
            limits: open.limits,
            conclude: open.conclude,
            floor: Floor::default(),
            stage: Stage::Idle,
            round,
            waiting: VecDeque::new(),
            queue: Queue::new(open.queue, open.seed),
            others: Others::default(),
            held: false,
            stopped: false,
            closed: false,
        };
        let effects = Effects {
            commands: Vec::new(),
            events,
        };
        (council, effects)
    }

    /// Returns the thread.
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Returns the members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns the messages so far, in order.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Returns whether nothing is open, waiting or being written.
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
            && self.floor.is_empty()
            && self.waiting.is_empty()
            && self.queue.is_empty()
    }

    /// Returns whether it accepts no more work.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Pauses the council for an aside, or resumes it: then [`Council::proceed`] starts waiting messages.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
        // Other answers have followed an earlier failure.
        self.round = None;
    }

    /// Adds a message saved by another machine of this session.
    pub(crate) fn learn(&mut self, message: Message) {
        self.add(message, None, false, &mut Effects::default());
    }

    /// Starts a waiting message if nothing is in progress.
    pub(crate) fn proceed(&mut self, now: Timestamp) -> Effects {
        let mut fx = Effects::default();
        self.settle(now, &mut fx);
        fx
    }

    /// Advances as far as possible without further input. Each iteration opens turns, moves the stage on, or returns.
    fn settle(&mut self, now: Timestamp, fx: &mut Effects) {
        while self.floor.is_empty() {
            match self.stage {
                Stage::Idle => {
                    if self.held {
                        return;
                    }
                    // An interrupt applies only to the turns it stopped.
                    self.stopped = false;
                    if self.next_resumed() {
                        continue;
                    }
                    let free = |w: &Words| !w.ask || !self.is_taken(&w.to);
                    if !self.queue.is_empty() || !self.waiting.front().is_some_and(free) {
                        return;
                    }
                    let Some(words) = self.waiting.pop_front() else {
                        return;
                    };
                    let draft = drafts::king(&words, now);
                    fx.commands.push(Command::Save(Box::new(draft)));
                    self.stage = Stage::Saving(words);
                }
                Stage::Saving(_) => return,
                Stage::Talking => self.talk(fx),
                Stage::Retrying => self.stage = Stage::Concluding,
                Stage::Concluding => self.conclude(fx),
            }
        }
    }

    /// Returns whether no more members may be asked in this round.
    fn is_halted(&self) -> bool {
        self.closed || self.round.as_ref().is_none_or(|r| r.interrupted)
    }

    /// Executes the protocol's next move.
    fn talk(&mut self, fx: &mut Effects) {
        let mut moved = Move::Yield(Yield::default());
        let mut ahead = Vec::new();
        if !self.is_halted()
            && let Some(round) = &self.round
        {
            let mut seats = match &round.only {
                Some(only) => only.clone(),
                None => round.called(&self.members),
            };
            seats.retain(|s| !self.roster.is_muted(s) && !self.others.hold(s));
            let spoke = round.spoke.get(round.heard..).unwrap_or_default();
            let rules = round.rules.unwrap_or(self.rules);
            if spoke.is_empty() && std::mem::replace(&mut self.running, rules.set) != rules.set {
                self.protocol = (rules.kind.new)(self.seed);
            }
            let over = self.is_over();
            let table = Table {
                seats: &seats,
                call: round.call,
                first: round.first,
                auto_messages: round.rules.and_then(|rules| rules.auto_messages),
                over,
                spoke,
            };
            moved = self.protocol.next(&table);
            ahead = self.protocol.ahead(&table);
            let left = self.limits.turns_max.saturating_sub(round.asked + 1);
            ahead.truncate(left as usize);
            if let Move::Ask(asked) = &mut moved {
                asked.retain(|a| seats.contains(&a.seat));
                for one in asked.iter_mut().filter(|a| a.manner == Manner::Alone) {
                    // In a resumed round, others have answered before.
                    if round.heard > 0 {
                        one.manner = Manner::Answer;
                    }
                }
                self.keep_asked(&seats, fx);
            }
        }
        let opened = match moved {
            Move::Ask(asked) => self.ask(asked, Purpose::Answer, &ahead, fx),
            Move::Yield(end) => {
                fx.events.extend(end.why.map(notice));
                0
            }
        };
        if opened == 0 {
            self.stage = Stage::Concluding;
        }
    }

    /// Opens turns within the limits and returns how many. The members in `ahead` follow one by one.
    fn ask(
        &mut self,
        mut asked: Vec<Assignment>,
        purpose: Purpose,
        ahead: &[SeatName],
        fx: &mut Effects,
    ) -> usize {
        let history = self.told();
        let Some(round) = &mut self.round else {
            return 0;
        };
        if purpose == Purpose::Answer {
            let left = self.limits.turns_max.saturating_sub(round.asked) as usize;
            if asked.len() > left {
                asked.truncate(left);
                fx.events.push(notice(format!(
                    "stopped after {} turns (the limit per message)",
                    self.limits.turns_max
                )));
            }
        }
        if let Some(price) = self.limits.conclusion.filter(|_| self.conclude) {
            let called = round.called(&self.members);
            round.concludes = called.len() > 1;
            let chair = self
                .roster
                .chair()
                .or_else(|| self.roster.get(called.first()?));
            round.closing = chair.map_or_else(Spent::default, |chair| {
                let request = request(&self.prompts, chair, history.clone(), Manner::Conclude);
                let answer = chair.sampling.max_tokens.unwrap_or(CONCLUSION_TOKENS);
                let answer = answer.min(CONCLUSION_TOKENS);
                Spent::at_most(wire_bytes(&request.prompt), answer, Some(price))
            });
        }
        let mut opened = 0;
        for Assignment { seat, manner } in asked {
            let Some(member) = sits(&self.roster, &seat, purpose) else {
                continue;
            };
            if self.floor.holds(&seat) || self.roster.is_muted(&seat) || self.others.hold(&seat) {
                continue;
            }
            let replaces = drafts::failed_before(&self.history, &seat, purpose);
            let request = request(&self.prompts, member, history.clone(), manner);
            let turn = self.floor.open(seat.clone(), purpose, manner, replaces);
            fx.events.push(Event::TurnQueued {
                turn,
                seat,
                purpose,
                replaces,
                ahead: ahead.to_vec(),
            });
            fx.commands.push(Command::Ask {
                turn,
                request: Box::new(request),
            });
            opened += 1;
            if purpose == Purpose::Answer {
                round.asked += 1;
            }
        }
        opened
    }

    /// Returns the history for the members asked now.
    fn told(&self) -> History {
        let members = self.roster.members().iter();
        let seats = members.chain(self.roster.chair()).map(|m| &m.name);
        prompt::render(self.until_now(settled(&self.history)), seats)
    }

    /// Leaves out later questions from other processes, and from the first of them on the answers there: members would take
    /// the newest question for the one that they are asked.
    fn until_now<'m>(&self, mut messages: Vec<&'m Message>) -> Vec<&'m Message> {
        let Some(said) = self.round.as_ref().map(|round| round.said) else {
            return messages;
        };
        let is_later = |m: &&Message| m.seq > said && m.is_question(&self.history);
        if let Some(at) = messages.iter().position(is_later) {
            let after = messages.split_off(at);
            let is_ours = |m: &&Message| !is_later(m) && !self.others.said(m);
            messages.extend(after.into_iter().filter(is_ours));
        }
        messages
    }

    /// Handles a turn that had to wait for its member, adding the messages found meanwhile. If the user has spoken, a
    /// turn that only continued the discussion is withdrawn: the new message is answered instead. The same applies to
    /// a turn of a member that was muted in the meantime.
    fn freed(&mut self, id: TurnId, found: Vec<Message>, fx: &mut Effects) {
        for message in found {
            self.spoke_elsewhere(&message);
            if self.add(message.clone(), None, false, &mut Effects::default()) {
                self.others.note(&message);
            }
        }
        let over = self.is_over();
        let Some(turn) = self.floor.running(id).filter(|turn| !turn.stopped) else {
            return;
        };
        let (seat, purpose, manner) = (turn.seat.clone(), turn.purpose, turn.manner);
        let talks = matches!(self.stage, Stage::Talking);
        let heard = |round: &Round| round.spoke.iter().any(|spoke| spoke.seat == seat);
        let is_superseded = over && talks && self.round.as_ref().is_some_and(heard);
        let why = match self.roster.is_muted(&seat) {
            true => Some(MUTED),
            false => is_superseded.then_some(SPOKE_AGAIN),
        };
        if let Some(why) = why {
            self.floor.take_back(id);
            fx.events.push(Event::TurnFailed {
                turn: id,
                seat,
                failure: Failure::new(FailureKind::Cancelled, why),
                message: None,
            });
            return;
        }
        if let Some(member) = sits(&self.roster, &seat, purpose) {
            let request = request(&self.prompts, member, self.told(), manner);
            fx.commands.push(Command::Ask {
                turn: id,
                request: Box::new(request),
            });
        }
    }

    /// Returns whether the user has spoken again since this round began, here or in another process. Members that have
    /// answered are then not asked again in it.
    fn is_over(&self) -> bool {
        let asks = |words: &Words| words.ask;
        self.waiting.iter().any(asks) || self.round.as_ref().is_some_and(|round| round.over)
    }

    /// Asks the chair to conclude if wanted, otherwise yields to the user.
    fn conclude(&mut self, fx: &mut Effects) {
        let halted = self.is_halted();
        let Some(round) = &mut self.round else {
            self.stage = Stage::Idle;
            return;
        };
        let answered = round.answered();
        let free = |seat: &&SeatName| !self.roster.is_muted(seat);
        let (seat, stand_in) = match &round.conclusion {
            Conclusion::Open if !self.conclude || halted => (None, false),
            // Without a new answer, the existing conclusion stays.
            Conclusion::Open if round.concluded.is_some_and(|of| round.answers() <= of) => {
                round.conclusion = Conclusion::Done;
                (None, false)
            }
            Conclusion::Open if answered.len() < 2 => {
                if let [only] = answered.as_slice()
                    && round.asked_seats() > 1
                {
                    fx.events.push(notice(format!(
                        "only {only} answered, so there is nothing to conclude from"
                    )));
                }
                round.conclusion = Conclusion::Needless;
                (None, false)
            }
            Conclusion::Open => {
                let chair = self.roster.chair().map(|c| &c.name).filter(free);
                let seat = chair.or_else(|| answered.iter().find(free)).cloned();
                if seat.is_none() {
                    fx.events.push(notice(
                        "there is no conclusion: every member that could write it is muted",
                    ));
                    round.conclusion = Conclusion::Missing;
                }
                (seat, false)
            }
            Conclusion::ChairFailed { by, why } if !halted => {
                let seat = answered.iter().filter(|s| *s != by).find(free).cloned();
                let text = match &seat {
                    Some(seat) => {
                        format!("{by} could not conclude ({why}): {seat} concludes instead")
                    }
                    None => format!("{by} could not conclude ({why}), and no other member can"),
                };
                fx.events.push(notice(text));
                if seat.is_none() {
                    round.conclusion = Conclusion::Missing;
                }
                (seat, true)
            }
            Conclusion::ChairFailed { .. } | Conclusion::Asked { .. } => {
                round.conclusion = Conclusion::Missing;
                (None, false)
            }
            Conclusion::Done | Conclusion::Missing | Conclusion::Needless => (None, false),
        };
        if let Some(seat) = seat {
            round.conclusion = Conclusion::Asked { stand_in };
            let manner = Manner::Conclude;
            self.ask(
                vec![Assignment { seat, manner }],
                Purpose::Conclude,
                &[],
                fx,
            );
            return;
        }
        fx.events.push(Event::FloorYielded {
            outcome: round.outcome(),
            usage: round.usage.with_uncounted(round.uncounted),
        });
        self.forget(fx);
        self.stage = Stage::Idle;
    }

    /// Handles a piece of an answer.
    fn hear(&mut self, now: Timestamp, id: TurnId, mut delta: Delta, fx: &mut Effects) {
        let Some(turn) = self.floor.running(id) else {
            return;
        };
        match turn.hear(&mut delta, self.limits.text_bytes_max) {
            Heard::More => fx.events.push(Event::TurnDelta { turn: id, delta }),
            Heard::Nothing => {}
            Heard::TooLong => {
                fx.commands.push(Command::Cancel { turn: id });
                let most = self.limits.text_bytes_max;
                let failure = Failure::new(
                    FailureKind::Decode,
                    format!("the answer exceeded {most} bytes"),
                )
                .advise("ask for a shorter answer, or set `max_tokens` for this member")
                .uncounted();
                self.end_turn(now, id, Err(failure), fx);
            }
            Heard::Whole(whole) => {
                let result = if !turn.body().is_empty() {
                    Ok(())
                } else if whole.council.is_some() {
                    let what = "the whole answer was inside <council> tags, which are private";
                    let failure = Failure::new(FailureKind::Decode, what).advise("ask again");
                    Err(failure.after(whole.usage.as_ref()))
                } else {
                    let failure = Failure::new(FailureKind::Decode, "empty response");
                    Err(failure.after(whole.usage.as_ref()))
                };
                let seat = turn.seat.clone();
                if result.is_ok() {
                    if !whole.rest.is_empty() {
                        let text = whole.rest;
                        let delta = Delta::Text { text };
                        fx.events.push(Event::TurnDelta { turn: id, delta });
                    }
                    fx.events.push(Event::TurnDelta { turn: id, delta });
                }
                if let Some(text) = whole.council {
                    let is_asked = |name: &SeatName| {
                        self.round.as_ref().is_none_or(|round| {
                            let only = round.only.as_ref();
                            round.to.is_for(name) && only.is_none_or(|only| only.contains(name))
                        })
                    };
                    let mut members = self.roster.members().iter();
                    let other = members.find(|m| m.name != seat && is_asked(&m.name));
                    // With nobody to write to, it is only left out.
                    fx.events.extend(other.map(|other| Event::CouncilSaid {
                        turn: id,
                        to: other.name.clone(),
                        from: seat,
                        chars: text.chars().count() as u64,
                        text: Some(text),
                    }));
                }
                let end = End {
                    result,
                    usage: whole.usage,
                    finish: Some(whole.finish),
                };
                self.write_turn(now, id, end, fx);
            }
        }
    }

    /// Ends a turn's stream; its message is written next.
    fn end_turn(
        &mut self,
        now: Timestamp,
        id: TurnId,
        result: Result<(), Failure>,
        fx: &mut Effects,
    ) {
        let end = End {
            result,
            usage: None,
            finish: None,
        };
        self.write_turn(now, id, end, fx);
    }

    fn write_turn(&mut self, now: Timestamp, id: TurnId, mut end: End, fx: &mut Effects) {
        let Some(turn) = self.floor.running(id) else {
            return;
        };
        if let Err(failure) = &mut end.result {
            failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
        }
        let member = sits(&self.roster, &turn.seat, turn.purpose);
        let delivery = self.round.as_ref().and_then(|r| r.id.clone());
        let draft = drafts::of_turn(id, turn, &end, member, delivery, now);
        fx.commands.push(Command::Save(Box::new(draft)));
        turn.end = Some(end);
    }

    /// Handles a written message.
    fn saved(&mut self, turn: Option<TurnId>, message: Message, fx: &mut Effects) {
        let seq = message.seq;
        match turn {
            Some(id) => {
                let Some((turn, end)) = self.floor.close(id) else {
                    return;
                };
                self.add(message, Some(id), false, fx);
                self.close_turn(id, turn, end, Some(seq), fx);
            }
            None => {
                let Stage::Saving(words) = &mut self.stage else {
                    return;
                };
                let (id, to, call) = (words.id.take(), words.to.clone(), words.call);
                let (ask, halted, told) = (words.ask, words.halted, words.told);
                let rules = words.rules;
                let first = !any_answer(&self.history);
                self.add(message, None, false, fx);
                self.stage = Stage::Idle;
                if ask {
                    let mut round = Round::new(to, call, first);
                    round.interrupted = halted;
                    round.rules = Some(rules);
                    round.id = id;
                    round.said = seq;
                    self.round = Some(round);
                    self.stage = Stage::Talking;
                } else {
                    if told {
                        fx.events.push(notice(UNASKED));
                    }
                    fx.commands.extend(id.map(|id| Command::Forget { id }));
                }
            }
        }
    }

    /// Handles a message that could not be written.
    fn save_failed(&mut self, turn: Option<TurnId>, why: &str, fx: &mut Effects) {
        let why = clean_line(why, LINE_CHARS_MAX);
        match turn {
            Some(id) => {
                let Some((turn, mut end)) = self.floor.close(id) else {
                    return;
                };
                if end.result.is_ok() {
                    let failure = Failure::new(
                        FailureKind::Crashed,
                        format!("the answer could not be written: {why}"),
                    )
                    .advise(
                        "check the disk and the permissions of the thread's folder, then ask again",
                    );
                    end.result = Err(failure);
                }
                fx.events.push(Event::SaveFailed {
                    turn: Some(id),
                    why,
                });
                self.close_turn(id, turn, end, None, fx);
            }
            None => {
                let Stage::Saving(words) = &mut self.stage else {
                    return;
                };
                let (asked, told) = (words.ask, words.told);
                let id = words.id.take();
                let (body, to) = (std::mem::take(&mut words.body), words.to.clone());
                self.stage = Stage::Idle;
                fx.events.push(Event::SaveFailed { turn: None, why });
                if self.closed && told && id.is_some() {
                    // It stays kept: the next session sends it.
                    fx.events.push(notice(stays(1)));
                } else {
                    // What waits behind it must not overtake it.
                    self.take_back(fx);
                    fx.commands.extend(id.map(|id| Command::Forget { id }));
                    fx.events.push(Event::SayTakenBack { body, to });
                }
                if asked {
                    fx.events.push(Event::FloorYielded {
                        outcome: Outcome::Failed,
                        usage: Usage::default(),
                    });
                }
            }
        }
    }

    /// Closes a turn.
    fn close_turn(
        &mut self,
        id: TurnId,
        turn: floor::Turn,
        end: End,
        message: Option<u32>,
        fx: &mut Effects,
    ) {
        let answered = end.result.is_ok();
        if let Some(round) = &mut self.round {
            if let Some(usage) = end.used() {
                round.usage.add(usage);
            }
            round.uncounted |= end.is_uncounted();
            match turn.purpose {
                Purpose::Conclude => {
                    let stand_in = matches!(round.conclusion, Conclusion::Asked { stand_in: true });
                    round.conclusion = match &end.result {
                        Ok(()) => Conclusion::Done,
                        Err(_) if stand_in => Conclusion::Missing,
                        Err(failure) => Conclusion::ChairFailed {
                            by: turn.seat.clone(),
                            why: failure.message.clone(),
                        },
                    };
                }
                _ => {
                    let known: Vec<&SeatName> = self.members.iter().collect();
                    let (mut mentioned, mut speech) = (Vec::new(), Speech::Words);
                    if answered {
                        mentioned = mentions(turn.body(), &known).seats;
                        let (newest, all) = (self.history.iter().rev(), &self.history);
                        let said = newest.take_while(|m| !m.is_question(all));
                        let before = said.filter(|m| m.is_sound() && Some(m.seq) != message);
                        speech = weigh(turn.body(), &known, before.map(|m| m.body.as_str()));
                    }
                    round.spoke.push(Spoke {
                        seat: turn.seat.clone(),
                        answered,
                        mentions: mentioned,
                        speech,
                    });
                }
            }
        }
        fx.events.push(match (end.result, message) {
            (Ok(()), Some(message)) => Event::TurnFinished {
                turn: id,
                seat: turn.seat,
                message: Some(message),
                usage: end.usage,
                tools: turn.tools,
                thought: turn.thought,
            },
            (Ok(()), None) => return,
            (Err(failure), message) => Event::TurnFailed {
                turn: id,
                seat: turn.seat,
                failure,
                message,
            },
        });
    }

    /// Adds a message on disk to the history, once. Returns whether it is new.
    fn add(
        &mut self,
        mut message: Message,
        turn: Option<TurnId>,
        found: bool,
        fx: &mut Effects,
    ) -> bool {
        message.clean();
        let place =
            |m: &Message| (m.seq, m.from.as_str()).cmp(&(message.seq, message.from.as_str()));
        let Err(at) = self.history.binary_search_by(place) else {
            return false;
        };
        self.history.insert(at, message.clone());
        fx.events.push(Event::MessageAdded {
            message,
            turn,
            found,
        });
        true
    }
}

/// Returns the member of this name for this purpose.
fn sits<'r>(roster: &'r Roster, seat: &SeatName, purpose: Purpose) -> Option<&'r Member> {
    let chair = roster.chair();
    chair
        .filter(|c| purpose == Purpose::Conclude && c.name == *seat)
        .or_else(|| roster.get(seat))
}

/// Builds a request to a member.
fn request(rules: &PromptRules, member: &Member, history: History, manner: Manner) -> Request {
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        // A conclusion is about what the others say.
        reads: member.reads && manner != Manner::Conclude,
        seat: member.name.clone(),
        prompt: prompt::build(rules, member, history, manner),
        sampling: member.sampling.clone(),
        schema: None,
        deadlines: member.deadlines,
        writable: member.writable,
        tools: None,
    }
}

/// Tells that this many messages stay for the next session.
fn stays(count: usize) -> String {
    let verb = if count == 1 { "waits" } else { "wait" };
    format!("{count} of your messages still {verb}: sent when the thread is opened again")
}

/// Returns a notice for the user.
fn notice(text: impl Into<String>) -> Event {
    Event::Noticed { text: text.into() }
}

/// Returns the round of the user's last message in a thread.
fn round_from(
    history: &[Message],
    members: &[SeatName],
    last: Option<&LastRound>,
) -> Option<Round> {
    Round::from_history(history, members, last, |king| call_of(king, members))
}

/// Returns the members that a message of the user addresses.
fn call_of(king: &Message, members: &[SeatName]) -> Call {
    let known: Vec<&SeatName> = members.iter().collect();
    match &king.to {
        Address::Seats(_) => Call::Named,
        _ if mentions(&king.body, &known).all => Call::All,
        _ => Call::Everyone,
    }
}
