use super::turn::THINKING_BYTES_MAX;
use super::*;
use crate::deliberation::Fact;
use crate::event::DuetPhase;
use crate::message::{Provenance, Status};
use proptest::prelude::*;
use std::time::Duration;

fn seat(name: &str) -> SeatName {
    SeatName::new(name).unwrap()
}

fn message(seq: u32, from: &str, body: &str) -> Message {
    Message {
        seq,
        from: from.into(),
        to: Address::All,
        at: Timestamp::UNIX_EPOCH,
        status: Some(Status::Complete),
        refs: vec![],
        provenance: Provenance::default(),
        extra: Default::default(),
        body: body.into(),
    }
}

fn queued(turn: u32, name: &str) -> Event {
    Event::TurnQueued {
        turn: TurnId::new(turn),
        seat: seat(name),
        purpose: Purpose::Answer,
        replaces: None,
        ahead: Vec::new(),
    }
}

fn delta(turn: u32, delta: Delta) -> Event {
    Event::TurnDelta {
        turn: TurnId::new(turn),
        delta,
    }
}

fn text(turn: u32, text: &str) -> Event {
    delta(turn, Delta::Text { text: text.into() })
}

fn finished(turn: u32, name: &str, message: Option<u32>) -> Event {
    Event::TurnFinished {
        turn: TurnId::new(turn),
        seat: seat(name),
        message,
        usage: None,
        tools: 0,
        thought: 0,
    }
}

fn at(second: u64) -> Timestamp {
    Timestamp::from_second(second as i64).unwrap()
}

fn record(seq: u64, event: Event) -> Record {
    Record {
        v: crate::event::FORMAT,
        seq,
        ts: at(seq),
        thread: ThreadId("council-0001".into()),
        event,
    }
}

fn bodies(view: &View) -> Vec<String> {
    let shown = view.panels.iter().map(|p| match &p.content {
        Content::Message {
            message, failure, ..
        } => {
            let mark = if failure.is_some() { "!" } else { "" };
            format!("{}: {}{mark}", message.from, message.body)
        }
        content @ (Content::Turn(_) | Content::Stream(_)) => {
            let turn = view.growing(content).unwrap();
            format!("{} … {}", turn.seat, turn.text)
        }
        Content::Lost { seat, text, .. } => format!("{seat} lost {text}"),
        Content::Notice(text) | Content::Refusal(text) => text.clone(),
    });
    shown.collect()
}

/// Another window sends a message while members of this one speak.
#[test]
fn an_answer_saved_after_a_message_of_another_window_is_below_it() {
    let added = |seq, from: &str, turn: Option<u32>| Event::MessageAdded {
        message: message(seq, from, "x"),
        turn: turn.map(TurnId::new),
        found: turn.is_none(),
    };
    let mut view = View::open([message(1, "king", "x")]);
    for event in [
        queued(1, "claude"),
        queued(2, "codex"),
        // Saved before the message of the other window, which was seen first.
        added(3, "king", None),
        added(2, "claude", Some(1)),
        finished(1, "claude", Some(2)),
        Event::StreamFound {
            seat: seat("cursor"),
            delta: Delta::Text { text: "So".into() },
        },
        added(4, "codex", Some(2)),
        finished(2, "codex", Some(4)),
        added(5, "cursor", None),
    ] {
        view.fold(&event);
    }
    let order: Vec<u32> = view
        .panels
        .iter()
        .filter_map(|panel| panel.content.message().map(|message| message.seq))
        .collect();
    assert_eq!(order, [1, 2, 3, 4, 5]);
    assert!(view.growing_turns().next().is_none());
    // It counts in the round of the newest message.
    assert_eq!(view.round().len(), 2);
}

