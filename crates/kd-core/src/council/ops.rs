//! The user's operations, and when they are refused.

use super::round::Conclusion;
use super::table::Call;
use super::{Council, Stage, Words};
use crate::clean::clean_text;
use crate::delivery::Delivery;
use crate::event::{Event, Purpose};
use crate::ids::SeatName;
use crate::machine::{Command, Effects};
use crate::mention::{mentions, nearest};
use crate::message::{Address, Message, newest_question, settled};
use crate::op::Op;
use crate::output;
use crate::prompt::Manner;
use crate::protocols::{self, Assignment, PROTOCOLS};
use crate::usage::Usage;
use jiff::Timestamp;

/// The reason why an operation is refused, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(String);

impl From<&str> for Refusal {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl Council {
    /// Executes an operation, or reports why not; then nothing has changed.
    pub(super) fn op(&mut self, now: Timestamp, op: Op, fx: &mut Effects) {
        let done = match op {
            Op::Say { body, to } => self.say(now, &body, to, fx),
            Op::Choose { seat } => self.choose(&seat),
            Op::Interrupt => {
                self.interrupt(fx);
                Ok(())
            }
            Op::TakeBack => {
                // Messages kept by a closed thread are for the next session.
                if !self.closed {
                    self.take_back(fx);
                }
                Ok(())
            }
            Op::Stop { seat } => self.stop(&seat, fx),
            Op::Mute { seat } => self.mute(seat, true, fx),
            Op::Unmute { seat } => self.mute(seat, false, fx),
            Op::Retry { seat } => self.retry(seat.as_ref(), fx),
            Op::Mode { mode } => self.set_mode(&mode, fx),
            Op::Auto { messages } => self.set_auto(messages, fx),
            Op::Resume => self.resume(fx),
            Op::Close => {
                self.close(fx);
                Ok(())
            }
        };
        if let Err(why) = done {
            let why = why.to_string();
            fx.events.push(Event::OpRefused { why });
        }
    }

    fn say(
        &mut self,
        now: Timestamp,
        body: &str,
        to: Address,
        fx: &mut Effects,
    ) -> Result<(), Refusal> {
        if self.closed {
            return Err("the thread is closing: open it again to continue".into());
        }
        if body.len() > self.limits.say_bytes_max {
            return Err(Refusal(format!(
                "the message is longer than {} bytes: put the long part into a file and name it",
                self.limits.say_bytes_max
            )));
        }
        let body = clean_text(body).trim().to_owned();
        if body.is_empty() {
            return Err("the message is empty".into());
        }
        let near_miss = match &to {
            Address::All => self.near_miss(&body),
            _ => None,
        };
        let (to, call) = self.address(&body, to)?;
        if self.waiting.len() >= self.limits.waiting_max {
            return Err(Refusal(format!(
                "{} messages are waiting already: wait, or interrupt first",
                self.waiting.len()
            )));
        }
        fx.events.extend(near_miss.map(super::notice));
        let id = self.queue.next_id(now);
        // A delivery that is kept is reported once it is on disk.
        let mut told = false;
        if let Some(id) = &id {
            fx.commands.push(Command::Keep(Box::new(Delivery {
                id: id.clone(),
                body: body.clone(),
                to: to.clone(),
                asked: None,
            })));
        } else if self.held || !self.is_idle() || self.is_taken(&to) {
            told = true;
            fx.events.push(Event::SayQueued {
                body: body.clone(),
                to: to.clone(),
            });
        }
        self.waiting.push_back(Words {
            id,
            body,
            to,
            call,
            rules: self.rules,
            ask: true,
            halted: false,
            told,
            chosen: None,
        });
        Ok(())
    }

    /// Adds a message that tells the members which answer the user chooses. Nobody is asked.
    fn choose(&mut self, seat: &SeatName) -> Result<(), Refusal> {
        if self.closed {
            return Err("the thread is closing: open it again to continue".into());
        }
        if self.held || !self.is_idle() {
            return Err("members are speaking: wait for them, or stop them first".into());
        }
        let asked = newest_question(&self.history).map_or(0, |at| self.history[at].seq);
        let answers = settled(&self.history);
        let answer = |m: &&&Message| {
            // JSON of the whole council is not an answer of the member that wrote it.
            let is_own = !m.is_pass() && output::value_of(m).is_none();
            m.from == seat.as_str() && m.is_sound() && is_own
        };
        let newest = answers.iter().rev().find(answer);
        let Some(answer) = newest.filter(|answer| answer.seq > asked) else {
            return Err(match (self.members.contains(seat), newest) {
                (true, Some(_)) => Refusal(format!(
                    "{seat} did not answer the newest question: ask it again with /retry, or choose another answer"
                )),
                (true, None) => Refusal(format!(
                    "{seat} has not answered yet: there is nothing to choose"
                )),
                (false, _) => self.unknown(seat),
            });
        };
        self.waiting.push_back(Words {
            id: None,
            body: format!("I choose the answer of {seat} (message {}).", answer.seq),
            to: Address::All,
            call: Call::Everyone,
            rules: self.rules,
            ask: false,
            halted: false,
            told: false,
            chosen: Some(answer.seq),
        });
        Ok(())
    }

