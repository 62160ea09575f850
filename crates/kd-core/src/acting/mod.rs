//! One member acts with the tools of a client; the other members of the council advise it.
//!
//! Input: [`Input`]s; the client's whole conversation is in [`OpenActing::talk`]. Output: [`Effects`]. The course of
//! a request: save the client's message → ask advisers, if the rules say so → ask the acting member, with the
//! client's tools and the advice at the end → its text and its calls are the answer. The client runs the calls and
//! sends the results with its next request.
//!
//! A call of a tool that the client did not offer, or with arguments that are not an object, never reaches the client:
//! the member gets an error and is asked again. If the council advises before writes, calls that write wait for the
//! advice, and the member decides again.

mod advice;
mod calls;
mod talk;
mod turn;

#[cfg(test)]
mod tests;

pub use talk::{Talk, name_of, quote};

use crate::clean::clean_text;
use crate::event::{Event, Outcome, Purpose};
use crate::ids::{MachineId, ThreadId, TurnId};
use crate::last_round::RoundKind;
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Address, Message};
use crate::op::Op;
use crate::request::{Prompt, Request, Said, ToolChoice, ToolTalk};
use crate::roster::Member;
use crate::secrets::Secrets;
use crate::usage::Usage;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turn::Turn;

/// The input that opens a request.
#[derive(Clone, Debug)]
pub struct OpenActing {
    /// The thread.
    pub thread: ThreadId,
    /// The member that answers and calls tools.
    pub acting: Member,
    /// The members that advise it.
    pub advisers: Vec<Member>,
    /// When they are asked.
    pub advice: Advice,
    /// The client's conversation.
    pub talk: Talk,
    /// Whether the acting member can be sent the conversation step by step, with tools; otherwise it reads it as text.
    pub keeps_shape: bool,
    /// Masked in the record of calls. The client gets them unchanged: it made up none of them.
    pub secrets: Secrets,
    /// Number of messages in the thread.
    pub messages: u32,
}

/// When advisers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advice {
    /// When the user says something.
    pub first: bool,
    /// After a call failed.
    pub failed: bool,
    /// Before a call that writes.
    pub write: bool,
    /// On every request.
    pub always: bool,
}

impl Default for Advice {
    /// When the user says something, and after a call failed.
    fn default() -> Self {
        Self {
            first: true,
            failed: true,
            write: false,
            always: false,
        }
    }
}

impl Advice {
    /// No advice at all.
    pub const NEVER: Self = Self {
        first: false,
        failed: false,
        write: false,
        always: false,
    };
}

/// The state machine of one request.
#[derive(Debug)]
pub struct Acting {
    open: OpenActing,
    phase: Phase,
    /// The open turns.
    turns: BTreeMap<TurnId, Turn>,
    last_turn: u32,
    /// The advice of this step, by adviser.
    advice: BTreeMap<usize, String>,
    /// The messages that the acting member reads after the client's conversation.
    tail: Vec<Said>,
    /// How often the acting member made impossible calls and was asked again.
    repairs: u32,
    /// Whether advice before writing was asked.
    asked_before_write: bool,
    usage: Usage,
    uncounted: bool,
    /// Whether an adviser failed.
    has_gap: bool,
    interrupted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Saving,
    Advising,
    Acting,
    Done,
}

impl Machine for Acting {
    fn step(&mut self, now: Timestamp, input: Input) -> Effects {
        let mut fx = Effects::default();
        match input {
            Input::Op(op) => self.op(op, now, &mut fx),
            Input::Delta { turn, delta } => self.hear(now, turn, delta, &mut fx),
            Input::Failed { turn, failure } => self.failed(now, turn, failure, &mut fx),
            Input::Saved { turn, message } => self.saved(turn, message, &mut fx),
            Input::SaveFailed { turn, why } => self.save_failed(turn, &why, &mut fx),
            Input::Found { message } => add(message, None, true, &mut fx),
            // A request keeps no deliveries, follows no other process and sets no timer.
            Input::FoundDelta { .. }
            | Input::FoundEnd { .. }
            | Input::FoundGone { .. }
            | Input::FoundWaiting
            | Input::Kept { .. }
            | Input::KeepFailed { .. }
            | Input::Freed { .. }
            | Input::Woke { .. } => {}
        }
        self.advance(&mut fx);
        fx
    }
}

