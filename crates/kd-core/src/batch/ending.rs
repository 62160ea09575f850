//! The result of a question's round: its line, whether the answer may be stored, and the next step. Input: the view of
//! the round when it is over.

use super::row::{Failed, Method, Row, Said, Spending, Status, Verdict};
use crate::deliberation::AnswerKind;
use crate::deliberation::report::Report;
use crate::event::{Outcome, Purpose};
use crate::failure::{Failure, FailureKind};
use crate::message::Message;
use crate::view::{State, Turn, View};
use jiff::Timestamp;
use std::time::Duration;

/// The next step for a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is answered.
    Answered,
    /// It may be answered later, not before this time has passed if a service asked for it.
    Again(Option<Duration>),
    /// Asking again would give the same failure.
    Dead,
    /// Nothing was asked of it, because it was interrupted.
    Unasked,
    /// No member can answer any question: a key, a model or a program is missing.
    NobodyCan,
    /// An answer could not be written to disk, for this reason: the others are not the whole answer.
    Unsaved(String),
}

/// The end of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The line, if the question is not asked again. The batch fills in its id, place and attempts.
    pub row: Row,
    /// Whether the answer may be used for the same question later: everybody answered, and nobody declined.
    pub keep: bool,
    /// What happens next.
    pub next: Next,
    /// Whether a limit refused a request of it.
    pub limited: bool,
}

/// Returns the end of a round.
pub fn ending(view: &View, method: Method, at: Timestamp) -> Ending {
    let failures: Vec<(&Turn, &Failure)> = view
        .turns
        .iter()
        .filter_map(|turn| Some((turn, turn.failure()?)))
        .collect();
    let (answer, by, cut) = answer(view, method);
    let answers = match method {
        Method::Ask => said(view),
        Method::Think => Vec::new(),
        Method::Deliberate => voted(&view.report),
    };
    let is_answered = view.outcome != Some(Outcome::Failed)
        && view.outcome != Some(Outcome::Interrupted)
        && (answer.is_some() || method == Method::Ask && !answers.is_empty());
    let verdict = view.report.verdict.as_ref().map(|verdict| Verdict {
        outcome: verdict.outcome.word().to_owned(),
        winner: verdict.winner.clone(),
        confidence: verdict.confidence,
    });
    let usage = view.yielded().map(|(_, usage)| usage).unwrap_or_default();
    let mut row = Row {
        answer,
        cut,
        by,
        answers,
        verdict,
        warranty: view.report.promised.as_deref().cloned(),
        outcome: view.outcome,
        failures: failures
            .iter()
            .map(|(turn, failure)| failed(turn, failure))
            .collect(),
        thread: view.thread.as_ref().map(|id| id.0.clone()),
        usage: Spending::from(&usage),
        ..Row::failed(method, "", at)
    };
    let kinds: Vec<FailureKind> = failures.iter().map(|(_, failure)| failure.kind).collect();
    let next = match &view.unsaved {
        Some(why) => Next::Unsaved(why.clone()),
        None if is_answered => Next::Answered,
        None => unanswered(view.outcome, &failures),
    };
    match next {
        Next::Answered => {
            row.status = Status::Answered;
            row.reason = None;
        }
        _ => row.reason = Some(reason(&row)),
    }
    Ending {
        keep: next == Next::Answered && is_kept(view, &row),
        limited: kinds.contains(&FailureKind::Limit),
        row,
        next,
    }
}

/// Returns the answer, its author, and what cut it.
fn answer(view: &View, method: Method) -> (Option<String>, Option<String>, Option<String>) {
    let of = |turn: &Turn| {
        let (text, by) = (turn.body().to_owned(), turn.seat.to_string());
        (Some(text), Some(by), cut(turn))
    };
    match method {
        Method::Ask => {
            let mut done = view.turns.iter().filter(|turn| is_said(turn));
            if let Some(turn) = done.clone().rfind(|turn| turn.purpose == Purpose::Conclude) {
                return of(turn);
            }
            match (done.next(), done.next()) {
                (Some(only), None) => of(only),
                _ => (None, None, None),
            }
        }
        Method::Think => view.answer().map_or((None, None, None), of),
        Method::Deliberate => match &view.report.verdict {
            Some(verdict) => (
                Some(verdict.answer.clone()),
                verdict.by.as_ref().map(ToString::to_string),
                None,
            ),
            None => (None, None, None),
        },
    }
}

