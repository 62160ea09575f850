//! Logs of Inspect: `.eval` archives, and JSON.
//!
//! An archive has `header.json` (the task, the model, the results) and `summaries.json`, or parts of both in `_journal/`
//! if the run was cut. Long texts in summaries are cut by Inspect.

use super::{Format, Input, metric};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use crate::unzip::{self, ENTRY_BYTES_MAX};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const FORMAT: Format = Format {
    name: "inspect",
    doc: ".eval and JSON logs",
    is_completed: false,
    is,
    read,
};

const HEADER: &str = "header.json";
const START: &str = "_journal/start.json";
const SUMMARIES: &str = "summaries.json";
const JOURNAL: &str = "_journal/summaries/";
/// What Inspect adds to a text that it has cut.
const CUT: &str = "...\n(content truncated)";

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Archive(names) => names.contains(HEADER) || names.contains(START),
        Content::Object(keys) | Content::Lines(keys, _) => {
            keys.have(&["eval", "version"]) && (keys.have(&["samples"]) || keys.have(&["plan"]))
        }
        _ => false,
    }
}

#[derive(Deserialize)]
struct Log {
    eval: Eval,
    #[serde(default)]
    results: Option<Results>,
    #[serde(default)]
    samples: Option<Vec<Sample>>,
}

#[derive(Deserialize)]
struct Eval {
    task: String,
    model: String,
    #[serde(default)]
    config: Settings,
}

#[derive(Default, Deserialize)]
struct Settings {
    #[serde(default)]
    epochs: Option<u32>,
}

#[derive(Default, Deserialize)]
struct Results {
    #[serde(default)]
    scores: Vec<Named>,
    #[serde(default)]
    headline: Option<Headline>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Headline {
    score: String,
}

#[derive(Deserialize)]
struct Sample {
    id: Value,
    #[serde(default)]
    epoch: Option<u32>,
    input: Value,
    #[serde(default)]
    choices: Option<Vec<IgnoredAny>>,
    #[serde(default)]
    target: Value,
    #[serde(default)]
    scores: Option<BTreeMap<String, Scored>>,
    #[serde(default)]
    model_usage: BTreeMap<String, Usage>,
}

#[derive(Deserialize)]
struct Scored {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    answer: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    total_cost: Option<f64>,
}

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let log = match input.content {
        Content::Archive(names) => archive(input, names)?,
        _ => serde_json::from_slice(&input.file.bytes).map_err(|e| input.damaged(None, &e))?,
    };
    let samples = log.samples.unwrap_or_default();
    let scorers = scorers(log.results.as_ref(), &samples);
    if samples.is_empty() {
        return Err(input.unread(
            "the log has no samples",
            "run the evaluation with `log_samples` on",
        ));
    }
    let scorer = metric(input, &scorers)?;
    let model = input.file.model.clone().unwrap_or(log.eval.model);
    let is_repeated = log.eval.config.epochs.unwrap_or(1) > 1;
    let records = samples.into_iter().map(|sample| {
        let run = sample.epoch.unwrap_or(1).max(1);
        record(sample, scorer, &model, &log.eval.task, (run, is_repeated))
    });
    Ok(records.collect())
}

fn record(
    mut sample: Sample,
    scorer: &str,
    model: &str,
    task: &str,
    (run, is_repeated): (u32, bool),
) -> Record {
    let id = plain(&sample.id);
    let (name, part) = match sample
        .scores
        .as_ref()
        .is_some_and(|all| all.contains_key(scorer))
    {
        true => (scorer, None),
        false => scorer
            .split_once('/')
            .map_or((scorer, None), |(name, part)| (name, Some(part))),
    };
    let scored = sample
        .scores
        .as_mut()
        .and_then(|scores| scores.remove(name));
    let costs: Vec<f64> = sample
        .model_usage
        .values()
        .filter_map(|usage| usage.total_cost)
        .collect();
    Record {
        // The members of a log with epochs are its samples.
        model: model.to_owned(),
        task: task.to_owned(),
        key: id.clone(),
        id,
        run: if is_repeated { run } else { 1 },
        input: text(&sample.input),
        is_checked: true,
        gold: texts(&sample.target),
        options: sample.choices.map(|choices| choices.len() as u64),
        said: scored
            .as_ref()
            .and_then(|scored| scored.answer.as_ref())
            .map(plain),
        score: scored.map_or(Score::None, |scored| match part {
            Some(part) => score(&scored.value[part]),
            None => score(&scored.value),
        }),
        cost: (!costs.is_empty()).then(|| costs.iter().sum()),
    }
}

