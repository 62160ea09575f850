//! Messages of the user in transit: those that wait for the current round to end, and those left by a session that
//! ended early.
//!
//! If [`OpenCouncil::queue`](super::OpenCouncil::queue) is set, each message is kept (`Command::Keep`) before any
//! member is asked, kept again with the names of the members asked, and forgotten when the round ends. `Op::Resume`
//! continues what a killed session left: unsent messages are sent; for sent ones, exactly the members without a message
//! are asked.

use super::ops::Refusal;
use super::table::{Call, Spoke};
use super::{Council, Round, Stage, Words, notice};
use crate::delivery::{self, Delivery};
use crate::event::Event;
use crate::ids::SeatName;
use crate::machine::{Command, Effects};
use crate::message::Message;
use jiff::Timestamp;
use std::collections::VecDeque;

/// The state of deliveries.
#[derive(Debug)]
pub(super) struct Queue {
    /// Whether deliveries are kept at all.
    keeps: bool,
    /// Whether the user knows that they cannot be kept.
    warned: bool,
    seed: u64,
    count: u64,
    /// Deliveries left by another session, until resumed.
    left: VecDeque<Delivery>,
    /// Rounds continued from another session.
    resumed: VecDeque<Round>,
}

impl Queue {
    pub(super) fn new(left: Option<Vec<Delivery>>, seed: u64) -> Self {
        Self {
            keeps: left.is_some(),
            warned: false,
            seed,
            count: 0,
            left: left.unwrap_or_default().into(),
            resumed: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.resumed.is_empty()
    }

    /// Returns the id of the next delivery; `None` if deliveries are not kept.
    pub(super) fn next_id(&mut self, now: Timestamp) -> Option<String> {
        self.count += 1;
        self.keeps.then(|| delivery::id(self.seed, now, self.count))
    }

    /// Discards resumed rounds.
    pub(super) fn drop_resumed(&mut self, fx: &mut Effects) {
        let ids = self.resumed.drain(..).filter_map(|round| round.id);
        fx.commands.extend(ids.map(|id| Command::Forget { id }));
    }

    /// Discards what can no longer be resumed in this session; returns how many.
    pub(super) fn close(&mut self) -> usize {
        let resumed = self.resumed.len();
        self.resumed.clear();
        resumed
    }
}

impl Council {
    /// Handles the result of keeping a message: if it still waits, this can be reported now.
    pub(super) fn kept(&mut self, id: &str, failed: Option<String>, fx: &mut Effects) {
        if let Some(why) = failed.filter(|_| !self.queue.warned) {
            self.queue.warned = true;
            fx.events.push(notice(format!(
                "queued messages cannot be saved and may be lost if kd is killed ({why})"
            )));
        }
        let waiting = self
            .waiting
            .iter_mut()
            .find(|w| w.id.as_deref() == Some(id));
        if let Some(words) = waiting.filter(|w| !w.told) {
            words.told = true;
            fx.events.push(Event::SayQueued {
                body: words.body.clone(),
                to: words.to.clone(),
            });
        }
    }

    /// Resumes what another session left, oldest first.
    pub(super) fn resume(&mut self, fx: &mut Effects) -> Result<(), Refusal> {
        if self.closed {
            return Err("the thread is closing: open it again to continue".into());
        }
        let left: Vec<Delivery> = self.queue.left.drain(..).collect();
        for delivery in left {
            let id = Some(delivery.id.as_str());
            let said = |m: &Message| m.is_king() && m.provenance.delivery_id.as_deref() == id;
            match self.history.iter().position(said) {
                Some(at) => self.go_on(delivery, at, fx),
                None => self.say_again(delivery, fx),
            }
        }
        Ok(())
    }

    /// Resumes a message that was never sent.
    fn say_again(&mut self, delivery: Delivery, fx: &mut Effects) {
        let Ok((to, call)) = self.address(&delivery.body, delivery.to) else {
            fx.events.push(notice(format!(
                "a queued message was dropped, because its members are gone: {}",
                crate::clean::clean_line(&delivery.body, super::LINE_CHARS_MAX)
            )));
            fx.commands.push(Command::Forget { id: delivery.id });
            return;
        };
        fx.events.push(Event::SayQueued {
            body: delivery.body.clone(),
            to: to.clone(),
        });
        self.waiting.push_back(Words {
            id: Some(delivery.id),
            body: delivery.body,
            to,
            call,
            rules: self.rules,
            ask: true,
            halted: false,
            told: true,
            chosen: None,
        });
    }

