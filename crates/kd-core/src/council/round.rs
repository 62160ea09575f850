//! The state of one round, which answers one message of the user.

use super::Rules;
use super::table::{Call, Spoke};
use crate::event::Outcome;
use crate::ids::SeatName;
use crate::last_round::{LastRound, RoundKind};
use crate::message::{Address, Message, newest_question};
use crate::speech::Speech;
use crate::spending::Spent;
use crate::usage::Usage;

/// A round: begins when the user's message is on disk, and stays after it ends so that failed turns can be retried.
#[derive(Debug)]
pub(super) struct Round {
    /// The number of the message.
    pub(super) said: u32,
    /// The recipients.
    pub(super) to: Address,
    pub(super) call: Call,
    /// Whether no member had answered before.
    pub(super) first: bool,
    /// Finished turns, without conclusions.
    pub(super) spoke: Vec<Spoke>,
    /// Turns since the user last spoke or asked for a retry.
    pub(super) asked: u32,
    /// Usage of the turns since then.
    pub(super) usage: Usage,
    /// Some of them reported no usage.
    pub(super) uncounted: bool,
    pub(super) conclusion: Conclusion,
    /// The number of answers that the conclusion is of, while failed members are asked again.
    pub(super) concluded: Option<usize>,
    /// Whether a conclusion may follow.
    pub(super) concludes: bool,
    /// Its maximum cost, without answers that are still missing. Tracked only if limits are set.
    pub(super) closing: Spent,
    pub(super) interrupted: bool,
    /// Whether the user spoke again in another process, or a message waits there.
    pub(super) over: bool,
    /// The settings of its message. `None`: those of now, and no turns after the answers are counted.
    pub(super) rules: Option<Rules>,
    /// The delivery id of the message, until it is answered.
    pub(super) id: Option<String>,
    /// Whether the delivery was kept with the names of the members asked.
    pub(super) kept: bool,
    /// In a resumed round, exactly these members are asked.
    pub(super) only: Option<Vec<SeatName>>,
    /// Number of turns in `spoke` from the earlier session.
    pub(super) heard: usize,
}

/// The state of the conclusion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// Not considered yet.
    #[default]
    Open,
    /// The chair, or a substitute member, was asked.
    Asked { stand_in: bool },
    /// The chair failed; a member may substitute.
    ChairFailed { by: SeatName, why: String },
    /// Finished.
    Done,
    /// Wanted, but failed.
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
            concluded: None,
            concludes: false,
            closing: Spent::default(),
            interrupted: false,
            over: false,
            rules: None,
            id: None,
            kept: false,
            only: None,
            heard: 0,
        }
    }

    /// Returns the round of the user's last message, as far as messages and log show it; `None` after a debate or a
    /// deliberation. Called members without a message count as failed, unless the log shows that the round ended
    /// without asking them.
    pub(super) fn from_history(
        history: &[Message],
        members: &[SeatName],
        last: Option<&LastRound>,
        call: impl Fn(&Message) -> Call,
    ) -> Option<Self> {
        let at = newest_question(history)?;
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
        let concludes = |m: &&Message| m.is_sound() && super::drafts::concludes(m);
        if answers.iter().any(|m| concludes(&m)) {
            round.conclusion = Conclusion::Done;
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

    /// Returns the members called by the user, in the order of mentions.
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

    /// Returns each member with whether its last turn succeeded, in the order of first turns.
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

    /// Returns the members whose last turn failed.
    pub(super) fn failed(&self) -> Vec<SeatName> {
        let last = self.last_turns().into_iter();
        last.filter(|(_, ok)| !ok)
            .map(|(seat, _)| seat.clone())
            .collect()
    }

    /// Returns the members that answered in this round.
    pub(super) fn answered(&self) -> Vec<SeatName> {
        let mut seats: Vec<SeatName> = Vec::new();
        for spoke in self.spoke.iter().filter(|s| s.answered) {
            if !seats.contains(&spoke.seat) {
                seats.push(spoke.seat.clone());
            }
        }
        seats
    }

    /// Returns the number of answers.
    pub(super) fn answers(&self) -> usize {
        self.spoke.iter().filter(|spoke| spoke.answered).count()
    }

    /// Returns the number of members asked for an answer.
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

/// Returns whether a member has answered in these messages.
pub(super) fn any_answer(messages: &[Message]) -> bool {
    messages.iter().any(|m| !m.is_king() && m.is_sound())
}
