//! The jobs of a batch in the database of a fleet.

use super::super::queue::{Back, Claimed, Done, Idle, Queue};
use crate::error::UserError;
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_core::ids::ThreadId;
use kd_sql::batch::Batch;
use kd_sql::fleet::{self, Ended, Fleet, FleetAccount, THREAD_BYTES_MAX, ThreadFile};
use kd_store::{Layout, carried};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pauses between two looks at a batch of which nothing is due: the first, doubled up to the maximum.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// A worker waits for a question that is due so soon, and does not look for another batch.
const SOON: Duration = Duration::from_secs(10);
/// How often the time of a worker is written.
const TIME: Duration = Duration::from_secs(5);

/// The queue of one batch.
pub(super) struct FleetQueue {
    pub(super) fleet: Arc<Mutex<Fleet>>,
    pub(super) batch: String,
    pub(super) account: FleetAccount,
    /// Whether this process works on this batch only: until it is over, and whatever the priority of others.
    pub(super) alone: bool,
    /// Where its threads are on this machine.
    pub(super) layout: Layout,
    /// Whether the batch has limits of its own.
    pub(super) limited: bool,
    pub(super) look: Duration,
    pub(super) time: Duration,
}

impl FleetQueue {
    fn on<T>(
        &self,
        call: impl FnOnce(&mut Fleet) -> Result<T, fleet::FleetError>,
    ) -> Result<T, UserError> {
        let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(call(&mut fleet)?)
    }

    fn pause(&mut self) -> Duration {
        let pause = self.look.max(LOOK);
        self.look = (pause * 2).min(LOOK_MAX);
        pause
    }

    /// Returns the files of a thread.
    fn thread(&self, row: &Row) -> Result<Vec<ThreadFile>, UserError> {
        let Some(id) = row.thread.clone().map(ThreadId) else {
            return Ok(Vec::new());
        };
        // The answer of a thread that is too large is worth more than its files.
        let files = carried::read(&self.layout, &id, THREAD_BYTES_MAX)?.unwrap_or_default();
        let file = |(name, bytes)| ThreadFile { name, bytes };
        Ok(files.into_iter().map(file).collect())
    }

    fn flush_time(&mut self) -> Result<(), UserError> {
        let time = std::mem::take(&mut self.time);
        match time.is_zero() {
            true => Ok(()),
            false => self.on(|fleet| fleet.add_time(&self.batch, time)),
        }
    }
}

/// Returns the threads of jobs that have ended.
fn threads(done: &[Done]) -> Vec<ThreadId> {
    let threads = done.iter().filter_map(|one| one.row.thread.clone());
    threads.map(ThreadId).collect()
}

impl Queue for FleetQueue {
    fn claim(&mut self, most: usize) -> Result<Claimed, UserError> {
        let claimed = self.on(|fleet| fleet.claim(&self.batch, most, self.alone))?;
        if !claimed.jobs.is_empty() {
            self.look = LOOK;
        }
        let idle = match claimed.idle {
            _ if !claimed.jobs.is_empty() => Idle::Later(LOOK_MAX),
            // The pause of a rate is exact. Other jobs are looked at again, because a worker may be lost.
            fleet::Idle::Later(Some(wait)) if wait < SOON => {
                Idle::Later(wait.clamp(Duration::from_millis(1), LOOK_MAX))
            }
            // A worker that serves all batches looks for others.
            fleet::Idle::Later(_) if !self.alone => Idle::Over,
            fleet::Idle::Later(_) => Idle::Later(self.pause()),
            fleet::Idle::Over | fleet::Idle::Cancelled => Idle::Over,
            fleet::Idle::Limited => Idle::Limited,
        };
        Ok(Claimed {
            jobs: claimed.jobs,
            idle,
        })
    }

    fn write(&mut self, done: Vec<Done>, back: Vec<Back>) -> Result<Vec<Row>, UserError> {
        let threads = threads(&done);
        let mut ended = Vec::new();
        for Done { job, row, keep } in done {
            let thread = self.thread(&row)?;
            ended.push(Ended::Finished {
                job,
                row,
                keep,
                thread,
            });
        }
        ended.extend(back.into_iter().map(|one| Ended::Back {
            job: one.job,
            pause: one.pause,
            asked: one.asked,
        }));
        self.on(|fleet| fleet.write(&self.batch, &ended))?;
        if !self.alone {
            // The database has them now.
            for id in threads {
                carried::remove(&self.layout, &id)?;
            }
        }
        Ok(Vec::new())
    }

    fn release(&mut self) -> Result<(), UserError> {
        self.on(|fleet| fleet.release(&self.batch))
    }

    fn limited(&mut self) -> Result<(), UserError> {
        if self.account.is_over() || self.limited {
            return self.on(|fleet| fleet.limit(&self.batch));
        }
        let why = "a limit of the worker's own configuration is reached";
        self.on(|fleet| fleet.refuse(&self.batch, why))
    }

    fn add_time(&mut self, time: Duration) -> Result<(), UserError> {
        self.time += time;
        match self.time >= TIME {
            true => self.flush_time(),
            false => Ok(()),
        }
    }

    fn batch(&mut self) -> Result<Batch, UserError> {
        self.flush_time()?;
        let batch = self.on(|fleet| fleet.get(&self.batch))?;
        Ok(batch.map(|found| found.batch).unwrap_or_else(|| Batch {
            created: Timestamp::UNIX_EPOCH,
            ..Batch::default()
        }))
    }
}
