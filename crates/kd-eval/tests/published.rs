//! The table of published strengths: derived from the recorded sets, and tried on a set that is left out.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

use kd_eval::auto::{Auto, Known, Task, auto};
use kd_eval::intervals::bootstrap;
use kd_eval::marks::published::name;
use kd_eval::marks::{Evidence, Published, strengths};
use kd_eval::replay::{Empty, PUBLIC, Public, Question, Table, fingerprint};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::path::PathBuf;

const COUNCILS: usize = 120;
const SIZE: usize = 5;

fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn tables() -> Vec<(&'static Public, Table)> {
    let read = |public: &'static Public| {
        let text = std::fs::read_to_string(here("tests/data/replay").join(public.file)).unwrap();
        assert_eq!(
            fingerprint(text.as_bytes()),
            public.sha256,
            "{}",
            public.file
        );
        (public, Table::read(&text, Empty::Abstains).unwrap())
    };
    PUBLIC.iter().map(read).collect()
}

/// `BLESS=1 cargo test -p kd-eval --test published` writes the table.
#[test]
fn the_table_is_derived_from_the_recorded_sets() {
    let tables = tables();
    let sets: Vec<(&Public, &Table)> = tables
        .iter()
        .map(|(public, table)| (*public, table))
        .collect();
    let head = "\
# Shares of right answers on questions on which the average of these models has 60 %.
# Derived on 2026-11-28 from WildEval/ZeroEval (GSM8K, MATH level 5, CRUXEval) and TIGER-AI-Lab/MMLU-Pro,
# both Apache-2.0, models of 2023 and 2024: BLESS=1 cargo test -p kd-eval --test published
";
    let derived = format!("{head}{}", Published::derive(&sets).csv());
    let file = here("src/marks/published.csv");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &derived).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), derived);
}

/// Returns the winning answers by weight; several if tied.
fn winners(question: &Question, asked: &[usize], weights: &[i128]) -> Vec<usize> {
    let mut sums = vec![0; question.keys.len()];
    for member in asked {
        if let Some(key) = question.answers[*member] {
            sums[key] += weights[*member];
        }
    }
    let most = sums.iter().copied().max().unwrap_or_default();
    (0..sums.len())
        .filter(|key| most > 0 && sums[*key] == most)
        .collect()
}

/// The means over councils of models in the table, each of their gains by question: `auto` without marks, with strengths
/// published elsewhere, beside plurality and beside the member that is best by the table.
fn tried(
    tables: &[(&'static Public, Table)],
    out: usize,
    councils: usize,
    seed: u64,
) -> (usize, [Vec<f64>; 2]) {
    let others = tables.iter().enumerate().filter(|(at, _)| *at != out);
    let others: Vec<(&Public, &Table)> = others
        .map(|(_, (public, table))| (*public, table))
        .collect();
    let published = Published::derive(&others);
    let (public, table) = &tables[out];
    let is_listed = |model: &&String| published.find(model, public.kind).is_some();
    let mut names: Vec<String> = table.members.iter().filter(is_listed).cloned().collect();
    let listed = names.len();
    let evidence = Evidence::default().with(published);
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let mut sums: [BTreeMap<String, (f64, f64)>; 2] = Default::default();
    for _ in 0..councils {
        names.shuffle(&mut chance);
        let replay = table.council(&names[..SIZE]).unwrap();
        let models: Vec<&str> = replay.members.iter().map(String::as_str).collect();
        let chosen: Auto = auto(&Known {
            task: Task::Reasoning,
            members: strengths(&evidence, public.kind, &models),
            ..Known::default()
        });
        let all: Vec<usize> = (0..SIZE).collect();
        let asked = if chosen.protocol == "vote" {
            &all
        } else {
            &chosen.seats
        };
        let weights: Vec<i128> = chosen.weights.clone();
        for q in &replay.questions {
            let right =
                |asked: &[usize], weights: &[i128]| q.share_right(&winners(q, asked, weights));
            let own = right(asked, &weights);
            let beside = [
                right(&all, &[1; SIZE]),
                right(&[chosen.best.unwrap()], &[1; SIZE]),
            ];
            for (sums, beside) in sums.iter_mut().zip(beside) {
                let sum = sums.entry(q.id.clone()).or_default();
                *sum = (sum.0 + own - beside, sum.1 + 1.0);
            }
        }
    }
    (
        listed,
        sums.map(|sums| sums.into_values().map(|(sum, n)| sum / n).collect()),
    )
}

/// The names of the same model in different sets meet.
#[test]
fn a_published_strength_of_other_sets_is_found() {
    let tables = tables();
    let of = |at: usize| {
        tables[at]
            .1
            .members
            .iter()
            .map(|model| name(model))
            .collect::<Vec<_>>()
    };
    let common = of(3).iter().filter(|model| of(2).contains(model)).count();
    assert!(common >= 5, "{common}");
    let (_, [over_plurality, _]) = tried(&tables, 1, 3, 1);
    let mean = over_plurality.iter().sum::<f64>() / over_plurality.len() as f64;
    assert!(mean > 0.0, "{mean}");
}

/// `cargo test --release -p kd-eval --test published -- --ignored --nocapture`
#[test]
#[ignore = "it decides 480 councils"]
fn published_strengths_are_tried_on_the_set_left_out() {
    let tables = tables();
    println!(
        "| set left out | models | over plurality, points | over the best by the table, points |\n|---|---:|---|---|"
    );
    let page = std::fs::read_to_string(here("../../docs/marks.md")).unwrap();
    for out in 0..tables.len() {
        let (listed, gains) = tried(&tables, out, COUNCILS, 1);
        let told = gains.map(|values| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let interval = bootstrap(&values, 10_000, 1);
            format!(
                "{:+.2} ({:+.2} to {:+.2})",
                mean * 100.0,
                interval.low * 100.0,
                interval.high * 100.0
            )
        });
        let row = format!(
            "| {} | {listed} | {} |",
            tables[out].0.name,
            told.join(" | ")
        );
        println!("{row}");
        assert!(page.contains(&row), "not in docs/marks.md: {row}");
    }
}
