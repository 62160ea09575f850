//! A test bench: a council whose environment is simulated synchronously, in order.

use jiff::Timestamp;
use kd_core::machine::{Command, Input, Machine};
use kd_core::message::{Address, Draft, Message};
use kd_core::prompt::PromptRules;
use kd_core::protocols;
use kd_core::request::{Delta, Finish, Request};
use kd_core::usage::Usage;
use kd_core::{
    Budget, Council, Delivery, Event, Failure, FailureKind, LastRound, Member, Op, OpenCouncil,
    Roster, SeatName, ThreadId, TurnId,
};
use std::collections::BTreeMap;

pub(crate) fn seat(name: &str) -> SeatName {
    SeatName::new(name).unwrap()
}

pub(crate) fn member(name: &str) -> Member {
    Member {
        model: Some("echo-1".into()),
        persona: format!("I am {name}."),
        ..Member::new(seat(name), "scripted")
    }
}

/// The setup of a bench.
pub(crate) struct Setup {
    pub(crate) mode: &'static str,
    pub(crate) members: &'static [&'static str],
    pub(crate) chair: Option<&'static str>,
    pub(crate) auto: Option<u32>,
    pub(crate) conclude: bool,
    pub(crate) limits: Budget,
    pub(crate) history: Vec<Message>,
    pub(crate) queue: Option<Vec<Delivery>>,
    pub(crate) last: Option<LastRound>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: "broadcast",
            members: &["claude", "codex", "cursor"],
            chair: None,
            auto: None,
            conclude: false,
            limits: Budget::default(),
            history: Vec::new(),
            queue: None,
            last: None,
        }
    }
}

/// A council and everything it emitted; saves are confirmed at once unless `hold` is set.
pub(crate) struct Bench {
    pub(crate) council: Council,
    pub(crate) events: Vec<Event>,
    pub(crate) asked: BTreeMap<TurnId, Request>,
    pub(crate) open: Vec<TurnId>,
    pub(crate) cancelled: Vec<TurnId>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) held: Vec<Draft>,
    pub(crate) hold: bool,
    /// Deliveries kept for the next session.
    pub(crate) kept: Vec<Delivery>,
    pub(crate) next: u32,
}

impl Bench {
    pub(crate) fn new(setup: Setup) -> Self {
        let members = setup.members.iter().map(|n| member(n)).collect();
        let kept = setup.queue.clone().unwrap_or_default();
        let next = setup.history.last().map_or(1, |m| m.seq + 1);
        let (council, opened) = Council::open(OpenCouncil {
            thread: ThreadId("council-0001".into()),
            roster: Roster::new(members, setup.chair.map(member)),
            protocol: *protocols::find(setup.mode).unwrap(),
            prompts: PromptRules::default(),
            history: setup.history,
            seed: 7,
            limits: Budget {
                auto_messages: setup.auto,
                ..setup.limits
            },
            conclude: setup.conclude,
            queue: setup.queue,
            last: setup.last,
        });
        Self {
            council,
            events: opened.events,
            asked: BTreeMap::new(),
            open: Vec::new(),
            cancelled: Vec::new(),
            drafts: Vec::new(),
            held: Vec::new(),
            hold: false,
            kept,
            next,
        }
    }

