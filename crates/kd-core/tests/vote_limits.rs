//! How large a poll each rule takes.

use kd_core::voting::{Ballot, Mark, NANOS, RULES, Rank, Rule, Rules, tally};
use std::time::Instant;

/// Ballots that a rule can read, each in another order.
fn ballots(rule: &Rule, candidates: usize, count: usize) -> Vec<Ballot> {
    let order = |k: usize| (0..candidates).map(move |c| (c * 7919 + k * 104_729) % candidates);
    let marks: [fn(Vec<usize>) -> Mark; 4] = [
        |order| Mark::Ranking(order.into_iter().map(Rank::One).collect()),
        |order| {
            Mark::Scores(
                order
                    .into_iter()
                    .map(|c| Some((c % 6) as i128 * NANOS))
                    .collect(),
            )
        },
        |order| Mark::Approvals(order.into_iter().take(3).collect()),
        |order| Mark::Choice(order[0]),
    ];
    marks
        .iter()
        .map(|mark| {
            (0..count)
                .map(|k| Ballot::new(mark(order(k).collect())))
                .collect::<Vec<_>>()
        })
        .find(|ballots| {
            let few = ballots[..1].to_vec();
            tally(
                RULES.iter().find(|r| r.name == rule.name).unwrap(),
                &few,
                &standing(candidates),
            )
            .abstained
            .is_empty()
        })
        .unwrap_or_default()
}

#[test]
#[ignore = "a measurement: cargo test -p kd-core --test vote_limits -- --ignored --nocapture"]
fn how_time_grows() {
    for (count, sizes) in [(1, [50, 100, 200]), (50, [25, 50, 100])] {
        for rule in RULES {
            let times = sizes.map(|n| {
                let ballots = ballots(rule, n, count);
                let start = Instant::now();
                tally(rule, &ballots, &standing(n));
                start.elapsed().as_secs_f64() * 1e3
            });
            println!(
                "{count:3} ballots {:28} {times:8.1?} ms  x{:.1}",
                rule.name,
                times[2] / times[1].max(1e-3)
            );
        }
    }
}

fn standing(candidates: usize) -> Rules {
    Rules::of((0..candidates).map(|c| c.to_string()))
}