/// Reads the parts of an archive.
fn archive(input: &Input<'_>, names: &BTreeSet<String>) -> Result<Log, Unread> {
    let hint = "write the log again with `inspect log convert`";
    let parsed = |name: &str| -> Result<Vec<u8>, Unread> {
        unzip::entry(&input.file.bytes, name, ENTRY_BYTES_MAX)
            .map_err(|e| input.unread(e.to_string(), hint))
    };
    let head = if names.contains(HEADER) {
        HEADER
    } else {
        START
    };
    let bytes = parsed(head)?;
    let mut log: Log = serde_json::from_slice(&bytes).map_err(|e| input.damaged(None, &e))?;
    let parts: Vec<&str> = match names.contains(SUMMARIES) {
        true => vec![SUMMARIES],
        // A run that was cut: in the order in which they were written.
        false => {
            let mut parts: Vec<&str> = names.iter().map(String::as_str).collect();
            parts.retain(|name| name.starts_with(JOURNAL));
            parts.sort_by_key(|name| (name.len(), *name));
            parts
        }
    };
    let mut samples = Vec::new();
    let mut left = ENTRY_BYTES_MAX;
    for part in parts {
        let bytes = unzip::entry(&input.file.bytes, part, left)
            .map_err(|e| input.unread(e.to_string(), hint))?;
        left = left.saturating_sub(bytes.len() as u64);
        let more: Vec<Sample> =
            serde_json::from_slice(&bytes).map_err(|e| input.damaged(None, &e))?;
        samples.extend(more);
    }
    log.samples = Some(samples);
    Ok(log)
}

/// Returns the names of the scorers: the one that Inspect shows first.
fn scorers(results: Option<&Results>, samples: &[Sample]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    if let Some(results) = results {
        results
            .headline
            .iter()
            .for_each(|headline| add(&headline.score));
        results.scores.iter().for_each(|named| add(&named.name));
    }
    for sample in samples {
        for (name, scored) in sample.scores.iter().flatten() {
            match &scored.value {
                Value::Object(parts) => {
                    parts.keys().for_each(|part| add(&format!("{name}/{part}")))
                }
                _ => add(name),
            }
        }
    }
    // A name in the results that no sample has is that of a part.
    let known: BTreeSet<String> = samples
        .iter()
        .flat_map(|sample| sample.scores.iter().flatten())
        .flat_map(|(name, scored)| match &scored.value {
            Value::Object(parts) => parts.keys().map(|part| format!("{name}/{part}")).collect(),
            _ => vec![name.clone()],
        })
        .collect();
    names.retain(|name| known.is_empty() || known.contains(name));
    names
}

/// Returns the number of a value, as Inspect's metrics take it.
fn score(value: &Value) -> Score {
    let words: &[(&str, f64)] = &[
        ("C", 1.0),
        ("I", 0.0),
        ("P", 0.5),
        ("N", 0.0),
        ("yes", 1.0),
        ("true", 1.0),
        ("no", 0.0),
        ("false", 0.0),
    ];
    match value {
        Value::Bool(is_right) => Score::Number(f64::from(u8::from(*is_right))),
        Value::Number(number) => number.as_f64().map_or(Score::None, Score::Number),
        Value::String(text) => {
            let known = words.iter().find(|(word, _)| {
                word == text || (word.len() > 1 && text.eq_ignore_ascii_case(word))
            });
            let number = known
                .map(|(_, number)| *number)
                .or_else(|| text.trim().parse().ok());
            number
                .filter(|n| n.is_finite())
                .map_or(Score::None, Score::Number)
        }
        _ => Score::None,
    }
}

/// Returns the text of a question: a string, or the texts of its messages, whose ids differ from run to run.
fn text(input: &Value) -> String {
    let text = match input {
        Value::String(text) => text.clone(),
        Value::Array(messages) => {
            let texts = messages.iter().map(|message| match &message["content"] {
                Value::Array(parts) => {
                    let parts = parts.iter().filter_map(|part| part["text"].as_str());
                    parts.collect::<Vec<_>>().join("\n")
                }
                content => plain(content),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        other => plain(other),
    };
    text.strip_suffix(CUT).map_or(text.clone(), str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().map(plain).collect(),
        Value::Null => Vec::new(),
        one => vec![plain(one)],
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
