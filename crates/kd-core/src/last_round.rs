//! The newest round of a thread, according to its log.
//!
//! Input: logged records, and the number of the user's newest message. Output: how the message is answered, who was
//! asked, and whether the round has ended. Messages alone do not show this: a debate or a deliberation chooses its
//! members and keeps most replies in the log, and some protocols do not ask every member.

use crate::event::{Event, Outcome, Record};
use crate::failure::FailureKind;
use crate::ids::{SeatName, TurnId};
use crate::message::{Draft, Message};

/// Front matter of a user's message that is not for a council: `asked_with: think`.
const ASKED_WITH: &str = "asked_with";

/// The kind of round that a message of the user starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundKind {
    /// The members answer, then the chair: `kd ask`, a message of a chat.
    #[default]
    Council,
    /// A debate: `kd think`, `/think`.
    Debate,
    /// A deliberation: `kd deliberate`, `/deliberate`.
    Deliberation,
    /// A review: `kd review`.
    Review,
    /// By one member that calls the tools of a client, advised by the others: `kd serve`.
    Acting,
}

impl RoundKind {
    /// Returns the command for it.
    pub fn command(self) -> &'static str {
        match self {
            RoundKind::Council => "ask",
            RoundKind::Debate => "think",
            RoundKind::Deliberation => "deliberate",
            RoundKind::Review => "review",
            RoundKind::Acting => "serve",
        }
    }

    /// Reads the marker of a user's message. Older versions wrote none.
    pub fn of(message: &Message) -> Self {
        let all = [
            RoundKind::Debate,
            RoundKind::Deliberation,
            RoundKind::Review,
            RoundKind::Acting,
        ];
        let marked = message.extra.get(ASKED_WITH);
        let marked = marked.and_then(|word| all.into_iter().find(|k| k.command() == word));
        marked.unwrap_or_default()
    }

    /// Adds the marker to a user's message.
    pub(crate) fn mark(self, draft: &mut Draft) {
        let word = self.command().to_owned();
        draft.extra.insert(ASKED_WITH.to_owned(), word);
    }
}

/// The end of a turn, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnSeen {
    /// Not finished.
    Open,
    /// Finished with an answer.
    Finished,
    /// Ended without an answer.
    Failed(FailureKind),
}

/// The newest round in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastRound {
    /// The kind of round that answers the message.
    pub kind: RoundKind,
    /// All members asked, in the order of their first turns, each with its last turn.
    pub asked: Vec<(SeatName, TurnId, TurnSeen)>,
    /// The outcome of the round; `None` if its end is not recorded.
    pub outcome: Option<Outcome>,
    /// The member that puts the answer into a JSON schema; `None` if nobody does now.
    pub formatting: Option<SeatName>,
}

impl LastRound {
    /// Finds the round of message `said` in a log. `None` if the log does not contain it: another program wrote the
    /// message, or the log is missing.
    pub fn of(records: &[Record], said: u32) -> Option<Self> {
        let asks = |record: &Record| {
            matches!(&record.event, Event::MessageAdded { message, .. }
                if message.is_king() && message.seq == said)
        };
        let at = records.iter().rposition(asks)?;
        let Event::MessageAdded { message, .. } = &records[at].event else {
            return None;
        };
        let mut round = Self {
            kind: RoundKind::of(message),
            ..Self::default()
        };
        for record in &records[at + 1..] {
            round.hear(&record.event);
        }
        Some(round)
    }