/// Returns what cut an answer.
fn cut(turn: &Turn) -> Option<String> {
    let cut = turn.message.as_deref().and_then(Message::cut);
    cut.map(str::to_owned)
}

fn is_said(turn: &Turn) -> bool {
    turn.state == State::Done && !turn.is_silent()
}

/// Returns the members' answers.
fn said(view: &View) -> Vec<Said> {
    let turns = view.turns.iter();
    turns
        .filter(|turn| turn.purpose == Purpose::Answer && is_said(turn))
        .map(|turn| Said {
            member: turn.seat.to_string(),
            text: turn.body().to_owned(),
            cut: cut(turn),
        })
        .collect()
}

/// Returns what each member of a deliberation stands for, if answers can be compared: an option, a number.
fn voted(report: &Report) -> Vec<Said> {
    let is_keyed = report.answer_kind().is_some_and(AnswerKind::is_keyed);
    let Some(counted) = report.count().filter(|_| is_keyed) else {
        return Vec::new();
    };
    let firsts = counted.firsts.iter();
    firsts
        .filter_map(|first| {
            Some(Said {
                member: first.seat.to_string(),
                text: first.names(&counted.candidates)?,
                cut: None,
            })
        })
        .collect()
}

fn failed(turn: &Turn, failure: &Failure) -> Failed {
    Failed {
        member: turn.seat.to_string(),
        kind: failure.kind.as_str().to_owned(),
        message: failure.message.clone(),
    }
}

/// Returns the next step for a question that nobody answered.
fn unanswered(outcome: Option<Outcome>, failures: &[(&Turn, &Failure)]) -> Next {
    let all = |is: fn(FailureKind) -> bool| {
        !failures.is_empty() && failures.iter().all(|(_, failure)| is(failure.kind))
    };
    if outcome == Some(Outcome::Interrupted) || all(|kind| kind == FailureKind::Cancelled) {
        return Next::Unasked;
    }
    if all(|kind| matches!(kind, FailureKind::Auth | FailureKind::Missing)) {
        return Next::NobodyCan;
    }
    let may_pass = |kind: FailureKind| {
        matches!(
            kind,
            FailureKind::RateLimit
                | FailureKind::Overloaded
                | FailureKind::Timeout
                | FailureKind::Decode
                | FailureKind::Crashed
                | FailureKind::Limit
        )
    };
    if failures.iter().any(|(_, failure)| may_pass(failure.kind)) {
        let waits = failures
            .iter()
            .filter_map(|(_, failure)| failure.retry_after);
        return Next::Again(waits.max());
    }
    Next::Dead
}

/// Returns why there is no answer, in one line.
fn reason(row: &Row) -> String {
    let mut causes: Vec<(&str, Vec<&str>)> = Vec::new();
    for Failed {
        member, message, ..
    } in &row.failures
    {
        match causes.iter_mut().find(|(cause, _)| cause == message) {
            Some((_, members)) if members.contains(&member.as_str()) => {}
            Some((_, members)) => members.push(member),
            None => causes.push((message, vec![member])),
        }
    }
    let lines = causes.iter();
    let lines = lines.map(|(cause, members)| format!("{}: {cause}", members.join(", ")));
    match causes.is_empty() {
        true => "no member gave an answer".to_owned(),
        false => lines.collect::<Vec<_>>().join("; "),
    }
}

