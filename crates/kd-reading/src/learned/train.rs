//! Computes the weights from the recorded and, less, the composed replies: a softmax over the candidates and "no answer", with gradients scaled
//! by their history.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a tool that reads and writes the files of this crate"
)]

use super::features;
use super::view::{BITS, Row};
use super::{Answer, Wanted, softmax};
use crate::{
    InObjects, Options, by_rules, elements, in_objects, joined, plain, prose, tail, without_objects,
};
use serde_json::Value;

#[path = "../../tests/composed/cases.rs"]
mod composed;

const REPLIES: &str = "tests/data/replies";
/// The corpora that are never used for training: `tests/reading.rs` measures them.
const HELD_OUT: [&str; 2] = ["candid", "deceptive"];
/// Passes over the replies; the weights of the last ones are averaged.
const PASSES: usize = 12;
const AVERAGED: usize = 5;
const KINDS: [&str; 4] = ["choice", "number", "side", "text"];
/// The kind of short texts, and how often each of them is learned in a pass.
const TEXT: usize = 3;
const TEXT_PASSES: usize = 6;
const RATE: f32 = 0.05;
const DECAY: f32 = 0.003;
/// Number of groups of authors in the cross-validation.
const GROUPS: usize = 12;
/// Number of composed replies of each set, and the weight of each beside a recorded one.
const COMPOSED: usize = 2_400;
const COMPOSED_WEIGHT: f32 = 0.1;
const COMPOSED_SETS: [&str; 4] = ["build", "measure", "second", "third"];
const WEIGHTS: usize = 1 << BITS;

struct Case {
    file: String,
    kind: usize,
    wanted: Wanted,
    text: String,
    rows: Vec<Row>,
    /// The right answer, if the reply has one.
    want: Option<Answer>,
    /// Index of the row that is right; `None` if the answer is not among the candidates.
    right: Option<usize>,
    weight: f32,
}

impl Case {
    /// Returns whether weights of a kind learn from it. Those of short texts learn from choices too.
    fn teaches(&self, kind: usize) -> bool {
        let fits = self.kind == kind || kind == TEXT && self.kind == 0;
        fits && self.right.is_some() && !HELD_OUT.contains(&self.file.as_str())
    }
}

/// Returns the wanted kind of a recorded reply, and the names of its options.
fn wanted(kind: &str) -> Option<(Wanted, Vec<String>)> {
    let (kind, rest) = kind.split_once(':').unwrap_or((kind, ""));
    let names: Vec<String> = rest.split('|').map(str::to_owned).collect();
    Some(match kind {
        "choice" => (Wanted::Option(Options::new(&names)), names),
        "yes-no" => {
            let names = vec!["yes".to_owned(), "no".to_owned()];
            (Wanted::Option(Options::new(&names)), names)
        }
        "label" => {
            let labels: Vec<String> = ('A'..).take(names.len()).map(String::from).collect();
            (Wanted::Option(Options::labelled(&names, &labels)), labels)
        }
        "number" => (Wanted::Number, Vec::new()),
        "text" => (Wanted::Short, Vec::new()),
        _ => return None,
    })
}

/// Returns the recorded replies without JSON.
fn cases() -> Vec<Case> {
    let mut files: Vec<_> = std::fs::read_dir(REPLIES)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| line.contains("\"reply\"")) {
            let value: Value = serde_json::from_str(line).unwrap();
            let kind = value["kind"].as_str().unwrap();
            let reply = value["reply"].as_str().unwrap();
            out.extend(case(&name, kind, reply, value["want"].as_str()));
        }
    }
    for set in COMPOSED_SETS {
        for one in composed::cases(set).into_iter().take(COMPOSED) {
            let kind = match one.kind.as_str() {
                "label" => "choice:A|B|C",
                kind => kind,
            };
            let case = case("", kind, &one.reply, one.want.as_deref());
            out.extend(case.map(|case| Case {
                weight: COMPOSED_WEIGHT,
                ..case
            }));
        }
    }
    out
}

fn case(file: &str, kind: &str, reply: &str, want: Option<&str>) -> Option<Case> {
    let (wanted, names) = wanted(kind)?;
    let text = prose::without_thoughts(reply);
    let text = elements::as_labels(&text);
    let text = plain::without_input(&text);
    if !matches!(in_objects(&wanted, text.trim()), InObjects::None) {
        return None;
    }
    let text = without_objects(text.trim());
    let reply = super::reply(&wanted, tail(&text))?;
    let of_names = |want: &str| match wanted {
        Wanted::Option(_) => names.iter().position(|n| n == want).map(Answer::Option),
        _ => Some(Answer::Text(want.to_owned())),
    };
    let want = want.and_then(of_names);
    let right = match &want {
        None => Some(reply.answers.len()),
        Some(want) => reply.answers.iter().position(|answer| answer == want),
    };
    Some(Case {
        file: file.to_owned(),
        kind: reply.kind,
        rows: features::of(
            reply.kind == super::SIDE,
            reply.answers.len(),
            &reply.sentences,
        ),
        text: tail(&text).to_owned(),
        wanted,
        want,
        right,
        weight: 1.0,
    })
}

fn shares(weights: &[f32], rows: &[Row]) -> Vec<f32> {
    let score = |row: &Row| row.iter().map(|f| weights[*f as usize]).sum();
    softmax(&rows.iter().map(score).collect::<Vec<f32>>())
}

