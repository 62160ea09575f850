//! Equality of open answers on raw outputs of five models with correctness judged by people: the files `NQ.json` and
//! `TQ.json` of EVOUNA (github.com/wangcunxiang/QA-Eval, Apache-2.0), in the folder named by `KD_EVOUNA`. Two right
//! answers count as equal, a right and a wrong one as different.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "prints figures of files that the caller names"
)]

use kd_reading::{contrast, sameness};
use serde_json::Value;
use std::collections::BTreeMap;

const MODELS: [&str; 5] = ["fid", "gpt35", "chatgpt", "gpt4", "newbing"];

/// Prints false merges, recall, and how often the winner matches that of the judged answers.
#[test]
#[ignore = "prints figures; reads files that are not here"]
fn figures() {
    let folder = std::env::var("KD_EVOUNA").unwrap();
    for file in ["NQ.json", "TQ.json"] {
        let text = std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
        let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
        let (mut equal, mut merged, mut unequal, mut wrongly, mut vetoed) = (0, 0, 0, 0, 0);
        let (mut short, mut short_merged) = (0, 0);
        let (mut decided, mut same_winner, mut split, mut other) = (0, 0, 0, 0);
        for row in rows.iter().filter(|row| row["improper"] != true) {
            let said: Vec<(String, &str, bool)> = MODELS
                .iter()
                .filter_map(|model| {
                    let text = row[format!("answer_{model}")].as_str()?;
                    let right = row[format!("judge_{model}")].as_bool()?;
                    Some((sameness::key(text), text, right))
                })
                .collect();
            let pairs = said
                .iter()
                .enumerate()
                .flat_map(|(at, a)| said[at + 1..].iter().map(move |b| (a, b)));
            for (a, b) in pairs.filter(|(a, b)| a.2 || b.2) {
                let together = a.0 == b.0;
                if a.2 && b.2 {
                    equal += 1;
                    merged += usize::from(together);
                    vetoed += usize::from(contrast::between(a.1, b.1).is_some());
                    let brief = a.1.len() <= 60 && b.1.len() <= 60;
                    short += usize::from(brief);
                    short_merged += usize::from(brief && together);
                } else {
                    unequal += 1;
                    wrongly += usize::from(together);
                }
            }
            // The closed form: right answers are one class, each wrong text is its own.
            let mut closed: BTreeMap<&str, usize> = BTreeMap::new();
            let mut open: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
            for (key, _, right) in &said {
                *closed
                    .entry(if *right { "right" } else { key })
                    .or_default() += 1;
                open.entry(key).or_insert((0, *right)).0 += 1;
            }
            let most = closed.values().max().copied().unwrap_or(0);
            if closed.values().filter(|n| **n == most).count() != 1
                || closed.get("right") != Some(&most)
            {
                continue;
            }
            decided += 1;
            let most = open.values().map(|(n, _)| *n).max().unwrap_or(0);
            let leaders: Vec<bool> = open
                .values()
                .filter(|(n, _)| *n == most)
                .map(|(_, r)| *r)
                .collect();
            match leaders.as_slice() {
                [true] => same_winner += 1,
                [false] => other += 1,
                _ => split += 1,
            }
        }
        println!(
            "{file}: equal pairs merged {merged} of {equal} (both up to 60 bytes: {short_merged} of {short}); merged although one is wrong {wrongly} of {unequal}; equal pairs that a judge may not merge {vetoed}; winners: the closed form's {same_winner}, split {split}, another {other} of {decided}"
        );
    }
}
