//! Failing turns, failing disks and interruptions by the user.

use super::bench::*;
use kd_core::event::Outcome;
use kd_core::machine::Input;
use kd_core::message::Status;
use kd_core::{Budget, Delta, Event, FailureKind, Op, TurnId};

fn failures(bench: &Bench) -> Vec<(String, FailureKind, Option<u32>)> {
    let failed = bench.events.iter().filter_map(|e| match e {
        Event::TurnFailed {
            seat,
            failure,
            message,
            ..
        } => Some((seat.to_string(), failure.kind, *message)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_failed_turn_keeps_what_came_and_never_enters_a_prompt() {
    let mut bench = Bench::new(Setup {
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("Why?");
    bench.text("claude", "Half an ans");
    bench.fail("claude", FailureKind::Timeout);
    bench.fail("codex", FailureKind::Auth);
    bench.answer("cursor", "Whole.");
    assert_eq!(bench.yields(), [Outcome::Partial]);
    let [_, claude, codex, _] = bench.drafts.as_slice() else {
        panic!("four messages");
    };
    assert_eq!(
        (claude.body.as_str(), claude.status),
        ("Half an ans", Some(Status::Timeout))
    );
    assert_eq!(
        (
            claude.extra["failure"].as_str(),
            claude.extra["reason"].as_str()
        ),
        ("timeout", "it was timeout")
    );
    assert_eq!(
        (codex.body.as_str(), codex.status),
        ("*Error: it was auth*", Some(Status::Error))
    );
    bench.say("And?");
    let prompt = bench.prompt("claude");
    assert!(
        prompt.contains("cursor: Whole.") && !prompt.contains("Half") && !prompt.contains("*Error"),
        "{prompt}"
    );
}

#[test]
fn nobody_answering_is_a_failure_and_nothing_follows() {
    let mut bench = Bench::new(Setup {
        conclude: true,
        chair: Some("chair"),
        ..Setup::default()
    });
    bench.say("@all Why?");
    for name in ["claude", "codex", "cursor"] {
        bench.fail(name, FailureKind::Missing);
    }
    assert_eq!(bench.yields(), [Outcome::Failed]);
    assert_eq!(bench.asked.len(), 3);
}

#[test]
fn an_empty_answer_is_a_failure() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.answer("claude", " \u{1b}[0m\n ");
    assert_eq!(
        failures(&bench),
        [("claude".into(), FailureKind::Decode, Some(2))]
    );
    assert_eq!(bench.drafts[1].body, "*Error: empty response*");
}

#[test]
fn an_endless_answer_is_cut_and_stopped() {
    let limits = Budget {
        text_bytes_max: 10,
        ..Budget::default()
    };
    let mut bench = Bench::new(Setup {
        limits,
        ..Setup::default()
    });
    bench.say("Why?");
    let turn = bench.turn("claude");
    bench.text("claude", "12345678");
    bench.text("claude", "90 and on");
    bench.text("claude", "and on");
    bench.fail("claude", FailureKind::Cancelled);
    assert_eq!(bench.cancelled, [turn]);
    assert_eq!(
        failures(&bench),
        [("claude".into(), FailureKind::Decode, Some(2))]
    );
    assert_eq!(bench.drafts[1].body, "12345678");
}

#[test]
fn an_interrupt_stops_all_and_asks_what_waited() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.answer("claude", "So.");
    bench.text("codex", "I was just");
    bench.say("no, do that instead");
    bench.op(Op::Interrupt);
    assert_eq!(bench.cancelled.len(), 2);
    assert_eq!(bench.asked.len(), 3, "not before the turns have ended");
    bench.fail("codex", FailureKind::Crashed);
    bench.answer("cursor", "Too late to stop me.");
    assert_eq!(bench.yields(), [Outcome::Interrupted]);
    assert_eq!(
        failures(&bench),
        [("codex".into(), FailureKind::Cancelled, Some(3))]
    );
    assert_eq!(
        bench.drafts[2].body,
        "I was just\n\n*[Interrupted — response may be incomplete]*"
    );
    assert_eq!(bench.drafts[2].status, Some(Status::Interrupted));
    assert_eq!(bench.speaking(), ["claude", "codex", "cursor"]);
    let prompt = bench.prompt("claude");
    assert!(prompt.contains("codex: I was just\n\n*[Interrupted"));
    assert!(prompt.contains("king: no, do that instead"));
}

/// Returns the waiting messages that went back to the user, in order.
fn taken_back(bench: &Bench) -> Vec<&str> {
    let back = bench.events.iter().filter_map(|e| match e {
        Event::SayTakenBack { body, .. } => Some(body.as_str()),
        _ => None,
    });
    back.collect()
}

#[test]
fn a_second_interrupt_takes_back_what_waits() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.say("first thought");
    bench.say("second thought");
    bench.op(Op::Interrupt);
    bench.op(Op::Interrupt);
    for name in ["claude", "codex", "cursor"] {
        bench.fail(name, FailureKind::Cancelled);
    }
    assert_eq!(taken_back(&bench), ["second thought", "first thought"]);
    assert!(bench.speaking().is_empty());
    assert_eq!(bench.drafts.iter().filter(|d| d.turn.is_none()).count(), 1);
    bench.say("Go on");
    assert_eq!(bench.speaking().len(), 3);
    let prompt = bench.prompt("claude");
    assert!(!prompt.contains("thought") && !prompt.contains("Interrupted"));
}

#[test]
fn what_waits_is_taken_back_without_stopping_anybody() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.say("first thought");
    bench.say("second thought");
    bench.op(Op::TakeBack);
    assert_eq!(taken_back(&bench), ["second thought", "first thought"]);
    assert_eq!(bench.speaking().len(), 3);
    // Stopped after it, nobody is asked anything.
    bench.op(Op::Interrupt);
    for name in ["claude", "codex", "cursor"] {
        bench.fail(name, FailureKind::Cancelled);
    }
    assert!(bench.speaking().is_empty());
    assert_eq!(bench.drafts.iter().filter(|d| d.turn.is_none()).count(), 1);
    assert_eq!(bench.yields(), [Outcome::Interrupted]);
}

#[test]
fn an_interrupt_that_is_over_does_not_make_the_next_one_the_second() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.op(Op::Interrupt);
    for name in ["claude", "codex", "cursor"] {
        bench.fail(name, FailureKind::Cancelled);
    }
    bench.op(Op::Retry { seat: None });
    bench.say("and this");
    bench.op(Op::Interrupt);
    for name in ["claude", "codex", "cursor"] {
        bench.fail(name, FailureKind::Cancelled);
    }
    let back = |e: &Event| matches!(e, Event::SayTakenBack { .. });
    assert!(!bench.events.iter().any(back));
    assert_eq!(bench.speaking(), ["claude", "codex", "cursor"]);
    assert!(bench.prompt("claude").contains("and this"));
}

#[test]
fn an_interrupt_before_the_question_is_on_disk_counts() {
    let mut bench = Bench::new(Setup::default());
    bench.hold = true;
    bench.say("Why?");
    bench.op(Op::Interrupt);
    bench.write_held();
    assert_eq!(
        (bench.yields(), bench.asked.len()),
        (vec![Outcome::Interrupted], 0)
    );
}

#[test]
fn one_seat_can_be_stopped() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.op(Op::Stop {
        seat: seat("codex"),
    });
    assert_eq!(bench.cancelled, [bench.turn("codex")]);
    bench.fail("codex", FailureKind::Cancelled);
    assert_eq!(bench.drafts[1].body, "*Interrupted*");
    bench.answer("claude", "a");
    bench.answer("cursor", "b");
    assert_eq!(bench.yields(), [Outcome::Partial]);
}