    /// Returns whether a called member that was never asked counts as done: the protocol had no turn for it.
    pub fn is_whole(&self) -> bool {
        self.outcome.is_some_and(|o| o != Outcome::Interrupted)
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn hear(&mut self, event: &Event) {
        match event {
            // Whoever puts the answer into a JSON schema has answered before.
            Event::TurnQueued { turn, seat, .. } if turn.is_format() => {
                self.formatting = Some(seat.clone());
            }
            Event::TurnFinished { turn, .. } | Event::TurnFailed { turn, .. }
                if turn.is_format() =>
            {
                self.formatting = None;
            }
            Event::TurnQueued { turn, seat, .. } => {
                self.formatting = None;
                // A retry reopens the round.
                self.outcome = None;
                match self.asked.iter_mut().find(|(s, ..)| s == seat) {
                    Some(asked) => (asked.1, asked.2) = (*turn, TurnSeen::Open),
                    None => self.asked.push((seat.clone(), *turn, TurnSeen::Open)),
                }
            }
            Event::TurnFinished { turn, seat, .. } => self.end(*turn, seat, TurnSeen::Finished),
            Event::TurnFailed {
                turn,
                seat,
                failure,
                ..
            } => self.end(*turn, seat, TurnSeen::Failed(failure.kind)),
            Event::PhaseBegan { .. } | Event::DuetEnded { .. } => self.kind = RoundKind::Debate,
            Event::Deliberated { .. } => self.kind = RoundKind::Deliberation,
            Event::Reviewed { .. } => self.kind = RoundKind::Review,
            // Two sessions may share a log: the end of the other's round closes no turn of this one.
            Event::FloorYielded { outcome, .. }
                if !self.asked.iter().any(|(.., seen)| *seen == TurnSeen::Open) =>
            {
                self.outcome = Some(*outcome);
            }
            // These events neither open nor end a turn, and do not tell the kind of the round.
            Event::ThreadOpened { .. }
            | Event::MessageAdded { .. }
            | Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::TurnDelta { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::SeatMuted { .. }
            | Event::ModeSet { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::FloorYielded { .. }
            | Event::CouncilSaid { .. }
            | Event::Promised { .. }
            | Event::HeldBack { .. }
            | Event::Noticed { .. } => {}
        }
    }

    fn end(&mut self, turn: TurnId, seat: &SeatName, seen: TurnSeen) {
        let open = |(s, id, _): &&mut (SeatName, TurnId, TurnSeen)| s == seat && *id == turn;
        if let Some(asked) = self.asked.iter_mut().find(open) {
            asked.2 = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn records(events: &[Value]) -> Vec<Record> {
        let record = |(seq, event): (usize, &Value)| {
            let mut record =
                json!({"v": 1, "seq": seq, "ts": "2026-01-01T00:00:00Z", "thread": "council-0001"});
            let fields = event.as_object().unwrap().clone();
            record.as_object_mut().unwrap().extend(fields);
            serde_json::from_value(record).unwrap()
        };
        events.iter().enumerate().map(record).collect()
    }

    fn king(seq: u32) -> Value {
        json!({"event": "message_added", "turn": null, "message": {"seq": seq, "from": "king", "to": "all",
            "at": "2026-01-01T00:00:00Z", "status": null, "refs": [], "provenance": {}, "extra": {}, "body": "Why?"}})
    }

    fn queued(turn: u64, seat: &str) -> Value {
        json!({"event": "turn_queued", "turn": turn, "seat": seat, "purpose": "answer"})
    }

    fn finished(turn: u64, seat: &str) -> Value {
        json!({"event": "turn_finished", "turn": turn, "seat": seat, "usage": null})
    }

    fn yielded() -> Value {
        json!({"event": "floor_yielded", "outcome": "complete", "usage": {"input_tokens": 0, "output_tokens": 0}})
    }

    #[test]
    fn only_what_follows_the_message_counts() {
        let log = records(&[
            king(1),
            queued(1, "ann"),
            finished(1, "ann"),
            yielded(),
            king(3),
            queued(2, "bob"),
        ]);
        assert_eq!(LastRound::of(&log, 2), None);
        let round = LastRound::of(&log, 3).unwrap();
        assert_eq!((round.asked.len(), round.outcome), (1, None));
    }

    #[test]
    fn a_member_that_cannot_write_json_has_answered() {
        let turn = (1u64 << 31) + 1;
        let format =
            json!({"event": "turn_queued", "turn": turn, "seat": "ann", "purpose": "format"});
        let failed = json!({"event": "turn_failed", "turn": turn, "seat": "ann", "message": null,
            "failure": {"kind": "decode", "message": "no JSON"}});
        let log = records(&[
            king(1),
            queued(1, "ann"),
            finished(1, "ann"),
            format,
            failed,
            yielded(),
        ]);
        let round = LastRound::of(&log, 1).unwrap();
        let ann = SeatName::new("ann").unwrap();
        let asked = vec![(ann, TurnId::new(1), TurnSeen::Finished)];
        assert_eq!(
            (&round.asked, round.outcome),
            (&asked, Some(Outcome::Complete))
        );
        assert_eq!(round.formatting, None);
        // While it does, the round has not ended.
        let round = LastRound::of(&log[..4], 1).unwrap();
        assert_eq!((&round.asked, round.outcome), (&asked, None));
        assert_eq!(round.formatting, Some(asked[0].0.clone()));
    }

    #[test]
    fn the_end_of_another_round_does_not_end_this_one_and_a_retry_opens_it_again() {
        let mut events = vec![king(1), queued(1, "ann"), yielded()];
        assert_eq!(LastRound::of(&records(&events), 1).unwrap().outcome, None);
        events.extend([finished(1, "ann"), yielded()]);
        assert!(LastRound::of(&records(&events), 1).unwrap().is_whole());
        events.push(queued(1, "ann"));
        assert!(!LastRound::of(&records(&events), 1).unwrap().is_whole());
    }
}
