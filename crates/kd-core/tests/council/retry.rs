//! A retried answer takes the place of the failed one.

use super::bench::*;
use kd_core::event::Outcome;
use kd_core::last_round::{LastRound, RoundKind, TurnSeen};
use kd_core::message::settled;
use kd_core::view::{Content, View};
use kd_core::{Event, FailureKind, Message, Op, SeatName, TurnId};

fn shown(view: &View) -> Vec<String> {
    let panels = view.panels.iter().map(|p| match &p.content {
        Content::Message { message, .. } => format!("{}: {}", message.from, message.body),
        content => match view.growing(content) {
            Some(turn) => format!("{} speaks", turn.seat),
            None => format!("{content:?}"),
        },
    });
    panels.collect()
}

#[test]
fn on_disk_in_prompts_and_on_the_screen() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.text("claude", "half a");
    bench.fail("claude", FailureKind::Crashed);
    bench.answer("codex", "Because.");
    bench.answer("cursor", "So it is.");
    bench.op(Op::Retry { seat: None });
    assert!(
        !bench.prompt("claude").contains("half a"),
        "failed words are in no prompt"
    );
    let mut view = View::default();
    bench.events.iter().for_each(|e| view.fold(e));
    assert_eq!(shown(&view)[1], "claude speaks", "where it had failed");
    bench.fail("claude", FailureKind::Timeout);
    bench.op(Op::Retry {
        seat: Some(seat("claude")),
    });
    bench.answer("claude", "A whole one.");
    let mut view = View::default();
    bench.events.iter().for_each(|e| view.fold(e));
    let wanted = [
        "king: Why?",
        "claude: A whole one.",
        "codex: Because.",
        "cursor: So it is.",
    ];
    assert_eq!(shown(&view), wanted);
    assert_eq!(
        shown(&View::open(bench.council.history().to_vec())),
        wanted,
        "after a restart too"
    );
    let read: Vec<u32> = settled(bench.council.history())
        .iter()
        .map(|m: &&Message| m.seq)
        .collect();
    assert_eq!(read, [1, 6, 3, 4]);
    assert_eq!(bench.council.history().len(), 6, "nothing on disk was lost");

    bench.say("And now?");
    let prompt = bench.prompt("codex");
    let place = |text: &str| {
        prompt
            .find(text)
            .unwrap_or_else(|| panic!("{text} in {prompt}"))
    };
    assert!(
        place("claude: A whole one.") < place("codex: Because."),
        "{prompt}"
    );
    let queued = bench.events.iter().filter_map(|e| match e {
        Event::TurnQueued { replaces, .. } => *replaces,
        _ => None,
    });
    assert_eq!(
        queued.collect::<Vec<_>>(),
        [2, 2],
        "both times the first failure's place"
    );
}

#[test]
fn the_log_tells_whom_a_question_that_was_asked_before_still_lacks() {
    let mut bench = Bench::new(Setup::default());
    bench.say("Why?");
    bench.answer("claude", "Because.");
    let history: Vec<Message> = bench.council.history().to_vec();
    let asked = |seat: &str, seen| (SeatName::new(seat).unwrap(), TurnId::new(1), seen);
    let last = |kind, outcome| LastRound {
        kind,
        asked: vec![asked("claude", TurnSeen::Finished)],
        outcome,
        formatting: None,
    };
    let rows = [
        // Without a log: members that were mentioned and left no message.
        (None, 2),
        // The round is complete: no other member had a turn.
        (Some(last(RoundKind::Council, Some(Outcome::Complete))), 0),
        (
            Some(last(RoundKind::Council, Some(Outcome::Interrupted))),
            2,
        ),
        (Some(last(RoundKind::Council, None)), 2),
        (Some(last(RoundKind::Debate, None)), 0),
        (
            Some(last(RoundKind::Deliberation, Some(Outcome::Interrupted))),
            0,
        ),
    ];
    for (last, asks) in rows {
        let name = format!("{last:?}");
        let mut bench = Bench::new(Setup {
            history: history.clone(),
            last,
            ..Setup::default()
        });
        bench.op(Op::Retry { seat: None });
        assert_eq!(bench.speaking().len(), asks, "{name}");
        assert_eq!(bench.refusals().is_empty(), asks > 0, "{name}");
    }
}