#[test]
fn a_full_disk_ends_turns_and_hangs_nothing() {
    let mut bench = Bench::new(Setup {
        members: &["claude"],
        ..Setup::default()
    });
    bench.hold = true;
    bench.say("Why?");
    let why = "no space left".to_owned();
    bench.feed(Input::SaveFailed {
        turn: None,
        why: why.clone(),
    });
    assert_eq!(bench.yields(), [Outcome::Failed]);
    bench.held.clear();
    bench.say("Again?");
    bench.write_held();
    let turn = bench.turn("claude");
    bench.answer("claude", "lost");
    bench.feed(Input::SaveFailed {
        turn: Some(turn),
        why,
    });
    assert_eq!(
        failures(&bench),
        [("claude".into(), FailureKind::Crashed, None)]
    );
    assert_eq!(bench.yields(), [Outcome::Failed; 2]);
    assert!(bench.council.is_idle());
}

#[test]
fn a_retry_asks_exactly_those_who_failed() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.fail("claude", FailureKind::Crashed);
    bench.answer("codex", "x");
    bench.fail("cursor", FailureKind::Crashed);
    bench.op(Op::Retry {
        seat: Some(seat("codex")),
    });
    assert_eq!(bench.refusals(), ["the last turn of codex did not fail"]);
    bench.op(Op::Retry { seat: None });
    assert_eq!(bench.speaking(), ["claude", "cursor"]);
    bench.answer("claude", "y");
    bench.fail("cursor", FailureKind::Crashed);
    assert_eq!(bench.yields(), [Outcome::Partial; 2]);
    bench.op(Op::Retry { seat: None });
    assert_eq!(bench.answer_all(), ["cursor"]);
    assert_eq!(bench.yields().last(), Some(&Outcome::Complete));
    bench.op(Op::Retry { seat: None });
    assert_eq!(bench.refusals().last(), Some(&"no member failed"));
}

#[test]
fn a_thread_that_was_cut_off_can_be_retried_after_it_is_opened_again() {
    let mut first = Bench::new(Setup::default());
    first.say("Why?");
    first.answer("claude", "x");
    first.fail("codex", FailureKind::Crashed);
    let history = first.council.history().to_vec();
    let mut again = Bench::new(Setup {
        history,
        ..Setup::default()
    });
    again.op(Op::Retry { seat: None });
    assert_eq!(again.speaking(), ["codex", "cursor"]);
}

#[test]
fn what_does_not_belong_here_is_ignored() {
    let mut bench = Bench::new(Setup::default());
    let stray = |bench: &mut Bench| {
        let before = bench.events.len();
        for turn in [TurnId::new(0), TurnId::new(1), TurnId::new(99)] {
            bench.feed(Input::Delta {
                turn,
                delta: Delta::Text { text: "x".into() },
            });
            bench.feed(Input::Delta {
                turn,
                delta: finished(),
            });
            bench.feed(Input::SaveFailed {
                turn: Some(turn),
                why: "x".into(),
            });
            bench.feed(Input::Failed {
                turn,
                failure: kd_core::Failure::new(FailureKind::Crashed, "x"),
            });
        }
        bench.feed(Input::SaveFailed {
            turn: None,
            why: "x".into(),
        });
        bench.feed(Input::Woke {
            timer: kd_core::TimerId::new(3),
        });
        assert_eq!(bench.events.len(), before);
    };
    stray(&mut bench);
    bench.say("Why?");
    bench.answer_all();
    stray(&mut bench);
    assert_eq!(bench.yields(), [Outcome::Complete]);
}