    /// Feeds one input, and executes the resulting commands.
    pub(crate) fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let fx = self.council.step(Timestamp::UNIX_EPOCH, inputs.remove(0));
            self.events.extend(fx.events);
            for command in fx.commands {
                match command {
                    Command::Ask { turn, request } => {
                        self.asked.insert(turn, *request);
                        self.open.push(turn);
                    }
                    Command::Cancel { turn } => self.cancelled.push(turn),
                    Command::Save(draft) if self.hold => self.held.push(*draft),
                    Command::Save(draft) => inputs.push(self.write(*draft)),
                    Command::Keep(delivery) => {
                        let id = delivery.id.clone();
                        match self.kept.iter_mut().find(|d| d.id == id) {
                            Some(kept) => *kept = *delivery,
                            None => self.kept.push(*delivery),
                        }
                        inputs.push(Input::Kept { id });
                    }
                    Command::Forget { id } => self.kept.retain(|d| d.id != id),
                    Command::Wake { .. } => panic!("the council needs no timers"),
                }
            }
        }
    }

    /// Returns the next speakers announced with the newest turn.
    pub(crate) fn ahead(&self) -> Vec<&str> {
        let ahead = self.events.iter().rev().find_map(|event| match event {
            Event::TurnQueued { ahead, .. } => Some(ahead),
            _ => None,
        });
        ahead.into_iter().flatten().map(SeatName::as_str).collect()
    }

    fn write(&mut self, draft: Draft) -> Input {
        self.drafts.push(draft.clone());
        let seq = self.next;
        self.next += 1;
        Input::Saved {
            turn: draft.turn,
            message: draft.stored(seq),
        }
    }

    /// Saves the oldest held draft.
    pub(crate) fn write_held(&mut self) {
        let draft = self.held.remove(0);
        let input = self.write(draft);
        self.feed(input);
    }

    pub(crate) fn op(&mut self, op: Op) {
        self.feed(Input::Op(op));
    }

    pub(crate) fn say(&mut self, body: &str) {
        self.op(Op::Say {
            body: body.into(),
            to: Address::All,
        });
    }

    /// Returns the members with open turns, in the order of asking.
    pub(crate) fn speaking(&self) -> Vec<String> {
        self.open
            .iter()
            .map(|t| self.asked[t].seat.to_string())
            .collect()
    }

    /// Returns the open turn of a member.
    pub(crate) fn turn(&self, name: &str) -> TurnId {
        let of = |t: &&TurnId| self.asked[t].seat.as_str() == name;
        *self
            .open
            .iter()
            .find(of)
            .unwrap_or_else(|| panic!("{name} is not speaking"))
    }

    pub(crate) fn delta(&mut self, name: &str, delta: Delta) {
        let turn = self.turn(name);
        self.feed(Input::Delta { turn, delta });
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.delta(name, Delta::Text { text: text.into() });
    }

    pub(crate) fn answer(&mut self, name: &str, text: &str) {
        self.text(name, text);
        let turn = self.turn(name);
        self.open.retain(|t| *t != turn);
        self.feed(Input::Delta {
            turn,
            delta: finished(),
        });
    }

    pub(crate) fn fail(&mut self, name: &str, kind: FailureKind) {
        let turn = self.turn(name);
        self.open.retain(|t| *t != turn);
        let failure = Failure::new(kind, format!("it was {}", kind.as_str()));
        self.feed(Input::Failed { turn, failure });
    }

    /// Answers all open turns and those that follow; returns the members in the order they were asked.
    pub(crate) fn answer_all(&mut self) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(name) = self.speaking().first().cloned() {
            // No text repeats an earlier one: that would count as mere agreement.
            let words = format!("{name} says {}.", self.drafts.len());
            self.answer(&name, &words);
            order.push(name);
        }
        order
    }

    /// Returns the outcome of each time the floor was yielded.
    pub(crate) fn yields(&self) -> Vec<kd_core::event::Outcome> {
        let yielded = self.events.iter().filter_map(|e| match e {
            Event::FloorYielded { outcome, .. } => Some(*outcome),
            _ => None,
        });
        yielded.collect()
    }

    pub(crate) fn notices(&self) -> Vec<&str> {
        let told = self.events.iter().filter_map(|e| match e {
            Event::Noticed { text } => Some(text.as_str()),
            _ => None,
        });
        told.collect()
    }

    pub(crate) fn refusals(&self) -> Vec<&str> {
        let told = self.events.iter().filter_map(|e| match e {
            Event::OpRefused { why } => Some(why.as_str()),
            _ => None,
        });
        told.collect()
    }

    /// Returns the prompt of a member with an open turn.
    pub(crate) fn prompt(&self, name: &str) -> String {
        self.asked[&self.turn(name)].prompt.as_text()
    }
}

/// Returns the end of a complete answer of ten tokens.
pub(crate) fn finished() -> Delta {
    Delta::Finished {
        finish: Finish::Stop,
        text: None,
        usage: Some(Usage {
            output_tokens: 10,
            ..Usage::default()
        }),
        choices: Vec::new(),
    }
}
