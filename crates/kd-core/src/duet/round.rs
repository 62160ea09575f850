//! The state of one question.

use super::exchange::Exchange;
use crate::event::{DuetEnd, Event, Outcome};
use crate::ids::{SeatName, TimerId};
use crate::machine::Effects;
use crate::usage::Usage;

/// The state of one question.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The number of the user's message.
    pub(super) question: u32,
    pub(super) exchange: Exchange,
    pub(super) usage: Usage,
    /// Some turn reported no usage.
    pub(super) uncounted: bool,
    /// Tokens used, as reported or estimated.
    pub(super) tokens: u64,
    /// Members that failed, and why.
    pub(super) failed: Vec<(SeatName, String)>,
    /// The reason why the answer must be given now.
    pub(super) deciding: Option<DuetEnd>,
    /// Whether a reply was cut off, or asked for again because it repeated its prompt.
    pub(super) unclear: bool,
    /// Members asked for the final answer.
    pub(super) asked: Vec<SeatName>,
    /// Text that a member asked for the final answer wrote only inside tags.
    pub(super) wrapped: Option<(SeatName, String)>,
    /// The last message with visible text.
    pub(super) told: Option<u32>,
    /// The next member.
    pub(super) next: Option<SeatName>,
    /// Whether the last reply must be checked and contained no message.
    pub(super) verify: bool,
    pub(super) answer: Option<u32>,
    pub(super) timer: Option<TimerId>,
    pub(super) interrupted: bool,
}

impl Round {
    pub(super) fn has_failed(&self, seat: &SeatName) -> bool {
        self.failed.iter().any(|(failed, _)| failed == seat)
    }

    /// Reports the end and yields to the user.
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

/// Returns the reason given to a member that must answer.
pub(super) fn reason(why: DuetEnd) -> &'static str {
    match why {
        DuetEnd::Cycle => "the two of you repeat yourselves",
        DuetEnd::Budget => "there are no tokens left for more",
        DuetEnd::Time => "the time is up",
        DuetEnd::Alone => "the other cannot go on",
        DuetEnd::Cap
        | DuetEnd::Agreed
        | DuetEnd::Unclear
        | DuetEnd::Interrupted
        | DuetEnd::Failed => "you have exchanged as many messages as you may",
    }
}
