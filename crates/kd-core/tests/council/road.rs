//! The path of one message.

use super::bench::*;
use kd_core::event::Outcome;
use kd_core::machine::Input;
use kd_core::message::{Address, Status};
use kd_core::usage::Certainty;
use kd_core::{Delta, Event, FailureKind, Finish, Op};

/// Returns the kinds of events.
fn kinds(events: &[Event]) -> Vec<String> {
    let word = |e: &Event| {
        serde_json::to_value(e).unwrap()["event"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    events.iter().map(word).collect()
}

#[test]
fn a_question_goes_to_everybody_and_each_answer_to_disk() {
    let mut bench = Bench::new(Setup::default());
    bench.hold = true;
    bench.say("Why?");
    assert_eq!(
        kinds(&bench.events),
        ["thread_opened"],
        "no other event is sent before the file exists"
    );
    bench.write_held();
    assert_eq!(bench.speaking(), ["claude", "codex", "cursor"]);
    bench.hold = false;
    bench.text("codex", "Be");
    bench.answer("codex", "cause.");
    bench.answer("claude", "So.");
    bench.answer("cursor", "Hm.");
    assert_eq!(
        kinds(&bench.events),
        [
            "thread_opened",
            "message_added",
            "turn_queued",
            "turn_queued",
            "turn_queued",
            "turn_delta",
            "turn_delta",
            "turn_delta",
            "message_added",
            "turn_finished",
            "turn_delta",
            "turn_delta",
            "message_added",
            "turn_finished",
            "turn_delta",
            "turn_delta",
            "message_added",
            "turn_finished",
            "floor_yielded",
        ]
    );
    let Some(Event::FloorYielded { outcome, usage }) = bench.events.last() else {
        panic!("the floor is not yielded");
    };
    assert_eq!((*outcome, usage.output_tokens), (Outcome::Complete, 30));
    let codex = &bench.drafts[1];
    assert_eq!(
        (codex.from.as_str(), codex.body.as_str()),
        ("codex", "Because.")
    );
    assert_eq!(
        (codex.status, &codex.to),
        (Some(Status::Complete), &Address::King)
    );
    assert_eq!(codex.provenance.model_source.as_deref(), Some("configured"));
    assert!(bench.council.is_idle());
}

#[test]
fn everybody_is_told_who_they_are_and_the_next_round_what_was_said() {
    let mut bench = Bench::new(Setup {
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("Why?");
    let prompt = bench.prompt("codex");
    assert!(
        prompt.ends_with("I am codex.\n\nWhy?\n\n---\nYou are codex. Answer the question."),
        "{prompt}"
    );
    bench.answer_all();
    bench.say("@codex and you?");
    assert_eq!(bench.speaking(), ["codex"]);
    let prompt = bench.prompt("codex");
    let history = "[Previous conversation]\nking: Why?\n\nclaude: claude says 1.\n\ncodex: codex says 2.\n\n\
                   cursor: cursor says 3.\n\nking (to codex): @codex and you?\n\n---\nYou are codex. You alone are asked.";
    assert!(prompt.contains(history), "{prompt}");
    assert_eq!(bench.drafts[4].to, Address::Seats(vec![seat("codex")]));
}

#[test]
fn words_said_meanwhile_wait_and_are_answered_after() {
    let mut bench = Bench::new(Setup {
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("One?");
    bench.answer("claude", "1");
    bench.say("Two?");
    assert!(matches!(bench.events.last(), Some(Event::SayQueued { body, .. }) if body == "Two?"));
    assert_eq!(bench.speaking(), ["codex", "cursor"]);
    bench.answer("codex", "1");
    bench.answer("cursor", "1");
    assert_eq!(bench.yields(), [Outcome::Complete]);
    assert_eq!(bench.speaking(), ["claude", "codex", "cursor"]);
    bench.answer_all();
    assert_eq!(bench.yields(), [Outcome::Complete; 2]);
}

#[test]
fn the_backend_has_the_last_word_on_the_text_and_retrying_voids_what_came() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.text(
        "claude",
        "draft that will be void, cut in a sequence: \u{1b}]0;",
    );
    let failure = kd_core::Failure::new(kd_core::FailureKind::Overloaded, "busy");
    bench.delta(
        "claude",
        Delta::Retrying {
            attempt: 1,
            after: std::time::Duration::from_secs(1),
            failure,
        },
    );
    assert_eq!(bench.drafts.len(), 1, "the turn goes on");
    bench.answer("claude", "kept");
    assert_eq!(bench.drafts[1].body, "kept");
    bench.text("codex", "pieces");
    bench.delta(
        "codex",
        Delta::Finished {
            finish: Finish::Length,
            text: Some("the whole\u{1b}[2J".into()),
            usage: None,
            choices: vec![],
        },
    );
    assert_eq!(bench.drafts[2].body, "the whole");
    assert_eq!(bench.drafts[2].extra["finish"], "length");
}

#[test]
fn an_answer_cut_at_a_repetition_says_so_in_its_message() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.delta(
        "claude",
        Delta::Finished {
            finish: Finish::Repetition,
            text: Some("Its own beginning.".into()),
            usage: None,
            choices: vec![],
        },
    );
    let draft = bench.drafts.last().expect("the answer");
    assert_eq!(draft.body, "Its own beginning.");
    assert_eq!(draft.extra["finish"], "repetition");
}

#[test]
fn a_total_without_the_figures_of_one_turn_is_a_lower_bound() {
    let silent = || Delta::Finished {
        finish: Finish::Stop,
        text: None,
        usage: None,
        choices: vec![],
    };
    let total = |told: &[&str], silenced: &[&str], stopped: &[&str]| {
        let mut bench = Bench::new(Setup::default());
        bench.say("Why?");
        for seat in told {
            bench.answer(seat, "So.");
        }
        for seat in silenced {
            bench.text(seat, "Hm.");
            bench.delta(seat, silent());
        }
        if !stopped.is_empty() {
            bench.op(Op::Interrupt);
        }
        for seat in stopped {
            bench.fail(seat, FailureKind::Cancelled);
        }
        let yielded = bench.events.iter().rev().find_map(|event| match event {
            Event::FloorYielded { usage, .. } => Some(*usage),
            _ => None,
        });
        let usage = yielded.expect("the floor is yielded");
        (usage.output_tokens, usage.certainty)
    };
    let all = ["claude", "codex", "cursor"];
    assert_eq!(total(&all, &[], &[]), (30, Certainty::Exact));
    assert_eq!(total(&all[..2], &all[2..], &[]), (20, Certainty::AtLeast));
    assert_eq!(total(&all[..1], &[], &all[1..]), (10, Certainty::AtLeast));
    // Nothing was counted, so there is no bound to report.
    assert_eq!(total(&[], &all, &[]), (0, Certainty::Exact));
}

#[test]
fn escape_sequences_reach_neither_faces_nor_files() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.text("claude", "red \u{1b}[3");
    bench.text("claude", "1mtext\u{1b}]0;title");
    bench.answer("claude", "\u{7} end");
    assert_eq!(bench.drafts[1].body, "red text end");
    let all = serde_json::to_string(&bench.events).unwrap();
    assert!(!all.contains("u001b") && !all.contains("title"), "{all}");
}

#[test]
fn what_other_processes_write_extends_the_history_once() {
    let mut bench = Bench::new(Setup {
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("Why?");
    bench.answer_all();
    let mut foreign = bench.council.history()[1].clone();
    foreign.seq = 9;
    foreign.from = "gemini".into();
    foreign.body = "From \u{1b}[1mafar.".into();
    let before = bench.events.len();
    bench.feed(Input::FoundDelta {
        seat: seat("gemini"),
        delta: Delta::Text {
            text: "From".into(),
        },
    });
    for _ in 0..2 {
        bench.feed(Input::Found {
            message: foreign.clone(),
        });
    }
    assert_eq!(
        kinds(&bench.events[before..]),
        ["stream_found", "message_added"]
    );
    bench.say("And?");
    assert!(
        bench
            .prompt("claude")
            .contains("\n\ngemini: From afar.\n\n")
    );
}

#[test]
fn an_op_that_cannot_be_done_says_why_and_changes_nothing() {
    let mut bench = Bench::new(Setup::default());
    bench.say("  \n ");
    bench.op(Op::Mute {
        seat: seat("kodex"),
    });
    bench.op(Op::Unmute {
        seat: seat("codex"),
    });
    bench.op(Op::Stop {
        seat: seat("codex"),
    });
    bench.op(Op::Retry { seat: None });
    bench.op(Op::Say {
        body: "x".into(),
        to: Address::King,
    });
    assert_eq!(
        bench.refusals(),
        [
            "the message is empty",
            "no member is named kodex: did you mean codex?",
            "codex is not muted",
            "codex is not speaking",
            "there is no question to ask again",
            "`king` is you: address members, or all",
        ]
    );
    assert!(bench.drafts.is_empty() && bench.asked.is_empty());
    bench.op(Op::Close);
    bench.say("late");
    assert_eq!(bench.refusals().len(), 7);
    assert!(bench.council.is_idle());
}

#[test]
fn css_rules_and_mail_addresses_are_no_mentions() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why does @media not apply? Ask me@example.org");
    assert_eq!(bench.speaking().len(), 3);
    assert!(bench.notices().is_empty());
}

#[test]
fn a_misspelt_name_at_the_start_is_text_with_a_notice() {
    let mut bench = Bench::new(Setup::default());
    bench.say("@cluade hello");
    assert_eq!(bench.speaking().len(), 3);
    assert_eq!(
        bench.notices(),
        ["no member is named @cluade, so it is read as text; did you mean @claude?"]
    );
    assert!(bench.refusals().is_empty());
}