    fn set_mode(&mut self, mode: &str, fx: &mut Effects) -> Result<(), Refusal> {
        let Some(kind) = protocols::find(mode) else {
            let names: Vec<&str> = PROTOCOLS.iter().map(|kind| kind.name).collect();
            let near = names
                .iter()
                .find(|name| strsim::damerau_levenshtein(name, mode) <= 2)
                .map(|name| format!("did you mean {name}? "));
            return Err(Refusal(format!(
                "there is no mode {mode}: {}modes are {}",
                near.unwrap_or_default(),
                names.join(", ")
            )));
        };
        self.rules.kind = *kind;
        self.rules.set += 1;
        self.tell_mode(fx);
        Ok(())
    }

    fn set_auto(&mut self, messages: Option<u32>, fx: &mut Effects) -> Result<(), Refusal> {
        self.rules.auto_messages = messages;
        self.tell_mode(fx);
        Ok(())
    }

    fn tell_mode(&self, fx: &mut Effects) {
        fx.events.push(Event::ModeSet {
            mode: self.rules.kind.name.to_owned(),
            auto_messages: self.rules.auto_messages,
        });
    }

    /// Accepts no more work. Waiting messages that are kept stay for the next session; others are written without an
    /// answer.
    fn close(&mut self, fx: &mut Effects) {
        self.closed = true;
        let all = self.waiting.len();
        self.waiting.retain(|w| w.id.is_none());
        let left = all - self.waiting.len() + self.queue.close();
        if left > 0 {
            fx.events.push(super::notice(super::stays(left)));
        }
        self.drop_questions();
    }

    /// Returns the recipients: as given by the front end, otherwise the mentioned members, otherwise all.
    pub(super) fn address(&self, body: &str, to: Address) -> Result<(Address, Call), Refusal> {
        let known: Vec<&SeatName> = self.members.iter().collect();
        let seats = match to {
            Address::Seats(seats) => seats,
            Address::King => {
                return Err("`king` is you: address members, or all".into());
            }
            Address::All => {
                let said = mentions(body, &known);
                if said.all {
                    return self.someone(Address::All, Call::All);
                }
                if said.seats.is_empty() {
                    return self.someone(Address::All, Call::Everyone);
                }
                said.seats
            }
        };
        let mut named: Vec<SeatName> = Vec::new();
        for seat in seats {
            if !self.members.contains(&seat) {
                return Err(self.unknown(&seat));
            }
            if self.roster.is_muted(&seat) {
                return Err(Refusal(format!("{seat} is muted: unmute it first")));
            }
            if !named.contains(&seat) {
                named.push(seat);
            }
        }
        if named.is_empty() {
            return Err("the message has no addressee".into());
        }
        Ok((Address::Seats(named), Call::Named))
    }

    /// Returns a notice if a message begins with a misspelled member name.
    fn near_miss(&self, body: &str) -> Option<String> {
        let known: Vec<&SeatName> = self.members.iter().collect();
        mentions(body, &known).near_miss(&known)
    }

    /// Refuses a message to everybody if all members are muted.
    fn someone(&self, to: Address, call: Call) -> Result<(Address, Call), Refusal> {
        if self.roster.unmuted().next().is_none() {
            return Err("every member is muted: unmute one first".into());
        }
        Ok((to, call))
    }

    fn unknown(&self, seat: &SeatName) -> Refusal {
        let known: Vec<&SeatName> = self.members.iter().collect();
        match nearest(seat.as_str(), &known) {
            Some(near) => Refusal(format!("no member is named {seat}: did you mean {near}?")),
            None => {
                let names: Vec<&str> = self.members.iter().map(SeatName::as_str).collect();
                Refusal(format!(
                    "no member is named {seat}: the members are {}",
                    names.join(", ")
                ))
            }
        }
    }

