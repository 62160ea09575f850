//! The fold of events shared by all outputs: one round, from the user's message to its end.

use crate::exit::Failures;
use jiff::Timestamp;
use kd_core::event::{DuetEnd, DuetPhase, Outcome, Purpose};
use kd_core::view::{Content, Growing, State, View};
use kd_core::{
    Delta, Event, Failure, FailureKind, Message, Record, SeatName, ThreadId, TurnId, Usage,
};
use std::time::Duration;

/// The known state of the round.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Round {
    /// Settings of the folder that are held back.
    pub(crate) held_back: Vec<String>,
    /// The thread, once a record named it.
    pub(crate) thread: Option<ThreadId>,
    /// Members in order; their index determines color and glyph.
    pub(crate) members: Vec<SeatName>,
    /// The user's message that started it.
    pub(crate) question: Option<Message>,
    /// Turns in the order they were queued.
    pub(crate) turns: Vec<Turn>,
    /// Messages between the members of a duet.
    pub(crate) whispers: Vec<Whisper>,
    /// How the exchange of a duet ended.
    pub(crate) duet: Option<Exchanged>,
    /// How it ended and its usage, once it has.
    pub(crate) yielded: Option<(Outcome, Usage)>,
}

/// A message between members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Whisper {
    /// The sender.
    pub(crate) from: SeatName,
    /// The recipient.
    pub(crate) to: SeatName,
    /// The words.
    pub(crate) text: String,
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exchanged {
    /// Why it ended.
    pub(crate) why: DuetEnd,
    /// The number of messages.
    pub(crate) messages: u32,
    /// The number of the message that is the answer.
    pub(crate) answer: Option<u32>,
}

/// One turn of a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// Its number.
    pub(crate) id: TurnId,
    /// The member.
    pub(crate) seat: SeatName,
    /// The member's index, from 0; services follow the members.
    pub(crate) place: usize,
    /// To answer or to conclude.
    pub(crate) purpose: Purpose,
    /// Its part in a duet.
    pub(crate) part: Option<DuetPhase>,
    /// What it is doing.
    pub(crate) phase: Phase,
    /// The model's own name.
    pub(crate) model: Option<String>,
    /// The answer so far.
    pub(crate) text: String,
    /// Characters of `text`.
    pub(crate) chars: usize,
    /// Characters of thinking so far.
    pub(crate) thinking_chars: usize,
    /// When it was queued.
    pub(crate) since: Timestamp,
    /// When it ended.
    pub(crate) ended: Option<Timestamp>,
    /// Its message, once on disk.
    pub(crate) message: Option<Message>,
    /// Its usage.
    pub(crate) usage: Option<Usage>,
}

/// What a member is doing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// No output yet.
    Waiting,
    /// Thinking is arriving.
    Thinking,
    /// The agent uses a tool.
    Using(String),
    /// The answer is arriving.
    Writing,
    /// The call failed and will be retried.
    Retrying {
        /// When.
        at: Timestamp,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why.
        failure: Failure,
    },
    /// The complete answer is on disk.
    Done,
    /// It ended without a complete answer.
    Failed(Failure),
}

impl Turn {
    /// Returns whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Failed(_))
    }

    /// Returns the elapsed time.
    pub(crate) fn elapsed(&self, now: Timestamp) -> Duration {
        let until = self.ended.unwrap_or(now);
        Duration::try_from(until.duration_since(self.since)).unwrap_or_default()
    }

    /// Returns whether it is over without text for the user: all of it was for another member.
    pub(crate) fn passed(&self) -> bool {
        self.phase == Phase::Done && self.message.is_none() && self.text.trim().is_empty()
    }

    /// Returns the final text: of the message if there is one, else what was received.
    pub(crate) fn body(&self) -> &str {
        match (&self.message, &self.phase) {
            (Some(message), Phase::Done) => &message.body,
            // The file of a failed turn may contain the error as body; the received text is here.
            _ => &self.text,
        }
    }
}

