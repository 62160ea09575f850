//! Workers of a fleet as text and JSON. Pure.

use crate::render::wrap::wrap;
use kd_app::batch::fleet::News;
use kd_app::words::count;
use kd_sql::fleet::{Refusal, Worker};
use serde_json::{Value, json};
use std::time::Duration;

/// Workers that are shown as text.
const SHOWN: usize = 20;

/// Returns a time in seconds.
fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

/// Returns the workers, and those that do not serve a batch.
pub(crate) fn workers(workers: &[Worker], refusals: &[Refusal], columns: usize) -> String {
    let mut lines = Vec::new();
    if workers.is_empty() {
        lines.push("no worker is at work; start one with `kd worker`".to_owned());
    }
    for worker in workers.iter().take(SHOWN) {
        let draining = if worker.draining { ", stopping" } else { "" };
        lines.push(format!(
            "{}: {} asked now{draining}, kd {}, seen {} ago, lease {}",
            worker.name,
            count(worker.asking, "question"),
            worker.kd,
            seconds(worker.silent),
            seconds(worker.lease),
        ));
    }
    if workers.len() > SHOWN {
        lines.push(format!("and {} more workers", workers.len() - SHOWN));
    }
    for refusal in refusals.iter().take(SHOWN) {
        lines.push(format!(
            "{} does not serve this batch: {}",
            refusal.worker, refusal.reason
        ));
    }
    let mut text = String::new();
    for line in lines {
        for piece in wrap(&line, columns.saturating_sub(3)) {
            text.push_str(&format!("  {piece}\n"));
        }
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
            "silent_ms": millis(worker.silent),
            "lease_ms": millis(worker.lease),
        })
    };
    workers.iter().map(object).collect()
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

/// Returns what a worker tells.
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

    #[test]
    fn workers_and_refusals_are_told_in_lines_that_fit() {
        let worker = Worker {
            name: "worker-3".into(),
            kd: "0.1.0".into(),
            lease: Duration::from_secs(60),
            silent: Duration::from_millis(2400),
            draining: true,
            asking: 1,
        };
        let refusal = Refusal {
            worker: "worker-4".into(),
            reason: "it was started with another configuration: agents.ada, council".into(),
        };
        let text = workers(&[worker], &[refusal], 80);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(
            text,
            "  worker-3: 1 question asked now, stopping, kd 0.1.0, seen 2 s ago, lease 60 s\n  \
             worker-4 does not serve this batch: it was started with another\n  configuration: agents.ada, council\n"
        );
        assert!(workers(&[], &[], 80).contains("`kd worker`"));
    }
}
