//! What other processes do in the same thread: their messages, and the answers they stream.
//!
//! A member that speaks for another process is not asked by us meanwhile: what the king says to it waits.

use super::{Council, Stage, round_from};
use crate::event::Event;
use crate::hearing::Hearing;
use crate::ids::{KING, SeatName};
use crate::machine::Effects;
use crate::message::{Address, Message};
use crate::request::Delta;
use std::collections::BTreeMap;

/// The most seats of other processes whose streams are followed.
const STREAMS_MAX: usize = 64;

/// Seats that speak for other processes, with the ears for what they stream.
#[derive(Debug, Default)]
pub(super) struct Others(BTreeMap<SeatName, Hearing>);

impl Others {
    /// Whether a seat speaks for another process.
    pub(super) fn hold(&self, seat: &SeatName) -> bool {
        self.0.contains_key(seat)
    }
}

impl Council {
    /// A message that another process wrote.
    pub(super) fn found(&mut self, message: Message, fx: &mut Effects) {
        let before = fx.events.len();
        self.add(message.clone(), None, true, fx);
        if fx.events.len() == before {
            // It was known.
            return;
        }
        self.spoke_elsewhere(&message);
        if matches!(self.stage, Stage::Idle) && !self.held {
            // What can be asked again is what the thread says now.
            self.round = round_from(&self.history, &self.members, None);
        }
    }

    /// Who spoke in another process speaks there no more; and a new word of the king ends the turns of this round.
    pub(super) fn spoke_elsewhere(&mut self, message: &Message) {
        self.others
            .0
            .retain(|seat, _| seat.as_str() != message.from);
        if message.from == KING
            && let Some(round) = &mut self.round
        {
            round.over |= message.seq > round.said;
        }
    }

    /// A piece of an answer that another process streams.
    pub(super) fn found_delta(&mut self, seat: SeatName, mut delta: Delta, fx: &mut Effects) {
        if !self.others.hold(&seat) && self.others.0.len() >= STREAMS_MAX {
            return;
        }
        let ear = self.others.0.entry(seat.clone()).or_default();
        ear.clean(&mut delta);
        fx.events.push(Event::StreamFound { seat, delta });
    }

    /// A stream of another process is over. If a message came of it, it was found before.
    pub(super) fn found_end(&mut self, seat: SeatName, fx: &mut Effects) {
        if self.others.0.remove(&seat).is_some() {
            fx.events.push(Event::StreamLost { seat });
        }
    }

    /// Whether what is said to these must wait, because one of them speaks for another process.
    pub(crate) fn is_taken(&self, to: &Address) -> bool {
        let asked = |seat: &SeatName| match to {
            Address::All => self.members.contains(seat) && !self.roster.is_muted(seat),
            Address::King => false,
            Address::Seats(seats) => seats.contains(seat),
        };
        self.others.0.keys().any(asked)
    }
}
