//! A member that answers another process is not asked twice.

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

fn king(seq: u32, body: &str) -> Input {
    let message = elsewhere(seq, body);
    Input::Found { message }
}

fn elsewhere(seq: u32, body: &str) -> kd_core::Message {
    let draft = kd_core::message::Draft {
        turn: None,
        from: "king".into(),
        to: kd_core::Address::All,
        at: jiff::Timestamp::UNIX_EPOCH,
        status: None,
        refs: Vec::new(),
        provenance: Default::default(),
        extra: Default::default(),
        body: body.into(),
    };
    draft.stored(seq)
}

/// Builds a bench in the discussion of its second message: everyone has answered it, and claude continues.
fn talking() -> Bench {
    let mut bench = Bench::new(Setup {
        auto: Some(6),
        ..Setup::default()
    });
    bench.say("hi");
    bench.answer_all();
    bench.say("what now?");
    for name in ["claude", "codex", "cursor"] {
        bench.answer(name, &format!("{name} thinks so."));
    }
    assert_eq!(bench.speaking(), ["claude"]);
    bench
}

#[test]
fn a_new_word_of_the_king_ends_the_turns_wherever_he_says_it() {
    let mut elsewhere = talking();
    elsewhere.next += 1;
    elsewhere.feed(king(elsewhere.next - 1, "stop that"));
    elsewhere.answer("claude", "Well, and another thing.");
    assert!(elsewhere.speaking().is_empty());
    assert_eq!(elsewhere.yields().len(), 2);
    assert!(elsewhere.notices().concat().contains("you spoke again"));

    let mut here = talking();
    here.say("stop that");
    here.answer("claude", "Well, and another thing.");
    assert_eq!(here.speaking(), ["claude", "codex", "cursor"]);
    assert!(here.prompt("codex").contains("king: stop that"));

    // One that waits in another window, and is sent when the member is done, ends them too.
    let mut waiting = talking();
    waiting.feed(Input::FoundWaiting);
    assert_eq!(waiting.speaking(), ["claude"], "it may finish");
    waiting.answer("claude", "Well, and another thing.");
    assert!(waiting.speaking().is_empty());
    assert!(waiting.notices().concat().contains("you spoke again"));

    // A message older than the discussed one ends nothing.
    let mut older = talking();
    older.feed(king(1, "before all that"));
    older.answer("claude", "Well, and another thing.");
    assert_eq!(older.speaking(), ["codex"]);
}

#[test]
fn one_who_waited_for_its_member_is_told_what_was_said_meanwhile() {
    let mut bench = Bench::new(Setup {
        mode: "sequential",
        ..Setup::default()
    });
    bench.say("hi");
    let turn = bench.turn("claude");
    bench.next += 3;
    let events = bench.events.len();
    bench.open.clear();
    let (before, after) = (bench.next - 3, bench.next - 1);
    let answer = |seq, body: &str| kd_core::Message {
        from: "cursor".into(),
        ..elsewhere(seq, body)
    };
    bench.feed(Input::Freed {
        turn,
        found: vec![
            answer(before, "I answer an earlier question."),
            elsewhere(bench.next - 2, "from another window"),
            answer(after, "I answer the other window."),
        ],
    });
    assert_eq!(
        bench.events.len(),
        events,
        "who does not follow others is not told"
    );
    // Another window's question is answered there: here it would be taken for the one that is asked.
    let prompt = bench.prompt("claude");
    assert!(prompt.contains("cursor: I answer an earlier"), "{prompt}");
    assert!(!prompt.contains("window"), "{prompt}");
    // The new message needs answers, from the other members too.
    bench.answer("claude", "hello");
    assert_eq!(bench.speaking(), ["codex"]);
}

#[test]
fn a_turn_that_waited_is_taken_back_when_the_king_has_spoken_again() {
    let mut bench = talking();
    let (turn, files) = (bench.turn("claude"), bench.drafts.len());
    bench.next += 1;
    bench.feed(king(bench.next - 1, "from another window"));
    bench.open.clear();
    bench.feed(Input::Freed {
        turn,
        found: Vec::new(),
    });
    assert!(bench.speaking().is_empty());
    assert_eq!(bench.yields().len(), 2);
    assert_eq!(bench.drafts.len(), files, "nothing is written of it");
    let taken =
        |e: &Event| matches!(e, Event::TurnFailed { turn: t, message: None, .. } if *t == turn);
    assert!(bench.events.iter().any(taken));
    bench.feed(Input::Freed {
        turn,
        found: Vec::new(),
    });
    assert!(bench.speaking().is_empty());
}

#[test]
fn members_are_sent_what_is_on_disk_after_files_were_edited_or_removed() {
    let mut bench = Bench::new(Setup {
        auto: Some(0),
        ..Setup::default()
    });
    bench.say("Is it so?");
    bench.answer("claude", "The secret is 181.");
    bench.answer("codex", "No.");
    bench.answer("cursor", "Yes.");
    let written = bench.council.history()[1].clone();
    let edited = |body: &str| Input::Found {
        message: kd_core::Message {
            body: body.into(),
            ..written.clone()
        },
    };
    // What is reported again unchanged, as each file of our own is, says nothing.
    bench.feed(edited("The secret is 181."));
    assert!(bench.notices().is_empty());
    bench.feed(edited("The secret is out."));
    let gone = |numbers: &[(u32, &str)]| Input::FoundGone {
        messages: (numbers.iter().map(|(seq, from)| (*seq, (*from).to_owned()))).collect(),
    };
    bench.feed(gone(&[(3, "codex"), (7, "codex")]));
    assert_eq!(
        bench.notices(),
        [
            "the file of message 2 (claude) was changed: from now on members are sent the new text",
            "the file of message 3 (codex) was removed: from now on members are not sent it",
        ]
    );
    // Two programs took one number, and one of the files got the next.
    let moved = |seq| Input::Found {
        message: elsewhere(seq, "Hm."),
    };
    bench.feed(moved(5));
    bench.next = 7;
    bench.feed(moved(6));
    bench.feed(gone(&[(5, "king")]));
    assert_eq!(bench.notices().len(), 2);
    // The same words as in the first message: that one is not this one.
    bench.say("Is it so?");
    let prompt = bench.prompt("claude");
    assert!(
        prompt.contains("claude: The secret is out.") && !prompt.contains("181"),
        "{prompt}"
    );
    assert!(!prompt.contains("codex: No.") && prompt.contains("cursor: Yes."));
    bench.answer_all();
    bench.feed(gone(&[(1, "king"), (2, "claude"), (4, "cursor")]));
    let told = bench.notices()[2];
    assert!(told.contains("3 messages (1 to 4)"), "{told}");
}
