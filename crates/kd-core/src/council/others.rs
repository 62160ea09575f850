//! Messages and streamed answers of other processes in the same thread.
//!
//! A member that is answering for another process is not asked meanwhile: messages to it wait.

use super::{Council, Stage, round_from};
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
            return;
        }
        self.others.note(&message);
        self.spoke_elsewhere(&message);
        if matches!(self.stage, Stage::Idle) && !self.held {
            // The thread now decides what can be retried.
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
