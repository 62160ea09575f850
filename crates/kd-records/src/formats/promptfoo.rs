//! Results of promptfoo, version 3. A member is a provider, with its prompt if there are several.

use super::{Format, Input, metric};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const FORMAT: Format = Format {
    name: "promptfoo",
    doc: "the JSON that `promptfoo eval -o results.json` writes",
    is_completed: false,
    is,
    read,
};

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Object(keys) | Content::Lines(keys, _) => {
            keys.have(&["results", "config"])
                && (keys.have(&["evalId"]) || keys.have(&["shareableUrl"]))
        }
        _ => false,
    }
}

#[derive(Deserialize)]
struct Export {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    #[serde(default)]
    version: u32,
    #[serde(default)]
    results: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    test_idx: Option<u64>,
    provider: Provider,
    prompt: Prompt,
    #[serde(default)]
    vars: Value,
    #[serde(default)]
    test_case: Test,
    #[serde(default)]
    response: Option<Response>,
    success: bool,
    #[serde(default)]
    named_scores: BTreeMap<String, f64>,
    #[serde(default)]
    cost: Option<f64>,
    /// 0: none, 1: an assertion, 2: the provider.
    #[serde(default)]
    failure_reason: u32,
}

#[derive(Deserialize)]
struct Provider {
    #[serde(default)]
    id: String,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct Prompt {
    #[serde(default)]
    raw: String,
    #[serde(default)]
    label: String,
}

#[derive(Default, Deserialize)]
struct Test {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    assert: Vec<Assertion>,
}

#[derive(Deserialize)]
struct Assertion {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    output: Value,
}

/// The metric that promptfoo counts.
const PASSED: &str = "pass";
/// The failure of a provider.
const ERROR: u32 = 2;
/// Assertions whose value is a right answer.
const EQUAL: [&str; 5] = ["equals", "contains", "icontains", "starts-with", "is-json"];

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let export: Export =
        serde_json::from_slice(&input.file.bytes).map_err(|e| input.damaged(None, &e))?;
    let Results { version, results } = export.results;
    if version != 3 {
        return Err(input.unread(
            format!("the results are of version {version}; kd reads version 3"),
            "write them again with `promptfoo export`",
        ));
    }
    let mut names = vec![PASSED.to_owned()];
    let own: BTreeSet<&String> = results
        .iter()
        .flat_map(|line| line.named_scores.keys())
        .collect();
    names.extend(own.into_iter().cloned());
    let metric = metric(input, &names)?.to_owned();
    let prompts: BTreeSet<String> = results
        .iter()
        .map(|line| line.prompt.label.clone())
        .collect();
    let mut seen: BTreeMap<(String, String), u32> = BTreeMap::new();
    let records = results.into_iter().map(|line| {
        let name = line
            .provider
            .label
            .as_ref()
            .filter(|label| !label.is_empty());
        let name = input
            .file
            .model
            .clone()
            .unwrap_or_else(|| name.unwrap_or(&line.provider.id).clone());
        let model = match prompts.len() {
            0 | 1 => name,
            _ => format!("{name} {}", line.prompt.label),
        };
        let about = line.test_case.description.clone().unwrap_or_default();
        let key = format!("{} {about}", line.vars);
        let run = seen.entry((model.clone(), key.clone())).or_default();
        *run += 1;
        record(&line, model, key, *run, &metric)
    });
    Ok(records.collect())
}

fn record(line: &Line, model: String, key: String, run: u32, metric: &str) -> Record {
    let asserted = line.test_case.assert.iter();
    let gold = asserted
        .filter(|one| EQUAL.contains(&one.kind.as_str()))
        .filter_map(|one| one.value.as_str().map(str::to_owned));
    let score = match (line.failure_reason, metric) {
        (ERROR, _) => Score::None,
        (_, PASSED) => Score::Number(f64::from(u8::from(line.success))),
        (_, name) => line
            .named_scores
            .get(name)
            .map_or(Score::None, |score| Score::Number(*score)),
    };
    let output = line.response.as_ref().map(|response| &response.output);
    Record {
        model,
        task: String::new(),
        key,
        id: line
            .test_idx
            .map_or_else(String::new, |at| (at + 1).to_string()),
        run,
        input: line.prompt.raw.clone(),
        is_checked: false,
        gold: gold.collect(),
        options: None,
        said: output
            .filter(|output| !output.is_null())
            .map(|output| match output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }),
        score,
        cost: line.cost,
    }
}
