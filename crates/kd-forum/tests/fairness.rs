//! Error rate and power of the fairness verdict, by simulation, compared with the verdict of the first version.
//!
//! For the large table of docs/fairness.md: `cargo test --release -p kd-forum --test fairness full -- --ignored
//! --nocapture --test-threads=1`
#![allow(clippy::print_stdout, reason = "the table is the result")]

#[path = "fairness/old.rs"]
mod old;

use kd_core::config::forum::Settings;
use kd_forum::cards::Cards;
use kd_forum::fairness::{Judge, Look, Sample};
use kd_forum::study::{Study, study};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// The source of the orders.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// A scheduler, by name.
    Scheduler(&'static str),
    /// Plackett–Luce with weight 1.5 for one agent, recorded as a shuffle.
    Favorite,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduler(name) => name,
            Self::Favorite => "favorite 1.5",
        }
    }

    fn is_fair(self) -> bool {
        matches!(
            self,
            Self::Scheduler("shuffle" | "williams" | "energy" | "deficit")
        )
    }
}

/// Shares of runs in which a verdict was FAIL.
#[derive(Debug, Default)]
struct Rates {
    old: f64,
    once: f64,
    running: f64,
    /// By mean position alone, or by neighbors for `rotate`.
    by_row: f64,
}

fn rates(rule: Rule, agents: usize, cycles: usize, skip: f64, runs: u64) -> Rates {
    let settings = Settings {
        scheduler: match rule {
            Rule::Scheduler(name) => name.into(),
            Rule::Favorite => "shuffle".into(),
        },
        skip_probability: skip,
        ..Settings::default()
    };
    let row = if rule == Rule::Scheduler("rotate") {
        "neighbors"
    } else {
        "mean_place"
    };
    let old_null = old::Shuffles::new(agents, cycles);
    let mut rates = Rates::default();
    let share = 1.0 / runs as f64;
    for seed in 0..runs {
        let mut judge = Judge::default();
        let mut before = old::Counts::new(agents);
        let mut luck = ChaCha12Rng::seed_from_u64(seed ^ 0xfa_4012);
        let what = Study::alike(&settings, agents, cycles, seed);
        study(&what, &mut |sample| {
            let order = match rule {
                Rule::Scheduler(_) => sample.order.to_vec(),
                Rule::Favorite => favored(sample.cards, &mut luck),
            };
            let mut turns = sample.turns.clone();
            turns.sort_by_key(|turn| order.iter().position(|name| *name == turn.agent));
            let sample = Sample {
                order: &order,
                turns,
                ..sample.clone()
            };
            before.add(&sample);
            judge.add(&sample);
        });
        let once = judge.table(Look::Once);
        let fails = |failed: bool| if failed { share } else { 0.0 };
        rates.old += fails(!before.passes(&old_null));
        rates.once += fails(!once.passes());
        rates.running += fails(!judge.table(Look::Running).passes());
        rates.by_row += fails(once.row(row).is_some_and(|row| row.pass == Some(false)));
    }
    rates
}

/// Draws an order in which the first agent's weight is 1.5 and that of the others 1.
fn favored(cards: &Cards, luck: &mut ChaCha12Rng) -> Vec<String> {
    let mut clocks: Vec<(f64, &String)> = cards
        .candidates
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let u: f64 = luck.random_range(f64::MIN_POSITIVE..1.0);
            (-u.ln() / if i == 0 { 1.5 } else { 1.0 }, &c.name)
        })
        .collect();
    clocks.sort_by(|a, b| a.0.total_cmp(&b.0));
    clocks.into_iter().map(|(_, name)| name.clone()).collect()
}

fn line(rule: Rule, agents: usize, cycles: usize, skip: f64, runs: u64) -> Rates {
    let rates = rates(rule, agents, cycles, skip, runs);
    println!(
        "| {} | {agents} | {cycles} | {skip} | {runs} | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
        rule.name(),
        100.0 * rates.old,
        100.0 * rates.once,
        100.0 * rates.running,
        100.0 * rates.by_row,
    );
    rates
}

/// Checks the rates. One percent is met unless the number of failures is beyond it in 999 of 1,000 such tests.
fn check(rule: Rule, agents: usize, cycles: usize, runs: u64, rates: &Rates) {
    let mean = 0.01 * runs as f64;
    let bound = mean + 3.1 * (mean * 0.99).sqrt() + 1.0;
    let place = format!("{} with {agents} agents, {cycles} cycles", rule.name());
    if rule.is_fair() {
        for rate in [rates.once, rates.running] {
            assert!(rate * runs as f64 <= bound, "{place} fails {rate}");
        }
    } else if cycles >= 500 {
        let least = if agents >= 5 { 0.95 } else { 0.90 };
        assert!(rates.by_row >= least, "{place} is found {}", rates.by_row);
    }
}