impl Acting {
    /// Opens a request. The effects contain its first event, [`Event::ThreadOpened`]. [`Op::Say`] starts it, with the
    /// message for the record ([`Talk::message`]).
    pub fn open(open: OpenActing) -> (Self, Effects) {
        let members = std::iter::once(&open.acting).chain(&open.advisers);
        let opened = Event::ThreadOpened {
            members: members.map(|m| m.name.clone()).collect(),
            messages: open.messages,
        };
        let acting = Self {
            open,
            phase: Phase::Waiting,
            turns: BTreeMap::new(),
            last_turn: 0,
            advice: BTreeMap::new(),
            tail: Vec::new(),
            repairs: 0,
            asked_before_write: false,
            usage: Usage::default(),
            uncounted: false,
            has_gap: false,
            interrupted: false,
        };
        let effects = Effects {
            commands: Vec::new(),
            events: vec![opened],
        };
        (acting, effects)
    }

    fn op(&mut self, op: Op, now: Timestamp, fx: &mut Effects) {
        match (op, self.phase) {
            (Op::Say { body, .. }, Phase::Waiting) => {
                let body = clean_text(&body).trim().to_owned();
                let body = if body.is_empty() { "(no text)".to_owned() } else { body };
                let mut draft = crate::draft::king(body, Address::All, None, now);
                RoundKind::Acting.mark(&mut draft);
                fx.commands.push(Command::Save(Box::new(draft)));
                self.phase = Phase::Saving;
            }
            (Op::Interrupt, Phase::Done) | (Op::Close | Op::Resume | Op::TakeBack, _) => {}
            (Op::Interrupt, _) => {
                self.interrupted = true;
                self.cancel(|_| true, fx);
            }
            (Op::Stop { seat }, _) => self.cancel(|turn| turn.seat == seat, fx),
            _ => fx.events.push(Event::OpRefused {
                why: "this thread belongs to a program that asks `kd serve`: it takes no messages meanwhile".into(),
            }),
        }
    }

    fn cancel(&mut self, which: impl Fn(&Turn) -> bool, fx: &mut Effects) {
        for (id, turn) in &mut self.turns {
            if which(turn) && turn.end.is_none() && !turn.stopped {
                turn.stopped = true;
                fx.commands.push(Command::Cancel { turn: *id });
            }
        }
    }

    /// Goes on as far as possible: when all advisers are done, the acting member is asked.
    fn advance(&mut self, fx: &mut Effects) {
        if !self.turns.is_empty() {
            return;
        }
        match self.phase {
            Phase::Advising | Phase::Acting if self.interrupted => {
                self.finish(Outcome::Interrupted, fx);
            }
            Phase::Advising => self.act(fx),
            Phase::Waiting | Phase::Saving | Phase::Acting | Phase::Done => {}
        }
    }

    /// Starts after the client's message is saved.
    fn begin(&mut self, fx: &mut Effects) {
        self.phase = Phase::Advising;
        if !self.interrupted && advice::is_due(&self.open.advice, &self.open.talk) {
            self.ask_advisers(None, fx);
        }
    }

    /// Asks all advisers. `held` is an answer of the acting member whose calls wait.
    fn ask_advisers(
        &mut self,
        held: Option<(&str, &[crate::request::ToolCall])>,
        fx: &mut Effects,
    ) {
        self.phase = Phase::Advising;
        self.advice.clear();
        for at in 0..self.open.advisers.len() {
            let request = advice::request(&self.open, &self.open.advisers[at], held);
            self.queue(Some(at), Purpose::Answer, request, fx);
        }
    }

