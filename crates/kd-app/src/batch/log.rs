//! The log of a run: a line for everything that happens to a question.

use super::drive::{Handler, Step};
use crate::env::Env;
use crate::error::UserError;
use crate::outfile;
use jiff::Timestamp;
use kd_core::batch::{LogEvent, LogLine, Row};
use kd_core::spending::Spent;
use kd_sql::batch::Job;
use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// A log that lines are added to.
pub(super) struct RunLog {
    batch: String,
    file: Mutex<Option<std::fs::File>>,
    env: Env,
}

impl RunLog {
    /// Opens the file at this path, which need not exist; lines are added at its end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn open(path: &Path, batch: &str, env: &Env) -> Result<Self, UserError> {
        outfile::check(Some(path), env)?;
        let whole = env.folder()?.join(path);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(whole);
        let file = opened.map_err(|error| {
            let what = format!("the log {} could not be opened", path.display());
            UserError::new(crate::error::ErrorKind::Output, what).because(error)
        })?;
        Ok(Self {
            batch: batch.to_owned(),
            file: Mutex::new(Some(file)),
            env: env.clone(),
        })
    }

    /// Adds a line. If it cannot be written, a warning says so and the log ends; the batch continues.
    pub(super) fn add(&self, event: LogEvent, fill: impl FnOnce(&mut LogLine)) {
        let mut line = LogLine::new(event, &self.batch, Timestamp::now());
        fill(&mut line);
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = open.as_mut() else { return };
        let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
        bytes.push(b'\n');
        if let Err(error) = file.write_all(&bytes) {
            *open = None;
            self.env.warn(format!(
                "the log could not be written and ends here: {error}"
            ));
        }
    }
}

/// Logs what another handler does.
pub(super) struct Logged {
    pub(super) inner: Arc<dyn Handler>,
    pub(super) log: Arc<RunLog>,
    /// Attempts of a question.
    pub(super) attempts: u32,
}

impl Handler for Logged {
    fn handle(&self, job: Job) -> Pin<Box<dyn Future<Output = Step> + Send>> {
        let log = Arc::clone(&self.log);
        let about = (job.id.clone(), job.place, job.attempt);
        let is_last = job.attempt >= self.attempts;
        fill_in(&log, LogEvent::Started, &about, |_| {});
        let work = self.inner.handle(job);
        Box::pin(async move {
            let step = work.await;
            let of_row = |event, row: &Row| fill_in(&log, event, &about, |line| of_row(line, row));
            match &step {
                Step::Done { row, .. } => match row.status {
                    kd_core::batch::Status::Answered => of_row(LogEvent::Answered, row),
                    kd_core::batch::Status::Failed => of_row(LogEvent::Failed, row),
                },
                Step::Again { row, .. } if is_last => of_row(LogEvent::Failed, row),
                Step::Again { row, .. } => of_row(LogEvent::Retried, row),
                Step::Unasked(_) => fill_in(&log, LogEvent::Unasked, &about, |_| {}),
                Step::Limit(_) => fill_in(&log, LogEvent::Limit, &about, |_| {}),
                Step::Stop(error) => fill_in(&log, LogEvent::Unasked, &about, |line| {
                    line.reason = Some(error.to_string());
                }),
            }
            step
        })
    }

    fn spent(&self) -> Spent {
        self.inner.spent()
    }
}

fn fill_in(
    log: &RunLog,
    event: LogEvent,
    (id, place, attempt): &(String, u64, u32),
    fill: impl FnOnce(&mut LogLine),
) {
    log.add(event, |line| {
        line.id = Some(id.clone());
        line.n = Some(*place);
        line.attempt = Some(*attempt);
        fill(line);
    });
}

fn of_row(line: &mut LogLine, row: &Row) {
    line.thread = row.thread.clone();
    line.failures = row.failures.iter().map(|one| one.kind.clone()).collect();
    line.reason = row.reason.clone();
    line.seconds = Some(row.seconds);
    line.tokens = Some(row.usage.tokens());
    line.usd = row.usage.usd;
}
