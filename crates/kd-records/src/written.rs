//! Writes decisions of councils in the form of Every Eval Ever, schema 0.3.0: a summary and a file of samples for each
//! task and rule.

use crate::join::About;
use kd_eval::deciders::{Halves, Setting, Way};
use kd_eval::intervals::wilson;
use kd_eval::page::{Gain, Study};
use kd_eval::replay::{Question, Replay, fingerprint};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The version of the schema.
const SCHEMA: &str = "0.3.0";
/// The name under which councils are published.
const DEVELOPER: &str = "kingdom";
/// The benchmark of questions without a task.
const NO_TASK: &str = "recorded-answers";

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The path, below the folder for all files.
    pub path: String,
    /// The text.
    pub text: String,
}

/// Returns the files for the decisions of these ways. `seconds` is the time in seconds since 1970; `version` is the
/// version of the writing program.
pub fn written(
    replay: &Replay,
    ways: &[Way],
    about: &BTreeMap<String, About>,
    (options, seed): (u64, u64),
    (seconds, version): (u64, &str),
) -> Vec<Written> {
    let halves = Halves::drawn(replay.questions.len(), seed);
    let setting = Setting {
        replay,
        options,
        seed,
        halves: &halves,
    };
    let mut files = Vec::new();
    for way in ways {
        let mut tasks: BTreeMap<&str, Vec<(&Question, Vec<usize>)>> = BTreeMap::new();
        for (question, decision) in replay.questions.iter().zip(way.decide(&setting)) {
            tasks
                .entry(task_of(question, about))
                .or_default()
                .push((question, decision.winners));
        }
        for (task, decided) in tasks {
            let council = Council {
                way: way.name(),
                members: &replay.members,
                task,
                id: format!("{task}/{DEVELOPER}_{}/{seconds}", way.name()),
            };
            files.extend(council.files(&decided, about, (seconds, version)));
        }
    }
    files
}

fn metric_config(metric: &str, name: &str, least: f64) -> Value {
    json!({
        "metric_id": metric,
        "metric_name": name,
        "metric_unit": "proportion",
        "lower_is_better": false,
        "score_type": "continuous",
        "min_score": least,
        "max_score": 1.0,
    })
}

fn score_of(gain: &Gain, questions: usize) -> Value {
    json!({
        "score": gain.mean,
        "uncertainty": {
            "confidence_interval": {
                "lower": gain.interval.low,
                "upper": gain.interval.high,
                "confidence_level": 0.95,
                "method": "paired bootstrap over questions",
            },
            "num_samples": questions,
        },
    })
}

/// Returns the files for a study of random councils: a summary for each set and way to decide, without samples.
pub fn study(study: &Study, (seconds, version): (u64, &str)) -> Vec<Written> {
    let mut files = Vec::new();
    for set in &study.sets {
        for row in &set.rows {
            let id = format!("{}/{DEVELOPER}_random_{}/{seconds}", set.name, row.way);
            let details = json!({
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "decided_by": row.way,
                "councils": study.draw.councils.to_string(),
                "members_per_council": study.draw.size.to_string(),
                "seed": study.draw.seed.to_string(),
                "members_asked": format!("{:.4}", row.asked),
            });
            let result = |metric: &str, name: &str, least: f64, score: Value| {
                json!({
                    "evaluation_result_id": format!("{id}/{metric}"),
                    "evaluation_name": set.name,
                    "source_data": {"dataset_name": set.name, "source_type": "other"},
                    "metric_config": metric_config(metric, name, least),
                    "score_details": score,
                })
            };
            let gain = |gain| score_of(gain, set.questions);
            let results = [
                result(
                    "accuracy",
                    "Accuracy; mean over councils",
                    0.0,
                    json!({"score": row.right}),
                ),
                result(
                    "gain_over_best_member",
                    "Accuracy minus that of the council's best member, known only afterwards",
                    -1.0,
                    gain(&row.over_best),
                ),
                result(
                    "gain_over_picked_member",
                    "Accuracy minus that of the member that is best on the other half of the questions",
                    -1.0,
                    gain(&row.over_picked),
                ),
            ];
            let mut summary = json!({
                "schema_version": SCHEMA,
                "evaluation_id": id,
                "retrieved_timestamp": seconds.to_string(),
                "source_metadata": source_metadata(),
                "eval_library": {"name": DEVELOPER, "version": version},
                "model_info": {
                    "name": format!("{} of {} random models", row.way, study.draw.size),
                    "id": format!("{DEVELOPER}/random-{}", row.way),
                    "developer": DEVELOPER,
                    "additional_details": details,
                },
            });
            summary["evaluation_results"] = json!(results);
            let text = format!("{summary:#}\n");
            let folder = format!(
                "data/{}/{DEVELOPER}/random-{}",
                folder(&set.name),
                folder(row.way)
            );
            files.push(Written {
                path: format!("{folder}/{}.json", uuid(&[&text])),
                text,
            });
        }
    }
    files
}

/// Returns the files for ways to answer that were asked separately: each column of a replay is a way, with the
/// members that it asked.
pub fn written_ways(
    replay: &Replay,
    members: &[Vec<String>],
    about: &BTreeMap<String, About>,
    (seconds, version): (u64, &str),
) -> Vec<Written> {
    let mut files = Vec::new();
    for (at, (way, members)) in replay.members.iter().zip(members).enumerate() {
        let mut tasks: BTreeMap<&str, Vec<(&Question, Vec<usize>)>> = BTreeMap::new();
        for question in &replay.questions {
            let answer = question.answers.get(at).copied().flatten();
            let decided = (question, answer.into_iter().collect());
            tasks
                .entry(task_of(question, about))
                .or_default()
                .push(decided);
        }
        for (task, decided) in tasks {
            let council = Council {
                way,
                members,
                task,
                id: format!("{task}/{DEVELOPER}_{way}/{seconds}"),
            };
            files.extend(council.files(&decided, about, (seconds, version)));
        }
    }
    files
}

