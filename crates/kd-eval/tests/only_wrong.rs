//! What it costs that a mark tells only that a verdict was wrong: who of the members that voted otherwise was right stays
//! unknown, and strengths are counted without them.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use kd_eval::auto::Strength;
use kd_eval::deciders::{Halves, RECORDED, gold_mark};
use kd_eval::marks::{Evidence, Mark, strengths};
use kd_eval::replay::{Question, Replay};
use kd_eval::weights::odds;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use support::{FILES, table};

/// Returns the odds weights that marks teach.
fn weights(marks: Vec<Mark>, members: &[String]) -> Vec<f64> {
    let models: Vec<&str> = members.iter().map(String::as_str).collect();
    let known = strengths(&Evidence::of(marks), RECORDED, &models);
    let right: Vec<f64> = known
        .into_iter()
        .map(|strength| strength.map_or(0.5, Strength::estimate))
        .collect();
    odds(&right)
}

/// Returns the share of right answers of a weighted vote; a tie counts as a random draw.
fn share(questions: &[&Question], weights: &[f64]) -> f64 {
    let right = |question: &&Question| {
        let mut sums = vec![0.0; question.keys.len()];
        for (answer, weight) in question.answers.iter().zip(weights) {
            if let Some(answer) = answer {
                sums[*answer] += weight;
            }
        }
        let top = sums.iter().copied().fold(0.0, f64::max);
        let winners: Vec<usize> = (0..sums.len())
            .filter(|at| top > 0.0 && top - sums[*at] < 1e-9)
            .collect();
        question.share_right(&winners)
    };
    questions.iter().map(right).sum::<f64>() / questions.len() as f64
}

/// Returns how many points fewer are right with marks that only say right or wrong than with right answers: the mean over
/// both halves of a council.
fn loss(replay: &Replay, marks: usize, seed: u64) -> f64 {
    let halves = Halves::drawn(replay.questions.len(), seed);
    let of = |half: usize| -> Vec<&Question> {
        let each = replay.questions.iter().enumerate();
        each.filter(|(at, _)| halves.of(*at) == half)
            .map(|(_, question)| question)
            .collect()
    };
    let mut lost = 0.0;
    for half in 0..2 {
        let gold: Vec<Mark> = (0u32..)
            .zip(of(half).into_iter().take(marks))
            .map(|(at, question)| gold_mark(at + 1, question, &replay.members))
            .collect();
        let only = gold.iter().map(|mark| Mark {
            answer: None,
            ..mark.clone()
        });
        let only = weights(only.collect(), &replay.members);
        let whole = weights(gold, &replay.members);
        let rest = of(1 - half);
        lost += share(&rest, &whole) - share(&rest, &only);
    }
    lost * 50.0
}

/// Returns the mean loss over councils in points, its standard error over seeds, and the largest of a council.
fn measure(
    file: &str,
    marks: usize,
    seeds: std::ops::Range<u64>,
    councils: usize,
) -> (f64, f64, f64) {
    let table = table(file);
    let mut losses = Vec::new();
    for seed in seeds {
        let mut names = table.members.clone();
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        for _ in 0..councils {
            names.shuffle(&mut chance);
            losses.push(loss(&table.council(&names[..5]).unwrap(), marks, seed));
        }
    }
    let n = losses.len() as f64;
    let mean = losses.iter().sum::<f64>() / n;
    let spread = losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let most = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (mean, (spread / n).sqrt(), most)
}

#[test]
fn marks_without_right_answers_cost_little() {
    let (mean, _, _) = measure(FILES[2], 100, 1..2, 10);
    assert!(mean < 0.6, "{mean}");
}

/// `cargo test --release -p kd-eval --test only_wrong -- --ignored --nocapture`
#[test]
#[ignore = "it decides 960 councils"]
fn what_marks_without_right_answers_cost() {
    for file in FILES {
        for marks in [50, 100, 199] {
            let (mean, error, most) = measure(file, marks, 1..4, 40);
            println!(
                "{file}: {marks} marks: {mean:+.2} ± {:.2} points lost, at most {most:+.2} in a council",
                1.96 * error
            );
        }
    }
}