#[test]
fn a_turn_keeps_its_place_when_it_becomes_a_message() {
    let mut view = View::open([message(1, "king", "Why\u{1b}[2J?")]);
    for event in [
        queued(1, "claude"),
        queued(2, "codex"),
        queued(3, "cursor"),
        text(2, "So"),
        text(1, "Be"),
        text(2, "."),
    ] {
        view.fold(&event);
    }
    assert_eq!(
        bodies(&view),
        ["king: Why?", "claude … Be", "codex … So.", "cursor … "]
    );
    let before: Vec<u64> = view.panels.iter().map(|p| p.revision).collect();
    view.fold(&Event::MessageAdded {
        message: message(2, "codex", "So."),
        turn: Some(TurnId::new(2)),
        found: false,
    });
    let usage = Usage {
        output_tokens: 3,
        ..Usage::default()
    };
    view.fold(&Event::TurnFinished {
        turn: TurnId::new(2),
        seat: seat("codex"),
        message: Some(2),
        usage: Some(usage),
        tools: 0,
        thought: 0,
    });
    let failure = Failure::new(FailureKind::Crashed, "disk full");
    view.fold(&Event::TurnFailed {
        turn: TurnId::new(3),
        seat: seat("cursor"),
        failure: failure.clone(),
        message: None,
    });
    assert_eq!(
        bodies(&view),
        ["king: Why?", "claude … Be", "codex: So.", "cursor lost "]
    );
    let after: Vec<u64> = view.panels.iter().map(|p| p.revision).collect();
    assert_eq!(before[..2], after[..2], "untouched panels need no drawing");
    assert!(before[2] < after[2] && view.is_busy());
    assert_eq!(
        (view.usage, view.usage_by_seat[&seat("codex")]),
        (usage, usage)
    );
    view.fold(&Event::MessageAdded {
        message: message(3, "claude", "Be"),
        turn: Some(TurnId::new(1)),
        found: false,
    });
    view.fold(&Event::TurnFailed {
        turn: TurnId::new(1),
        seat: seat("claude"),
        failure,
        message: Some(3),
    });
    assert_eq!(bodies(&view)[1], "claude: Be!");
    assert!(!view.is_busy());
}

#[test]
fn another_process_shows_as_a_growing_panel_until_its_message_lands() {
    let mut view = View::default();
    view.fold(&Event::StreamFound {
        seat: seat("gemini"),
        delta: Delta::Text { text: "Far".into() },
    });
    assert_eq!(bodies(&view), ["gemini … Far"]);
    assert!(!view.is_busy(), "no turn of this process to stop");
    view.fold(&Event::MessageAdded {
        message: message(4, "gemini", "Far away."),
        turn: None,
        found: false,
    });
    assert_eq!(bodies(&view), ["gemini: Far away."]);
}

#[test]
fn a_message_that_was_found_before_its_turn_ended_shows_once() {
    let mut view = View::default();
    view.fold(&queued(1, "claude"));
    view.fold(&queued(2, "codex"));
    view.fold(&Event::MessageAdded {
        message: message(2, "claude", "x"),
        turn: None,
        found: false,
    });
    view.fold(&Event::TurnFinished {
        turn: TurnId::new(1),
        seat: seat("claude"),
        message: Some(2),
        usage: None,
        tools: 0,
        thought: 0,
    });
    view.fold(&text(2, "y"));
    assert_eq!(bodies(&view), ["codex … y", "claude: x"]);
}

#[test]
fn waiting_words_leave_when_they_are_said_and_gaps_are_noticed() {
    let mut view = View::default();
    let wait = Event::SayQueued {
        body: "next".into(),
        to: Address::All,
    };
    assert!(view.fold_record(&record(1, wait)));
    assert_eq!(view.waiting.len(), 1);
    let said = |seq, found| Event::MessageAdded {
        message: message(seq, "king", "next"),
        turn: None,
        found,
    };
    assert!(view.fold_record(&record(2, said(6, true))));
    assert_eq!(view.waiting.len(), 1, "another window said the same");
    assert!(view.fold_record(&record(3, said(7, false))));
    assert!(view.waiting.is_empty());
    assert!(!view.fold_record(&record(5, queued(1, "claude"))));
}

