//! What is known of the answering of one question.

use super::exchange::Exchange;
use crate::event::{DuetEnd, Event, Outcome};
use crate::ids::{SeatName, TimerId};
use crate::machine::Effects;
use crate::request::Usage;

/// The answering of one question.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The number of the king's message.
    pub(super) question: u32,
    pub(super) exchange: Exchange,
    pub(super) usage: Usage,
    /// Some turn told nothing of what it used.
    pub(super) uncounted: bool,
    /// Tokens used, as told or guessed.
    pub(super) tokens: u64,
    /// Seats that failed, and why.
    pub(super) failed: Vec<(SeatName, String)>,
    /// Why the king must be answered now.
    pub(super) deciding: Option<DuetEnd>,
    /// Seats that were asked to decide.
    pub(super) asked: Vec<SeatName>,
    /// What a deciding seat wrote inside tags only.
    pub(super) wrapped: Option<(SeatName, String)>,
    /// The last message that told the king something.
    pub(super) told: Option<u32>,
    /// Who is to speak next.
    pub(super) next: Option<SeatName>,
    /// Whether the last reply was to be checked, and held no message of its own.
    pub(super) verify: bool,
    pub(super) answer: Option<u32>,
    pub(super) timer: Option<TimerId>,
    pub(super) interrupted: bool,
}

impl Round {
    pub(super) fn has_failed(&self, seat: &SeatName) -> bool {
        self.failed.iter().any(|(failed, _)| failed == seat)
    }

    /// Says how it ended, and gives the floor back.
    pub(super) fn finish(self, fx: &mut Effects) {
        let outcome = match (self.answer, self.told) {
            _ if self.interrupted => Outcome::Interrupted,
            (Some(_), _) if self.failed.is_empty() => Outcome::Complete,
            (Some(_), _) | (None, Some(_)) => Outcome::Partial,
            (None, None) => Outcome::Failed,
        };
        let why = match outcome {
            Outcome::Interrupted => DuetEnd::Interrupted,
            Outcome::Failed => DuetEnd::Failed,
            _ => self.deciding.unwrap_or(DuetEnd::Agreed),
        };
        fx.events.push(Event::DuetEnded {
            why,
            exchanged: self.exchange.count,
            answer: self.answer.or(self.told),
        });
        fx.events.push(Event::FloorYielded {
            outcome,
            usage: self.usage.with_uncounted(self.uncounted),
        });
    }
}

/// Why a seat must decide, as it is told.
pub(super) fn reason(why: DuetEnd) -> &'static str {
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