    /// Stops every open turn. No member is asked before the user's next `Say` or `Retry`, except for messages that
    /// already wait: those are processed once the turns have ended. Another interrupt before that takes them back, as
    /// does the first if no turn is open.
    fn interrupt(&mut self, fx: &mut Effects) {
        let busy = self.held || !matches!(self.stage, Stage::Idle) || !self.floor.is_empty();
        // Messages kept by a closed thread are for the next session.
        if !self.closed && (!busy || std::mem::replace(&mut self.stopped, true)) {
            self.take_back(fx);
        }
        self.cancel(None, fx);
        self.queue.drop_resumed(fx);
        match &mut self.stage {
            Stage::Talking | Stage::Retrying | Stage::Concluding => {
                if let Some(round) = &mut self.round {
                    round.interrupted = true;
                }
            }
            Stage::Saving(words) => words.halted = true,
            Stage::Idle => {}
        }
    }

    /// Returns the waiting messages to the user.
    pub(super) fn take_back(&mut self, fx: &mut Effects) {
        // Newest first: prepended to each other they end up in order.
        while let Some(words) = self.waiting.pop_back() {
            fx.commands
                .extend(words.id.map(|id| Command::Forget { id }));
            fx.events.push(Event::SayTakenBack {
                body: words.body,
                to: words.to,
            });
        }
    }

    fn drop_questions(&mut self) {
        for words in &mut self.waiting {
            words.ask = false;
        }
    }

    fn cancel(&mut self, seat: Option<&SeatName>, fx: &mut Effects) {
        let stopped = self.floor.stop(seat);
        fx.commands
            .extend(stopped.into_iter().map(|turn| Command::Cancel { turn }));
    }

    fn stop(&mut self, seat: &SeatName, fx: &mut Effects) -> Result<(), Refusal> {
        if !self.floor.holds(seat) {
            return Err(match self.roster.get(seat) {
                Some(_) => Refusal(format!("{seat} is not speaking")),
                None => self.unknown(seat),
            });
        }
        self.cancel(Some(seat), fx);
        Ok(())
    }

    fn mute(&mut self, seat: SeatName, muted: bool, fx: &mut Effects) -> Result<(), Refusal> {
        if !self.members.contains(&seat) {
            return Err(self.unknown(&seat));
        }
        if !self.roster.set_muted(&seat, muted) {
            let already = if muted { "muted already" } else { "not muted" };
            return Err(Refusal(format!("{seat} is {already}")));
        }
        fx.events.push(Event::SeatMuted { seat, muted });
        Ok(())
    }

    /// Asks members again whose last turn failed.
    fn retry(&mut self, seat: Option<&SeatName>, fx: &mut Effects) -> Result<(), Refusal> {
        if self.closed {
            return Err("the thread is closing: open it again to continue".into());
        }
        if let Some(seat) = seat
            && self.roster.get(seat).is_none()
        {
            return Err(self.unknown(seat));
        }
        let idle = match self.stage {
            Stage::Idle => true,
            Stage::Talking | Stage::Retrying => false,
            Stage::Saving(_) | Stage::Concluding => {
                return Err("not now: retry when no member is speaking".into());
            }
        };
        let Some(round) = &mut self.round else {
            return Err("there is no question to ask again".into());
        };
        if !idle && round.interrupted {
            return Err("the round is being stopped: retry when it has ended".into());
        }
        let mut failed = round.failed();
        failed.retain(|s| seat.is_none_or(|only| only == s) && !self.floor.holds(s));
        if let Some(seat) = failed.iter().find(|s| self.others.hold(s)) {
            return Err(Refusal(format!(
                "{seat} is answering another kd process in this thread: wait for its answer"
            )));
        }
        let all = failed.len();
        failed.retain(|s| !self.roster.is_muted(s));
        if failed.is_empty() {
            let chair_failed = round.conclusion == Conclusion::Missing && seat.is_none();
            if !(idle && chair_failed && all == 0) {
                return Err(match (all, seat) {
                    (0, Some(seat)) => Refusal(format!("the last turn of {seat} did not fail")),
                    (0, None) => "no member failed".into(),
                    _ => "the failed members are muted: unmute them first".into(),
                });
            }
        }
        if round.conclusion == Conclusion::Done {
            round.concluded = Some(round.answers());
        }
        round.conclusion = Conclusion::Open;
        if idle {
            round.interrupted = false;
            round.asked = 0;
            round.usage = Usage::default();
            round.uncounted = false;
            self.stage = Stage::Retrying;
        }
        let alone = round.call == Call::Named && round.asked_seats() == 1;
        let manner = if alone { Manner::Alone } else { Manner::Answer };
        let asked = failed.into_iter().map(|seat| Assignment { seat, manner });
        self.ask(asked.collect(), Purpose::Answer, &[], fx);
        Ok(())
    }
}