#[test]
fn endless_thinking_does_not_fill_the_memory() {
    let mut view = View::default();
    view.fold(&queued(1, "claude"));
    let piece = "é".repeat(10_000);
    for _ in 0..100 {
        view.fold(&Event::TurnDelta {
            turn: TurnId::new(1),
            delta: Delta::Thinking {
                text: piece.clone(),
            },
        });
    }
    let growing = view.growing_turns().next().unwrap();
    assert!((THINKING_BYTES_MAX..=2 * THINKING_BYTES_MAX).contains(&growing.thinking.len()));
}

#[test]
fn a_retry_voids_what_came() {
    let mut view = View::default();
    view.fold_record(&record(1, queued(1, "claude")));
    view.fold_record(&record(2, text(1, "half an ans")));
    let retry = Delta::Retrying {
        attempt: 1,
        after: Duration::from_secs(3),
        failure: Failure::new(FailureKind::RateLimit, "slow down"),
    };
    view.fold_record(&record(3, delta(1, retry)));
    let turn = &view.turns[0];
    assert_eq!((turn.text.as_str(), turn.chars), ("", 0));
    let at = at(3).checked_add(Duration::from_secs(3)).unwrap();
    assert!(matches!(turn.state, State::Retrying { attempt: 1, at: Some(next), .. } if next == at));
    view.fold_record(&record(4, text(1, "whole")));
    let turn = &view.turns[0];
    assert_eq!(
        (turn.text.as_str(), turn.chars, &turn.state),
        ("whole", 5, &State::Answering)
    );
}

#[test]
fn a_message_of_the_user_begins_a_round_and_keeps_open_turns() {
    let mut view = View::default();
    let say = |seq, found| Event::MessageAdded {
        message: message(seq, "king", "Why?"),
        turn: None,
        found,
    };
    view.fold(&say(1, false));
    view.fold(&queued(1, "claude"));
    view.fold(&queued(2, "codex"));
    view.fold(&finished(1, "claude", None));
    view.fold(&say(2, true));
    assert_eq!(
        (view.turns.len(), view.question.as_ref().unwrap().seq),
        (2, 1)
    );
    view.fold(&say(3, false));
    let open: Vec<_> = view.turns.iter().map(|turn| turn.id).collect();
    assert_eq!(open, [Some(TurnId::new(2))]);
    assert_eq!(view.question.as_ref().unwrap().seq, 3);
}

/// One step of a simulated session: a kind, a member, and a text.
type Step = (u8, usize, String);

const NAMES: [&str; 3] = ["claude", "codex", "gemini"];

