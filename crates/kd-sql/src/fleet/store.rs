//! The database of a fleet: every access is one transaction.

use super::address::Store;
use super::batches::{self, FleetBatch, Line, Seen};
use super::claim::Cursor;
use super::create::{self, NewFleetBatch};
use super::error::FleetError;
use super::finish::ThreadFile;
use super::forget::{self, Erased};
use super::link::{Link, Tx};
use super::money::{self, Settled};
use super::workers::{self, NewWorker};
use super::{retry, runs, schema, threads};
use crate::batch::{Asked, Batch, Dead, MemberFailures, Retried};
use jiff::Timestamp;
use kd_core::batch::{Refusal, Worker};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The database of a fleet.
pub struct Fleet {
    pub(super) link: Link,
    store: Store,
    worker: Option<(NewWorker, i64)>,
    draining: bool,
    /// The batches of the jobs that this worker holds, by token.
    pub(super) held: BTreeMap<i64, String>,
    /// The job that was asked alone last: others wait while it is held.
    pub(super) lone: Option<i64>,
    /// The batch with a question to be asked alone, and when it was found. This worker first finishes its own
    /// questions.
    pub(super) waits_for: Option<(String, Instant)>,
    pub(super) cursors: HashMap<String, (Cursor, Instant)>,
    pending: Arc<Mutex<Vec<Settled>>>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Connects, creating the tables in an empty schema. `lease` bounds how long a stopped process may hold locks.
    ///
    /// # Errors
    /// [`FleetError::Open`] if it cannot be reached, [`FleetError::Newer`] if a newer `kd` wrote it.
    pub fn open(store: &Store, lease: Duration) -> Result<Self, FleetError> {
        let mut link = Link::open(store, lease)?;
        link.tx(|tx| schema::migrate(tx, store))?;
        Ok(Self {
            link,
            store: store.clone(),
            worker: None,
            draining: false,
            held: BTreeMap::new(),
            lone: None,
            waits_for: None,
            cursors: HashMap::new(),
            pending: Arc::default(),
        })
    }

    /// Returns the address.
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn pending(&self) -> Arc<Mutex<Vec<Settled>>> {
        Arc::clone(&self.pending)
    }

    /// Creates a batch with its questions, all or none, as [`crate::batch::Batches::create`].
    ///
    /// # Errors
    /// The database fails.
    pub fn create(
        &mut self,
        new: &NewFleetBatch,
        questions: &[Asked],
        now: Timestamp,
    ) -> Result<(), FleetError> {
        self.link
            .once(&mut |tx| create::create(tx, new, questions, now))
    }

    /// Continues a batch, with the limits, the pace and the configuration of the continuing command.
    ///
    /// # Errors
    /// The database fails.
    pub fn go_on(&mut self, new: &NewFleetBatch, questions: &[Asked]) -> Result<(), FleetError> {
        self.link.tx(|tx| {
            create::go_on(tx, new)?;
            create::rekey(tx, &new.about.id, questions)
        })
    }

    /// Takes the right to run a batch, which one process has, until its connection ends. Returns whether this one has it.
    ///
    /// # Errors
    /// The database fails.
    pub fn hold(&mut self, batch: &str) -> Result<bool, FleetError> {
        self.link.statement(|tx| runs::hold(tx, batch))
    }

    /// Returns the batch of a command that is not finished; else the newest one.
    ///
    /// # Errors
    /// The database fails.
    pub fn of_key(&mut self, key: &str) -> Result<Option<FleetBatch>, FleetError> {
        let mut newest = None;
        let ids = self.link.tx(|tx| batches::ids_of_key(tx, key))?;
        for id in ids.into_iter().filter(|id| batches::is_id(id)) {
            let Some(batch) = self.get(&id)? else {
                continue;
            };
            if !batch.batch.counts.is_over() {
                return Ok(Some(batch));
            }
            newest = newest.or(Some(batch));
        }
        Ok(newest)
    }

    /// Returns all batches, oldest first, and the mistakes of rows that are not valid batches, which are left out.
    ///
    /// # Errors
    /// The database fails.
    pub fn all(&mut self) -> Result<(Vec<Batch>, Vec<String>), FleetError> {
        match self.link.tx(batches::all) {
            Err(FleetError::Damaged(_)) => {}
            all => return Ok((all?, Vec::new())),
        }
        // One by one, to find out which is damaged.
        let (mut all, mut damaged) = (Vec::new(), Vec::new());
        for id in self.link.tx(batches::ids)? {
            match self.get(&id) {
                Ok(batch) => all.extend(batch.map(|found| found.batch)),
                Err(FleetError::Damaged(why)) => damaged.push(why),
                Err(error) => return Err(error),
            }
        }
        Ok((all, damaged))
    }

    /// Returns a batch by its id.
    ///
    /// # Errors
    /// The database fails.
    pub fn get(&mut self, id: &str) -> Result<Option<FleetBatch>, FleetError> {
        self.link.tx(|tx| batches::get(tx, id))
    }

