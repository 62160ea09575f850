//! Whether `certain-enough` loses against counting all five members, over several seeds of councils and halves.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use kd_eval::deciders::{Halves, Setting, Way};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use support::table;

/// The sets, and the calls of five that are the goal.
const SETS: [(&str, f64); 4] = [
    ("zeroeval_gsm_44models.csv", 2.1),
    ("zeroeval_math-l5_43models.csv", 2.5),
    ("zeroeval_crux_51models.csv", 1.9),
    ("mmlu_pro_29models.csv", 1.9),
];
const ALL: [&str; 2] = ["learned", "weighted"];
/// The point of the one-sided 95 % interval of a normal distribution.
const ONE_SIDED: f64 = 1.645;

/// The result on one set.
struct Found {
    calls: f64,
    /// The count of all members with the most right answers.
    all: &'static str,
    /// The mean loss against it, and the upper ends of its one-sided 95 % intervals over councils and over questions.
    loss: f64,
    over_councils: f64,
    over_questions: f64,
}

/// Returns the mean, and its standard error.
fn mean(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let spread = values.map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (spread / n).sqrt())
}

fn measure(file: &str, seeds: std::ops::Range<u64>, councils: usize) -> Found {
    let table = table(file);
    let ways = ["certain-enough", ALL[0], ALL[1]].map(|name| Way::find(name).unwrap());
    let mut calls = Vec::new();
    // The losses against each count of all members: by council, and by question in its councils.
    let mut by_council = [Vec::new(), Vec::new()];
    let mut by_question: [BTreeMap<String, (f64, f64)>; 2] = Default::default();
    for seed in seeds {
        let mut names = table.members.clone();
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        for _ in 0..councils {
            names.shuffle(&mut chance);
            let replay = table.council(&names[..5]).unwrap();
            let halves = Halves::drawn(replay.questions.len(), seed);
            let setting = Setting {
                replay: &replay,
                options: replay.options.unwrap_or(20),
                seed,
                halves: &halves,
            };
            let decided = ways.map(|way| way.decide(&setting));
            let right =
                |way: usize, at: usize| replay.questions[at].share_right(&decided[way][at].winners);
            let asked = decided[0]
                .iter()
                .map(|d| d.asked.as_ref().map_or(5, Vec::len) as f64);
            calls.push(mean(asked).0);
            for all in 0..2 {
                let losses =
                    (0..replay.questions.len()).map(|at| right(all + 1, at) - right(0, at));
                by_council[all].push(mean(losses.clone()).0);
                for (question, loss) in replay.questions.iter().zip(losses) {
                    let sum = by_question[all].entry(question.id.clone()).or_default();
                    *sum = (sum.0 + loss, sum.1 + 1.0);
                }
            }
        }
    }
    let losses = [0, 1].map(|all: usize| mean(by_council[all].iter().copied()));
    let best = usize::from(losses[1].0 > losses[0].0);
    let of_questions = by_question[best].values().map(|(sum, n)| sum / n);
    Found {
        calls: mean(calls.into_iter()).0,
        all: ALL[best],
        loss: losses[best].0,
        over_councils: losses[best].0 + ONE_SIDED * losses[best].1,
        over_questions: losses[best].0 + ONE_SIDED * mean(of_questions).1,
    }
}

#[test]
fn fewer_members_lose_little() {
    let (file, calls) = SETS[2];
    let found = measure(file, 1..2, 10);
    assert!(found.calls <= calls + 0.3, "{} calls", found.calls);
    assert!(found.loss <= 0.005, "{} lost", found.loss);
}

/// `cargo test --release -p kd-eval --test enough -- --ignored --nocapture`
#[test]
#[ignore = "it decides 960 councils"]
fn fewer_members_lose_at_most_half_a_point() {
    for (file, calls) in SETS {
        let found = measure(file, 1..7, 40);
        println!(
            "{file}: {:.2} of 5 calls (goal {calls}) · {:+.2} points lost against {} (one-sided 95 %: {:+.2} over councils, {:+.2} over questions)",
            found.calls,
            found.loss * 100.0,
            found.all,
            found.over_councils * 100.0,
            found.over_questions * 100.0,
        );
        assert!(found.calls <= calls, "{file}");
        assert!(
            found.over_councils <= 0.005 && found.over_questions <= 0.005,
            "{file}"
        );
    }
}