/// Turns steps into the records of a session in which every kind of event can follow every other.
fn session(steps: &[Step]) -> Vec<Record> {
    let mut events = vec![Event::ThreadOpened {
        members: NAMES.map(seat).to_vec(),
        messages: 0,
    }];
    let mut open: BTreeMap<usize, u32> = BTreeMap::new();
    let (mut turns, mut seq) = (0, 0);
    for (kind, who, words) in steps {
        let (who, name) = (*who, NAMES[*who]);
        let turn = open.get(&who).copied();
        match (kind, turn) {
            (0, _) => {
                seq += 1;
                events.push(Event::MessageAdded {
                    message: message(seq, "king", words),
                    turn: None,
                    found: words.len().is_multiple_of(3),
                });
            }
            (1, None) => {
                turns += 1;
                open.insert(who, turns);
                events.push(queued(turns, name));
            }
            (2, Some(turn)) => events.push(text(turn, words)),
            (3, Some(turn)) => events.push(delta(
                turn,
                Delta::Thinking {
                    text: words.clone(),
                },
            )),
            (4, Some(turn)) => events.push(delta(
                turn,
                Delta::Tool {
                    name: "read".into(),
                    detail: words.clone(),
                },
            )),
            (5, Some(turn)) => events.push(delta(
                turn,
                Delta::Retrying {
                    attempt: 1,
                    after: Duration::from_secs(2),
                    failure: Failure::new(FailureKind::RateLimit, words.as_str()),
                },
            )),
            (6, Some(turn)) => {
                seq += 1;
                open.remove(&who);
                events.push(Event::MessageAdded {
                    message: message(seq, name, words),
                    turn: Some(TurnId::new(turn)),
                    found: false,
                });
                events.push(finished(turn, name, Some(seq)));
            }
            (7, Some(turn)) => {
                open.remove(&who);
                events.push(Event::TurnFailed {
                    turn: TurnId::new(turn),
                    seat: seat(name),
                    failure: Failure::new(FailureKind::Timeout, words.as_str()),
                    message: None,
                });
            }
            (8, Some(turn)) => {
                events.push(Event::PhaseBegan {
                    turn: TurnId::new(turn),
                    seat: seat(name),
                    phase: DuetPhase::Debate,
                    exchanged: 1,
                    exchanges_max: 4,
                });
                events.push(Event::CouncilSaid {
                    turn: TurnId::new(turn),
                    from: seat(name),
                    to: seat(NAMES[(who + 1) % 3]),
                    chars: words.chars().count() as u64,
                    text: Some(words.clone()),
                });
            }
            (9, _) => events.push(Event::StreamFound {
                seat: seat(name),
                delta: Delta::Text {
                    text: words.clone(),
                },
            }),
            (10, _) => events.push(Event::StreamLost { seat: seat(name) }),
            (11, _) => events.push(Event::SayQueued {
                body: words.clone(),
                to: Address::All,
            }),
            (12, _) => events.push(Event::SayTakenBack {
                body: words.clone(),
                to: Address::All,
            }),
            (13, _) => events.push(Event::Noticed {
                text: words.clone(),
            }),
            (14, _) => events.push(Event::SeatMuted {
                seat: seat(name),
                muted: words.len().is_multiple_of(2),
            }),
            (15, _) => events.push(Event::DuetEnded {
                why: DuetEnd::Cap,
                exchanged: 2,
                answer: Some(seq),
            }),
            (16, _) if open.is_empty() => events.push(Event::FloorYielded {
                outcome: Outcome::Partial,
                usage: Usage::default(),
            }),
            (17, _) => events.push(Event::HeldBack {
                settings: vec![words.clone()],
                members: vec![],
            }),
            (18, _) => events.push(Event::Deliberated {
                fact: Box::new(Fact::StageBegan {
                    pass: 1,
                    round: 0,
                    depth: 0,
                    issue: None,
                    stage: "opinions".into(),
                    seats: vec![seat(name)],
                }),
            }),
            _ => {}
        }
    }
    let numbered = (1..).zip(events);
    numbered.map(|(seq, event)| record(seq, event)).collect()
}

