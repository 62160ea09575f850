//! Ways to state a probability from few marks, as registered in `docs/rules-tried.md`.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use kd_eval::calibration::{Forecast, Isotonic, Logistic, calibration};
use kd_eval::marks::{Basis, Evidence, Mark, score, strengths};
use kd_eval::replay::{Replay, marked};
use kd_eval::weights::odds;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::ops::Range;
use support::{FRONTIER, MMLU_PRO, table, text};

const SETS: [(&str, &str, [&str; 5]); 4] = [
    ("GSM8K", "zeroeval_gsm_44models.csv", FRONTIER),
    ("CRUXEval", "zeroeval_crux_51models.csv", FRONTIER),
    ("MATH level 5", "zeroeval_math-l5_43models.csv", FRONTIER),
    ("MMLU-Pro", "mmlu_pro_29models.csv", MMLU_PRO),
];
/// The prior of the curve that is printed today, and its precision.
const PRIOR: Logistic = Logistic {
    base: 0.0,
    slope: 4.0,
};
const PRECISION: f64 = 0.25;
const FOLDS: usize = 4;

/// A way to turn scores to probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Today,
    Prior(f64),
    Elsewhere(f64),
    Posterior,
    Bootstrap,
    Share(f64),
    Blocks(usize),
}

const WAYS: [Way; 14] = [
    Way::Today,
    Way::Prior(1.0),
    Way::Prior(4.0),
    Way::Prior(16.0),
    Way::Elsewhere(1.0),
    Way::Elsewhere(4.0),
    Way::Elsewhere(16.0),
    Way::Posterior,
    Way::Bootstrap,
    Way::Share(10.0),
    Way::Share(25.0),
    Way::Share(50.0),
    Way::Blocks(20),
    Way::Blocks(40),
];

impl Way {
    fn name(self) -> String {
        match self {
            Way::Today => "today".into(),
            Way::Prior(precision) => format!("stronger prior, {precision}"),
            Way::Elsewhere(precision) => format!("curve from elsewhere, {precision}"),
            Way::Posterior => "posterior mean".into(),
            Way::Bootstrap => "bootstrap".into(),
            Way::Share(weight) => format!("share of all marks, {weight}"),
            Way::Blocks(least) => format!("isotonic blocks, {least}"),
        }
    }

    /// Learns from scored marks; `elsewhere` is the curve of another set.
    fn learn(self, scored: &[Forecast], elsewhere: Logistic, seed: u64) -> Box<dyn Fn(f64) -> f64> {
        let today = Logistic::fit(scored, PRIOR, PRECISION);
        let n = scored.len() as f64;
        match self {
            Way::Today => Box::new(move |score| today.at(score)),
            Way::Prior(precision) => {
                let curve = Logistic::fit(scored, PRIOR, precision);
                Box::new(move |score| curve.at(score))
            }
            Way::Elsewhere(precision) => {
                let curve = Logistic::fit(scored, elsewhere, precision);
                Box::new(move |score| curve.at(score))
            }
            Way::Posterior => {
                let (mut h00, mut h01, mut h11) = (PRECISION, 0.0, PRECISION);
                for (score, _) in scored {
                    let p = today.at(*score);
                    let w = p * (1.0 - p);
                    h00 += w;
                    h01 += w * score;
                    h11 += w * score * score;
                }
                let det = h00 * h11 - h01 * h01;
                Box::new(move |score| {
                    let variance = (h11 - 2.0 * h01 * score + h00 * score * score) / det;
                    let wide = (1.0 + std::f64::consts::PI * variance / 8.0).sqrt();
                    1.0 / (1.0 + (-(today.base + today.slope * score) / wide).exp())
                })
            }
            Way::Bootstrap => {
                let mut chance = ChaCha12Rng::seed_from_u64(seed);
                let mut curve = || {
                    let drawn = scored
                        .iter()
                        .map(|_| scored[chance.random_range(0..scored.len())]);
                    Logistic::fit(&drawn.collect::<Vec<_>>(), PRIOR, PRECISION)
                };
                let curves: Vec<Logistic> = (0..50).map(|_| curve()).collect();
                Box::new(move |score| curves.iter().map(|c| c.at(score)).sum::<f64>() / 50.0)
            }
            Way::Share(weight) => {
                let right = scored.iter().filter(|(_, right)| *right).count() as f64;
                let share = (right + 1.0) / (n + 2.0);
                Box::new(move |score| (n * today.at(score) + weight * share) / (n + weight))
            }
            Way::Blocks(least) => {
                let mut sorted = scored.to_vec();
                sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
                let mut blocks: Vec<Vec<Forecast>> = vec![Vec::new()];
                for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
                    if blocks.last().unwrap().len() >= least {
                        blocks.push(Vec::new());
                    }
                    blocks.last_mut().unwrap().extend(equal);
                }
                if blocks.len() > 1 && blocks.last().unwrap().len() < least {
                    let last = blocks.pop().unwrap();
                    blocks.last_mut().unwrap().extend(last);
                }
                let pooled = blocks.iter().flat_map(|block| {
                    let mean = block.iter().map(|f| f.0).sum::<f64>() / block.len() as f64;
                    block.iter().map(move |(_, right)| (mean, *right))
                });
                let map = Isotonic::fit(&pooled.collect::<Vec<_>>());
                Box::new(move |score| map.at(score))
            }
        }
    }
}

