//! The chair's conclusion.

use super::bench::*;
use kd_core::event::{Outcome, Purpose};
use kd_core::{Event, FailureKind, Op};

fn bench(chair: Option<&'static str>) -> Bench {
    let mut bench = Bench::new(Setup {
        chair,
        conclude: true,
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("Why?");
    bench
}

fn conclusions(bench: &Bench) -> Vec<String> {
    let asked = bench.events.iter().filter_map(|e| match e {
        Event::TurnQueued {
            seat,
            purpose: Purpose::Conclude,
            ..
        } => Some(seat.to_string()),
        _ => None,
    });
    asked.collect()
}

#[test]
fn the_chair_concludes_from_all_answers() {
    let mut bench = bench(Some("chair"));
    for name in ["codex", "claude", "cursor"] {
        bench.answer(name, &format!("{name}'s view"));
    }
    assert_eq!(bench.speaking(), ["chair"]);
    let prompt = bench.prompt("chair");
    for name in ["codex", "claude", "cursor"] {
        assert!(
            prompt.contains(&format!("\n\n{name}: {name}'s view")),
            "{prompt}"
        );
    }
    assert!(
        prompt.contains("I am chair.") && prompt.contains("at most 5 sentences"),
        "{prompt}"
    );
    bench.answer("chair", "Do it.");
    assert_eq!(bench.yields(), [Outcome::Complete]);
    let last = bench.drafts.last().unwrap();
    assert_eq!(
        (last.from.as_str(), last.extra["purpose"].as_str()),
        ("chair", "conclude")
    );
}

#[test]
fn without_a_chair_the_first_who_answered_concludes() {
    let mut bench = bench(None);
    for name in ["codex", "claude", "cursor"] {
        bench.answer(name, "x");
    }
    assert_eq!(bench.answer_all(), ["codex"]);
    assert!(bench.notices().is_empty());
}

#[test]
fn when_the_chair_fails_somebody_who_answered_stands_in_and_it_is_said() {
    let mut bench = bench(Some("chair"));
    bench.fail("claude", FailureKind::Crashed);
    bench.answer("codex", "x");
    bench.answer("cursor", "y");
    bench.fail("chair", FailureKind::Auth);
    assert_eq!(
        bench.notices(),
        ["chair could not conclude (it was auth): codex concludes instead"]
    );
    assert_eq!(bench.answer_all(), ["codex"]);
    assert_eq!(bench.yields(), [Outcome::Partial], "claude is missing");
    assert_eq!(conclusions(&bench), ["chair", "codex"]);
}

#[test]
fn a_conclusion_that_nobody_can_write_makes_the_round_partial_and_can_be_retried() {
    let mut bench = bench(Some("chair"));
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, "x");
    }
    bench.fail("chair", FailureKind::Auth);
    bench.fail("claude", FailureKind::Auth);
    assert_eq!(bench.yields(), [Outcome::Partial]);
    bench.op(Op::Retry { seat: None });
    assert_eq!(bench.answer_all(), ["chair"]);
    assert_eq!(bench.yields().last(), Some(&Outcome::Complete));
}

#[test]
fn one_answer_needs_no_conclusion() {
    let mut bench = bench(Some("chair"));
    bench.fail("claude", FailureKind::Crashed);
    bench.fail("codex", FailureKind::Crashed);
    bench.answer("cursor", "x");
    assert_eq!(
        bench.notices(),
        ["only cursor answered, so there is nothing to conclude from"]
    );
    assert_eq!(bench.yields(), [Outcome::Partial]);
    bench.say("@codex alone?");
    assert_eq!(bench.answer_all(), ["codex"]);
    assert_eq!(bench.notices().len(), 1);
    assert!(conclusions(&bench).is_empty());
}

#[test]
fn after_a_retry_the_conclusion_is_made_anew() {
    let mut bench = bench(Some("chair"));
    bench.fail("claude", FailureKind::Crashed);
    bench.fail("codex", FailureKind::Crashed);
    bench.answer("cursor", "x");
    bench.op(Op::Retry { seat: None });
    assert_eq!(bench.answer_all(), ["claude", "codex", "chair"]);
    assert_eq!(bench.yields(), [Outcome::Partial, Outcome::Complete]);
}

#[test]
fn an_interrupted_conclusion_is_not_made_by_another() {
    let mut bench = bench(Some("chair"));
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, "x");
    }
    bench.op(Op::Interrupt);
    bench.fail("chair", FailureKind::Cancelled);
    assert_eq!(bench.yields(), [Outcome::Interrupted]);
    assert_eq!(conclusions(&bench), ["chair"]);
}