proptest! {
    #[test]
    fn after_a_lag_the_view_is_the_one_without_a_lag(
        steps in proptest::collection::vec((0..19_u8, 0..3_usize, "[a-zé \n]{0,12}"), 0..40),
    ) {
        let records = session(&steps);
        let whole = View::of(&records);
        // The bus folds every record; a front end misses those from a cut on, and takes the view of the bus instead.
        for heard in 0..=records.len() {
            for caught_up in heard..=records.len() {
                let mut face = View::of(&records[..heard]);
                let bus = View::of(&records[..caught_up]);
                face.clone_from(&bus);
                for record in &records[caught_up..] {
                    prop_assert!(face.fold_record(record), "no gap");
                }
                prop_assert_eq!(&face, &whole);
            }
        }
    }

    #[test]
    fn a_log_without_the_pieces_rebuilds_the_same_ends(
        steps in proptest::collection::vec((0..19_u8, 0..3_usize, "[a-zé \n]{0,12}"), 0..60),
    ) {
        let records = session(&steps);
        let live = View::of(&records);
        let is_piece = |record: &&Record| matches!(record.event, Event::TurnDelta { .. } | Event::StreamFound { .. });
        let mut log = View::default();
        for record in records.iter().filter(|record| !is_piece(record)) {
            log.fold_record(record);
        }
        prop_assert_eq!(&live.whispers, &log.whispers);
        prop_assert_eq!(&live.report, &log.report);
        prop_assert_eq!((live.debate, live.outcome, live.usage), (log.debate, log.outcome, log.usage));
        prop_assert_eq!(live.turns.len(), log.turns.len());
        for (live, log) in live.turns.iter().zip(&log.turns) {
            prop_assert_eq!((live.id, live.purpose, live.phase, live.ended), (log.id, log.purpose, log.phase, log.ended));
            prop_assert_eq!((&live.message, live.usage, live.took()), (&log.message, log.usage, log.took()));
            prop_assert_eq!(live.failure(), log.failure());
        }
    }
}

/// A record may state anything: a promise that cannot be true shows nothing, neither itself nor the one before it.
#[test]
fn a_promise_that_cannot_be_true_repeats_none() {
    let event = |value: serde_json::Value| serde_json::from_value::<Event>(value).unwrap();
    let promised = |message: u32, right: f64, more: u64| {
        let promise = match right > 0.0 {
            true => serde_json::json!({
                "kind": "number", "marks": 200, "score": 1.0, "state": "promised", "right": right,
                "risk": 0.1, "tested": 147, "wrong": 3,
                "period": ["2026-02-13T00:00:00Z", "2026-08-04T00:00:00Z"],
            }),
            false => serde_json::json!({
                "kind": "number", "marks": 9, "score": 1.0, "state": "none", "more": more,
            }),
        };
        event(serde_json::json!({"event": "promised", "message": message, "promise": promise}))
    };
    let mut view = View::default();
    view.fold(&event(serde_json::json!({"event": "deliberated", "fact": {
        "fact": "concluded", "outcome": "majority", "form": "majority", "heading": "A majority",
        "winner": "391", "confidence": 0.6, "support": ["ann"], "dissent": [], "answer": "391",
        "by": null, "message": 5, "cites": [], "passes": 1, "best_pass": 1, "stopped": "",
        "spent": {"calls": 0, "tokens": 0, "pico_usd": 0}, "troubles": [],
    }})));
    view.fold(&promised(5, 0.95, 0));
    let shown = |view: &View| {
        let is_notice = |panel: &&Panel| matches!(panel.content, Content::Notice(_));
        view.panels.iter().filter(is_notice).count()
    };
    assert_eq!(shown(&view), 1);
    for unsound in [
        promised(5, 0.999_999, 0),
        promised(5, 0.0, u64::MAX),
        promised(4, 0.9, 0),
    ] {
        view.fold(&unsound);
        assert_eq!(shown(&view), 1, "{unsound:?}");
    }
    view.fold(&promised(5, 0.0, 23));
    assert_eq!(shown(&view), 2);
}

