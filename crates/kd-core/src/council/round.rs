//! What is known of the answering of one message of the king.

use super::table::{Call, Spoke};
use crate::event::Outcome;
use crate::ids::SeatName;
use crate::last_round::{LastRound, RoundKind};
use crate::message::{Address, Message};
use crate::request::Usage;
use crate::speech::Speech;
use crate::spending::Spent;

/// The answering of one message of the king: begins when his message is on disk, stays after the floor is yielded so
/// that failed turns can be asked again.
#[derive(Debug)]
pub(super) struct Round {
    /// The number of his message.
    pub(super) said: u32,
    /// Whom he called.
    pub(super) to: Address,
    pub(super) call: Call,
    /// Whether no member had answered anything before.
    pub(super) first: bool,
    /// Turns that ended, conclusions not among them.
    pub(super) spoke: Vec<Spoke>,
    /// How many turns were asked since the king last spoke or asked for a retry.
    pub(super) asked: u32,
    /// What the turns used since then.
    pub(super) usage: Usage,
    /// Some of them told nothing.
    pub(super) uncounted: bool,
    pub(super) conclusion: Conclusion,
    /// Whether a conclusion may follow.
    pub(super) concludes: bool,
    /// Its worst case, answers that are still to come apart. Counted only where limits are set.
    pub(super) closing: Spent,
    pub(super) interrupted: bool,
    /// The king spoke again in another process.
    pub(super) over: bool,
    /// How many turns may follow the answers, as set when the round began.
    pub(super) auto_messages: Option<u32>,
    /// Under which number the king's message is kept, until it is answered.
    pub(super) id: Option<String>,
    /// Whether it is kept with the names of those who are asked.
    pub(super) kept: bool,
    /// In a round that goes on after its session was killed: exactly these are asked.
    pub(super) only: Option<Vec<SeatName>>,
    /// How many of the turns in `spoke` belong to that earlier session.
    pub(super) heard: usize,
}

/// How far the conclusion is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// Not thought of yet.
    #[default]
    Open,
    /// Asked of the chair, or of a member in its place.
    Asked { stand_in: bool },
    /// The chair failed; a member may stand in.
    ChairFailed { by: SeatName, why: String },
    /// It is there.
    Done,
    /// It was wanted and did not come.
    Missing,
    /// There is nothing to conclude.
    Needless,
}

impl Round {
    pub(super) fn new(to: Address, call: Call, first: bool) -> Self {
        Self {
            said: 0,
            to,
            call,
            first,
            spoke: Vec::new(),
            asked: 0,
            usage: Usage::default(),
            uncounted: false,
            conclusion: Conclusion::Open,
            concludes: false,
            closing: Spent::default(),
            interrupted: false,
            over: false,
            auto_messages: None,
            id: None,
            kept: false,
            only: None,
            heard: 0,
        }
    }

    /// The round after the last message of the user in a thread, as far as messages and log tell; none after a debate or
    /// a deliberation. Members who were called and left no message count as failed, unless the log tells that the round
    /// ended without a turn of theirs.
    pub(super) fn from_history(
        history: &[Message],
        members: &[SeatName],
        last: Option<&LastRound>,
        call: impl Fn(&Message) -> Call,
    ) -> Option<Self> {
        let at = history.iter().rposition(Message::is_king)?;
        let (before, rest) = history.split_at(at);
        let (king, answers) = rest.split_first()?;
        let kind = last.map_or(RoundKind::of(king), |l| l.kind);
        if kind != RoundKind::Council {
            return None;
        }
        let mut round = Round::new(king.to.clone(), call(king), !any_answer(before));
        round.said = king.seq;
        for message in answers {
            if let Some(seat) = members.iter().find(|m| m.as_str() == message.from)
                && !message.extra.contains_key(super::drafts::PURPOSE)
            {
                round.spoke.push(Spoke {
                    seat: seat.clone(),
                    answered: message.is_sound(),
                    mentions: Vec::new(),
                    speech: Speech::Words,
                });
            }
        }
        let unasked = |seat: &SeatName| {
            last.is_some_and(|l| l.is_whole() && !l.asked.iter().any(|(s, ..)| s == seat))
        };
        for seat in round.called(members) {
            if !unasked(&seat) && !round.spoke.iter().any(|s| s.seat == seat) {
                round.spoke.push(Spoke {
                    seat,
                    answered: false,
                    mentions: Vec::new(),
                    speech: Speech::Words,
                });
            }
        }
        Some(round)
    }

    /// Those of the members whom the king called, in the order of his mentions.
    pub(super) fn called(&self, members: &[SeatName]) -> Vec<SeatName> {
        match &self.to {
            Address::All => members.to_vec(),
            Address::King => Vec::new(),
            Address::Seats(named) => named
                .iter()
                .filter(|n| members.contains(n))
                .cloned()
                .collect(),
        }
    }

    /// Seats by their last turn: whether it brought an answer. In the order of first turns.
    fn last_turns(&self) -> Vec<(&SeatName, bool)> {
        let mut last: Vec<(&SeatName, bool)> = Vec::new();
        for spoke in &self.spoke {
            match last.iter_mut().find(|(seat, _)| *seat == &spoke.seat) {
                Some((_, answered)) => *answered = spoke.answered,
                None => last.push((&spoke.seat, spoke.answered)),
            }
        }
        last
    }

    /// Seats whose last turn failed.
    pub(super) fn failed(&self) -> Vec<SeatName> {
        let last = self.last_turns().into_iter();
        last.filter(|(_, ok)| !ok)
            .map(|(seat, _)| seat.clone())
            .collect()
    }

    /// Seats that gave an answer in this round.
    pub(super) fn answered(&self) -> Vec<SeatName> {
        let mut seats: Vec<SeatName> = Vec::new();
        for spoke in self.spoke.iter().filter(|s| s.answered) {
            if !seats.contains(&spoke.seat) {
                seats.push(spoke.seat.clone());
            }
        }
        seats
    }

    /// How many seats were asked for an answer.
    pub(super) fn asked_seats(&self) -> usize {
        self.last_turns().len()
    }

    pub(super) fn outcome(&self) -> Outcome {
        if self.interrupted {
            return Outcome::Interrupted;
        }
        if self.answered().is_empty() {
            return Outcome::Failed;
        }
        if self.failed().is_empty() && self.conclusion != Conclusion::Missing {
            Outcome::Complete
        } else {
            Outcome::Partial
        }
    }
}

/// Whether a member has answered anything in these messages.
pub(super) fn any_answer(messages: &[Message]) -> bool {
    messages.iter().any(|m| !m.is_king() && m.is_sound())
}
