//! The cost of a piece of an answer on its way through the machine into a front end, and of a long history.
//!
//! `append` is the baseline: the same pieces, only appended to a string. Read the others as multiples of it.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jiff::Timestamp;
use kd_core::clean::Cleaner;
use kd_core::message::{Address, Message, Provenance, Status};
use kd_core::prompt::{self, PromptRules};
use kd_core::protocols;
use kd_core::view::View;
use kd_core::{
    Budget, Command, Council, Delta, Event, Input, Machine, Member, Op, OpenCouncil, Roster,
    SeatName, ThreadId, TurnId,
};
use std::hint::black_box;

const PIECES: usize = 10_000;
const PIECE: &str = " a word or two,";

fn member(name: &str) -> Member {
    Member::new(SeatName::new(name).unwrap(), "none")
}

fn message(seq: u32) -> Message {
    let king = seq % 4 == 1;
    Message {
        seq,
        from: if king {
            "king"
        } else {
            ["ada", "bob", "cyd"][seq as usize % 3]
        }
        .into(),
        to: Address::All,
        at: Timestamp::UNIX_EPOCH,
        status: (!king).then_some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: Default::default(),
        body: "Some words of an answer: they fill a line.\n\n- a point\n- another\n"
            .repeat(10)
            .into(),
    }
}

/// Builds a council with three open turns.
fn speaking(history: Vec<Message>) -> Council {
    let next = history.len() as u32 + 1;
    let (mut council, _) = Council::open(OpenCouncil {
        thread: ThreadId("council-bech".into()),
        roster: Roster::new(["ada", "bob", "cyd"].map(member).into(), None),
        protocol: protocols::PROTOCOLS[0],
        prompts: PromptRules::default(),
        history,
        seed: 1,
        limits: Budget::default(),
        conclude: false,
        queue: None,
        last: None,
    });
    ask(&mut council, next);
    council
}

/// Sends a message; returns how many members were asked.
fn ask(council: &mut Council, seq: u32) -> usize {
    let now = Timestamp::UNIX_EPOCH;
    let to = Address::All;
    let body = "Why?".to_owned();
    council.step(now, Input::Op(Op::Say { body, to }));
    let said = Message {
        from: "king".into(),
        ..message(seq)
    };
    let saved = council.step(
        now,
        Input::Saved {
            turn: None,
            message: said,
        },
    );
    saved
        .commands
        .iter()
        .filter(|c| matches!(c, Command::Ask { .. }))
        .count()
}

fn delta(i: usize) -> Input {
    Input::Delta {
        turn: TurnId::new(1 + i as u32 % 3),
        delta: Delta::Text { text: PIECE.into() },
    }
}

fn pieces(c: &mut Criterion) {
    let mut group = c.benchmark_group("pieces");
    group.throughput(Throughput::Elements(PIECES as u64));
    group.bench_function("append", |b| {
        let pieces = || (0..PIECES).map(|_| PIECE.to_owned()).collect::<Vec<_>>();
        b.iter_batched(
            pieces,
            |pieces| {
                let mut text = String::new();
                for piece in pieces {
                    text.push_str(black_box(&piece));
                }
                text
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("step", |b| {
        let setup = || {
            (
                speaking(Vec::new()),
                (0..PIECES).map(delta).collect::<Vec<_>>(),
            )
        };
        b.iter_batched(
            setup,
            |(mut council, inputs)| {
                for input in inputs {
                    black_box(council.step(Timestamp::UNIX_EPOCH, input));
                }
                council
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("fold", |b| {
        let setup = || {
            let mut council = speaking(Vec::new());
            let mut view = View::default();
            for turn in 1..=3 {
                view.fold(&Event::TurnQueued {
                    turn: TurnId::new(turn),
                    seat: SeatName::new("ada").unwrap(),
                    purpose: kd_core::event::Purpose::Answer,
                    replaces: None,
                    ahead: Vec::new(),
                });
            }
            let steps = (0..PIECES)
                .map(delta)
                .map(|input| council.step(Timestamp::UNIX_EPOCH, input));
            let events: Vec<Event> = steps.flat_map(|fx| fx.events).collect();
            (view, events)
        };
        b.iter_batched(
            setup,
            |(mut view, events)| {
                for event in &events {
                    view.fold(black_box(event));
                }
                view
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("clean", |b| {
        let dirty = "\u{1b}[1ma word\u{1b}[0m or";
        b.iter(|| {
            let mut cleaner = Cleaner::default();
            for _ in 0..PIECES {
                black_box(cleaner.clean(black_box(dirty)));
            }
        });
    });
    group.finish();
}

fn histories(c: &mut Criterion) {
    let mut group = c.benchmark_group("history");
    for n in [100u32, 10_000] {
        let history: Vec<Message> = (1..=n).map(message).collect();
        let bytes: usize = history.iter().map(|m| m.body.len()).sum();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("render/{n}"), |b| {
            b.iter(|| prompt::render(black_box(&history), []));
        });
    }
    group.finish();
}

criterion_group!(benches, pieces, histories);
criterion_main!(benches);
