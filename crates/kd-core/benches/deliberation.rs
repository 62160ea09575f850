//! The cost of orchestrating a deliberation, without the models. A stage of seven members should take less than 5 ms.
//! `replies` is the baseline: the same replies, only generated.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

#[allow(dead_code, reason = "the bench takes what it needs of the room")]
#[path = "../tests/deliberation/room.rs"]
mod room;

use criterion::{Criterion, criterion_group, criterion_main};
use kd_core::deliberation::Fact;
use room::{Answer, good, plan, run, seat};
use std::hint::black_box;

fn council() -> kd_core::deliberation::Plan {
    let mut plan = plan();
    plan.seats = (0..7)
        .map(|n| seat(&format!("m{n}x"), "opinion-giver"))
        .collect();
    plan.seats.push(seat("chair", "synthesizer"));
    plan
}

fn answer(asked: &room::Asked) -> Answer {
    let wants = if asked.seat.starts_with("m1") {
        "no"
    } else {
        "yes"
    };
    Answer::Text(good(asked, wants))
}

fn deliberation(c: &mut Criterion) {
    let plan = council();
    let stages = run(&plan, answer)
        .facts()
        .filter(|f| matches!(f, Fact::StageBegan { .. }))
        .count();
    println!("one council: 7 members, {stages} stages, 22 calls; divide by {stages} for a stage");
    c.bench_function("council of 7, whole", |b| {
        b.iter(|| black_box(run(&plan, answer).records.len()))
    });
    let done = run(&plan, answer);
    c.bench_function("the same, replayed", |b| {
        b.iter(|| black_box(kd_core::deliberation::replay(&done.records).unwrap().agreed))
    });
    let mut asked = Vec::new();
    run(&plan, |a| {
        asked.push(room::Asked {
            seat: a.seat.clone(),
            stage: a.stage.clone(),
            labels: a.labels.clone(),
            request: a.request.clone(),
        });
        answer(a)
    });
    c.bench_function("replies", |b| {
        b.iter(|| {
            asked
                .iter()
                .map(|a| match answer(a) {
                    Answer::Text(text) => text.len(),
                    _ => 0,
                })
                .sum::<usize>()
        })
    });
}

criterion_group!(benches, deliberation);
criterion_main!(benches);