const HEAD: &str = "| orders | agents | cycles | skip | runs | first version fails | fails at the end | fails while running | by its row |\n|---|---|---|---|---|---|---|---|---|";

#[test]
fn fair_runs_pass_and_unfair_ones_are_found() {
    println!("{HEAD}");
    for (rule, agents, cycles, skip, runs) in [
        (Rule::Scheduler("shuffle"), 3, 30, 0.2, 200),
        (Rule::Scheduler("shuffle"), 5, 60, 0.2, 200),
        (Rule::Scheduler("shuffle"), 10, 60, 0.5, 60),
        (Rule::Scheduler("williams"), 5, 60, 0.2, 60),
        (Rule::Scheduler("fixed"), 3, 500, 0.2, 5),
        (Rule::Scheduler("rotate"), 3, 500, 0.2, 5),
        (Rule::Favorite, 3, 500, 0.2, 40),
        (Rule::Favorite, 5, 500, 0.2, 40),
    ] {
        let rates = line(rule, agents, cycles, skip, runs);
        check(rule, agents, cycles, runs, &rates);
    }
}

/// Checks after every cycle from the tenth on: a fair run fails at any of them at most once in a hundred runs.
#[test]
fn a_fair_run_may_be_looked_at_after_every_cycle() {
    let (runs, mut failed) = (40, 0);
    for seed in 0..runs {
        let mut judge = Judge::default();
        let mut ever = false;
        let what = Study::alike(&Settings::default(), 4, 150, 1_000 + seed);
        study(&what, &mut |sample| {
            judge.add(sample);
            ever |= !judge.table(Look::Running).passes();
        });
        failed += usize::from(ever);
    }
    assert!(failed <= 3, "{failed} of {runs} runs failed at some look");
}

const AGENTS: [usize; 6] = [3, 5, 8, 10, 20, 50];

/// Measures the error rate at this skip probability.
fn fair(skip: f64, rules: &[&'static str]) {
    println!("{HEAD}");
    let mut worst: f64 = 0.0;
    for agents in AGENTS {
        for cycles in [30, 60, 100, 200, 500, 1_000, 10_000] {
            let runs = (4_000_000 / (agents * cycles) as u64).clamp(40, 2_000);
            for name in rules {
                let rule = Rule::Scheduler(name);
                let rates = line(rule, agents, cycles, skip, runs);
                check(rule, agents, cycles, runs, &rates);
                if runs >= 400 {
                    worst = worst.max(rates.once).max(rates.running);
                }
            }
        }
    }
    println!(
        "greatest error rate with 400 runs or more: {:.2} %",
        100.0 * worst
    );
}

#[test]
#[ignore = "the large table takes minutes: run it with --release"]
fn full_error_rate() {
    fair(0.2, &["shuffle", "williams"]);
}

#[test]
#[ignore = "the large table takes minutes: run it with --release"]
fn full_error_rate_with_many_skips() {
    fair(0.5, &["shuffle"]);
}

#[test]
#[ignore = "the large table takes minutes: run it with --release"]
fn full_error_rate_of_other_schedulers() {
    println!("{HEAD}");
    for name in ["energy", "deficit"] {
        for (agents, cycles) in [(3, 30), (5, 200), (10, 1_000)] {
            let rule = Rule::Scheduler(name);
            let rates = line(rule, agents, cycles, 0.2, 200);
            check(rule, agents, cycles, 200, &rates);
        }
    }
}

#[test]
#[ignore = "the large table takes minutes: run it with --release"]
fn full_power() {
    println!("{HEAD}");
    for rule in [
        Rule::Favorite,
        Rule::Scheduler("fixed"),
        Rule::Scheduler("rotate"),
    ] {
        for agents in AGENTS {
            for cycles in [500, 200, 60] {
                let runs = if rule == Rule::Favorite { 300 } else { 20 };
                let rates = line(rule, agents, cycles, 0.2, runs);
                check(rule, agents, cycles, runs, &rates);
            }
        }
    }
}

/// The time of one verdict for 50 agents and 10,000 cycles, compared with the time of counting the cycles.
#[test]
#[ignore = "a measurement: run it with --release"]
#[allow(clippy::disallowed_methods, reason = "it measures time")]
fn time_of_a_verdict() {
    let mut judge = Judge::default();
    let began = std::time::Instant::now();
    study(
        &Study::alike(&Settings::default(), 50, 10_000, 1),
        &mut |sample| {
            judge.add(sample);
        },
    );
    let counted = began.elapsed();
    for look in [Look::Once, Look::Running] {
        let began = std::time::Instant::now();
        assert!(judge.table(look).passes());
        let took = began.elapsed();
        println!(
            "{look:?}: {:.1} ms for one verdict on 50 agents and 10,000 cycles; drawing and counting them took {:.1} ms ({:.1} times as long)",
            took.as_secs_f64() * 1e3,
            counted.as_secs_f64() * 1e3,
            counted.as_secs_f64() / took.as_secs_f64(),
        );
    }
}
