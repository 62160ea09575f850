//! Measures the queue of a batch: jobs per second through the database, beside the same jobs in the process alone.
//!
//! `cargo bench -p kd-app --bench batch [-- empty | waiting]`. `KD_BENCH_JOBS=100000` changes the number of empty jobs. Every
//! round runs both, one after the other; the ratio of a round is more reliable than its figures.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

use kd_app::batch::{Handler, Pace, Progress, Step, Stop, drive};
use kd_core::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_sql::batch::{Asked, Batches, Job, NewBatch};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

const ROUNDS: usize = 3;
/// Jobs at the same time, as calls to a service.
const CONCURRENCY: usize = 256;

/// Waits this long and answers.
struct Waits(Duration);

fn row(job: &Job) -> Row {
    Row {
        status: Status::Answered,
        answer: Some(job.question.clone()),
        reason: None,
        ..Row::failed(Method::Ask, "", Timestamp::UNIX_EPOCH)
    }
}

impl Handler for Waits {
    fn handle(&self, job: Job) -> Pin<Box<dyn Future<Output = Step> + Send>> {
        let wait = self.0;
        Box::pin(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Step::Done {
                row: Box::new(row(&job)),
                keep: true,
            }
        })
    }
}

fn questions(count: usize) -> Vec<Asked> {
    let text = "x".repeat(340);
    (0..count)
        .map(|n| Asked {
            id: n.to_string(),
            text: text.clone(),
            key: n.to_string(),
        })
        .collect()
}

/// Returns the seconds for creating the batch and for all jobs.
async fn stored(count: usize, wait: Duration) -> (f64, f64) {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = Batches::at(&dir.path().join("app.db")).unwrap();
    let new = NewBatch {
        id: "batch-1".into(),
        method: "ask".into(),
        ..NewBatch::default()
    };
    let began = Instant::now();
    batches
        .create(&new, &questions(count), Timestamp::now())
        .unwrap();
    let created = began.elapsed().as_secs_f64();
    let run = batches.begin("batch-1", 3, Timestamp::now()).unwrap();
    let (_stop, stopped) = watch::channel(Stop::No);
    let (tell, _progress) = watch::channel(Progress::default());
    let pace = Pace {
        concurrency: CONCURRENCY,
        attempts: 3,
        pause: Duration::from_secs(1),
        every: None,
    };
    let batches = Arc::new(Mutex::new(batches));
    let of = ("batch-1".to_owned(), run);
    let began = Instant::now();
    let ended = drive(
        batches,
        of,
        Arc::new(Waits(wait)),
        pace,
        None,
        (stopped, tell),
    )
    .await
    .unwrap();
    assert_eq!(ended.batch.counts.answered, count as u64);
    (created, began.elapsed().as_secs_f64())
}

/// Returns the seconds for the same jobs without a database.
async fn alone(count: usize, wait: Duration) -> f64 {
    let handler = Waits(wait);
    let mut jobs = questions(count).into_iter().map(|asked| Job {
        place: 1,
        id: asked.id,
        question: asked.text,
        attempt: 1,
        token: 1,
    });
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for job in jobs.by_ref().take(CONCURRENCY) {
        tasks.spawn(handler.handle(job));
    }
    let mut done = 0;
    while let Some(step) = tasks.join_next().await {
        if let Step::Done { row, .. } = step.unwrap() {
            done += usize::from(!serde_json::to_string(&row).unwrap().is_empty());
        }
        if let Some(job) = jobs.next() {
            tasks.spawn(handler.handle(job));
        }
    }
    assert_eq!(done, count);
    began.elapsed().as_secs_f64()
}

async fn measure(what: &str, count: usize, wait: Duration) {
    println!("{what}: {count} jobs, {CONCURRENCY} at the same time");
    for round in 1..=ROUNDS {
        let floor = alone(count, wait).await;
        let (created, took) = stored(count, wait).await;
        let rate = |seconds: f64| count as f64 / seconds;
        println!(
            "  round {round}: created {:>8.0}/s, batch {:>8.0}/s, in process {:>9.0}/s, ratio {:.3}",
            rate(created),
            rate(took),
            rate(floor),
            rate(took) / rate(floor)
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let wants = |what: &str| wanted.is_empty() || wanted.iter().any(|one| one == what);
    let jobs = std::env::var("KD_BENCH_JOBS").map_or(20_000, |n| n.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if wants("empty") {
        runtime.block_on(measure("empty", jobs, Duration::ZERO));
    }
    if wants("waiting") {
        runtime.block_on(measure(
            "waiting 1 s",
            10 * CONCURRENCY,
            Duration::from_secs(1),
        ));
    }
}
