//! A member that speaks for another process is not asked twice.

use super::bench::*;
use kd_core::{Delta, Event, Input, Op};

fn found(name: &str) -> Input {
    Input::FoundDelta {
        seat: seat(name),
        delta: Delta::Text {
            text: "else\u{1b}[2Jwhere".into(),
        },
    }
}

#[test]
fn what_is_said_to_it_waits_and_the_others_can_be_asked() {
    let mut bench = Bench::new(Setup {
        queue: Some(Vec::new()),
        ..Setup::default()
    });
    bench.feed(found("codex"));
    bench.say("@claude hi");
    assert_eq!(bench.speaking(), ["claude"]);
    bench.answer_all();
    bench.say("hi all");
    assert!(bench.speaking().is_empty());
    assert!(matches!(bench.events.last(), Some(Event::SayQueued { .. })));
    bench.feed(Input::FoundEnd {
        seat: seat("codex"),
    });
    assert_eq!(bench.speaking(), ["claude", "codex", "cursor"]);
    let clean = bench.events.iter().any(|e| {
        matches!(e, Event::StreamFound { delta: Delta::Text { text }, .. } if text == "elsewhere")
    });
    assert!(clean);
}

#[test]
fn one_that_begins_elsewhere_while_we_talk_loses_its_turn_here() {
    let mut bench = Bench::new(Setup {
        mode: "sequential",
        ..Setup::default()
    });
    bench.say("hi");
    bench.feed(found("codex"));
    bench.answer("claude", "yes");
    assert_eq!(bench.speaking(), ["cursor"]);
    bench.op(Op::Retry {
        seat: Some(seat("codex")),
    });
    assert_eq!(bench.refusals().len(), 1);
}