fn source_metadata() -> Value {
    json!({
        "source_name": "kd eval",
        "source_type": "evaluation_run",
        "source_organization_name": "unknown",
        "evaluator_relationship": "other",
    })
}

/// Returns the task of a question.
fn task_of<'a>(question: &Question, about: &'a BTreeMap<String, About>) -> &'a str {
    let task = about.get(&question.id).map(|about| about.task.as_str());
    task.filter(|task| !task.is_empty()).unwrap_or(NO_TASK)
}

/// The decisions of a rule on a task.
struct Council<'a> {
    way: &'a str,
    members: &'a [String],
    task: &'a str,
    id: String,
}

impl Council<'_> {
    fn files(
        &self,
        decided: &[(&Question, Vec<usize>)],
        about: &BTreeMap<String, About>,
        (seconds, version): (u64, &str),
    ) -> [Written; 2] {
        let mut samples = String::new();
        let mut sum = 0.0;
        for (question, winners) in decided {
            let score = question.share_right(winners);
            sum += score;
            let about = about.get(&question.id);
            samples.push_str(&self.sample(question, winners, score, about).to_string());
            samples.push('\n');
        }
        let name = uuid(&[&self.id, &samples]);
        let folder = format!(
            "data/{}/{DEVELOPER}/{}",
            folder(self.task),
            folder(self.way)
        );
        let path = format!("{folder}/{name}_samples.jsonl");
        let mut summary = self.summary(sum, decided.len(), (seconds, version));
        summary["detailed_evaluation_results"] = json!({
            "format": "jsonl",
            "file_path": path,
            "hash_algorithm": "sha256",
            "checksum": fingerprint(samples.as_bytes()),
            "total_rows": decided.len(),
        });
        [
            Written {
                path: format!("{folder}/{name}.json"),
                text: format!("{summary:#}\n"),
            },
            Written {
                path,
                text: samples,
            },
        ]
    }

    fn summary(&self, sum: f64, questions: usize, (seconds, version): (u64, &str)) -> Value {
        let interval = wilson(sum, questions as u64);
        json!({
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            "retrieved_timestamp": seconds.to_string(),
            "source_metadata": source_metadata(),
            "eval_library": {"name": DEVELOPER, "version": version},
            "model_info": {
                "name": format!("{} of {}", self.way, self.members.join(", ")),
                "id": self.model(),
                "developer": DEVELOPER,
                "additional_details": {
                    "deployment_type": "unknown",
                    "model_availability": "unknown",
                    "decided_by": self.way,
                    "members": self.members.join(", "),
                },
            },
            "evaluation_results": [{
                "evaluation_result_id": self.result(),
                "evaluation_name": self.task,
                "source_data": {"dataset_name": self.task, "source_type": "other"},
                "metric_config": {
                    "metric_id": "accuracy",
                    "metric_name": "Accuracy; a tie counts as its share of right answers",
                    "metric_unit": "proportion",
                    "lower_is_better": false,
                    "score_type": "continuous",
                    "min_score": 0.0,
                    "max_score": 1.0,
                },
                "score_details": {
                    "score": if questions == 0 { 0.0 } else { sum / questions as f64 },
                    "uncertainty": {
                        "confidence_interval": {
                            "lower": interval.low,
                            "upper": interval.high,
                            "confidence_level": 0.95,
                            "method": "wilson",
                        },
                        "num_samples": questions,
                    },
                },
            }],
        })
    }

    fn sample(
        &self,
        question: &Question,
        winners: &[usize],
        score: f64,
        about: Option<&About>,
    ) -> Value {
        let said: Vec<&str> = winners
            .iter()
            .filter_map(|at| question.keys.get(*at).map(String::as_str))
            .collect();
        let right = question
            .keys
            .iter()
            .zip(&question.right)
            .find(|(_, right)| **right);
        let reference = match about {
            Some(about) => about.gold.clone(),
            None => right.map(|(key, _)| key.clone()).into_iter().collect(),
        };
        let raw = about.map_or("", |about| about.input.as_str());
        json!({
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            "model_id": self.model(),
            "evaluation_name": self.task,
            "evaluation_result_id": self.result(),
            "sample_id": about.map_or(&question.id, |about| &about.id),
            "sample_hash": fingerprint([raw, &reference.concat()].concat().as_bytes()),
            "interaction_type": "single_turn",
            "input": {"raw": raw, "reference": reference},
            "output": {"raw": said},
            "messages": null,
            "answer_attribution": [{
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": said.first().copied().unwrap_or_default(),
                "extraction_method": self.way,
                "is_terminal": true,
            }],
            "evaluation": {"score": score, "is_correct": score == 1.0},
            "metadata": {"tied": (winners.len() > 1).to_string()},
        })
    }

    fn model(&self) -> String {
        format!("{DEVELOPER}/{}", self.way)
    }

    fn result(&self) -> String {
        format!("{}/accuracy", self.id)
    }
}

/// Returns a folder name for a name.
fn folder(name: &str) -> String {
    let plain = |c: char| {
        if c.is_alphanumeric() || "-.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(100).map(plain).collect();
    match name.trim_matches('.').is_empty() {
        true => "_".to_owned(),
        false => name.trim_start_matches('.').to_owned(),
    }
}

/// Returns an identifier in the form of a random one that is the same for the same content.
fn uuid(parts: &[&str]) -> String {
    let hex = fingerprint(parts.concat().as_bytes());
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}
