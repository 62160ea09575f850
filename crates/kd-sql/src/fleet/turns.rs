//! Ending jobs and claiming the next ones.

use super::claim::{self, Claimed, Cursor, First, Idle, Want};
use super::error::FleetError;
use super::finish::{self, Ended};
use super::store::Fleet;
use std::time::{Duration, Instant};

/// How long claims start from a cursor. Jobs put back before the cursor wait that long.
const CURSOR: Duration = Duration::from_secs(5);

/// How long a question that must be asked alone keeps a worker from taking jobs of other batches; its own batch is looked at more
/// often than that.
const LONE_WAITS: Duration = Duration::from_secs(3);

impl Fleet {
    /// Takes up to `most` jobs of a batch that are due. `alone`: batches with a higher priority do not matter.
    ///
    /// A question that was lost with its worker in all attempts but one may be what kills its workers. It is taken after all
    /// others, by a worker that holds nothing else, which takes nothing else until it has ended: so its last attempt takes no
    /// other question with it.
    ///
    /// # Errors
    /// The database fails.
    pub fn claim(&mut self, batch: &str, most: usize, alone: bool) -> Result<Claimed, FleetError> {
        self.reconcile()?;
        if self.is_kept_from(batch) {
            return Ok(Claimed::none(Idle::Later(Some(claim::LONE))));
        }
        let want = self.want(batch, most, alone);
        let first = self.link.statement(|tx| claim::first(tx, want, &[]))?;
        self.claimed(want, first)
    }

    /// Writes the results of jobs and the spending of their requests, in one transaction. Returns for each whether
    /// its claim still held: a result is dropped if its claim was given to another worker, but its spending counts.
    ///
    /// # Errors
    /// The database fails.
    pub fn write(&mut self, batch: &str, ended: &[Ended]) -> Result<Vec<bool>, FleetError> {
        let worker = self.id();
        let settled = self.settled();
        let written = self.link.tx(|tx| {
            let written = finish::write(tx, (worker, batch), ended, &settled)?;
            let awaited = finish::awaited(tx, batch, &written)?;
            finish::free(tx, batch, ended, &written, &awaited)?;
            Ok(written)
        });
        let written = self.or_pending(settled, written)?;
        self.let_go(ended);
        Ok(written.held(ended))
    }

    /// Does what [`Fleet::write`] and [`Fleet::claim`] do, in one transaction if that can be.
    ///
    /// # Errors
    /// The database fails. The results are written then, unless it cannot be reached.
    pub fn turn(
        &mut self,
        batch: &str,
        ended: &[Ended],
        most: usize,
        alone: bool,
    ) -> Result<(Vec<bool>, Claimed), FleetError> {
        self.reconcile()?;
        let ends = |token: i64| ended.iter().any(|one| one.job().token == token);
        let asks_alone = |token| self.held.contains_key(&token) && !ends(token);
        if self.lone.is_some_and(asks_alone) || self.ends_first(batch) {
            let held = self.write(batch, ended)?;
            return Ok((held, self.claim(batch, most, alone)?));
        }
        let want = self.want(batch, most, alone);
        let settled = self.settled();
        let done = self.link.tx(|tx| {
            let written = finish::write(tx, (want.worker, batch), ended, &settled)?;
            let first = claim::first(tx, want, &written.places)?;
            finish::free(tx, batch, ended, &written, &first.awaited)?;
            Ok((written, first))
        });
        match self.or_pending(settled, done) {
            Ok((written, first)) => {
                self.let_go(ended);
                let claimed = self.claimed(want, first)?;
                Ok((written.held(ended), claimed))
            }
            Err(error) if error.is_lost() => Err(error),
            // A claim that fails takes no result with it.
            Err(_) => {
                let held = self.write(batch, ended)?;
                Ok((held, self.claim(batch, most, alone)?))
            }
        }
    }

    fn want<'b>(&self, batch: &'b str, most: usize, alone: bool) -> Want<'b> {
        let cursor = match self.cursors.get(batch) {
            Some((cursor, since)) if since.elapsed() < CURSOR => *cursor,
            _ => claim::START,
        };
        Want {
            worker: self.id(),
            batch,
            most,
            alone,
            cursor,
        }
    }

    /// Goes on after the first statement of a claim.
    fn claimed(&mut self, want: Want<'_>, mut first: First) -> Result<Claimed, FleetError> {
        let (claimed, next) = match first.is_all(want.cursor) {
            Some(all) => all,
            None => self.link.tx(|tx| claim::rest(tx, want, &first))?,
        };
        self.keep(want, &claimed, next);
        // A commit whose answer was lost has claimed other jobs.
        self.reconcile()?;
        Ok(claimed)
    }

    /// Remembers the claimed jobs.
    fn keep(&mut self, want: Want<'_>, claimed: &Claimed, next: Cursor) {
        let batch = want.batch;
        let tokens = claimed.jobs.iter().map(|job| (job.token, batch.to_owned()));
        self.held.extend(tokens);
        if claimed.alone {
            self.lone = claimed.jobs.first().map(|job| job.token);
            let waits = self.lone.is_none();
            self.waits_for = waits.then(|| (batch.to_owned(), Instant::now()));
        } else if self.waits_for.as_ref().is_some_and(|(of, _)| of == batch) {
            self.waits_for = None;
        }
        let since = match self.cursors.get(batch) {
            Some((_, since)) if want.cursor != claim::START => *since,
            _ => Instant::now(),
        };
        match claimed.idle {
            Idle::Later(_) => drop(self.cursors.insert(batch.to_owned(), (next, since))),
            _ => drop(self.cursors.remove(batch)),
        }
    }

    /// Returns whether this worker takes no job of a batch now: it asks a question alone, or is to.
    fn is_kept_from(&self, batch: &str) -> bool {
        self.lone
            .is_some_and(|token| self.held.contains_key(&token))
            || self.ends_first(batch)
    }

    /// Returns whether a question of another batch waits for this worker to hold nothing.
    fn ends_first(&self, batch: &str) -> bool {
        let waits = self.waits_for.as_ref();
        waits.is_some_and(|(of, since)| of != batch && since.elapsed() < LONE_WAITS)
    }

    /// Holds jobs no longer that were written.
    fn let_go(&mut self, ended: &[Ended]) {
        for one in ended {
            self.held.remove(&one.job().token);
        }
    }
}
