//! The cost of replaying recorded answers: decisions per second on one core.
//!
//! `plain count` is the baseline: the same 10,279 questions with five members, counted in one hand-written loop.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kd_eval::deciders::{Halves, Setting, Way};
use kd_eval::reliability::dawid_skene;
use kd_eval::replay::{Empty, Replay, Table, report};
use std::hint::black_box;

const ANSWERS: &str = include_str!("../tests/data/replay/mmlu_pro_29models.csv");
const MEMBERS: [&str; 5] = [
    "gemini-1.5-pro-002",
    "gemini-1.5-flash-002",
    "Meta-Llama-3_1-70B-Instruct",
    "DeepSeek-Coder-V2",
    "jamba-1.5-large",
];

fn plain(replay: &Replay) -> usize {
    let mut right = 0;
    for q in &replay.questions {
        let mut counts = [0u32; 16];
        q.answers.iter().flatten().for_each(|k| counts[*k] += 1);
        let top = (0..q.keys.len()).max_by_key(|k| counts[*k]);
        right += usize::from(top.is_some_and(|k| q.right[k]));
    }
    right
}

fn replay(c: &mut Criterion) {
    let table = Table::read(ANSWERS, Empty::Abstains).unwrap();
    let five = table.council(&MEMBERS.map(str::to_owned)).unwrap();
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(five.questions.len() as u64));
    group.bench_function("plain count", |b| b.iter(|| plain(black_box(&five))));
    for name in [
        "plurality",
        "log-odds",
        "weighted",
        "borda",
        "auto",
        "dawid-skene",
        "certain",
    ] {
        let way = Way::find(name).unwrap();
        let halves = Halves::drawn(five.questions.len(), 0);
        let setting = Setting {
            replay: &five,
            options: 10,
            seed: 0,
            halves: &halves,
        };
        group.bench_function(name, |b| b.iter(|| way.decide(black_box(&setting))));
    }
    group.finish();
    let mut whole = c.benchmark_group("whole");
    whole.sample_size(10);
    whole.bench_function("read 11,984 questions by 29 members", |b| {
        b.iter(|| Table::read(black_box(ANSWERS), Empty::Abstains).unwrap());
    });
    let ways = [
        "plurality",
        "plurality-first",
        "log-odds",
        "dawid-skene",
        "oracle",
    ]
    .map(|w| Way::find(w).unwrap());
    whole.bench_function("report of five members, five ways", |b| {
        b.iter(|| report(black_box(&five), &ways, 10, 0))
    });
    let all = table.council(&[]).unwrap();
    let answers: Vec<Vec<Option<usize>>> =
        all.questions.iter().map(|q| q.answers.clone()).collect();
    whole.bench_function("dawid-skene of 29 members", |b| {
        b.iter(|| dawid_skene(black_box(&answers), all.members.len(), 10));
    });
    whole.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
