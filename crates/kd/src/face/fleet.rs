//! Workers of a fleet as text and JSON. Pure.

use crate::render::wrap::wrap;
use kd_app::batch::fleet::News;
use kd_app::batch::fleet::{Erased, Refusal, Worker};
use kd_app::words::count;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Workers that are shown as text.
const SHOWN: usize = 20;

/// Returns a time in seconds.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

/// Returns a time in its two largest units.
fn span(time: Duration) -> String {
    match time.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min {} s", s / 60, s % 60),
        s @ 3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// Returns the workers, and the workers that do not serve a batch.
pub(crate) fn workers(workers: &[Worker], refusals: &[Refusal], columns: usize) -> String {
    let mut lines = Vec::new();
    if workers.is_empty() {
        lines.push("no worker is at work; start one with `kd worker`".to_owned());
    }
    for worker in workers.iter().take(SHOWN) {
        lines.push(about(worker));
    }
    if workers.len() > SHOWN {
        let more = workers.len() - SHOWN;
        lines.push(format!("and {more} more workers: kd worker list"));
    }
    for refusal in refusals.iter().take(SHOWN) {
        lines.push(format!(
            "{} does not serve this batch: {}",
            refusal.worker, refusal.reason
        ));
    }
    wrapped(&lines, "  ", columns)
}

/// Returns a worker in a line.
fn about(worker: &Worker) -> String {
    format!(
        "{}: {}, {} asked now, up {}, seen {} ago, lease {}, kd {}",
        worker.name,
        worker.state().phrase(),
        count(worker.asking, "question"),
        span(worker.up),
        span(worker.silent),
        seconds(worker.lease),
        worker.kd,
    )
}

/// Returns all workers of a database, each with the batches that it does not serve.
pub(crate) fn worker_list(workers: &[Worker], columns: usize) -> String {
    let mut lines = Vec::new();
    for worker in workers {
        lines.push(about(worker));
        lines.extend(
            worker
                .refuses
                .iter()
                .map(|refused| format!("  does not serve {}: {}", refused.batch, refused.reason)),
        );
    }
    wrapped(&lines, "", columns)
}

fn wrapped(lines: &[String], indent: &str, columns: usize) -> String {
    let mut text = String::new();
    for line in lines {
        let inner = line.trim_start();
        let own = " ".repeat(line.len() - inner.len());
        for piece in wrap(inner, columns.saturating_sub(3 + own.len())) {
            text.push_str(&format!("{indent}{own}{piece}\n"));
        }
    }
    text
}

/// Returns why a batch is not erased.
pub(crate) fn asking(id: &str, workers: &BTreeMap<String, u64>) -> String {
    let questions = count(workers.values().sum(), "question");
    let names: Vec<&str> = workers.keys().map(String::as_str).take(5).collect();
    format!("{questions} of {id} asked now by {}", names.join(", "))
}

/// Returns what is erased, or would be.
pub(crate) fn erased(id: &str, question: Option<&str>, erased: &Erased, is_done: bool) -> String {
    let word = if is_done { "erased" } else { "would erase" };
    let mut text = format!(
        "{word}: {} of {id}, {}, {}\n",
        count(erased.questions, "question"),
        count(erased.results, "result"),
        count(erased.threads, "thread")
    );
    if question.is_some() && erased.questions > 1 {
        text.push_str("  equal questions are erased together\n");
    }
    for (batch, n) in &erased.elsewhere {
        let questions = count(*n, "question");
        text.push_str(&format!(
            "{word}: {questions} of {batch} with the same answer\n"
        ));
    }
    text
}

/// Returns the workers as an array.
pub(crate) fn workers_object(workers: &[Worker]) -> Value {
    let object = |worker: &Worker| {
        json!({
            "name": worker.name,
            "kd": worker.kd,
            "asking": worker.asking,
            "stopping": worker.draining,
            "state": worker.state().word(),
            "up_ms": millis(worker.up),
            "silent_ms": millis(worker.silent),
            "lease_ms": millis(worker.lease),
        })
    };
    workers.iter().map(object).collect()
}

/// Returns all workers of a database, each with the batches that it does not serve.
pub(crate) fn worker_list_object(workers: &[Worker]) -> Value {
    let mut all = workers_object(workers);
    for (object, worker) in all.as_array_mut().into_iter().flatten().zip(workers) {
        let refuses = worker.refuses.iter();
        let refuses: Vec<Value> = refuses
            .map(|one| json!({"batch": one.batch, "reason": one.reason}))
            .collect();
        object["refuses"] = json!(refuses);
    }
    json!({"v": kd_core::formats::WORKER_LIST.version, "workers": all})
}

/// Returns the refusals as an array.
pub(crate) fn refusals_object(refusals: &[Refusal]) -> Value {
    let object = |one: &Refusal| json!({"worker": one.worker, "reason": one.reason});
    refusals.iter().map(object).collect()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the first line of a worker.
pub(crate) fn begins(name: &str, store: &str, concurrency: u16, lease: Duration) -> String {
    format!(
        "{name}: at work on {store}, {} at a time, lease {}",
        count(concurrency.into(), "question"),
        seconds(lease)
    )
}

/// Returns the line for a message of a worker.
pub(crate) fn news(name: &str, news: &News) -> String {
    match news {
        News::Serves(batch) => format!("{name}: serves {batch}"),
        News::Refuses(batch, why) => format!("{name}: does not serve {batch}: {why}"),
        News::Limited(batch) => format!("{name}: a limit of {batch} is reached"),
        News::Done(batch) => format!("{name}: nothing is left of {batch}"),
        News::Lost(new) => format!(
            "{name}: its lease was over, and its questions were given to others; goes on as {new}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::batch::Refused;

    #[test]
    fn workers_and_refusals_are_told_in_lines_that_fit() {
        let worker = Worker {
            name: "worker-3".into(),
            kd: "0.1.0".into(),
            lease: Duration::from_secs(60),
            silent: Duration::from_millis(2400),
            up: Duration::from_secs(7500),
            draining: true,
            asking: 1,
            refuses: vec![Refused {
                batch: "batch-3f1c90ab".into(),
                reason: "a service is down".into(),
            }],
        };
        let refusal = Refusal {
            worker: "worker-4".into(),
            reason: "it was started with another configuration: agents.ada, council".into(),
        };
        let list = worker_list(std::slice::from_ref(&worker), 60);
        assert_eq!(
            list,
            "worker-3: stopping, 1 question asked now, up 2 h 5 min,\n\
             seen 2 s ago, lease 60 s, kd 0.1.0\n  \
             does not serve batch-3f1c90ab: a service is down\n"
        );
        let object = worker_list_object(std::slice::from_ref(&worker));
        let schema = include_str!("../../../../docs/schemas/worker-list.schema.json");
        let schema = serde_json::from_str(schema).expect("the schema is JSON");
        let validator = jsonschema::validator_for(&schema).expect("the schema is one");
        assert!(validator.is_valid(&object), "{object}");
        let one = &object["workers"][0];
        let told = [&one["state"], &one["refuses"][0]["reason"]];
        assert_eq!(told, ["stopping", "a service is down"]);
        let text = workers(&[worker], &[refusal], 80);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(
            text,
            "  worker-3: stopping, 1 question asked now, up 2 h 5 min, seen 2 s ago, lease\n  60 s, kd 0.1.0\n  \
             worker-4 does not serve this batch: it was started with another\n  configuration: agents.ada, council\n"
        );
        assert!(workers(&[], &[], 80).contains("`kd worker`"));
        let one = Erased {
            questions: 2,
            results: 1,
            elsewhere: [("batch-2".to_owned(), 1)].into(),
            asking: [("w-3".to_owned(), 2)].into(),
            ..Erased::default()
        };
        assert_eq!(
            erased("batch-1", Some("q1"), &one, true),
            "erased: 2 questions of batch-1, 1 result, 0 threads\n  equal questions are erased together\n\
             erased: 1 question of batch-2 with the same answer\n"
        );
        assert_eq!(
            asking("batch-1", &one.asking),
            "2 questions of batch-1 asked now by w-3"
        );
    }
}