/// The usage of a failed turn counts when its answer is repeated: live, reopened, and in another window.
#[test]
fn a_repeated_answer_counts_what_its_failed_turns_have_used() {
    let used = |tokens| Usage {
        output_tokens: tokens,
        cost_usd: Some(0.5),
        ..Usage::default()
    };
    let fails = |turn, seq| {
        let mut failure = Failure::new(FailureKind::Timeout, "timed out");
        failure.used = Some(Box::new(crate::failure::Used {
            usage: used(10),
            ..crate::failure::Used::default()
        }));
        Event::TurnFailed {
            turn: TurnId::new(turn),
            seat: seat("claude"),
            failure,
            message: Some(seq),
        }
    };
    let again = |turn| Event::TurnQueued {
        turn: TurnId::new(turn),
        seat: seat("claude"),
        purpose: Purpose::Answer,
        replaces: Some(2),
        ahead: Vec::new(),
    };
    let written = |seq, turn: u32, status| {
        let mut message = message(seq, "claude", "Well.");
        message.status = Some(status);
        if turn > 1 {
            message.extra.insert(REPLACES.to_owned(), "2".to_owned());
        }
        message
    };
    let lands = |seq, turn, status| Event::MessageAdded {
        message: written(seq, turn, status),
        turn: Some(TurnId::new(turn)),
        found: false,
    };
    let events = [
        queued(1, "claude"),
        lands(2, 1, Status::Timeout),
        fails(1, 2),
        again(2),
        lands(3, 2, Status::Timeout),
        fails(2, 3),
        again(3),
        lands(4, 3, Status::Complete),
        Event::TurnFinished {
            turn: TurnId::new(3),
            seat: seat("claude"),
            message: Some(4),
            usage: Some(used(30)),
            tools: 0,
            thought: 0,
        },
    ];
    let records: Vec<Record> = (1..).zip(events).map(|(n, e)| record(n, e)).collect();
    let spent = |view: &View| {
        let of = |panel: &Panel| panel.content.spent().map(|used| used.output_tokens);
        let all: Vec<u64> = view.panels.iter().filter_map(of).collect();
        (all, view.usage.output_tokens, view.usage.cost_usd)
    };
    let whole = (vec![50], 50, Some(1.5));
    assert_eq!(spent(&View::of(&records)), whole, "live");
    let messages = [
        written(2, 1, Status::Timeout),
        written(3, 2, Status::Timeout),
        written(4, 3, Status::Complete),
    ];
    let mut read = View::open(messages.clone());
    read.recall(&records);
    assert_eq!(spent(&read), whole, "reopened");
    // Another window knows the first failure when the repeated answers arrive.
    let mut other = View::open(messages[..1].to_vec());
    other.recall(&records[..3]);
    assert_eq!(spent(&other), (vec![10], 10, Some(0.5)));
    for (message, known) in [(&messages[1], 6), (&messages[2], 9)] {
        other.fold(&Event::MessageAdded {
            message: message.clone(),
            turn: None,
            found: true,
        });
        other.recall(&records[..known]);
    }
    assert_eq!(spent(&other), whole, "in another window");
}

/// Two windows of one thread count their turns from 1, and write to one log.
#[test]
fn turns_of_two_sessions_with_one_number_are_told_apart() {
    let end = |name: &str, seq, tokens| Event::TurnFinished {
        turn: TurnId::new(1),
        seat: seat(name),
        message: Some(seq),
        usage: Some(Usage {
            output_tokens: tokens,
            ..Usage::default()
        }),
        tools: 0,
        thought: 0,
    };
    let events = [
        queued(1, "claude"),
        queued(1, "codex"),
        end("claude", 2, 20),
        end("codex", 3, 30),
    ];
    let records: Vec<Record> = (1..).zip(events).map(|(n, e)| record(n, e)).collect();
    let mut view = View::open([message(2, "claude", "Yes."), message(3, "codex", "No.")]);
    view.recall(&records);
    let tokens = |panel: &Panel| panel.content.spent().map(|used| used.output_tokens);
    let shown: Vec<_> = view.panels.iter().map(tokens).collect();
    assert_eq!(shown, [Some(20), Some(30)]);
}

