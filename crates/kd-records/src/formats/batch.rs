//! Results of `kd batch run`. They have no right answers: those come from a file of their own.

use super::{Format, Input};
use crate::content::Content;
use crate::record::{Record, Score, Unread};
use serde::Deserialize;

pub(super) const FORMAT: Format = Format {
    name: "kd-batch",
    doc: "results of `kd batch run`",
    is_completed: false,
    is,
    read,
};

/// The member name under which the answer of the whole council is recorded.
const COUNCIL: &str = "council";
/// The method by which every member answers.
const ASK: &str = "ask";
/// The version that is read.
const VERSION: u64 = 1;

fn is(content: &Content<'_>) -> bool {
    match content {
        Content::Lines(keys, _) => keys.have(&["v", "batch", "id", "question", "status"]),
        _ => false,
    }
}

#[derive(Deserialize)]
struct Line {
    v: u64,
    batch: String,
    id: String,
    question: String,
    #[serde(default, rename = "as")]
    method: String,
    #[serde(default)]
    answer: Option<String>,
    #[serde(default)]
    answers: Vec<Said>,
    #[serde(default)]
    verdict: Option<Verdict>,
    status: String,
    #[serde(default)]
    failures: Vec<Failed>,
}

#[derive(Deserialize)]
struct Said {
    member: String,
    text: String,
}

#[derive(Deserialize)]
struct Verdict {
    #[serde(default)]
    winner: Option<String>,
}

#[derive(Deserialize)]
struct Failed {
    member: String,
}

fn read(input: &Input<'_>) -> Result<Vec<Record>, Unread> {
    let lines: Vec<Line> = input.lines()?;
    if let Some(line) = lines.iter().find(|line| line.v != VERSION) {
        let what = format!("the results have version {}; kd reads {VERSION}", line.v);
        return Err(input.unread(what, "update kd"));
    }
    let Some(gold) = &input.wanted.gold else {
        return Err(input.unread(
            format!("the results of {} have no right answers", first(&lines)),
            "add `--gold FILE`: a CSV table or JSON Lines with `id` and `gold` for each question",
        ));
    };
    let mut records = Vec::new();
    for line in lines {
        let right = gold.of(&line.id);
        let record = |model: &str, text: Option<&str>| {
            let (said, score) = match (right, text) {
                (None, _) => (None, Score::NoGold),
                (_, None) => (None, Score::None),
                (Some(right), Some(text)) => {
                    let (said, score) = gold.mark(right, &line.question, text);
                    (said, Score::Number(score))
                }
            };
            Record {
                model: model.to_owned(),
                task: String::new(),
                key: line.id.clone(),
                id: line.id.clone(),
                run: 1,
                input: line.question.clone(),
                is_checked: true,
                gold: right.map(str::to_owned).into_iter().collect(),
                options: gold.options(),
                said,
                score,
                cost: None,
            }
        };
        for said in &line.answers {
            records.push(record(&said.member, Some(&said.text)));
        }
        // A deliberation also asks members that it does not need in the end.
        for failed in line.failures.iter().filter(|_| line.method == ASK) {
            records.push(record(&failed.member, None));
        }
        let council = input.file.model.as_deref().unwrap_or(COUNCIL);
        let winner = line
            .verdict
            .as_ref()
            .and_then(|verdict| verdict.winner.as_deref());
        let answer = winner
            .or(line.answer.as_deref())
            .filter(|_| line.status == "answered");
        if answer.is_some() || line.answers.is_empty() {
            records.push(record(council, answer));
        }
    }
    Ok(records)
}

fn first(lines: &[Line]) -> &str {
    lines
        .first()
        .map_or("this batch", |line| line.batch.as_str())
}