/// Weights votes by what marks teach.
struct Weights {
    models: Vec<String>,
    given: Vec<f64>,
}

impl Weights {
    fn learn<'a>(marks: impl Iterator<Item = &'a Mark>, models: &[String], kind: &str) -> Self {
        let evidence = Evidence::of(marks.cloned().collect());
        let names: Vec<&str> = models.iter().map(String::as_str).collect();
        let right: Vec<f64> = strengths(&evidence, kind, &names)
            .into_iter()
            .map(|strength| strength.unwrap().estimate())
            .collect();
        Self {
            models: models.to_vec(),
            given: odds(&right),
        }
    }

    fn score(&self, mark: &Mark) -> f64 {
        let of = |model: &String| self.models.iter().position(|known| known == model).unwrap();
        let given: Vec<f64> = mark
            .members
            .iter()
            .map(|m| self.given[of(&m.model)])
            .collect();
        let mut keys: Vec<&str> = vec![mark.winner.as_deref().unwrap()];
        let mut answers = Vec::new();
        for member in &mark.members {
            let key = match (member.backs, member.key.as_deref()) {
                (true, _) => Some(0),
                (false, None) => None,
                (false, Some(key)) => Some(
                    keys.iter()
                        .skip(1)
                        .position(|known| *known == key)
                        .map_or_else(
                            || {
                                keys.push(key);
                                keys.len() - 1
                            },
                            |at| at + 1,
                        ),
                ),
            };
            answers.push(key);
        }
        score(&answers, &given, 0).unwrap()
    }
}

/// Returns the scores of marks, each with weights from three quarters of the others, and the weights from all.
fn scored(given: &[Mark]) -> (Vec<Forecast>, Weights) {
    let models: Vec<String> = given[0].members.iter().map(|m| m.model.clone()).collect();
    let fold_of =
        |at: usize| ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % FOLDS;
    let kind = &given[0].kind;
    let mut found = Vec::new();
    for fold in 0..FOLDS {
        let others = given
            .iter()
            .enumerate()
            .filter(|(at, _)| fold_of(*at) != fold);
        let weights = Weights::learn(others.map(|(_, mark)| mark), &models, kind);
        let here = given
            .iter()
            .enumerate()
            .filter(|(at, _)| fold_of(*at) == fold);
        found.extend(here.map(|(_, mark)| (weights.score(mark), mark.is_right())));
    }
    (found, Weights::learn(given.iter(), &models, kind))
}

fn replay(file: &str, members: &[&str]) -> Replay {
    let names: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
    table(file).council(&names).unwrap()
}

/// The plain calibration error in points, and the log score; means over seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    plain: f64,
    log: f64,
}

/// Measures all ways, with at most `most` marks.
fn measure(replay: &Replay, most: usize, elsewhere: Logistic, seeds: Range<u64>) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); WAYS.len()];
    let n = (seeds.end - seeds.start) as f64;
    for seed in seeds {
        let mut all: Vec<Mark> = marked(replay, seed);
        all.shuffle(&mut ChaCha12Rng::seed_from_u64(seed));
        let (one, other) = all.split_at(all.len() / 2);
        let mut told: Vec<Vec<Forecast>> = vec![Vec::new(); WAYS.len()];
        for (taught, asked) in [(one, other), (other, one)] {
            let given = &taught[..most.min(taught.len())];
            let given = &given[given.len().saturating_sub(kd_eval::marks::RECENT)..];
            let (scores, weights) = scored(given);
            let edge = 1.0 / (given.len() as f64 + 2.0);
            let asked: Vec<Forecast> = asked
                .iter()
                .map(|mark| (weights.score(mark), mark.is_right()))
                .collect();
            for (way, told) in WAYS.iter().zip(&mut told) {
                let map = way.learn(&scores, elsewhere, seed);
                told.extend(
                    asked
                        .iter()
                        .map(|(score, right)| (map(*score).clamp(edge, 1.0 - edge), *right)),
                );
            }
        }
        for (cell, told) in cells.iter_mut().zip(&told) {
            let found = calibration(told).unwrap();
            cell.plain += found.ece * 100.0 / n;
            cell.log += found.log_score / n;
        }
    }
    cells
}