    /// Returns the keys of the questions that were answered before.
    ///
    /// # Errors
    /// The database fails.
    pub fn known(&mut self, questions: &[Asked]) -> Result<HashSet<String>, FleetError> {
        self.link
            .tx(|tx| Ok(create::known(tx, questions)?.into_keys().collect()))
    }

    /// Registers this process as a worker, with a new number.
    ///
    /// # Errors
    /// The database fails.
    pub fn register(&mut self, worker: &NewWorker) -> Result<String, FleetError> {
        let id = self.link.tx(|tx| workers::register(tx, worker))?;
        self.worker = Some((worker.clone(), id));
        self.held.clear();
        Ok(workers::unique(&worker.name, id))
    }

    pub(super) fn id(&self) -> i64 {
        self.worker.as_ref().map_or(0, |(_, id)| *id)
    }

    /// Returns the number of this worker.
    pub fn worker(&self) -> i64 {
        self.id()
    }

    /// Starts no more questions: other processes can see it.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Renews the lease of this worker, ends those whose leases are over, and records settled requests. If its own lease is
    /// over, for example because the process was stopped, it is registered again. Its questions were given to other
    /// workers.
    ///
    /// # Errors
    /// The database fails.
    pub fn beat(&mut self) -> Result<(), FleetError> {
        let (id, draining) = (self.id(), self.draining);
        let settled = self.settled();
        let alive = self.link.tx(|tx| {
            money::settle(tx, &settled)?;
            let alive = workers::beat(tx, id, draining)?;
            workers::reap(tx, id)?;
            Ok(alive)
        });
        let alive = self.or_pending(settled, alive)?;
        if !alive && let Some((worker, _)) = self.worker.clone() {
            self.register(&worker)?;
        }
        // Also without a broken connection: another program may have changed our claims, and nobody else would end them.
        self.forget_unknown()
    }

    /// Puts back jobs that a broken connection claimed without our knowledge.
    pub(super) fn reconcile(&mut self) -> Result<(), FleetError> {
        match self.link.was_lost() {
            true => self.forget_unknown(),
            false => Ok(()),
        }
    }

    fn forget_unknown(&mut self) -> Result<(), FleetError> {
        let id = self.id();
        let known: Vec<i64> = self.held.keys().copied().collect();
        self.link.tx(|tx| workers::forget_unknown(tx, id, &known))
    }

    /// Ends this worker. Its questions are given to other workers at once.
    ///
    /// # Errors
    /// The database fails: its lease ends later.
    pub fn leave(&mut self) -> Result<(), FleetError> {
        let id = self.id();
        let settled = self.settled();
        let left = self.link.tx(|tx| {
            money::settle(tx, &settled)?;
            workers::leave(tx, id)
        });
        self.worker = None;
        self.held.clear();
        self.or_pending(settled, left)
    }

    /// Returns the workers that are at work.
    ///
    /// # Errors
    /// The database fails.
    pub fn workers(&mut self) -> Result<Vec<Worker>, FleetError> {
        self.link.tx(|tx| {
            workers::reap(tx, 0)?;
            workers::alive(tx)
        })
    }

    /// Returns the workers that do not serve a batch.
    ///
    /// # Errors
    /// The database fails.
    pub fn refusals(&mut self, batch: &str) -> Result<Vec<Refusal>, FleetError> {
        self.link.tx(|tx| batches::refusals(tx, batch))
    }

    /// Refuses to serve a batch.
    ///
    /// # Errors
    /// The database fails.
    pub fn refuse(&mut self, batch: &str, reason: &str) -> Result<(), FleetError> {
        let id = self.id();
        self.link.tx(|tx| workers::refuse(tx, id, batch, reason))
    }

    /// Withdraws the refusal of a batch: this worker looks at it again.
    ///
    /// # Errors
    /// The database fails.
    pub fn withdraw(&mut self, batch: &str) -> Result<(), FleetError> {
        let id = self.id();
        self.link.tx(|tx| workers::withdraw(tx, id, batch))
    }

    /// Returns the ids of the batches that have jobs for this worker, in the order in which it serves them.
    ///
    /// # Errors
    /// The database fails.
    pub fn ready(&mut self) -> Result<Vec<String>, FleetError> {
        let id = self.id();
        self.link.statement(|tx| batches::ready(tx, id))
    }

