//! The user's messages wait, survive, and are answered once.

use super::bench::*;
use kd_core::event::Outcome;
use kd_core::{Delivery, Event, Message, Op};
use std::collections::BTreeMap;

fn bench(history: Vec<Message>, kept: Vec<Delivery>) -> Bench {
    Bench::new(Setup {
        auto: Some(0),
        history,
        queue: Some(kept),
        ..Setup::default()
    })
}

/// Plays the first `n` steps of a session. Returns the bench, and whether these were all steps.
fn live(n: usize, interrupts: usize) -> (Bench, bool) {
    let mut bench = bench(Vec::new(), Vec::new());
    let steps: &[fn(&mut Bench)] = &[
        |b| b.say("one"),
        |b| b.text("codex", "half"),
        |b| b.answer("claude", "claude on one"),
        |b| b.say("two"),
        |b| b.say("@cursor three"),
        |b| b.answer("codex", "codex on one"),
        |b| b.answer("cursor", "cursor on one"),
        |b| b.answer("cursor", "cursor on two"),
        |b| b.answer("claude", "claude on two"),
        |b| b.text("codex", "half of"),
        |b| b.answer("codex", "codex on two"),
        |b| b.answer("cursor", "cursor on three"),
    ];
    for step in steps.iter().take(n) {
        step(&mut bench);
    }
    for _ in 0..interrupts {
        bench.op(Op::Interrupt);
    }
    (bench, n >= steps.len())
}

/// Counts how often each member answered each of the user's messages, by delivery id.
fn answers(history: &[Message]) -> BTreeMap<(String, String), usize> {
    let mut answers = BTreeMap::new();
    for message in history.iter().filter(|m| !m.is_king()) {
        let id = message
            .provenance
            .delivery_id
            .clone()
            .expect("a reply is tied");
        let king = history
            .iter()
            .find(|m| m.is_king() && m.provenance.delivery_id.as_ref() == Some(&id))
            .expect("to a message of the king");
        *answers
            .entry((king.body.to_string(), message.from.clone()))
            .or_default() += 1;
    }
    answers
}

#[test]
fn killed_after_any_step_nothing_is_lost_and_nothing_is_answered_twice() {
    for n in 0.. {
        let (killed, last) = live(n, 0);
        let (history, kept) = (killed.council.history().to_vec(), killed.kept.clone());
        let mut again = bench(history, kept);
        again.op(Op::Resume);
        again.answer_all();
        assert!(
            again.council.is_idle() && again.kept.is_empty(),
            "after step {n}"
        );
        let said: Vec<&str> = (again.council.history().iter())
            .filter(|m| m.is_king())
            .map(|m| m.body.as_str())
            .collect();
        let all = ["one", "two", "@cursor three"];
        let count = match n {
            0 => 0,
            1..4 => 1,
            4 => 2,
            _ => 3,
        };
        assert_eq!(said, all[..count], "after step {n}");
        let mut wanted = BTreeMap::new();
        for body in &all[..count] {
            for name in ["claude", "codex", "cursor"] {
                if *body != "@cursor three" || name == "cursor" {
                    wanted.insert(((*body).to_owned(), name.to_owned()), 1);
                }
            }
        }
        assert_eq!(answers(again.council.history()), wanted, "after step {n}");
        again.op(Op::Resume);
        assert!(
            again.speaking().is_empty(),
            "what was left is taken up once"
        );
        if last {
            break;
        }
    }
}

/// Ends the cancelled turns.
fn let_go(bench: &mut Bench) {
    for turn in bench.open.clone() {
        let failure = kd_core::Failure::new(kd_core::FailureKind::Cancelled, "stopped");
        bench.open.retain(|t| *t != turn);
        bench.feed(kd_core::Input::Failed { turn, failure });
    }
}

#[test]
fn stopped_twice_after_any_step_nobody_is_asked_before_the_king_speaks() {
    for n in 0.. {
        let (mut bench, last) = live(n, 2);
        let asked = bench.asked.len();
        let_go(&mut bench);
        assert_eq!(bench.asked.len(), asked, "after step {n}");
        assert!(
            bench.council.is_idle() && bench.kept.is_empty(),
            "after step {n}"
        );
        bench.op(Op::Resume);
        assert_eq!(
            bench.asked.len(),
            asked,
            "the king stopped it: nothing is taken up"
        );
        bench.say("go on");
        assert_eq!(bench.answer_all().len(), 3, "after step {n}");
        assert_eq!(bench.yields().last(), Some(&Outcome::Complete));
        if last {
            break;
        }
    }
}