/// The curve of all marks of a set.
fn curve(set: usize) -> Logistic {
    let (_, file, members) = SETS[set];
    let (scores, _) = scored(&marked(&replay(file, &members), 0));
    Logistic::fit(&scores, PRIOR, PRECISION)
}

fn elsewhere(set: usize) -> Logistic {
    match set {
        0 => curve(1),
        1 => curve(0),
        _ => {
            let (a, b) = (curve(0), curve(1));
            Logistic {
                base: a.base.midpoint(b.base),
                slope: a.slope.midpoint(b.slope),
            }
        }
    }
}

#[test]
fn todays_way_is_what_is_printed() {
    let (_, file, members) = SETS[1];
    let mut all: Vec<Mark> = marked(&replay(file, &members), 1);
    all.shuffle(&mut ChaCha12Rng::seed_from_u64(1));
    for (second, mark) in (0..).zip(&mut all) {
        mark.at = jiff::Timestamp::from_second(second).unwrap();
    }
    let (given, asked) = all.split_at(150);
    let basis = Basis::of(&Evidence::of(given.to_vec()), &asked[0], None);
    let (scores, weights) = scored(given);
    let map = Way::Today.learn(&scores, PRIOR, 0);
    for mark in asked {
        let (ours, printed) = (map(weights.score(mark)), basis.probability(mark).unwrap());
        assert!((ours - printed).abs() < 1e-9, "{ours} {printed}");
    }
}

/// Prints the rows of a table, and fails if one of them is not in the page.
fn print(rows: &[String]) {
    let page = text("../../docs/rules-tried.md");
    for row in rows {
        println!("{row}");
    }
    for row in rows {
        assert!(page.contains(row.as_str()), "not in the page: {row}");
    }
}

/// `cargo test --release -p kd-eval --test calibration_tried -- --ignored --nocapture`
#[test]
#[ignore = "it learns from 3,440 sets of marks in 14 ways"]
fn what_was_tried_is_on_the_page() {
    let mut all: Vec<Vec<Cell>> = Vec::new();
    for (set, (_, file, members)) in SETS.iter().enumerate().take(2) {
        for most in [100, 200] {
            all.push(measure(
                &replay(file, members),
                most,
                elsewhere(set),
                1000..1060,
            ));
        }
    }
    let row = |at: usize| {
        let cell = |cells: &Vec<Cell>| format!("{:.2}; {:.4}", cells[at].plain, cells[at].log);
        let cells: Vec<String> = all.iter().map(cell).collect();
        let mean = all.iter().map(|cells| cells[at].plain).sum::<f64>() / 4.0;
        format!(
            "| {} | {} | {mean:.2} |",
            WAYS[at].name(),
            cells.join(" | ")
        )
    };
    let chosen: Vec<String> = (0..WAYS.len()).map(row).collect();

    let mut sets: Vec<Vec<Vec<Cell>>> = Vec::new();
    for (set, (_, file, members)) in SETS.iter().enumerate() {
        let (replay, elsewhere) = (replay(file, members), elsewhere(set));
        let half = replay.questions.len() / 2;
        let mut of_set = Vec::new();
        for most in [100, 200, 400]
            .into_iter()
            .filter(|most| *most < half)
            .chain([half])
        {
            let seeds = if half > 2500 && most == half { 10 } else { 100 };
            of_set.push(measure(&replay, most, elsewhere, 0..seeds));
        }
        sets.push(of_set);
    }
    let row = |at: usize, of: &dyn Fn(Cell) -> String| {
        let set = |cells: &Vec<Vec<Cell>>| {
            let cells: Vec<String> = cells.iter().map(|cells| of(cells[at])).collect();
            cells.join(", ")
        };
        let cells: Vec<String> = sets.iter().map(set).collect();
        format!("| {} | {} |", WAYS[at].name(), cells.join(" | "))
    };
    let plain = |cell: Cell| format!("{:.2}", cell.plain);
    let log = |cell: Cell| format!("{:.4}", cell.log);
    let rows: Vec<String> = (0..WAYS.len()).map(|at| row(at, &plain)).collect();
    let logs: Vec<String> = (0..WAYS.len()).map(|at| row(at, &log)).collect();
    print(&[chosen, rows, logs].concat());
}
