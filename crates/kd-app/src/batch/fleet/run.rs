//! Runs a batch over a fleet: creates or continues it, asks questions too, and collects the results.

use super::super::drive::{Progress, Stop};
use super::super::request::{BatchRequest, FleetRequest};
use super::super::results::Results;
use super::super::started::Running;
use super::super::{key, look};
use super::asks;
use super::follow::Follow;
use super::worker::WorkerRequest;
use super::{open, outside};
use crate::error::UserError;
use crate::kingdom::Kingdom;
use jiff::Timestamp;
use kd_core::spending::pico;
use kd_sql::batch::{Asked, Batch};
use kd_sql::fleet::{Asks, Fleet, FleetLimits, NewFleetBatch};
use kd_store::carried::Incoming;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// A batch of a fleet that can be run.
pub(in super::super) struct Prepared {
    fleet: FleetRequest,
    asks: Asks,
    /// The batch that an earlier run of the same command has begun.
    pub(in super::super) old: Option<Batch>,
    /// The digest of the batch.
    pub(in super::super) key: String,
}

/// Looks for an earlier run, and gives questions the keys of a fleet.
pub(in super::super) fn prepare(
    kingdom: &Kingdom,
    request: &BatchRequest,
    fleet: FleetRequest,
    questions: &mut [Asked],
) -> Result<Prepared, UserError> {
    let asks = asks::of(&kingdom.without_substitutes(), &request.how, fleet.plan)?;
    let whole = asks::recipe(&asks, false);
    for question in questions.iter_mut() {
        question.key = key::digest(&[&whole, &question.text]);
    }
    let chosen = asks::recipe(&asks, true);
    let key = key::batch(&chosen, questions, request.output.as_deref());
    let old = outside(|| {
        let mut store = open(&fleet.store)?;
        Ok::<_, UserError>(store.of_key(&key)?.map(|found| found.batch))
    })??;
    Ok(Prepared {
        fleet,
        asks,
        old,
        key,
    })
}

/// How often a process tries to get the right to run a batch, and the pause before the next try: the server may not know yet that
/// the process that ran it has ended.
const TRIES: u32 = 50;
const TRY: Duration = Duration::from_millis(100);

/// Takes the right to run a batch.
fn hold(fleet: &mut Fleet, id: &str) -> Result<(), UserError> {
    for _ in 0..TRIES {
        if fleet.hold(id)? {
            return Ok(());
        }
        std::thread::sleep(TRY);
    }
    Err(super::busy(id))
}

impl Prepared {
    /// Writes the file of results of a batch that is over.
    pub(in super::super) fn finished(
        &self,
        kingdom: &Kingdom,
        request: &BatchRequest,
    ) -> Result<Batch, UserError> {
        let Some(old) = &self.old else {
            return Err(look::none(&self.key));
        };
        let mut results = Results::of(request.output.as_deref(), kingdom.env())?;
        outside(|| {
            let mut fleet = open(&self.fleet.store)?;
            let layout = kingdom.env().make_layout()?.layout.in_fleet(&old.about.id);
            Follow::collect(&mut fleet, &old.about.id, &layout)?;
            Follow::rewrite(&mut fleet, &old.about.id, results.as_mut())
        })??;
        Ok(old.clone())
    }

    /// Returns the keys of the questions that were answered before.
    pub(in super::super) fn known(
        &self,
        questions: &[Asked],
    ) -> Result<HashSet<String>, UserError> {
        outside(|| Ok(open(&self.fleet.store)?.known(questions)?))?
    }

    /// Creates or continues the batch, and starts asking. Must be called inside a tokio runtime.
    pub(in super::super) fn start(
        self,
        kingdom: &Kingdom,
        request: &BatchRequest,
        questions: &[Asked],
        old: Option<Batch>,
    ) -> Result<Running, UserError> {
        let layout = kingdom.env().make_layout()?.layout;
        let results = Results::of(request.output.as_deref(), kingdom.env())?;
        let now = Timestamp::now();
        let goes_on = old.is_some();
        let id = match old {
            Some(old) => old.about.id,
            None => key::new_id(&self.key, now),
        };
        Results::tell_other(results.as_ref(), &id, kingdom.env());
        let new = self.new_batch(kingdom, request, &id);
        let (fleet, batch) = outside(|| {
            let mut fleet = open(&self.fleet.store)?;
            hold(&mut fleet, &id)?;
            match goes_on {
                true => fleet.go_on(&new, questions)?,
                false => fleet.create(&new, questions, now)?,
            }
            let batch = fleet.get(&id)?;
            Ok::<_, UserError>((fleet, batch.map(|found| found.batch).unwrap_or_default()))
        })??;
        let worker = match request.concurrency {
            0 => None,
            concurrency => Some(kingdom.worker(WorkerRequest {
                only: Some(id.clone()),
                ..WorkerRequest::new(
                    self.fleet.store.clone(),
                    concurrency,
                    self.fleet.lease,
                    self.fleet.name.clone(),
                )
            })?),
        };
        let (stop, stopped) = watch::channel(Stop::No);
        let (tell, progress) = watch::channel(Progress::of(&batch));
        let follow = Follow::new(
            Arc::new(Mutex::new(fleet)),
            id.clone(),
            Incoming::open(&layout.in_fleet(&id))?,
            results,
            worker,
        );
        let task = tokio::spawn(follow.run(stopped, tell));
        Ok(Running {
            id,
            goes_on,
            progress,
            stop,
            task,
            told: None,
            collector: None,
            _lock: None,
        })
    }

    fn new_batch(&self, kingdom: &Kingdom, request: &BatchRequest, id: &str) -> NewFleetBatch {
        let mut limits = kingdom.config().limits;
        request.limits.lay_over(&mut limits);
        NewFleetBatch {
            about: request.new_batch(id, &self.key),
            asks: self.asks.clone(),
            priority: self.fleet.priority,
            attempts: request.attempts.max(1),
            pause: request.pause,
            every: request.every,
            limits: FleetLimits {
                calls: limits.calls,
                tokens: limits.tokens,
                pico_usd: limits.usd.map(pico),
            },
        }
    }
}