impl Round {
    /// Folds in a record.
    pub(crate) fn apply(&mut self, record: &Record) {
        self.thread = Some(record.thread.clone());
        match &record.event {
            Event::ThreadOpened { members, .. } => self.members.clone_from(members),
            Event::MessageAdded { message, turn, .. } => self.message(message, *turn),
            Event::TurnQueued {
                turn,
                seat,
                purpose,
                ..
            } => {
                self.yielded = None;
                self.queue(*turn, seat, *purpose, record.ts);
            }
            Event::TurnDelta { turn, delta } => {
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.delta(record.ts, delta);
                }
            }
            Event::TurnFinished { turn, usage, .. } => {
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.phase = Phase::Done;
                    turn.usage = usage.or(turn.usage);
                    turn.ended = Some(record.ts);
                }
            }
            Event::TurnFailed { turn, failure, .. } => {
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.phase = Phase::Failed(failure.clone());
                    turn.ended = Some(record.ts);
                }
            }
            Event::PhaseBegan { turn, phase, .. } => {
                if let Some(turn) = self.turn_mut(*turn) {
                    turn.part = Some(*phase);
                }
            }
            Event::CouncilSaid { from, to, text, .. } => self.whispers.push(Whisper {
                from: from.clone(),
                to: to.clone(),
                text: text.clone().unwrap_or_default(),
            }),
            Event::DuetEnded {
                why,
                exchanged,
                answer,
            } => {
                self.duet = Some(Exchanged {
                    why: *why,
                    messages: *exchanged,
                    answer: *answer,
                });
            }
            Event::FloorYielded { outcome, usage } => self.yielded = Some((*outcome, *usage)),
            // Messages of other processes, or without effect on the answers.
            Event::SayQueued { .. }
            | Event::SayTakenBack { .. }
            | Event::StreamFound { .. }
            | Event::StreamLost { .. }
            | Event::ModeSet { .. }
            | Event::SeatMuted { .. }
            | Event::OpRefused { .. }
            | Event::SaveFailed { .. }
            | Event::Deliberated { .. }
            | Event::Reviewed { .. }
            | Event::HeldBack { .. }
            | Event::Noticed { .. } => {}
        }
    }

    /// Takes over the whole thread, after records were missed: open turns get their text, ended ones their end.
    pub(crate) fn catch_up(&mut self, view: &View) {
        let since = self.question.as_ref().map_or(0, |q| q.seq);
        for panel in &view.panels {
            match &panel.content {
                Content::Turn(growing) => {
                    let Some(id) = growing.turn else { continue };
                    if self.turn(id).is_none() {
                        self.queue(
                            id,
                            &growing.seat,
                            growing.purpose,
                            growing.span.map(|(from, _)| from).unwrap_or_default(),
                        );
                    }
                    if let Some(turn) = self.turn_mut(id) {
                        turn.grown(growing);
                    }
                }
                Content::Message {
                    message,
                    failure,
                    usage,
                    ..
                } if message.seq > since && !message.is_king() => {
                    if let Ok(seat) = SeatName::sender(message.from.as_str()) {
                        self.ended(
                            &seat,
                            &message.body,
                            Some(message),
                            failure.as_ref(),
                            *usage,
                        );
                    }
                }
                Content::Lost {
                    seat,
                    text,
                    failure,
                } => self.ended(seat, text, None, Some(failure), None),
                _ => {}
            }
        }
        self.yielded = view.outcome.map(|outcome| (outcome, view.usage));
    }

    /// Returns a turn by number.
    pub(crate) fn turn(&self, id: TurnId) -> Option<&Turn> {
        self.turns.iter().find(|t| t.id == id)
    }

    /// Returns the turn whose message is the answer of a duet.
    pub(crate) fn answer(&self) -> Option<&Turn> {
        let answer = self.duet?.answer?;
        let is_it = |t: &&Turn| t.message.as_ref().is_some_and(|m| m.seq == answer);
        self.turns.iter().find(is_it)
    }

    /// Returns what the failures have in common.
    pub(crate) fn failures(&self) -> Failures {
        let mut kinds = self.turns.iter().filter_map(|t| match &t.phase {
            Phase::Failed(failure) => Some(failure.kind),
            _ => None,
        });
        if kinds.clone().any(|kind| kind == FailureKind::Limit) {
            return Failures::Limited;
        }
        match kinds.clone().next() {
            Some(_) if kinds.all(|kind| kind == FailureKind::Timeout) => Failures::Late,
            _ => Failures::Other,
        }
    }

    fn turn_mut(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|t| t.id == id)
    }

    fn queue(&mut self, id: TurnId, seat: &SeatName, purpose: Purpose, since: Timestamp) {
        self.turns.push(Turn {
            id,
            seat: seat.clone(),
            place: self.place(seat),
            purpose,
            part: None,
            phase: Phase::Waiting,
            model: None,
            text: String::new(),
            chars: 0,
            thinking_chars: 0,
            since,
            ended: None,
            message: None,
            usage: None,
        });
    }

    /// Ends a member's turn whose end was missed, or adds the whole turn.
    fn ended(
        &mut self,
        seat: &SeatName,
        text: &str,
        message: Option<&Message>,
        failure: Option<&Failure>,
        usage: Option<Usage>,
    ) {
        let known = |t: &Turn| t.message.as_ref().map(|m| m.seq) == message.map(|m| m.seq);
        if self
            .turns
            .iter()
            .any(|t| t.seat == *seat && t.is_over() && known(t))
        {
            return;
        }
        if !self.turns.iter().any(|t| t.seat == *seat && !t.is_over()) {
            let purpose = if self.members.contains(seat) {
                Purpose::Answer
            } else {
                Purpose::Conclude
            };
            // The turn's number is no longer known: count down from the maximum, which real turns never reach.
            let id = TurnId::from(u64::MAX - self.turns.len() as u64);
            self.queue(id, seat, purpose, message.map(|m| m.at).unwrap_or_default());
        }
        let Some(turn) = self
            .turns
            .iter_mut()
            .find(|t| t.seat == *seat && !t.is_over())
        else {
            return;
        };
        turn.phase = match failure {
            Some(failure) => Phase::Failed(failure.clone()),
            None => Phase::Done,
        };
        text.clone_into(&mut turn.text);
        turn.message = message.cloned();
        turn.model = message
            .and_then(|m| m.provenance.model.clone())
            .or(turn.model.take());
        turn.ended = message.map(|m| m.at).or(Some(turn.since));
        turn.usage = usage.or(turn.usage);
    }

    fn place(&self, seat: &SeatName) -> usize {
        self.members
            .iter()
            .position(|m| m == seat)
            .unwrap_or(self.members.len())
    }

    fn message(&mut self, message: &Message, turn: Option<TurnId>) {
        if message.is_king() {
            self.question = Some(message.clone());
        } else if let Some(turn) = turn.and_then(|t| self.turn_mut(t)) {
            if let Some(model) = &message.provenance.model {
                turn.model = Some(model.clone());
            }
            turn.message = Some(message.clone());
        }
    }
}