#[test]
fn stopped_once_after_any_step_what_waits_is_asked_and_nothing_else() {
    for n in 0.. {
        let (mut bench, last) = live(n, 1);
        let waits = (bench.kept.iter())
            .filter(|d| d.asked.is_none())
            .map(|d| d.body.clone())
            .collect::<Vec<_>>();
        let before = bench.council.history().len();
        let_go(&mut bench);
        bench.answer_all();
        let said = bench.council.history()[before..].iter();
        let said: Vec<&str> = said.filter(|m| m.is_king()).map(|m| &*m.body).collect();
        assert_eq!(said, waits, "after step {n}");
        assert!(bench.council.is_idle() && bench.kept.is_empty(), "{n}");
        for words in &waits {
            let theirs = answers(bench.council.history());
            let asked = theirs.keys().filter(|(body, _)| body == words).count();
            assert_eq!(asked, if words.starts_with('@') { 1 } else { 3 }, "{words}");
        }
        if last {
            break;
        }
    }
}

#[test]
fn it_is_told_to_wait_only_when_it_is_kept_and_a_disk_that_fails_is_told_too() {
    let mut bench = bench(Vec::new(), Vec::new());
    bench.say("one");
    let queued = |b: &Bench| {
        b.events
            .iter()
            .filter(|e| matches!(e, Event::SayQueued { .. }))
            .count()
    };
    assert_eq!(queued(&bench), 0, "it went straight on its way");
    bench.say("two");
    assert_eq!(queued(&bench), 1);
    let id = bench.kept.last().unwrap().id.clone();
    let why = "disk full".to_owned();
    bench.feed(kd_core::Input::KeepFailed { id, why });
    assert_eq!(queued(&bench), 1, "told once");
    assert!(bench.notices()[0].contains("disk full"));
}

#[test]
fn a_close_leaves_what_waits_for_the_next_session() {
    let mut first = bench(Vec::new(), Vec::new());
    first.say("one");
    first.say("two");
    first.op(Op::Close);
    assert_eq!(first.answer_all().len(), 3, "who speaks may end");
    assert!(first.council.is_idle());
    assert_eq!(first.kept.len(), 1);
    assert!(first.notices()[0].contains("1 of your messages still waits"));
    let mut second = bench(first.council.history().to_vec(), first.kept.clone());
    second.op(Op::Resume);
    assert_eq!(second.answer_all().len(), 3);
    assert!(second.kept.is_empty());
}

#[test]
fn members_who_are_gone_are_told_of() {
    let left = Delivery {
        id: "0".repeat(32),
        body: "@gemini still there?".into(),
        to: kd_core::Address::Seats(vec![seat("gemini")]),
        asked: None,
    };
    let mut bench = bench(Vec::new(), vec![left]);
    bench.op(Op::Resume);
    assert!(bench.kept.is_empty() && bench.speaking().is_empty());
    assert!(bench.notices()[0].contains("its members are gone: @gemini still there?"));
}

/// Lets the oldest held draft fail.
fn no_space(bench: &mut Bench) {
    let turn = bench.held.remove(0).turn;
    let why = "no space left".to_owned();
    bench.feed(kd_core::Input::SaveFailed { turn, why });
}

fn came_back(bench: &Bench) -> Vec<&str> {
    let back = bench.events.iter().filter_map(|e| match e {
        Event::SayTakenBack { body, .. } => Some(body.as_str()),
        _ => None,
    });
    back.collect()
}

#[test]
fn a_waiting_message_that_cannot_be_written_comes_back_before_those_behind_it() {
    let mut bench = bench(Vec::new(), Vec::new());
    bench.say("one");
    bench.say("two");
    bench.say("three");
    bench.answer("claude", "x");
    bench.answer("codex", "y");
    bench.hold = true;
    bench.answer("cursor", "z");
    bench.write_held();
    no_space(&mut bench);
    // The newest comes first: each is put before what is in the input.
    assert_eq!(came_back(&bench), ["three", "two"]);
    assert!(bench.council.is_idle() && bench.kept.is_empty() && bench.held.is_empty());
    let view = bench
        .events
        .iter()
        .fold(kd_core::view::View::default(), |mut view, event| {
            view.fold(event);
            view
        });
    assert!(view.waiting.is_empty(), "{:?}", view.waiting);
    bench.hold = false;
    bench.say("two");
    assert_eq!(
        bench.speaking().len(),
        3,
        "the user is asked for nothing else"
    );
}

#[test]
fn a_message_that_cannot_be_written_comes_back_though_another_follows_it() {
    let mut bench = bench(Vec::new(), Vec::new());
    bench.hold = true;
    bench.say("one");
    bench.say("two");
    no_space(&mut bench);
    assert_eq!(came_back(&bench), ["two", "one"]);
    assert!(bench.council.is_idle() && bench.kept.is_empty());
}

#[test]
fn while_leaving_a_waiting_message_that_cannot_be_written_stays_for_the_next_session() {
    let mut bench = bench(Vec::new(), Vec::new());
    bench.say("one");
    bench.say("two");
    bench.answer("claude", "x");
    bench.answer("codex", "y");
    bench.hold = true;
    bench.answer("cursor", "z");
    bench.write_held();
    bench.op(Op::Close);
    no_space(&mut bench);
    assert_eq!(came_back(&bench), [""; 0]);
    assert_eq!(bench.kept.len(), 1);
    assert!(bench.notices()[0].contains("1 of your messages still waits"));
}
