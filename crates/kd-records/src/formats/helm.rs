//! Runs of HELM: `scenario_state.json` has the answers, `per_instance_stats.json` beside it the scores, and
//! `run_spec.json` the name of the run.

use super::{Format, Input, metric};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "helm",
    doc: "scenario_state.json in the folder of a HELM run",
    is_completed: true,
    is,
    read,
};

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Object(keys) | Content::Lines(keys, _) => {
            keys.have(&["adapter_spec", "request_states"])
        }
        _ => false,
    }
}

fn is_scores(content: &Content<'_>) -> bool {
    matches!(content, Content::List(keys) if keys.have(&["instance_id", "stats"]))
}

fn is_spec(content: &Content<'_>) -> bool {
    matches!(content, Content::Object(keys) | Content::Lines(keys, _) if keys.have(&["name", "scenario_spec"]))
}

/// Returns whether a file is a part of a run without answers.
pub(super) fn is_part(content: &Content<'_>) -> bool {
    let is_other = match content {
        Content::List(keys) => keys.have(&["name", "count", "sum"]),
        Content::Object(keys) | Content::Lines(keys, _) => keys.have(&["name", "definition_path"]),
        _ => false,
    };
    is_other || is_scores(content) || is_spec(content)
}

#[derive(Deserialize)]
struct State {
    adapter_spec: Adapter,
    request_states: Vec<Asked>,
}

#[derive(Deserialize)]
struct Adapter {
    #[serde(default)]
    method: String,
    model: String,
}

#[derive(Deserialize)]
struct Asked {
    instance: Instance,
    #[serde(default)]
    train_trial_index: u32,
    #[serde(default)]
    reference_index: Option<usize>,
    #[serde(default)]
    request_mode: Option<String>,
    #[serde(default)]
    output_mapping: Option<BTreeMap<String, String>>,
    #[serde(default)]
    result: Option<Reply>,
}

#[derive(Deserialize)]
struct Instance {
    #[serde(default)]
    id: Option<String>,
    input: Text,
    #[serde(default)]
    references: Vec<Reference>,
    #[serde(default)]
    perturbation: Option<Value>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Reference {
    output: Text,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    completions: Vec<Completion>,
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    text: String,
    #[serde(default)]
    logprob: f64,
}

#[derive(Deserialize)]
struct Scores {
    instance_id: String,
    #[serde(default)]
    train_trial_index: u32,
    #[serde(default)]
    perturbation: Option<Value>,
    stats: Vec<Stat>,
}

#[derive(Deserialize)]
struct Stat {
    name: StatName,
    #[serde(default)]
    mean: Option<f64>,
}

#[derive(Deserialize)]
struct StatName {
    name: String,
    #[serde(default)]
    perturbation: Option<Value>,
}

#[derive(Deserialize)]
struct Spec {
    name: String,
}

/// Metrics that say what is right, most strict first.
const USUAL: [&str; 9] = [
    "exact_match",
    "quasi_exact_match",
    "final_number_exact_match",
    "math_equiv_chain_of_thought",
    "math_equiv",
    "chain_of_thought_correctness",
    "prefix_exact_match",
    "quasi_prefix_exact_match",
    "exact_match_indicator",
];

type Place = (String, u32);

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let state: State =
        serde_json::from_slice(&input.file.bytes).map_err(|e| input.damaged(None, &e))?;
    let scores = scores(input)?;
    let metric = metric(input, &metrics(&scores))?.to_owned();
    let values = values(scores, &metric);
    let task = task(input);
    let model = input.file.model.clone().unwrap_or(state.adapter_spec.model);
    let is_choice = state.adapter_spec.method.starts_with("multiple_choice");
    let mut order: Vec<Place> = Vec::new();
    let mut asked: BTreeMap<Place, Vec<Asked>> = BTreeMap::new();
    let mut repeated = false;
    for one in state.request_states {
        let is_other = one.request_mode.as_deref() == Some("calibration");
        let Some(id) = one.instance.id.clone() else {
            continue;
        };
        if one.instance.perturbation.is_some() || is_other {
            continue;
        }
        repeated |= one.train_trial_index > 0;
        let place = (id, one.train_trial_index);
        let all = asked.entry(place.clone()).or_default();
        if all.is_empty() {
            order.push(place);
        }
        all.push(one);
    }
    let records = order.into_iter().filter_map(|place| {
        let all = asked.remove(&place)?;
        let (id, trial) = place.clone();
        let first = all.first()?;
        let references = &first.instance.references;
        Some(Record {
            model: model.clone(),
            task: task.clone(),
            key: id.clone(),
            id,
            run: if repeated { trial + 1 } else { 1 },
            input: first.instance.input.text.clone(),
            is_checked: true,
            gold: right(references),
            options: is_choice.then_some(references.len() as u64),
            said: said(&all),
            score: values
                .get(&place)
                .map_or(Score::None, |mean| Score::Number(*mean)),
            cost: None,
        })
    });
    Ok(records.collect())
}