fn is_kept(view: &View, row: &Row) -> bool {
    let declines = |text: &str| text.trim().is_empty() || kd_reading::declines(text);
    let decided = view.report.verdict.as_ref().is_none_or(|verdict| {
        use kd_vote::Outcome as Form;
        !matches!(
            verdict.outcome,
            Form::NoQuorum | Form::Degraded | Form::CutByBudget
        )
    });
    view.outcome == Some(Outcome::Complete)
        && row.failures.is_empty()
        && decided
        && !row.answer.as_deref().is_some_and(declines)
        && !row.answers.iter().any(|said| declines(&said.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SeatName;

    fn turn(name: &str, state: State, text: &str) -> Turn {
        let seat = SeatName::new(name).unwrap();
        let mut turn = Turn::queued(None, seat, Purpose::Answer, None);
        turn.text = text.to_owned();
        turn.state = state;
        turn
    }

    fn view(outcome: Outcome, turns: Vec<Turn>) -> View {
        let mut view = View::default();
        view.outcome = Some(outcome);
        view.turns = turns;
        view
    }

    fn of(outcome: Outcome, turns: Vec<Turn>) -> Ending {
        ending(&view(outcome, turns), Method::Ask, Timestamp::UNIX_EPOCH)
    }

    fn fails(name: &str, kind: FailureKind) -> Turn {
        turn(name, State::Failed(Failure::new(kind, "it broke")), "")
    }

    #[test]
    fn an_answer_is_kept_only_if_everybody_gave_one() {
        let whole = of(
            Outcome::Complete,
            vec![
                turn("ada", State::Done, "42"),
                turn("bob", State::Done, "41"),
            ],
        );
        assert!(whole.keep && whole.next == Next::Answered);
        assert_eq!((whole.row.answer, whole.row.answers.len()), (None, 2));
        let alone = of(Outcome::Complete, vec![turn("ada", State::Done, "42")]);
        assert_eq!(alone.row.answer.as_deref(), Some("42"));
        let partial = of(
            Outcome::Partial,
            vec![
                turn("ada", State::Done, "42"),
                fails("bob", FailureKind::Crashed),
            ],
        );
        assert!(!partial.keep && partial.next == Next::Answered);
        let declined = of(
            Outcome::Complete,
            vec![turn(
                "ada",
                State::Done,
                "I'm sorry, but I can't help with that.",
            )],
        );
        assert!(!declined.keep && declined.next == Next::Answered);
    }

    #[test]
    fn an_answer_that_could_not_be_written_is_missing() {
        let turns = vec![
            turn("ada", State::Done, "42"),
            fails("bob", FailureKind::Crashed),
        ];
        let mut view = view(Outcome::Partial, turns);
        view.unsaved = Some("no space".into());
        let ending = ending(&view, Method::Ask, Timestamp::UNIX_EPOCH);
        assert_eq!(ending.next, Next::Unsaved("no space".into()));
        assert!(!ending.keep && ending.row.status == Status::Failed);
    }

    #[test]
    fn what_failed_decides_what_happens_next() {
        use FailureKind as Kind;
        for (kinds, next) in [
            (vec![Kind::Overloaded, Kind::Auth], Next::Again(None)),
            (vec![Kind::Timeout], Next::Again(None)),
            (vec![Kind::Auth, Kind::Missing], Next::NobodyCan),
            (vec![Kind::Invalid], Next::Dead),
            (vec![Kind::Refused, Kind::Auth], Next::Dead),
            (vec![Kind::Cancelled], Next::Unasked),
            (vec![], Next::Dead),
        ] {
            let turns = kinds.iter().map(|kind| fails("ada", *kind)).collect();
            let ending = of(Outcome::Failed, turns);
            assert_eq!(ending.next, next, "{kinds:?}");
            assert!(!ending.keep && ending.row.status == Status::Failed);
            assert!(ending.row.reason.is_some());
        }
        // Equal causes are reported once, with all names.
        let mut other = fails("cyd", Kind::Auth);
        if let State::Failed(failure) = &mut other.state {
            failure.message = "no key".into();
        }
        let (ada, bob) = (fails("ada", Kind::Auth), fails("bob", Kind::Auth));
        let reason = of(Outcome::Failed, vec![ada, other, bob]).row.reason;
        assert_eq!(reason.as_deref(), Some("ada, bob: it broke; cyd: no key"));
        let mut slow = fails("ada", Kind::RateLimit);
        if let State::Failed(failure) = &mut slow.state {
            failure.retry_after = Some(Duration::from_secs(7));
        }
        let ending = of(Outcome::Failed, vec![slow]);
        assert_eq!(ending.next, Next::Again(Some(Duration::from_secs(7))));
        let limited = of(Outcome::Failed, vec![fails("ada", Kind::Limit)]);
        assert!(limited.limited);
    }
}
