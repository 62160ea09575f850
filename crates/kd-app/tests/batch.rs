//! The loop of a batch, with a handler that waits in place of members.
#![cfg(feature = "forum")]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a test may fail as a test may"
)]

use kd_app::batch::{Handler, Pace, Progress, Step, Stop, Why, drive};
use kd_core::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_sql::batch::{Asked, Batches, Job, NewBatch};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// Waits this long and answers.
struct Waits(Duration);

impl Handler for Waits {
    fn handle(&self, job: Job) -> Pin<Box<dyn Future<Output = Step> + Send>> {
        let wait = self.0;
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            let row = Row {
                status: Status::Answered,
                answer: Some(job.question),
                reason: None,
                ..Row::failed(Method::Ask, "", Timestamp::UNIX_EPOCH)
            };
            Step::Done {
                row: Box::new(row),
                keep: true,
            }
        })
    }
}

/// Returns the processor time of this thread.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[tokio::test]
async fn without_a_host_a_batch_drains_and_does_not_spin() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = Batches::at(&dir.path().join("b.db")).unwrap();
    let about = NewBatch {
        id: "batch-1".into(),
        method: "ask".into(),
        ..NewBatch::default()
    };
    let asked: Vec<Asked> = ["One?", "Two?", "Three?"]
        .into_iter()
        .map(|text| Asked {
            id: text.into(),
            text: text.into(),
            key: text.into(),
        })
        .collect();
    batches.create(&about, &asked, Timestamp::now()).unwrap();
    let run = batches.begin("batch-1", 1, Timestamp::now()).unwrap();
    let pace = Pace {
        concurrency: 2,
        attempts: 1,
        pause: Duration::ZERO,
        every: None,
    };
    let (stop, stopped) = watch::channel(Stop::No);
    let (tell, _progress) = watch::channel(Progress::default());
    let handler = Arc::new(Waits(Duration::from_millis(800)));
    let before = worked();
    let host = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        drop(stop);
    };
    let of = ("batch-1".to_owned(), run);
    let batches = Arc::new(Mutex::new(batches));
    let run = drive(batches, of, handler, pace, None, (stopped, tell));
    let (ended, ()) = tokio::join!(run, host);
    let ended = ended.unwrap();
    assert_eq!((ended.why, ended.ended), (Why::Stopped, 2));
    assert_eq!(ended.batch.counts.waiting, 1);
    assert!(ended.batch.time >= Duration::from_millis(700));
    let worked = worked() - before;
    assert!(worked < Duration::from_millis(200), "{worked:?}");
}
