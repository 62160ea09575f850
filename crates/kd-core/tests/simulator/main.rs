//! A seeded simulator: random members, answers, failures, disks, users and foreign writers, in random order; the
//! invariants of `laws.rs` are checked after every step. A failure prints its seed; `KD_SIM_SEED=n` replays only that
//! one and prints the trace, `KD_SIM_RUNS=n` sets the number of runs.

// kd-core's lints against I/O do not apply to its tests, which read files and the environment.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod laws;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// Default number of runs.
const RUNS: u64 = 3_000;

fn env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Plays every second seed, from this one on: two tests share them, so that two cores do.
fn nothing_that_must_never_be_true_is_true(from: u64) {
    let runs = env("KD_SIM_RUNS").unwrap_or(RUNS);
    let mut steps = 0;
    for seed in (from..runs).step_by(2) {
        let run = || {
            let first = World::new(seed, false).run();
            let second = World::new(seed, false).run();
            assert!(
                first == second,
                "the same seed and inputs gave different effects"
            );
            first.len()
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(n) => steps += n,
            Err(panic) => {
                eprintln!("seed {seed} broke a law; `KD_SIM_SEED={seed}` plays it again");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(steps > 0 || from >= runs);
}

#[test]
fn the_laws_hold_for_even_seeds() {
    match env("KD_SIM_SEED") {
        Some(seed) => drop(World::new(seed, true).run()),
        None => nothing_that_must_never_be_true_is_true(0),
    }
}

#[test]
fn the_laws_hold_for_odd_seeds() {
    if env("KD_SIM_SEED").is_none() {
        nothing_that_must_never_be_true_is_true(1);
    }
}
