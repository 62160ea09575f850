//! The cost of counting 80,101 real ballots (Minneapolis 2013, 36 candidates, 33 rounds).
//!
//! `plain count` is the baseline: the first names of the same ballots, added up once. Read the others as multiples of
//! it.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kd_vote::{Ballot, Case, Mark, Rank, find, read_json_lines, tally};
use std::hint::black_box;

const ELECTIONS: &str = include_str!("../tests/data/elections/rctab_single_winner.jsonl");

fn election(name: &str) -> (&'static str, Case) {
    let named = format!("\"name\": \"{name}\"");
    let line = ELECTIONS.lines().find(|l| l.contains(&named)).unwrap();
    (line, read_json_lines(line).unwrap().remove(0))
}

/// Returns every ballot individually.
fn each(case: &Case) -> Vec<Ballot> {
    let alone = |b: &Ballot| std::iter::repeat_n(b.clone().times(1), b.count as usize);
    case.ballots.iter().flat_map(alone).collect()
}

fn plain(ballots: &[Ballot], candidates: usize) -> Vec<u64> {
    let mut sums = vec![0; candidates];
    for ballot in ballots {
        if let Mark::Ranking(ranks) = &ballot.mark
            && let Some(Rank::One(c)) = ranks.first()
        {
            sums[*c] += ballot.count;
        }
    }
    sums
}

fn irv(c: &mut Criterion) {
    let (line, case) = election("2013_minneapolis_mayor");
    let ballots = each(&case);
    assert_eq!(ballots.len(), 80_101);
    let rule = find("irv").unwrap();
    assert_eq!(tally(rule, &ballots, &case.rules).rounds.len(), 33);
    let mut group = c.benchmark_group("irv");
    group.throughput(Throughput::Elements(80_101));
    group.bench_function("plain count", |b| {
        b.iter(|| plain(black_box(&ballots), case.rules.candidates.len()))
    });
    group.bench_function("80101 ballots", |b| {
        b.iter(|| tally(rule, black_box(&ballots), &case.rules))
    });
    group.bench_function("80101 ballots, alike ones together", |b| {
        b.iter(|| tally(rule, black_box(&case.ballots), &case.rules));
    });
    group.bench_function("80101 ballots from text", |b| {
        b.iter(|| {
            let case = read_json_lines(black_box(line)).unwrap().remove(0);
            tally(rule, &case.ballots, &case.rules)
        });
    });
    let schulze = find("schulze").unwrap();
    group.bench_function("schulze, alike ones together", |b| {
        b.iter(|| tally(schulze, black_box(&case.ballots), &case.rules));
    });
    group.finish();
}

criterion_group!(benches, irv);
criterion_main!(benches);
