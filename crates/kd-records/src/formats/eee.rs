//! Samples of Every Eval Ever: a line for each answer and metric.

use super::{Format, Input, metric};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "eee",
    doc: "*_samples.jsonl of Every Eval Ever",
    is_completed: false,
    is,
    read,
};

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Lines(keys, _) => keys.have(&[
            "schema_version",
            "sample_id",
            "answer_attribution",
            "evaluation",
        ]),
        _ => false,
    }
}

/// Returns whether a file is the summary of an evaluation.
pub(super) fn is_summary(content: &Content<'_>) -> bool {
    match content {
        Content::Object(keys) | Content::Lines(keys, _) => {
            keys.have(&["schema_version", "evaluation_results"])
        }
        _ => false,
    }
}

#[derive(Deserialize)]
struct Line {
    schema_version: String,
    model_id: String,
    evaluation_name: String,
    #[serde(default)]
    evaluation_result_id: Option<String>,
    sample_id: String,
    input: Asked,
    #[serde(default)]
    output: Option<Output>,
    #[serde(default)]
    answer_attribution: Vec<Attribution>,
    evaluation: Evaluation,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    raw: String,
    #[serde(default)]
    reference: Vec<String>,
    #[serde(default)]
    choices: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    raw: Vec<String>,
}

#[derive(Deserialize)]
struct Attribution {
    #[serde(default)]
    extracted_value: String,
    #[serde(default)]
    is_terminal: bool,
}

#[derive(Deserialize)]
struct Evaluation {
    is_correct: bool,
}

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let lines: Vec<Line> = input.lines()?;
    if let Some(line) = lines
        .iter()
        .find(|line| !line.schema_version.starts_with("0."))
    {
        let what = format!(
            "the schema has version {}; kd reads 0.x",
            line.schema_version
        );
        return Err(input.unread(what, "update kd, or write the file for schema 0.3.0"));
    }
    // A result for each metric: a sample that counts for several has several lines.
    let mut names: Vec<String> = Vec::new();
    for line in &lines {
        let name = result(line);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let chosen = metric(input, &names)?.to_owned();
    // Only results of the same evaluation are alternatives; other evaluations are other tasks.
    let evaluation = lines.iter().find(|line| result(line) == chosen);
    let evaluation = evaluation
        .map(|line| line.evaluation_name.clone())
        .unwrap_or_default();
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    first.insert(evaluation, chosen);
    let mut seen: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    let mut records = Vec::new();
    for line in lines {
        let own = result(&line);
        let chosen = first
            .entry(line.evaluation_name.clone())
            .or_insert_with(|| own.clone());
        if *chosen != own {
            continue;
        }
        let model = input
            .file
            .model
            .clone()
            .unwrap_or_else(|| line.model_id.clone());
        let place = (
            model.clone(),
            line.evaluation_name.clone(),
            line.sample_id.clone(),
        );
        let run = seen.entry(place).or_default();
        *run += 1;
        records.push(record(line, model, *run));
    }
    Ok(records)
}

/// Returns the name of the result that a line counts for.
fn result(line: &Line) -> String {
    line.evaluation_result_id
        .clone()
        .unwrap_or_else(|| line.evaluation_name.clone())
}

fn record(line: Line, model: String, run: u32) -> Record {
    let last = line.answer_attribution.iter().rfind(|one| one.is_terminal);
    let last = last
        .or(line.answer_attribution.last())
        .map(|one| one.extracted_value.clone());
    let said = last.or_else(|| line.output.and_then(|output| output.raw.into_iter().next()));
    let failed = line.error.as_deref().is_some_and(|error| !error.is_empty());
    let options = line
        .input
        .choices
        .as_ref()
        .map(|choices| choices.len() as u64);
    Record {
        model,
        task: line.evaluation_name,
        key: line.sample_id.clone(),
        id: line.sample_id,
        run,
        input: line.input.raw,
        is_checked: true,
        gold: line.input.reference,
        options: options.filter(|n| *n > 1),
        said,
        score: match failed && !line.evaluation.is_correct {
            true => Score::None,
            false => Score::Number(f64::from(u8::from(line.evaluation.is_correct))),
        },
        cost: None,
    }
}