/// A thread read from its folder, with its log, is the same picture as the session was.
#[test]
fn a_reopened_thread_is_the_same_picture() {
    let used = |tokens, usd| Usage {
        input_tokens: 9,
        output_tokens: tokens,
        cost_usd: Some(usd),
        ..Usage::default()
    };
    let end = |turn, name: &str, seq, tokens| Event::TurnFinished {
        turn: TurnId::new(turn),
        seat: seat(name),
        message: Some(seq),
        usage: Some(used(tokens, 0.25)),
        tools: 2,
        thought: 79,
    };
    let lands = |seq, name: &str, turn| Event::MessageAdded {
        message: message(seq, name, "Well."),
        turn: Some(TurnId::new(turn)),
        found: false,
    };
    let king = |seq| Event::MessageAdded {
        message: message(seq, "king", "Why?"),
        turn: None,
        found: false,
    };
    // The members end in another order than they were asked in. A second session counts turns from 1 again.
    let mut records = Vec::new();
    let rounds = [
        king(1),
        queued(1, "claude"),
        queued(2, "codex"),
        queued(3, "cursor"),
    ]
    .into_iter()
    .chain([lands(2, "cursor", 3), end(3, "cursor", 2, 30)])
    .chain([lands(3, "claude", 1), end(1, "claude", 3, 10)])
    .chain([lands(4, "codex", 2), end(2, "codex", 4, 20)])
    .chain([king(5), queued(1, "codex"), queued(2, "claude")])
    .chain([lands(6, "claude", 2), end(2, "claude", 6, 11)])
    .chain([lands(7, "codex", 1), end(1, "codex", 7, 21)]);
    for (seq, event) in (1..).zip(rounds) {
        records.push(record(seq, event));
    }
    let shown = |view: &View| -> Vec<(u32, Option<u64>, Option<Timestamp>)> {
        let shown = view.panels.iter().filter_map(|panel| {
            let Content::Message {
                message,
                usage,
                trace,
                ..
            } = &panel.content
            else {
                return None;
            };
            let span = trace.as_deref().and_then(|trace| trace.span);
            let tokens = usage.map(|usage| usage.output_tokens);
            Some((message.seq, tokens, span.map(|span| span.0)))
        });
        shown.collect()
    };
    let live = View::of(&records);
    let on_disk = (1..=7).map(|seq| {
        let from = [
            "king", "cursor", "claude", "codex", "king", "claude", "codex",
        ];
        message(seq, from[seq as usize - 1], "Well.")
    });
    let mut read = View::open(on_disk.clone());
    read.recall(&records);
    assert_eq!(shown(&read), shown(&live));
    let order: Vec<u32> = shown(&read).iter().map(|(seq, ..)| *seq).collect();
    assert_eq!(order, [1, 3, 4, 2, 5, 7, 6]);
    assert_eq!(read.usage_by_seat, live.usage_by_seat);
    let Content::Message {
        trace: Some(trace), ..
    } = &read.panels[1].content
    else {
        panic!("{:?}", read.panels[1])
    };
    assert_eq!((trace.thought, trace.tools), (79, 2));
    // Twice is once, and a log of something else changes nothing.
    let before = read.clone();
    read.recall(&records);
    assert_eq!((shown(&read), read.usage), (shown(&before), before.usage));
    // A message of another member that has the number now is not of that turn.
    let mut another = View::open((1..=7).map(|seq| message(seq, "dan", "Well.")));
    another.recall(&records);
    assert!(
        shown(&another)
            .iter()
            .all(|(_, tokens, _)| tokens.is_none())
    );
    let mut other = View::open(on_disk);
    other.recall(&records[..1]);
    assert!(shown(&other).iter().all(|(_, tokens, _)| tokens.is_none()));
}

