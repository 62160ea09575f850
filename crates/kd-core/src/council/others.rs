//! Messages and streamed answers of other processes in the same thread.
//!
//! A member that is answering for another process is not asked meanwhile: messages to it wait.

use super::{Council, Stage, notice, round_from};
use crate::event::Event;
use crate::hearing::Hearing;
use crate::ids::SeatName;
use crate::machine::Effects;
use crate::message::{Address, Message};
use crate::names::KING;
use crate::request::Delta;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of members whose streams in other processes are followed.
const STREAMS_MAX: usize = 64;

/// Members answering for other processes, with the state of their streams.
#[derive(Debug, Default)]
pub(super) struct Others {
    streams: BTreeMap<SeatName, Hearing>,
    /// The numbers of messages that other processes wrote since this session began, with their senders.
    messages: BTreeSet<(u32, String)>,
}

impl Others {
    /// Returns whether a member is answering for another process.
    pub(super) fn hold(&self, seat: &SeatName) -> bool {
        self.streams.contains_key(seat)
    }

    /// Takes note of a message of another process.
    pub(super) fn note(&mut self, message: &Message) {
        self.messages.insert((message.seq, message.from.clone()));
    }

    /// Returns whether another process wrote a message since this session began.
    pub(super) fn said(&self, message: &Message) -> bool {
        self.messages.contains(&(message.seq, message.from.clone()))
    }
}

impl Council {
    /// Handles a message written by another process.
    pub(super) fn found(&mut self, message: Message, fx: &mut Effects) {
        if !self.add(message.clone(), None, true, fx) {
            return self.rewritten(message, fx);
        }
        self.others.note(&message);
        self.spoke_elsewhere(&message);
        if matches!(self.stage, Stage::Idle) && !self.held {
            // The thread now decides what can be retried.
            self.round = round_from(&self.history, &self.members, None);
        }
    }

    /// Handles a known message: if its text has changed on disk, members are sent the new one from now on.
    fn rewritten(&mut self, mut message: Message, fx: &mut Effects) {
        message.clean();
        let is_it = |m: &&mut Message| m.seq == message.seq && m.from == message.from;
        let Some(known) = self.history.iter_mut().find(is_it) else {
            return;
        };
        if known.body.trim() == message.body.trim() {
            return;
        }
        known.body = message.body;
        fx.events.push(notice(format!(
            "the file of message {} ({}) was changed: from now on members are sent the new text",
            message.seq, message.from
        )));
    }

    /// Handles the removal of message files.
    pub(super) fn gone(&mut self, files: &[(u32, String)], fx: &mut Effects) {
        let before = self.history.clone();
        let is_gone = |m: &Message| {
            let alone = || before.iter().filter(|other| other.seq == m.seq).count() == 1;
            let named =
                |(seq, sender): &(u32, String)| *seq == m.seq && (*sender == m.from || alone());
            files.iter().any(named)
        };
        self.history.retain(|m| !is_gone(m));
        // One that only got another number is still there.
        let moved = |m: &Message| {
            let mut newer = self.history.iter().filter(|other| other.seq > m.seq);
            newer.any(|o| o.from == m.from && o.body == m.body && self.others.said(o))
        };
        let gone = before.iter().filter(|m| is_gone(m) && !moved(m));
        let gone: Vec<&Message> = gone.collect();
        let text = match gone.as_slice() {
            [] => return,
            [one] => format!(
                "the file of message {} ({}) was removed: from now on members are not sent it",
                one.seq, one.from
            ),
            [first, .., last] => format!(
                "the files of {} messages ({} to {}) were removed, for example by `git checkout`: from now on members are not sent them; /new begins another thread",
                gone.len(),
                first.seq,
                last.seq
            ),
        };
        fx.events.push(notice(text));
        if matches!(self.stage, Stage::Idle) && !self.held {
            self.round = round_from(&self.history, &self.members, None);
        }
    }

    /// Takes note of another process's message: its sender has finished there, and one of the user ends this round.
    pub(super) fn spoke_elsewhere(&mut self, message: &Message) {
        self.others
            .streams
            .retain(|seat, _| seat.as_str() != message.from);
        if message.from == KING
            && let Some(round) = &mut self.round
        {
            round.over |= message.seq > round.said;
        }
    }

    /// Handles a message that waits in another process: as one that waits here, it ends this round.
    pub(super) fn waits_elsewhere(&mut self) {
        if let Some(round) = &mut self.round {
            round.over = true;
        }
    }

    /// Handles a piece of an answer streamed by another process.
    pub(super) fn found_delta(&mut self, seat: SeatName, mut delta: Delta, fx: &mut Effects) {
        if !self.others.hold(&seat) && self.others.streams.len() >= STREAMS_MAX {
            return;
        }
        let ear = self.others.streams.entry(seat.clone()).or_default();
        ear.clean(&mut delta);
        fx.events.push(Event::StreamFound { seat, delta });
    }

    /// Handles the end of another process's stream. Its message, if any, was found before.
    pub(super) fn found_end(&mut self, seat: SeatName, fx: &mut Effects) {
        if self.others.streams.remove(&seat).is_some() {
            fx.events.push(Event::StreamLost { seat });
        }
    }

    /// Returns whether a message to these members must wait because one of them is answering for another process.
    pub(crate) fn is_taken(&self, to: &Address) -> bool {
        let asked = |seat: &SeatName| match to {
            Address::All => self.members.contains(seat) && !self.roster.is_muted(seat),
            Address::King => false,
            Address::Seats(seats) => seats.contains(seat),
        };
        self.others.streams.keys().any(asked)
    }
}
