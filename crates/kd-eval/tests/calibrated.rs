//! Whether the probabilities that marks give are accurate on halves never seen.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use jiff::Timestamp;
use kd_eval::calibration::{Forecast, calibration};
use kd_eval::marks::{Basis, Evidence, Mark};
use kd_eval::replay::{Replay, Select, marked, read_csv};
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use support::{FRONTIER, MMLU_PRO, recorded};

const SETS: [(&str, [&str; 5]); 4] = [
    ("zeroeval_gsm_44models.csv", FRONTIER),
    ("zeroeval_crux_51models.csv", FRONTIER),
    ("zeroeval_math-l5_43models.csv", FRONTIER),
    ("mmlu_pro_29models.csv", MMLU_PRO),
];

fn replay(file: &str, members: &[&str]) -> Replay {
    let members = members.iter().map(|m| (*m).to_owned()).collect();
    let select = Select {
        members,
        ..Select::default()
    };
    read_csv(&recorded(file), &select).unwrap()
}

/// The calibration error of both halves of a set together, each told by up to a number of marks of the other, in points.
struct Found {
    /// The mean over seeds, and the 95th percentile.
    plain: f64,
    high: f64,
    /// The mean debiased error.
    debiased: f64,
    /// The plain and the debiased error that exact probabilities would show.
    exact: (f64, f64),
}

fn errors(replay: &Replay, most: usize, seeds: u64) -> Found {
    let (mut errors, mut debiased) = (Vec::new(), Vec::new());
    let (mut exact, mut exact_debiased) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let mut all: Vec<Mark> = marked(replay, seed);
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        all.shuffle(&mut chance);
        // Marks are given in the order of the draw, not in that of the file.
        for (second, mark) in (0..).zip(&mut all) {
            mark.at = Timestamp::from_second(second).unwrap();
        }
        let (one, other) = all.split_at(all.len() / 2);
        let mut told: Vec<Forecast> = Vec::new();
        for (taught, asked) in [(one, other), (other, one)] {
            let given = taught[..most.min(taught.len())].to_vec();
            let basis = Basis::of(&Evidence::of(given), &asked[0], None);
            let of = |mark: &Mark| Some((basis.probability(mark)?, mark.is_right()));
            told.extend(asked.iter().filter_map(of));
        }
        let found = calibration(&told).unwrap();
        errors.push(found.ece * 100.0);
        debiased.push(found.debiased_ece * 100.0);
        let drawn = |(p, _): &Forecast| (*p, chance.random::<f64>() < *p);
        let found = calibration(&told.iter().map(drawn).collect::<Vec<_>>()).unwrap();
        exact.push(found.ece * 100.0);
        exact_debiased.push(found.debiased_ece * 100.0);
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let plain = mean(&errors);
    errors.sort_by(f64::total_cmp);
    Found {
        plain,
        high: errors[errors.len() * 95 / 100],
        debiased: mean(&debiased),
        exact: (mean(&exact), mean(&exact_debiased)),
    }
}

#[test]
fn half_of_the_questions_tell_of_the_others() {
    for (file, members) in &SETS[..2] {
        let found = errors(&replay(file, members), usize::MAX, 5);
        assert!(found.plain <= 3.0, "{file}: {}", found.plain);
        assert!(found.debiased < found.plain, "{file}: {}", found.debiased);
    }
}

/// `cargo test --release -p kd-eval --test calibrated -- --ignored --nocapture`
#[test]
#[ignore = "it learns from 16,000 sets of marks"]
fn what_is_told_of_halves_never_seen() {
    for (file, members) in SETS {
        let replay = replay(file, &members);
        for most in [100, 200, 400, usize::MAX] {
            let is_large = replay.questions.len() > 5000 && most == usize::MAX;
            let seeds = if is_large { 10 } else { 100 };
            let found = errors(&replay, most, seeds);
            let marks = most.min(replay.questions.len() / 2);
            println!(
                "{file}: {marks} marks: {:.2} (95 % of seeds: at most {:.2}; exact {:.2}), debiased {:.2} (exact {:.2})",
                found.plain, found.high, found.exact.0, found.debiased, found.exact.1
            );
        }
    }
}