fn trained(cases: &[&Case]) -> Vec<f32> {
    let mut weights = vec![0f32; WEIGHTS];
    let mut history = vec![1e-2f32; WEIGHTS];
    let mut average = vec![0f32; WEIGHTS];
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut dice = 7u64;
    for pass in 0..PASSES {
        for n in (1..order.len()).rev() {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            order.swap(n, usize::try_from(dice % (n as u64 + 1)).unwrap());
        }
        for n in &order {
            let case = cases[*n];
            let shares = shares(&weights, &case.rows);
            for (at, row) in case.rows.iter().enumerate() {
                let off = case.weight * (shares[at] - f32::from(Some(at) == case.right));
                if off.abs() < 1e-4 {
                    continue;
                }
                for feature in row {
                    let at = *feature as usize;
                    let slope = off + DECAY * weights[at];
                    history[at] += slope * slope;
                    weights[at] -= RATE * slope / history[at].sqrt();
                }
            }
        }
        if pass + AVERAGED >= PASSES {
            for (sum, weight) in average.iter_mut().zip(&weights) {
                *sum += weight / AVERAGED as f32;
            }
        }
    }
    average
}

/// Returns weights of a kind from the replies of some authors.
fn of_kind(cases: &[Case], kind: usize, learns: impl Fn(&Case) -> bool) -> Vec<f32> {
    let taught = cases
        .iter()
        .filter(|case| case.teaches(kind) && learns(case));
    // Few replies give a short text.
    let often = |case: &Case| if case.kind == TEXT { TEXT_PASSES } else { 1 };
    let taught = taught.flat_map(|case| std::iter::repeat_n(case, often(case)));
    trained(&taught.collect::<Vec<_>>())
}

/// Writes the weights.
#[test]
#[ignore = "writes the weights"]
fn weights() {
    let cases = cases();
    for (kind, name) in KINDS.into_iter().enumerate() {
        let weights = of_kind(&cases, kind, |_| true);
        let most = weights.iter().map(|w| w.abs()).fold(0.0, f32::max);
        let scale = most / 127.0;
        let mut bytes = scale.to_le_bytes().to_vec();
        bytes.extend(
            weights
                .iter()
                .map(|w| ((w / scale).round() as i8).cast_unsigned()),
        );
        std::fs::write(format!("src/learned/weights/{name}.bin"), bytes).unwrap();
    }
}

/// Prints how the replies of the authors in `KD_AUTHORS` are read by the rules and by weights from the other authors. Only authors whose
/// replies never changed a rule are measured honestly.
#[test]
#[ignore = "prints figures; holds nothing"]
fn authors_left_out() {
    let cases = cases();
    let authors = std::env::var("KD_AUTHORS").unwrap_or("appraised,implied".into());
    for author in authors.split(',') {
        for (kind, name) in KINDS.into_iter().enumerate() {
            let weights = of_kind(&cases, kind, |case| case.file != author);
            let (mut readable, mut read, mut misread, mut invented) = (0, 0, 0, 0);
            for case in cases.iter().filter(|c| c.file == author && c.kind == kind) {
                let reply = super::reply(&case.wanted, &case.text).unwrap();
                let ranked = super::ranked(reply, &shares(&weights, &case.rows));
                let ruled = by_rules(&case.wanted, &case.text);
                let got = joined(&case.wanted, &case.text, ruled, &ranked);
                readable += usize::from(case.want.is_some());
                match (&case.want, got) {
                    (Some(want), Ok((got, _))) if got == *want => read += 1,
                    (Some(_), Ok(_)) => misread += 1,
                    (None, Ok(_)) => invented += 1,
                    _ => {}
                }
            }
            println!(
                "{author} {name}: {read} of {readable} read, {misread} misread, {invented} invented"
            );
        }
    }
}

/// Prints how replies are read by weights from other authors alone: of each kind, by the least probability that is taken.
#[test]
#[ignore = "prints figures; holds nothing"]
fn cross_validation() {
    let cases = cases();
    let mut files: Vec<&str> = cases.iter().map(|case| case.file.as_str()).collect();
    files.dedup();
    let group = |case: &Case| {
        (case.weight == 1.0).then(|| files.iter().position(|f| *f == case.file).unwrap() % GROUPS)
    };
    let mut lines = String::new();
    for (kind, name) in KINDS.into_iter().enumerate() {
        let mut read: Vec<(f32, bool, bool)> = Vec::new();
        for left_out in 0..GROUPS {
            let weights = of_kind(&cases, kind, |case| group(case) != Some(left_out));
            for case in &cases {
                if case.kind != kind || group(case) != Some(left_out) {
                    continue;
                }
                let shares = shares(&weights, &case.rows);
                let none = case.rows.len() - 1;
                let best = (0..=none)
                    .max_by(|a, b| shares[*a].total_cmp(&shares[*b]))
                    .unwrap();
                if best != none {
                    read.push((shares[best], Some(best) == case.right, case.want.is_none()));
                }
            }
        }
        let readable = cases
            .iter()
            .filter(|c| c.kind == kind && c.weight == 1.0 && c.want.is_some());
        let readable = readable.count();
        for least in [0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95] {
            let taken: Vec<_> = read.iter().filter(|(share, ..)| *share >= least).collect();
            let right = taken.iter().filter(|(_, right, _)| *right).count();
            let invented = taken.iter().filter(|(.., none)| *none).count();
            let wrong = taken.len() - right - invented;
            lines += &format!(
                "{name} {least:.2}: {right} of {readable} right, {wrong} misread, {invented} invented\n"
            );
        }
    }
    println!("{lines}");
}
