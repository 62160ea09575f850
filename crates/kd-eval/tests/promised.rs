//! The tables of `docs/eval.md` about promises: whether they are kept, and how soon a change is noticed.
#![allow(
    missing_docs,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout
)]

mod support;

use kd_eval::replay::{DriftTrial, Kept, Select, Trial, drifts, promises, read_csv};
use support::{FRONTIER, MMLU_PRO, recorded, text};

/// The sets, the promise that drift is measured for, and the members.
const SETS: [(&str, &str, f64, [&str; 5]); 4] = [
    ("GSM8K", "zeroeval_gsm_44models.csv", 0.9, FRONTIER),
    ("CRUXEval", "zeroeval_crux_51models.csv", 0.9, FRONTIER),
    (
        "MATH level 5",
        "zeroeval_math-l5_43models.csv",
        0.8,
        FRONTIER,
    ),
    ("MMLU-Pro", "mmlu_pro_29models.csv", 0.8, MMLU_PRO),
];
const MARKS: [usize; 3] = [100, 200, 400];

fn percent(share: f64) -> String {
    match format!("{:.1}", share * 100.0).as_str() {
        "0.0" => "0".to_owned(),
        "100.0" => "100".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns the rows of a set: one for each promise, with a figure for each number of marks.
fn kept(name: &str, file: &str, members: [&str; 5], shares: &[f64], splits: usize) -> Vec<String> {
    let select = Select {
        members: members.map(str::to_owned).to_vec(),
        ..Select::default()
    };
    let replay = read_csv(&recorded(file), &select).unwrap();
    let trial = Trial {
        promises: shares.to_vec(),
        marks: MARKS.to_vec(),
        splits,
        seed: 0,
    };
    let found = promises(&replay, &trial).unwrap();
    let row = |share: &f64| {
        let rows: Vec<&Kept> = found
            .rows
            .iter()
            .filter(|row| row.promise == *share)
            .collect();
        let cells = |of: &dyn Fn(&Kept) -> String| {
            let cells: Vec<String> = rows.iter().map(|row| of(row)).collect();
            match cells.iter().all(|cell| cell == "–") {
                true => "–".to_owned(),
                false => cells.join(", "),
            }
        };
        let of_splits = |n: usize| percent(n as f64 / splits as f64);
        format!(
            "| {name} | {:.0} % | {} | {} | {} | {} | {} |",
            share * 100.0,
            percent(rows[0].possible),
            cells(&|row| percent(row.answered)),
            cells(&|row| row.wrong.map_or("–".to_owned(), percent)),
            cells(&|row| of_splits(row.broken)),
            cells(&|row| of_splits(row.refused)),
        )
    };
    shares.iter().map(row).collect()
}

/// Returns the rows of a set: one for each change.
fn noticed(name: &str, file: &str, promise: f64, members: [&str; 5], splits: usize) -> Vec<String> {
    let all = read_csv(&recorded(file), &Select::default()).unwrap();
    let trial = DriftTrial {
        members: members.map(str::to_owned).to_vec(),
        promises: vec![promise],
        marks: vec![200],
        splits,
        seed: 0,
    };
    let found = drifts(&all, &trial).unwrap();
    let rows = found.rows.iter().enumerate();
    rows.map(|(at, row)| {
        let head = match at {
            0 => format!("| {name}, {:.0} % |", promise * 100.0),
            _ => "| |".to_owned(),
        };
        let of = |n: usize| percent(n as f64 / row.promised.max(1) as f64);
        let after = match row.delay {
            None => "–".to_owned(),
            Some((half, most)) if half == most => half.to_string(),
            Some((half, most)) => format!("{half}, {most}"),
        };
        format!(
            "{head} {} | {:.0} of {:.0} | {} | {} | {} | {after} |",
            row.change.name(),
            row.covered,
            row.looked,
            row.wrong.map_or("–".to_owned(), percent),
            of(row.gone),
            of(row.withdrawn),
        )
    })
    .collect()
}

/// Fails if the page lacks one of these rows.
fn on_page(rows: &[String]) {
    let page = text("../../docs/eval.md");
    for row in rows {
        println!("{row}");
    }
    let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "not in docs/eval.md: {missing:#?}");
}

#[test]
fn a_promise_is_kept_in_nearly_all_splits() {
    let (name, file, _, members) = SETS[1];
    let rows = kept(name, file, members, &[0.8], 10);
    assert_eq!(rows.len(), 1);
    assert!(rows[0].contains("| 0, 0, 0 | 0, 0, 0 |"), "{rows:?}");
}

/// `cargo test --release -p kd-eval --test promised -- --ignored --nocapture`
#[test]
#[ignore = "it tries 10,800 splits"]
fn the_page_says_how_often_promises_are_kept() {
    let rows =
        SETS.map(|(name, file, _, members)| kept(name, file, members, &[0.8, 0.9, 0.95], 300));
    on_page(&rows.concat());
}

/// `cargo test --release -p kd-eval --test promised -- --ignored --nocapture`
#[test]
#[ignore = "it tries 4,800 splits"]
fn the_page_says_how_soon_a_change_is_noticed() {
    let rows =
        SETS.map(|(name, file, promise, members)| noticed(name, file, promise, members, 300));
    on_page(&rows.concat());
}