/// Returns the answer: the option that a label stands for, or the most likely one of several requests.
fn said(all: &[Asked]) -> Option<String> {
    let completion = |one: &Asked| -> Option<(String, f64)> {
        let first = one.result.as_ref()?.completions.first()?;
        Some((first.text.trim().to_owned(), first.logprob))
    };
    if all.iter().any(|one| one.reference_index.is_some()) {
        let each = all.iter().filter_map(|one| {
            let reference = one.instance.references.get(one.reference_index?)?;
            Some((reference.output.text.clone(), completion(one)?.1))
        });
        return each
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(text, _)| text);
    }
    let first = all.first()?;
    let (text, _) = completion(first)?;
    let mapped = first
        .output_mapping
        .as_ref()
        .and_then(|map| map.get(&text).cloned());
    Some(mapped.unwrap_or(text))
}

fn right(references: &[Reference]) -> Vec<String> {
    let right = references
        .iter()
        .filter(|one| one.tags.iter().any(|tag| tag == "correct"));
    right.map(|one| one.output.text.clone()).collect()
}

fn scores(input: &Input<'_>) -> Result<Vec<Scores>, Unread> {
    let Some(file) = input.beside(is_scores).next() else {
        return Err(input.unread(
            "per_instance_stats.json is not beside it, so the scores are unknown",
            "give the whole folder of the run",
        ));
    };
    serde_json::from_slice(&file.bytes).map_err(|e| {
        Unread::new(
            &file.path,
            e.to_string(),
            "write the file again with `helm-run`",
        )
    })
}

/// Returns the names of all metrics, those that say what is right first.
fn metrics(scores: &[Scores]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for stat in scores.iter().flat_map(|one| &one.stats) {
        if !names.contains(&stat.name.name) {
            names.push(stat.name.name.clone());
        }
    }
    let rank = |name: &String| {
        USUAL
            .iter()
            .position(|usual| usual == name)
            .unwrap_or(USUAL.len())
    };
    names.sort_by_key(rank);
    match names.first().is_some_and(|name| rank(name) < USUAL.len()) {
        true => names,
        // None says what is right: the user must name one.
        false => Vec::new(),
    }
}

fn values(scores: Vec<Scores>, metric: &str) -> BTreeMap<Place, f64> {
    let plain = scores.into_iter().filter(|one| one.perturbation.is_none());
    let each = plain.filter_map(|one| {
        let mut stats = one.stats.iter();
        let stat =
            stats.find(|stat| stat.name.name == metric && stat.name.perturbation.is_none())?;
        Some(((one.instance_id, one.train_trial_index), stat.mean?))
    });
    each.collect()
}

/// Returns the name of the run without its model.
fn task(input: &Input<'_>) -> String {
    let spec = input.beside(is_spec).next();
    let named = spec.and_then(|file| serde_json::from_slice::<Spec>(&file.bytes).ok());
    let name = named.map_or_else(|| input.file.folder_name().to_owned(), |spec| spec.name);
    let (scenario, arguments) = name.split_once(':').unwrap_or((&name, ""));
    let rest: Vec<&str> = arguments
        .split(',')
        .filter(|part| {
            !part.is_empty()
                && !part.starts_with("model=")
                && !part.starts_with("model_deployment=")
        })
        .collect();
    match rest.is_empty() {
        true => scenario.to_owned(),
        false => format!("{scenario}:{}", rest.join(",")),
    }
}