    /// Resumes a message that was sent but not fully answered: the one at this index of the history.
    fn go_on(&mut self, delivery: Delivery, at: usize, fx: &mut Effects) {
        let (before, rest) = self.history.split_at(at);
        let Some((king, after)) = rest.split_first() else {
            return;
        };
        let mut round = Round::new(
            king.to.clone(),
            super::call_of(king, &self.members),
            !super::round::any_answer(before),
        );
        round.said = king.seq;
        let asked = delivery
            .asked
            .unwrap_or_else(|| round.called(&self.members));
        let end = after
            .iter()
            .position(Message::is_king)
            .unwrap_or(after.len());
        let id = Some(delivery.id.as_str());
        let replies: Vec<&Message> = after
            .iter()
            .enumerate()
            .filter(|(i, m)| *i < end || m.provenance.delivery_id.as_deref() == id)
            .map(|(_, m)| m)
            .collect();
        for seat in &asked {
            let theirs = replies.iter().filter(|m| m.from == seat.as_str());
            round.spoke.extend(theirs.map(|m| Spoke {
                seat: seat.clone(),
                answered: m.is_sound(),
                mentions: Vec::new(),
                speech: crate::speech::Speech::Words,
            }));
        }
        let missing: Vec<SeatName> = asked
            .into_iter()
            .filter(|seat| self.members.contains(seat))
            .filter(|seat| !round.spoke.iter().any(|s| &s.seat == seat))
            .collect();
        if missing.is_empty() {
            fx.commands.push(Command::Forget { id: delivery.id });
            return;
        }
        let names: Vec<&str> = missing.iter().map(SeatName::as_str).collect();
        fx.events.push(notice(format!(
            "the last session ended before {} had answered message {}: asking now",
            names.join(" and "),
            king.seq
        )));
        // The other members have had a turn already, and further turns would be counted again.
        if round.call == Call::All {
            round.call = Call::Named;
        }
        round.first = true;
        round.heard = round.spoke.len();
        round.only = Some(missing);
        round.id = Some(delivery.id);
        self.queue.resumed.push_back(round);
    }

    /// Starts the next resumed round if its members are free.
    pub(super) fn next_resumed(&mut self) -> bool {
        let free = |round: &Round| {
            let only = round.only.iter().flatten();
            only.into_iter().all(|seat| !self.others.hold(seat))
        };
        if !self.queue.resumed.front().is_some_and(free) {
            return false;
        }
        self.round = self.queue.resumed.pop_front();
        self.stage = Stage::Talking;
        true
    }

    /// Keeps the names of the members asked in this round before they are asked.
    pub(super) fn keep_asked(&mut self, seats: &[SeatName], fx: &mut Effects) {
        let Some(round) = &mut self.round else { return };
        let Some(id) = round.id.clone().filter(|_| !round.kept) else {
            return;
        };
        round.kept = true;
        let king = |m: &&Message| m.is_king() && m.provenance.delivery_id.as_ref() == Some(&id);
        let body = self.history.iter().rev().find(king).map(|m| m.body.clone());
        // Members that have already answered were asked too.
        let mut asked: Vec<SeatName> = Vec::new();
        for seat in round.spoke.iter().map(|s| &s.seat).chain(seats) {
            if !asked.contains(seat) {
                asked.push(seat.clone());
            }
        }
        fx.commands.push(Command::Keep(Box::new(Delivery {
            id,
            body: body.unwrap_or_default().into(),
            to: round.to.clone(),
            asked: Some(asked),
        })));
    }

    /// Ends the delivery of the round: there is nothing to resume.
    pub(super) fn forget(&mut self, fx: &mut Effects) {
        if let Some(id) = self.round.as_mut().and_then(|r| r.id.take()) {
            fx.commands.push(Command::Forget { id });
        }
    }
}
