//! Where the loop of a batch takes its jobs from, and where results go. One implementation for each kind of database, so that
//! either can be exchanged.

use super::results::Results;
use crate::error::UserError;
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_sql::batch::{Batch, Batches, Finished, Job};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The result of a claim.
pub(super) struct Claimed {
    pub(super) jobs: Vec<Job>,
    /// If there are none.
    pub(super) idle: Idle,
}

/// What is left if there is nothing to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// To be looked at again after this time at the latest.
    Later(Duration),
    /// Nothing.
    Over,
    /// A limit has refused a request.
    Limited,
}

/// A job that has ended.
pub(super) struct Done {
    pub(super) job: Job,
    pub(super) row: Box<Row>,
    /// Whether the answer may be used for the same question later.
    pub(super) keep: bool,
}

/// A job that may succeed later.
pub(super) struct Back {
    pub(super) job: Job,
    /// The pause before that.
    pub(super) pause: Duration,
    pub(super) reason: Option<String>,
    /// Whether the attempt counts.
    pub(super) asked: bool,
    /// The thread of the attempt, if there is one.
    pub(super) thread: Option<String>,
}

/// The jobs of one batch, for one process. Calls block.
pub(super) trait Queue: Send + 'static {
    /// Takes up to `most` jobs that are due.
    fn claim(&mut self, most: usize) -> Result<Claimed, UserError>;
    /// Writes the results of jobs. Returns the lines that are new; a result of a claim that no longer holds gives none.
    fn write(&mut self, done: Vec<Done>, back: Vec<Back>) -> Result<Vec<Row>, UserError>;
    /// Writes the results of jobs, and takes up to `most` jobs that are due.
    fn turn(
        &mut self,
        done: Vec<Done>,
        back: Vec<Back>,
        most: usize,
    ) -> Result<(Vec<Row>, Claimed), UserError> {
        let rows = self.write(done, back)?;
        Ok((rows, self.claim(most)?))
    }
    /// Puts back everything that this process is asking: the attempts do not count.
    fn release(&mut self) -> Result<(), UserError>;
    /// A limit has refused a request.
    fn limited(&mut self) -> Result<(), UserError> {
        Ok(())
    }
    /// Records how long this process has been asking.
    fn add_time(&mut self, time: Duration) -> Result<(), UserError>;
    /// Replaces the file of results by what the database has.
    fn rewrite(&mut self) -> Result<(), UserError> {
        Ok(())
    }
    /// Returns the state of the batch.
    fn batch(&mut self) -> Result<Batch, UserError>;
}

/// The jobs of a batch of this machine, with its file of results.
pub(super) struct Own {
    pub(super) batches: Arc<Mutex<Batches>>,
    pub(super) batch: String,
    pub(super) run: i64,
    pub(super) results: Option<Results>,
}

impl Own {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Own {
    fn claim(&mut self, most: usize) -> Result<Claimed, UserError> {
        let mut batches = self.lock();
        let now = Timestamp::now();
        let jobs = batches.claim(&self.batch, self.run, most, now)?;
        let due = match jobs.is_empty() {
            true => batches.next_due(&self.batch)?,
            false => Some(now),
        };
        let idle = match due {
            Some(due) => {
                let wait = Duration::try_from(due.duration_since(Timestamp::now()));
                Idle::Later(wait.unwrap_or_default().max(Duration::from_millis(1)))
            }
            None => Idle::Over,
        };
        Ok(Claimed { jobs, idle })
    }

    fn write(&mut self, done: Vec<Done>, back: Vec<Back>) -> Result<Vec<Row>, UserError> {
        let mut batches = self.lock();
        let mut rows = Vec::new();
        for Done { job, row, keep } in &done {
            let finished = Finished {
                batch: &self.batch,
                place: job.place,
                row,
                keep: *keep,
            };
            rows.extend(batches.finish(self.run, &finished)?);
        }
        for one in back {
            let due = Timestamp::now()
                .saturating_add(one.pause)
                .unwrap_or(Timestamp::MAX);
            let of = (self.batch.as_str(), self.run);
            batches.put_back(of, one.job.place, due, one.reason.as_deref(), one.asked)?;
        }
        drop(batches);
        if let Some(results) = self.results.as_mut().filter(|_| !rows.is_empty()) {
            results.append(&rows)?;
        }
        Ok(rows)
    }

    fn release(&mut self) -> Result<(), UserError> {
        Ok(self.lock().release(&self.batch, self.run)?)
    }

    fn add_time(&mut self, time: Duration) -> Result<(), UserError> {
        Ok(self.lock().add_time(&self.batch, time)?)
    }

    fn rewrite(&mut self) -> Result<(), UserError> {
        let batches = Arc::clone(&self.batches);
        let batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut self.results {
            Some(results) => results.rewrite(&batches, &self.batch),
            None => Ok(()),
        }
    }

    fn batch(&mut self) -> Result<Batch, UserError> {
        Ok(self.lock().get(&self.batch)?.unwrap_or_default())
    }
}