    /// Asks the acting member.
    fn act(&mut self, fx: &mut Effects) {
        self.phase = Phase::Acting;
        let advice = std::mem::take(&mut self.advice);
        if !advice.is_empty() {
            let name = |at: usize| self.open.advisers[at].name.to_string();
            let advice: Vec<_> = advice
                .into_iter()
                .map(|(at, text)| (name(at), text))
                .collect();
            let text = advice::told(&advice);
            self.tail.push(Said::User { text });
        }
        // This may still need advice, so it is not shown as the answer yet.
        let purpose = match self.waits_for_advice() {
            true => Purpose::Exchange,
            false => Purpose::Conclude,
        };
        let request = self.request();
        self.queue(None, purpose, request, fx);
    }

    /// Returns whether calls that write wait for advice.
    fn waits_for_advice(&self) -> bool {
        let OpenActing {
            advice,
            advisers,
            talk,
            ..
        } = &self.open;
        let can_call = !talk.tools.is_empty() && talk.choice != ToolChoice::None;
        advice.write && !self.asked_before_write && !advisers.is_empty() && can_call
    }

    /// Builds the request to the acting member: the client's conversation unchanged, followed by everything that
    /// concerns only this step.
    fn request(&self) -> Request {
        let OpenActing { acting, talk, .. } = &self.open;
        let (first, rest) = match talk.said.split_first() {
            Some((Said::User { text }, rest)) => (text.clone(), rest),
            _ => (String::new(), &talk.said[..]),
        };
        let tools = self.open.keeps_shape.then(|| {
            Box::new(ToolTalk {
                tools: talk.tools.clone(),
                said: rest.iter().chain(&self.tail).cloned().collect(),
                server: None,
                choice: talk.choice.clone(),
                parallel: talk.parallel,
                repeats: Some(rest.len()),
                optional: false,
            })
        });
        let prompt = match self.open.keeps_shape {
            true => Prompt {
                rules: talk.system.clone(),
                turn: first,
                ..Prompt::default()
            },
            false => talk.as_text(),
        };
        let mut sampling = acting.sampling.clone();
        let limits = [sampling.max_tokens, talk.max_tokens];
        sampling.max_tokens = limits.into_iter().flatten().min();
        sampling.stop.extend(talk.stop.iter().cloned());
        Request {
            attachments: Vec::new(),
            schema_of_user: talk.schema.is_some(),
            reads: false,
            seat: acting.name.clone(),
            prompt,
            sampling,
            schema: talk.schema.clone(),
            deadlines: acting.deadlines,
            writable: false,
            tools,
        }
    }

    fn queue(
        &mut self,
        adviser: Option<usize>,
        purpose: Purpose,
        request: Request,
        fx: &mut Effects,
    ) {
        self.last_turn += 1;
        let id = MachineId::default().turn(self.last_turn);
        let seat = request.seat.clone();
        fx.events.push(Event::TurnQueued {
            turn: id,
            seat: seat.clone(),
            purpose,
            replaces: None,
            ahead: Vec::new(),
        });
        fx.commands.push(Command::Ask {
            turn: id,
            request: Box::new(request),
        });
        self.turns.insert(id, Turn::new(id, seat, adviser, purpose));
    }

    fn finish(&mut self, outcome: Outcome, fx: &mut Effects) {
        self.phase = Phase::Done;
        fx.events.push(Event::FloorYielded {
            outcome,
            usage: self.usage.with_uncounted(self.uncounted),
        });
    }
}

/// Announces a message that is on disk.
fn add(mut message: Message, turn: Option<TurnId>, found: bool, fx: &mut Effects) {
    message.clean();
    fx.events.push(Event::MessageAdded {
        message,
        turn,
        found,
    });
}
