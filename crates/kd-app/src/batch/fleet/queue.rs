//! The jobs of a batch in the database of a fleet.

use super::super::queue::{Back, Claimed, Done, Idle, Queue};
use crate::error::UserError;
use crate::kingdom::Kingdom;
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_core::config::LimitsConfig;
use kd_core::ids::ThreadId;
use kd_core::ledger::Ledger;
use kd_core::spending::{Spent, pico};
use kd_sql::batch::Batch;
use kd_sql::fleet::{
    self, Ended, Fleet, FleetAccount, FleetBatch, FleetLimits, THREAD_BYTES_MAX, ThreadFile,
};
use kd_store::{Layout, carried};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pauses between two looks at a batch without due questions: the first pause, doubled up to the maximum.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// A worker waits for a question that is due within this time, and does not look for another batch.
const SOON: Duration = Duration::from_secs(10);
/// Interval at which the time of a worker is written.
const TIME: Duration = Duration::from_secs(5);

/// The reason why a worker stops serving a batch when its own limit is reached.
pub(super) const OWN_LIMIT: &str = "a limit of the worker's own configuration is reached";

/// The queue of one batch.
pub(super) struct FleetQueue {
    pub(super) fleet: Arc<Mutex<Fleet>>,
    pub(super) batch: String,
    pub(super) account: FleetAccount,
    /// Whether this process works only on this batch, until the batch is over, regardless of other priorities.
    pub(super) alone: bool,
    /// Where its threads are on this machine.
    pub(super) layout: Layout,
    /// Counts the spending of this process for the batch.
    pub(super) kingdom: Arc<Kingdom>,
    /// This process's own limits.
    pub(super) own: LimitsConfig,
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

    /// Returns whether the limits of this process leave less than the limits of the batch.
    fn is_own_limit(&self) -> Result<bool, UserError> {
        let batch = self.on(|fleet| fleet.get(&self.batch))?;
        let Some(FleetBatch { batch, left, .. }) = batch else {
            return Ok(false);
        };
        let used = self.kingdom.spent();
        let day = self.own.usd_per_day.map(|usd| {
            let today = self.account.today().unwrap_or(u64::MAX);
            pico(usd).saturating_sub(today)
        });
        let usd = self
            .own
            .usd
            .map(|usd| pico(usd).saturating_sub(used.pico_usd));
        let own = FleetLimits {
            calls: self.own.calls.map(|n| n.saturating_sub(used.calls)),
            tokens: self.own.tokens.map(|n| n.saturating_sub(used.tokens)),
            pico_usd: usd.into_iter().chain(day).min(),
        };
        Ok(requests(&own, &batch.spent) < requests(&left, &batch.spent))
    }

    fn flush_time(&mut self) -> Result<(), UserError> {
        let time = std::mem::take(&mut self.time);
        match time.is_zero() {
            true => Ok(()),
            false => self.on(|fleet| fleet.add_time(&self.batch, time)),
        }
    }
}

/// Returns about how many more requests limits allow, of the size of those so far.
fn requests(left: &FleetLimits, spent: &Spent) -> u64 {
    let calls = spent.calls.max(1);
    let parts = [
        (left.calls, 1),
        (left.tokens, spent.tokens / calls),
        (left.pico_usd, spent.pico_usd / calls),
    ];
    let counts = parts
        .into_iter()
        .filter_map(|(left, each)| Some(left? / each.max(1)));
    counts.min().unwrap_or(u64::MAX)
}

/// Returns the threads of jobs that have ended, or are put back.
fn threads(done: &[Done], back: &[Back]) -> Vec<ThreadId> {
    let done = done.iter().filter_map(|one| one.row.thread.clone());
    let back = back.iter().filter_map(|one| one.thread.clone());
    done.chain(back).map(ThreadId).collect()
}

impl FleetQueue {
    /// Adds the files of threads to the results of jobs.
    fn ended(&self, done: Vec<Done>, back: Vec<Back>) -> Result<Vec<Ended>, UserError> {
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
        Ok(ended)
    }

    /// Removes threads of a worker: the database has them now, or their results were dropped, or their questions are asked again. The
    /// process that runs the batch keeps its own.
    fn remove(&self, threads: Vec<ThreadId>) -> Result<(), UserError> {
        if !self.alone {
            for id in threads {
                carried::remove(&self.layout, &id)?;
            }
        }
        Ok(())
    }

    fn told(&mut self, claimed: fleet::Claimed) -> Claimed {
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
        Claimed {
            jobs: claimed.jobs,
            idle,
        }
    }
}

impl Queue for FleetQueue {
    fn claim(&mut self, most: usize) -> Result<Claimed, UserError> {
        let claimed = self.on(|fleet| fleet.claim(&self.batch, most, self.alone))?;
        Ok(self.told(claimed))
    }

    fn write(&mut self, done: Vec<Done>, back: Vec<Back>) -> Result<Vec<Row>, UserError> {
        let threads = threads(&done, &back);
        let ended = self.ended(done, back)?;
        self.on(|fleet| fleet.write(&self.batch, &ended))?;
        self.remove(threads)?;
        Ok(Vec::new())
    }

    fn turn(
        &mut self,
        done: Vec<Done>,
        back: Vec<Back>,
        most: usize,
    ) -> Result<(Vec<Row>, Claimed), UserError> {
        let threads = threads(&done, &back);
        let ended = self.ended(done, back)?;
        let (_, claimed) = self.on(|fleet| fleet.turn(&self.batch, &ended, most, self.alone))?;
        let claimed = self.told(claimed);
        self.remove(threads)?;
        Ok((Vec::new(), claimed))
    }

    fn release(&mut self) -> Result<(), UserError> {
        self.on(|fleet| fleet.release(&self.batch))
    }

    fn limited(&mut self) -> Result<(), UserError> {
        // The limits of the process that runs the batch are the batch's.
        if self.account.is_over() || self.alone || !self.is_own_limit()? {
            return self.on(|fleet| fleet.limit(&self.batch));
        }
        self.on(|fleet| fleet.refuse(&self.batch, OWN_LIMIT))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_compared_by_the_requests_that_they_allow() {
        let spent = Spent {
            calls: 10,
            tokens: 1000,
            pico_usd: 50,
            ..Spent::default()
        };
        let calls = |n| FleetLimits {
            calls: Some(n),
            ..FleetLimits::default()
        };
        let money = |n| FleetLimits {
            pico_usd: Some(n),
            ..FleetLimits::default()
        };
        assert_eq!(requests(&FleetLimits::default(), &spent), u64::MAX);
        assert_eq!(requests(&money(20), &spent), 4);
        assert!(requests(&money(4), &spent) < requests(&calls(1), &spent));
        assert!(requests(&calls(0), &spent) < requests(&money(900), &spent));
        assert_eq!(requests(&calls(7), &Spent::default()), 7);
    }
}