impl Turn {
    fn grown(&mut self, growing: &Growing) {
        self.text.clone_from(&growing.text);
        self.chars = growing.text.chars().count();
        self.thinking_chars = growing.thinking.chars().count();
        self.model.clone_from(&growing.model);
        self.phase = match &growing.state {
            State::Waiting | State::Started => Phase::Waiting,
            State::Thinking => Phase::Thinking,
            State::Tool { name, .. } => Phase::Using(name.clone()),
            State::Answering | State::Whole(_) => Phase::Writing,
            State::Retrying { attempt, failure } => Phase::Retrying {
                at: growing.span.map(|(_, last)| last).unwrap_or(self.since),
                attempt: *attempt,
                failure: failure.clone(),
            },
        };
    }

    fn delta(&mut self, now: Timestamp, delta: &Delta) {
        match delta {
            Delta::Started { model, .. } => {
                if model.is_some() {
                    self.model.clone_from(model);
                }
            }
            Delta::Text { text } => {
                self.phase = Phase::Writing;
                self.chars += text.chars().count();
                self.text.push_str(text);
            }
            Delta::Thinking { text } => {
                if self.text.is_empty() {
                    self.phase = Phase::Thinking;
                }
                self.thinking_chars += text.chars().count();
            }
            Delta::Tool { name, .. } => self.phase = Phase::Using(name.clone()),
            Delta::Retrying {
                attempt,
                after,
                failure,
            } => {
                self.text.clear();
                self.chars = 0;
                self.thinking_chars = 0;
                self.phase = Phase::Retrying {
                    at: now.checked_add(*after).unwrap_or(now),
                    attempt: *attempt,
                    failure: failure.clone(),
                };
            }
            Delta::Notice { .. } | Delta::Call { .. } => {}
            Delta::Finished { usage, text, .. } => {
                if let Some(text) = text {
                    self.text.clone_from(text);
                    self.chars = text.chars().count();
                }
                self.usage = usage.or(self.usage);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::face::script::Script;

    #[test]
    fn a_retry_voids_what_came() {
        let mut round = Round::default();
        let mut script = Script::open(&["claude"]);
        script.queue(1, "claude");
        script.text(1, "half an ans");
        script.retry(1, 3);
        for record in &script.records {
            round.apply(record);
        }
        assert_eq!(round.turns[0].text, "");
        assert!(matches!(
            round.turns[0].phase,
            Phase::Retrying { attempt: 1, .. }
        ));
        script.text(1, "whole");
        round.apply(script.records.last().expect("just added"));
        assert_eq!(
            (round.turns[0].text.as_str(), &round.turns[0].phase),
            ("whole", &Phase::Writing)
        );
    }

    #[test]
    fn what_was_missed_is_caught_up() {
        let whole = crate::face::script::full_round();
        for missed_from in 2..whole.records.len() {
            for heard_again in [missed_from + 1, whole.records.len()] {
                let mut view = View::default();
                whole.records[..heard_again]
                    .iter()
                    .for_each(|r| view.fold(&r.event));
                let mut round = Round::default();
                whole.records[..missed_from]
                    .iter()
                    .for_each(|r| round.apply(r));
                round.catch_up(&view);
                whole.records[heard_again..]
                    .iter()
                    .for_each(|r| round.apply(r));
                let mut expected = Round::default();
                whole.records.iter().for_each(|r| expected.apply(r));
                assert_eq!(round.yielded.map(|y| y.0), expected.yielded.map(|y| y.0));
                assert_eq!(
                    round.turns.len(),
                    expected.turns.len(),
                    "{missed_from}..{heard_again}"
                );
                for turn in &round.turns {
                    let same = expected
                        .turns
                        .iter()
                        .find(|t| t.seat == turn.seat)
                        .expect("a real turn");
                    assert!(turn.is_over(), "{missed_from}..{heard_again}: {turn:?}");
                    let clean = |turn: &Turn| {
                        kd_core::clean::clean_text(turn.body())
                            .trim_end()
                            .to_owned()
                    };
                    assert_eq!(clean(turn), clean(same), "{missed_from}..{heard_again}");
                }
            }
        }
    }

    fn fold(script: &Script) -> Round {
        let mut round = Round::default();
        script.records.iter().for_each(|r| round.apply(r));
        round
    }

    #[test]
    fn only_timeouts_are_a_timeout() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.fail(1, "a", FailureKind::Timeout);
        assert_eq!(fold(&script).failures(), Failures::Late);
        script.fail(2, "b", FailureKind::Auth);
        assert_eq!(fold(&script).failures(), Failures::Other);
        assert_eq!(Round::default().failures(), Failures::Other);
    }

    #[test]
    fn a_request_that_a_limit_refused_decides_the_code() {
        let mut script = Script::open(&["a", "b"]);
        script.queue(1, "a");
        script.queue(2, "b");
        script.fail(1, "a", FailureKind::Timeout);
        script.fail(2, "b", FailureKind::Limit);
        let limited = fold(&script).failures();
        assert_eq!(limited, Failures::Limited);
        let code = |outcome| Exit::of_round(outcome, limited);
        assert_eq!(code(Outcome::Failed), Exit::Cut);
        assert_eq!(code(Outcome::Partial), Exit::Cut);
        assert_eq!(code(Outcome::Complete), Exit::Done);
    }
}