/// A window may ask while the members of another one still answer: live and reopened, such an answer is marked.
#[test]
fn an_answer_that_was_asked_for_before_a_newer_question_is_late() {
    let second = |n| Timestamp::from_second(n).expect("a time");
    let said = |seq, from: &str, at| Message {
        at: second(at),
        ..message(seq, from, "Well.")
    };
    let added = |message: &Message, turn: Option<u32>| Event::MessageAdded {
        message: message.clone(),
        turn: turn.map(TurnId::new),
        found: turn.is_none() && !message.is_king(),
    };
    let end = |turn, name: &str, seq| Event::TurnFinished {
        turn: TurnId::new(turn),
        seat: seat(name),
        message: Some(seq),
        usage: Some(Usage::default()),
        tools: 0,
        thought: 0,
    };
    let messages = [
        said(1, "king", 10),
        said(2, "codex", 12),
        said(3, "king", 15),
        said(4, "claude", 20),
        said(5, "codex", 21),
    ];
    let events = [
        (10, added(&messages[0], None)),
        (10, queued(1, "claude")),
        (10, queued(2, "codex")),
        (12, added(&messages[1], Some(2))),
        (12, end(2, "codex", 2)),
        (15, added(&messages[2], None)),
        (15, queued(3, "codex")),
        (20, added(&messages[3], Some(1))),
        (20, end(1, "claude", 4)),
        (21, added(&messages[4], Some(3))),
        (21, end(3, "codex", 5)),
    ];
    let records: Vec<Record> = (1..)
        .zip(events)
        .map(|(seq, (at, event))| Record {
            ts: second(at),
            ..record(seq, event)
        })
        .collect();
    let late = |view: &View| -> Vec<u32> {
        let late = view.panels.iter().filter_map(|panel| {
            let Content::Message { message, trace, .. } = &panel.content else {
                return None;
            };
            let is_late = trace.as_deref().is_some_and(|trace| trace.late);
            is_late.then_some(message.seq)
        });
        late.collect()
    };
    assert_eq!(late(&View::of(&records)), [4], "live");
    let mut read = View::open(messages);
    read.recall(&records);
    assert_eq!(late(&read), [4], "reopened");
}

/// Two sessions of a thread may ask the same member under the same number of a turn: one waits until the other has its answer.
#[test]
fn turns_of_one_member_in_two_sessions_are_told_apart() {
    let second = |n| Timestamp::from_second(n).expect("a time");
    let said = |seq, from: &str, at, delivery: Option<&str>| {
        let mut said = Message {
            at: second(at),
            ..message(seq, from, "Well.")
        };
        said.provenance.delivery_id = delivery.map(str::to_owned);
        said
    };
    let added = |message: &Message| Event::MessageAdded {
        message: message.clone(),
        turn: None,
        found: false,
    };
    let end = |seq| Event::TurnFinished {
        turn: TurnId::new(1),
        seat: seat("claude"),
        message: Some(seq),
        usage: Some(Usage::default()),
        tools: 0,
        thought: 0,
    };
    // A chat, or two commands; the second one asks while the first waits for its answer.
    for first in [Some("a"), None] {
        let messages = [
            said(1, "king", 10, first),
            said(2, "king", 13, None),
            said(3, "claude", 30, first),
            said(4, "claude", 48, None),
        ];
        let events = [
            (10, added(&messages[0])),
            (10, queued(1, "claude")),
            (13, added(&messages[1])),
            (13, queued(1, "claude")),
            (30, end(3)),
            (48, end(4)),
        ];
        let records: Vec<Record> = (1..)
            .zip(events)
            .map(|(seq, (at, event))| Record {
                ts: second(at),
                ..record(seq, event)
            })
            .collect();
        let seen = |records: &[Record]| -> Vec<(u32, i64, bool)> {
            let mut read = View::open(messages.clone());
            read.recall(records);
            let seen = read.panels.iter().filter_map(|panel| {
                let Content::Message { message, trace, .. } = &panel.content else {
                    return None;
                };
                let trace = trace.as_deref()?;
                let (from, to) = trace.span?;
                Some((message.seq, to.as_second() - from.as_second(), trace.late))
            });
            seen.collect()
        };
        assert_eq!(seen(&records), [(3, 20, true), (4, 35, false)], "{first:?}");
        if first.is_some() {
            // The other window reads the log while the second one is still asked.
            assert_eq!(seen(&records[..5]), [(3, 20, true)]);
        }
    }
}
