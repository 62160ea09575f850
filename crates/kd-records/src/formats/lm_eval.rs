//! Samples of lm-evaluation-harness. A line does not name its model: the summary next to the file does, otherwise its
//! folder.

use super::{Format, Input, metric};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use kd_eval::replay::fingerprint;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "lm-eval",
    doc: "samples_*.jsonl of lm-evaluation-harness",
    is_completed: true,
    is,
    read,
};

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Lines(keys, _) => keys.have(&["doc_id", "doc", "target", "filtered_resps"]),
        _ => false,
    }
}

/// Returns whether a file is the summary of a run.
pub(super) fn is_summary(content: &Content<'_>) -> bool {
    match content {
        Content::Object(keys) | Content::Lines(keys, _) => {
            keys.have(&["results", "configs", "versions"])
        }
        _ => false,
    }
}

#[derive(Deserialize)]
struct Line {
    doc_id: Value,
    doc: Value,
    #[serde(default)]
    doc_hash: Option<String>,
    target: Value,
    #[serde(default)]
    arguments: Value,
    filtered_resps: Value,
    #[serde(default)]
    filter: Option<String>,
    #[serde(default)]
    metrics: Option<Vec<String>>,
    #[serde(flatten)]
    rest: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Summary {
    #[serde(default)]
    model_name: Option<String>,
}

/// The metrics of older files, which do not list theirs.
const USUAL: [&str; 6] = ["acc", "exact_match", "acc_norm", "em", "pass@1", "correct"];

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let lines: Vec<Line> = input.lines()?;
    let named = named(&lines);
    let chosen = metric(input, &named)?;
    let (name, filter) = chosen.split_once(',').unwrap_or((chosen, ""));
    let model = model(input);
    let task = task(input.file.name());
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut records = Vec::new();
    for line in lines {
        if line.filter.as_deref().unwrap_or_default() != filter {
            continue;
        }
        let hash = line
            .doc_hash
            .clone()
            .unwrap_or_else(|| fingerprint(line.doc.to_string().as_bytes()));
        // A data set may have a document twice.
        let times = seen.entry(hash.clone()).or_default();
        *times += 1;
        let key = format!("{hash} {times}");
        records.push(record(&line, name, &model, task, key));
    }
    Ok(records)
}

fn record(line: &Line, metric: &str, model: &str, task: &str, key: String) -> Record {
    let choices = choices(&line.arguments);
    let (said, gold, options) = match likelihoods(&line.filtered_resps) {
        Some(all) => {
            let at = best(&all, &choices, metric);
            let name = |at: usize| {
                choices
                    .get(at)
                    .map_or_else(|| at.to_string(), |c| c.trim().to_owned())
            };
            let right = target(&line.target).and_then(|at| (at < all.len()).then(|| name(at)));
            let gold = right.map_or_else(|| texts(&line.target), |right| vec![right]);
            let options = (all.len() > 1).then_some(all.len() as u64);
            // A single likelihood is not a choice.
            (at.filter(|_| all.len() > 1).map(name), gold, options)
        }
        None => (
            texts(&line.filtered_resps).into_iter().next(),
            texts(&line.target),
            None,
        ),
    };
    Record {
        model: model.to_owned(),
        task: task.to_owned(),
        key,
        id: plain(&line.doc_id),
        run: 1,
        input: prompt(&line.arguments),
        is_checked: false,
        gold,
        options,
        said,
        score: match line.rest.get(metric) {
            Some(Value::Bool(is_right)) => Score::Number(f64::from(u8::from(*is_right))),
            Some(value) => number(value).map_or(Score::None, Score::Number),
            None => Score::None,
        },
        cost: None,
    }
}

/// Returns the metrics with their filters, as lm-evaluation-harness names them, in the order of the file.
fn named(lines: &[Line]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in lines {
        let own = line.metrics.clone().unwrap_or_else(|| {
            let usual = USUAL.iter().filter(|name| line.rest.contains_key(**name));
            usual.map(|name| (*name).to_owned()).collect()
        });
        for name in own {
            let name = format!("{name},{}", line.filter.as_deref().unwrap_or_default());
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

fn model(input: &Input<'_>) -> String {
    if let Some(name) = &input.file.model {
        return name.clone();
    }
    let summaries = input.beside(is_summary);
    let mut told = summaries.filter_map(|file| {
        serde_json::from_slice::<Summary>(&file.bytes)
            .ok()?
            .model_name
    });
    let folder = input.file.folder_name().replace("__", "/");
    told.next()
        .filter(|name| !name.is_empty())
        .or_else(|| (!folder.is_empty()).then_some(folder))
        .unwrap_or_else(|| input.file.name().to_owned())
}

/// Returns the task of `samples_<task>_<time>.jsonl`; nothing for another name.
fn task(name: &str) -> &str {
    let middle = name
        .strip_prefix("samples_")
        .and_then(|rest| rest.rsplit_once('_'));
    middle.map_or("", |(task, _)| task)
}

/// Returns the logarithms of the likelihoods of the choices; `None` for a text.
fn likelihoods(responses: &Value) -> Option<Vec<f64>> {
    let all = responses.as_array()?;
    let each = all.iter().map(|one| match one.as_array()?.as_slice() {
        [log, _] => number(log),
        _ => None,
    });
    each.collect::<Option<Vec<f64>>>()
        .filter(|all| !all.is_empty())
}

/// Returns the most likely choice; by length for metrics that are normalized so.
fn best(all: &[f64], choices: &[String], metric: &str) -> Option<usize> {
    let length = |at: usize| match choices.get(at) {
        Some(choice) if metric.contains("norm") => {
            choice.trim_start().chars().count().max(1) as f64
        }
        _ => 1.0,
    };
    let each = all
        .iter()
        .enumerate()
        .map(|(at, log)| (at, log / length(at)));
    each.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        .map(|(at, _)| at)
}

/// Returns the choices: the continuation of each request.
fn choices(arguments: &Value) -> Vec<String> {
    let requests = requests(arguments);
    let each = requests
        .iter()
        .map(|request| second(request)?.as_str().map(str::to_owned));
    each.collect::<Option<Vec<String>>>().unwrap_or_default()
}

fn prompt(arguments: &Value) -> String {
    let requests = requests(arguments);
    let first = requests.first().and_then(|request| match request {
        Value::Array(parts) => parts.first(),
        request => request.get("arg_0"),
    });
    first.map(plain).unwrap_or_default()
}

/// Returns the requests, in order: `{"gen_args_0": {"arg_0": …}}`, in older files lists.
fn requests(arguments: &Value) -> Vec<&Value> {
    match arguments {
        Value::Array(all) => all.iter().collect(),
        Value::Object(all) => {
            let numbered = (0..all.len()).map(|n| all.get(&format!("gen_args_{n}")));
            numbered.flatten().collect()
        }
        _ => Vec::new(),
    }
}

fn second(request: &Value) -> Option<&Value> {
    match request {
        Value::Array(parts) => parts.get(1),
        request => request.get("arg_1"),
    }
}

fn target(target: &Value) -> Option<usize> {
    match target {
        Value::Number(n) => usize::try_from(n.as_u64()?).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Returns a number, which newer files write as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Null => Vec::new(),
        one => vec![plain(one)],
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