    pub(super) fn settled(&self) -> Vec<Settled> {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps settled requests for the next transaction if this one failed.
    pub(super) fn or_pending<T>(
        &self,
        settled: Vec<Settled>,
        done: Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        if done.is_err() {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.splice(0..0, settled);
        }
        done
    }

    /// Puts back the questions of a batch that this worker is asking. The attempts do not count. What it has spent is
    /// recorded before others end it.
    ///
    /// # Errors
    /// The database fails.
    pub fn release(&mut self, batch: &str) -> Result<(), FleetError> {
        let id = self.id();
        self.cursors.remove(batch);
        self.held.retain(|_, of| of != batch);
        if self.waits_for.as_ref().is_some_and(|(of, _)| of == batch) {
            self.waits_for = None;
        }
        let settled = self.settled();
        let released = self.link.tx(|tx| {
            money::settle(tx, &settled)?;
            workers::release(tx, id, Some(batch))
        });
        self.or_pending(settled, released)
    }

    /// Records that a limit has refused a request of a batch: nobody claims from it until the command is run again.
    ///
    /// # Errors
    /// The database fails.
    pub fn limit(&mut self, batch: &str) -> Result<(), FleetError> {
        self.link.tx(|tx| {
            tx.run(
                "UPDATE kd_batches SET limited = true WHERE id = $1",
                &[&batch],
            )?;
            Ok(())
        })
    }

    /// Records how long this worker has been asking for a batch.
    ///
    /// # Errors
    /// The database fails.
    pub fn add_time(&mut self, batch: &str, time: Duration) -> Result<(), FleetError> {
        let id = self.id();
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        self.link
            .statement(|tx| money::add_time(tx, batch, id, millis))
    }

    /// Calls `some` with the results that `seen` has not, some at a time.
    ///
    /// # Errors
    /// The database fails, or the error of `some`.
    pub fn new_results<E: From<FleetError>>(
        &mut self,
        batch: &str,
        seen: &mut Seen,
        mut some: impl FnMut(&mut Self, Vec<Line>) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (places, next) = self.link.tx(|tx| batches::unseen(tx, batch, seen))?;
        for chunk in places.chunks(batches::LINES) {
            let lines = self.link.tx(|tx| batches::lines(tx, batch, chunk))?;
            some(self, lines)?;
        }
        *seen = next;
        Ok(places.len() as u64)
    }

    /// Calls `each` with every line of results, in the order of the questions.
    ///
    /// # Errors
    /// The database fails, or the error of `each`.
    pub fn results<E: From<FleetError>>(
        &mut self,
        batch: &str,
        mut each: impl FnMut(&Line) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut after = 0;
        loop {
            let page = self.link.tx(|tx| batches::page(tx, batch, after))?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = super::signed(last.place);
            for line in &page {
                each(line)?;
            }
        }
    }

    /// Calls `each` with the files of the threads of these questions, those that have one.
    ///
    /// # Errors
    /// The database fails, or the error of `each`. A thread that is too large is left out.
    pub fn threads<E: From<FleetError>>(
        &mut self,
        batch: &str,
        places: &[u64],
        mut each: impl FnMut(u64, Vec<ThreadFile>) -> Result<(), E>,
    ) -> Result<(), E> {
        if places.is_empty() {
            return Ok(());
        }
        for some in self.link.tx(|tx| threads::together(tx, batch, places))? {
            for (place, files) in self.link.tx(|tx| threads::files(tx, batch, &some))? {
                each(place, files)?;
            }
        }
        Ok(())
    }

    /// Returns the failed questions of a batch with their reasons: the first `most`.
    ///
    /// # Errors
    /// The database fails.
    pub fn dead(&mut self, batch: &str, most: usize) -> Result<Vec<Dead>, FleetError> {
        self.link.tx(|tx| batches::dead(tx, batch, most))
    }

    /// Returns the members that failed in answered questions, as [`crate::batch::Batches::member_failures`].
    ///
    /// # Errors
    /// The database fails.
    pub fn member_failures(
        &mut self,
        batch: &str,
        most: usize,
    ) -> Result<Vec<MemberFailures>, FleetError> {
        self.link.tx(|tx| batches::member_failures(tx, batch, most))
    }

    /// Asks failed and cancelled questions again, as [`crate::batch::Batches::retry`].
    ///
    /// # Errors
    /// The database fails.
    pub fn retry(&mut self, batch: &str, now: Timestamp) -> Result<Retried, FleetError> {
        self.link.once(&mut |tx| retry::retry(tx, batch, now))
    }

    /// Erases a batch, or a question of one by its id, with results and threads, also where another batch has the same
    /// answer. Nothing is erased while workers ask it, or with `dry`. Workers whose leases are over are ended first.
    ///
    /// # Errors
    /// The database fails.
    pub fn forget(
        &mut self,
        batch: &str,
        question: Option<&str>,
        dry: bool,
    ) -> Result<Erased, FleetError> {
        let once = &mut |tx: &mut Tx<'_>| forget::forget(tx, batch, question, dry);
        let erased = self.link.once(once)?;
        if !dry && erased.asking.is_empty() {
            self.link.vacuum();
        }
        Ok(erased)
    }

    /// Cancels a batch: its waiting questions are not asked. Returns how many those are.
    ///
    /// # Errors
    /// The database fails.
    pub fn cancel(&mut self, batch: &str) -> Result<u64, FleetError> {
        self.link.once(&mut |tx| retry::cancel(tx, batch))
    }
}
