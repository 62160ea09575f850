//! Private tags in an ordinary conversation: their content is never shown, wherever the stream is split.

use super::bench::*;
use kd_core::{Address, Delta, Event, Op};

/// Sends a reply in pieces of `piece` characters; returns what the user reads and what was private.
fn said(reply: &str, piece: usize) -> (String, Vec<String>) {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    let chars: Vec<char> = reply.chars().collect();
    for part in chars.chunks(piece) {
        bench.text("claude", &part.iter().collect::<String>());
    }
    bench.answer("claude", "");
    let private = bench.events.iter().filter_map(|event| match event {
        Event::CouncilSaid { text, .. } => text.clone(),
        _ => None,
    });
    let private: Vec<String> = private.collect();
    // No other event or file contains it.
    let told: String = bench
        .events
        .iter()
        .filter(|e| !matches!(e, Event::CouncilSaid { .. }))
        .map(|e| serde_json::to_string(e).unwrap())
        .collect();
    assert!(!told.contains("SECRET"), "{reply:?}: {told}");
    let body = bench.drafts[1].body.clone();
    assert!(!body.contains("SECRET"), "{reply:?}: {body}");
    (body, private)
}

#[test]
fn a_member_that_is_asked_alone_writes_to_nobody() {
    for (to, told) in [("claude", false), ("claude,codex", true)] {
        let mut bench = Bench::new(Setup::default());
        bench.op(Op::Say {
            body: "Why?".into(),
            to: Address::parse(to),
        });
        bench.answer("claude", "<council>SECRET</council>Yes.");
        let mut events = bench.events.iter();
        let says = |e: &Event| matches!(e, Event::CouncilSaid { .. });
        assert_eq!(events.any(says), told, "{to}");
    }
}

#[test]
fn private_words_of_a_chat_reach_nobody() {
    for (reply, shown, private) in [
        (
            "Wait. <council>SECRET</council>Yes.",
            "Wait. Yes.",
            &["SECRET"][..],
        ),
        ("Yes.<\ncouncil>SECRET</council>", "Yes.", &["SECRET"]),
        ("<think>SECRET</think>Yes.", "Yes.", &[]),
        ("<Thinking>SECRET</thinking>Yes.", "Yes.", &[]),
        ("<thought>SECRET</thought>Yes.", "Yes.", &[]),
        ("<reasoning>SECRET</reasoning>Yes.", "Yes.", &[]),
        // Without an end it is text, and no answer is lost.
        ("Yes.<scratchpad>Go on.", "Yes.<scratchpad>Go on.", &[]),
        (
            "Write `<scratchpad>` here.",
            "Write `<scratchpad>` here.",
            &[],
        ),
        ("Yes. <council>SECRET", "Yes.", &["SECRET"]),
        // Code is text; an open fence is held back until it is closed, and private if it never is.
        ("Write `<council>` here.", "Write `<council>` here.", &[]),
        (
            "```\n<council>x</council>\n```\nYes.",
            "```\n<council>x</council>\n```\nYes.",
            &[],
        ),
        (
            "```\n<think>x</think>\n```\nYes.",
            "```\n<think>x</think>\n```\nYes.",
            &[],
        ),
        (
            "Yes.\n```\n<council>SECRET</council>",
            "Yes.\n```",
            &["SECRET"],
        ),
        ("Yes.\n```\n<think>SECRET</think>", "Yes.\n```", &[]),
    ] {
        for piece in [1, 2, 7, 1000] {
            let (body, heard) = said(reply, piece);
            assert_eq!(body, shown, "{reply:?} in pieces of {piece}");
            assert_eq!(heard, private, "{reply:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_restated_answer_is_split_too_and_an_answer_in_tags_alone_fails_with_the_reason() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.text("claude", "Other words. <council>");
    let mut whole = finished();
    if let Delta::Finished { text, .. } = &mut whole {
        *text = Some("Yes. <council>SECRET</council>".into());
    }
    bench.delta("claude", whole);
    assert_eq!(bench.drafts[1].body, "Yes.");
    bench.text("codex", "<council>SECRET</council>");
    bench.answer("codex", "");
    let failed = bench.events.iter().find_map(|event| match event {
        Event::TurnFailed { failure, .. } => Some(failure.message.clone()),
        _ => None,
    });
    assert!(failed.is_some_and(|why| why.contains("<council> tags")));
    bench.op(Op::Interrupt);
}
