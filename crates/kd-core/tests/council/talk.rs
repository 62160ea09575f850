//! The discussion after the answers: what ends it early, and how rules change between two messages.

use super::bench::*;
use kd_core::{Event, Op};

fn talk(mode: &'static str, auto: Option<u32>) -> Bench {
    let mut bench = Bench::new(Setup {
        mode,
        auto,
        queue: Some(Vec::new()),
        ..Setup::default()
    });
    bench.say("hi");
    bench.answer_all();
    bench
}

#[test]
fn two_who_only_acknowledge_each_other_end_the_round_and_it_is_said_why() {
    let mut bench = talk("broadcast", Some(9));
    bench.say("go on");
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, "Agreed.");
    }
    bench.answer("claude", "The index is missing, @cursor.");
    bench.answer("cursor", "Thanks, that makes sense!");
    bench.answer("codex", "You're welcome, all good.");
    assert!(
        bench.speaking().is_empty(),
        "six turns are left, and nobody takes them"
    );
    assert_eq!(
        bench.notices(),
        ["cursor and codex add nothing new, so the round ends here"]
    );
}

#[test]
fn nobody_is_cut_off_before_they_have_spoken() {
    let mut bench = talk("sequential", Some(0));
    bench.say("go on");
    bench.answer("claude", "ok");
    bench.answer("codex", "ok");
    assert_eq!(bench.speaking(), ["cursor"]);
}

#[test]
fn a_pass_is_a_pass_and_when_all_have_passed_the_round_is_over() {
    let mut bench = talk("broadcast", Some(9));
    bench.say("go on");
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, &format!("{name} says so."));
    }
    bench.answer("claude", "Nothing to add.");
    bench.answer("codex", "*nothing to add*");
    assert_eq!(bench.speaking(), ["cursor"], "the third may know more");
    bench.answer("cursor", "pass");
    assert!(bench.speaking().is_empty());
    assert_eq!(
        bench.notices(),
        ["no member has anything to add, so the round ends here"]
    );
    let passes = bench.drafts.iter().filter(|d| d.extra.contains_key("pass"));
    assert_eq!(passes.count(), 3);
}

#[test]
fn a_message_that_waits_keeps_the_mode_and_the_turns_with_which_it_was_sent() {
    let mut bench = talk("broadcast", Some(2));
    bench.say("first");
    bench.say("second");
    bench.op(Op::Mode {
        mode: "manual".into(),
    });
    bench.op(Op::Auto { messages: Some(0) });
    bench.say("third");
    bench.op(Op::Mode {
        mode: "sequential".into(),
    });
    bench.say("fourth");
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, "first");
    }
    assert_eq!(bench.speaking().len(), 3, "the second is for all at once");
    // The third follows it and asks nobody; the fourth is for one after another.
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, "second");
    }
    let said: Vec<&str> = (bench.council.history().iter())
        .filter(|m| m.is_king())
        .map(|m| m.body.as_str())
        .collect();
    assert_eq!(said, ["hi", "first", "second", "third", "fourth"]);
    assert_eq!(bench.speaking(), ["claude"]);
    assert_eq!(bench.answer_all().len(), 3);
}

#[test]
fn a_mode_and_a_number_of_turns_hold_from_the_next_message_on() {
    let mut bench = talk("broadcast", Some(1));
    bench.say("go on");
    bench.op(Op::Mode {
        mode: "sequential".into(),
    });
    bench.op(Op::Auto { messages: Some(2) });
    assert_eq!(
        bench.answer_all().len(),
        4,
        "this round goes on as it began"
    );
    bench.say("and now?");
    assert_eq!(bench.speaking(), ["claude"]);
    assert_eq!(bench.answer_all().len(), 5);
    bench.op(Op::Mode {
        mode: "seqential".into(),
    });
    assert!(bench.refusals()[0].contains("did you mean sequential?"));
    let set = bench
        .events
        .iter()
        .filter(|e| matches!(e, Event::ModeSet { .. }));
    assert_eq!(set.count(), 3, "one when the thread is opened");
}

#[test]
fn rows_of_the_table() {
    // Message, mode, auto, whether it is the first: how many speak at once, and the number of turns.
    type Row = (&'static str, &'static str, Option<u32>, bool, usize, usize);
    let rows: &[Row] = &[
        ("hi", "broadcast", None, true, 3, 3),
        ("hi", "broadcast", Some(5), true, 3, 3),
        ("hi", "broadcast", None, false, 3, 6),
        ("hi", "broadcast", Some(0), false, 3, 3),
        ("hi", "broadcast", Some(4), false, 3, 7),
        ("@codex hi", "broadcast", Some(4), false, 1, 1),
        ("@codex hi", "broadcast", Some(4), true, 1, 1),
        ("@codex @claude hi", "broadcast", Some(4), false, 2, 2),
        ("@all hi", "broadcast", None, true, 3, 6),
        ("@all hi", "broadcast", Some(1), true, 3, 4),
        ("@all hi", "broadcast", Some(0), true, 3, 3),
        ("hi", "sequential", None, true, 1, 3),
        ("hi", "sequential", Some(2), false, 1, 5),
        ("hi", "natural", None, true, 3, 3),
        ("hi", "natural", Some(2), false, 1, 5),
        ("hi", "natural", Some(0), false, 1, 3),
        ("hi", "manual", None, false, 0, 0),
        ("@codex hi", "manual", None, false, 1, 1),
        ("@all hi", "manual", None, false, 1, 3),
    ];
    for (body, mode, auto, first, at_once, turns) in rows {
        let mut bench = Bench::new(Setup {
            mode,
            auto: *auto,
            ..Setup::default()
        });
        if !first {
            bench.say("@all hello");
            bench.answer_all();
        }
        bench.say(body);
        let row = format!("{body:?} in {mode}, auto {auto:?}, first {first}");
        assert_eq!(bench.speaking().len(), *at_once, "{row}");
        assert_eq!(bench.answer_all().len(), *turns, "{row}");
    }
}

#[test]
fn who_is_muted_is_neither_asked_nor_counted() {
    let mut bench = talk("broadcast", None);
    bench.op(Op::Mute {
        seat: seat("codex"),
    });
    bench.say("go on");
    assert_eq!(bench.answer_all(), ["claude", "cursor", "claude", "cursor"]);
    bench.op(Op::Unmute {
        seat: seat("codex"),
    });
    bench.say("once more");
    assert_eq!(bench.answer_all().len(), 6);
}
