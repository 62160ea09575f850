//! Whether the probabilities that marks give are accurate on halves never seen.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

use kd_eval::calibration::{Forecast, calibration};
use kd_eval::marks::{Basis, Evidence, Mark};
use kd_eval::replay::{Replay, Select, marked, read_csv};
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::path::PathBuf;

const FRONTIER: [&str; 5] = [
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20241022",
    "gemini-1.5-pro",
    "Meta-Llama-3.1-405B-Instruct@hyperbolic",
    "Mistral-Large-2",
];
const SETS: [(&str, [&str; 5]); 4] = [
    ("zeroeval_gsm_44models.csv", FRONTIER),
    ("zeroeval_crux_51models.csv", FRONTIER),
    ("zeroeval_math-l5_43models.csv", FRONTIER),
    (
        "mmlu_pro_29models.csv",
        [
            "gemini-1.5-pro-002",
            "gemini-1.5-flash-002",
            "Meta-Llama-3_1-70B-Instruct",
            "DeepSeek-Coder-V2",
            "jamba-1.5-large",
        ],
    ),
];

fn replay(file: &str, members: &[&str]) -> Replay {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/replay");
    let text = std::fs::read_to_string(path.join(file)).unwrap();
    let members = members.iter().map(|m| (*m).to_owned()).collect();
    let select = Select {
        members,
        ..Select::default()
    };
    read_csv(&text, &select).unwrap()
}

/// Returns the calibration error of both halves of a set together, each told by up to `most` marks of the other, in
/// points: the mean over seeds, its 95th percentile, and the error that exact probabilities would show.
fn errors(replay: &Replay, most: usize, seeds: u64) -> (f64, f64, f64) {
    let (mut errors, mut ideal) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let mut all: Vec<Mark> = marked(replay, seed);
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        all.shuffle(&mut chance);
        let (one, other) = all.split_at(all.len() / 2);
        let mut told: Vec<Forecast> = Vec::new();
        for (taught, asked) in [(one, other), (other, one)] {
            let given = taught[..most.min(taught.len())].to_vec();
            let basis = Basis::of(&Evidence::of(given), &asked[0], None);
            let of = |mark: &Mark| Some((basis.probability(mark)?, mark.is_right()));
            told.extend(asked.iter().filter_map(of));
        }
        let ece = |told: &[Forecast]| calibration(told).unwrap().ece * 100.0;
        errors.push(ece(&told));
        let drawn = |(p, _): &Forecast| (*p, chance.random::<f64>() < *p);
        ideal.push(ece(&told.iter().map(drawn).collect::<Vec<_>>()));
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (sum, least) = (mean(&errors), mean(&ideal));
    errors.sort_by(f64::total_cmp);
    (sum, errors[errors.len() * 95 / 100], least)
}

#[test]
fn half_of_the_questions_tell_of_the_others() {
    for (file, members) in &SETS[..2] {
        let (mean, ..) = errors(&replay(file, members), usize::MAX, 5);
        assert!(mean <= 3.0, "{file}: {mean}");
    }
}

/// `cargo test --release -p kd-eval --test calibrated -- --ignored --nocapture`
#[test]
#[ignore = "it learns from 16,000 sets of marks"]
fn what_is_told_of_halves_never_seen() {
    for (file, members) in SETS {
        let replay = replay(file, &members);
        for most in [100, 200, 400, usize::MAX] {
            let seeds = if replay.questions.len() > 5000 {
                10
            } else {
                100
            };
            let (mean, high, ideal) = errors(&replay, most, seeds);
            let marks = most.min(replay.questions.len() / 2);
            println!(
                "{file}: {marks} marks: {mean:.2} (95 % of seeds: at most {high:.2}; exact: {ideal:.2})"
            );
        }
    }
}
