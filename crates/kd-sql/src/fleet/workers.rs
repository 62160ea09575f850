//! Workers: their leases, and the jobs of workers whose lease has expired.

use super::error::FleetError;
use super::finish::end;
use super::link::Tx;
use super::{method_of, money, now, stored, unsigned};
use crate::batch::State;
use jiff::Timestamp;
use kd_core::batch::{Refused, Row, Worker};
use kd_core::clean::clean_text;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum characters of a name or a version that is shown.
const NAME_CHARS_MAX: usize = 80;

/// The due time of a question whose worker was lost and that has one attempt left: at once. This time also marks the
/// question. It may be what kills its workers, so it is asked alone, and its companions do not fail with it.
pub(super) const LAST_CHANCE: i64 = 1;

/// Maximum lease in milliseconds: a day. A longer one in the database holds for a day.
const LEASE_MAX: i64 = 86_400_000;

/// A worker to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorker {
    /// Its name, without its number: unique names are made from both.
    pub name: String,
    /// Its version of `kd`.
    pub kd: String,
    /// After how long without a sign of life its jobs are given to others.
    pub lease: Duration,
}

pub(super) fn register(tx: &mut Tx<'_>, worker: &NewWorker) -> Result<i64, FleetError> {
    let lease = i64::try_from(worker.lease.as_millis()).unwrap_or(LEASE_MAX);
    let row = tx.row(
        concat!(
            "INSERT INTO kd_workers (name, kd, lease, started, beat) VALUES ($1, $2, $3, ",
            now!(),
            ", ",
            now!(),
            ") RETURNING id"
        ),
        &[&stored(&worker.name).as_ref(), &worker.kd, &lease],
    )?;
    let row = row.ok_or_else(|| FleetError::Damaged("a worker got no number".into()))?;
    Ok(row.try_get(0)?)
}

/// Renews a lease; returns whether it was not over yet.
pub(super) fn beat(tx: &mut Tx<'_>, worker: i64, draining: bool) -> Result<bool, FleetError> {
    let alive = tx.run(
        concat!(
            "UPDATE kd_workers SET beat = ",
            now!(),
            ", draining = $2 WHERE id = $1 AND ended IS NULL"
        ),
        &[&worker, &draining],
    )?;
    Ok(alive > 0)
}

/// Ends workers whose leases are over (not before they could renew them after a restart of the server), except `except`, which is known to live: their questions are asked again, or fail after
/// their attempts.
pub(super) fn reap(tx: &mut Tx<'_>, except: i64) -> Result<u64, FleetError> {
    let over = tx.rows(
        concat!(
            "SELECT id FROM kd_workers WHERE ended IS NULL AND id <> $1
             AND greatest(least(beat, ",
            now!(),
            "), (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint) + least(lease, $2) < ",
            now!(),
            " FOR UPDATE SKIP LOCKED"
        ),
        &[&except, &LEASE_MAX],
    )?;
    let mut ended = 0;
    for row in &over {
        ended += u64::from(buried(tx, row.try_get(0)?)?);
    }
    for worker in lost(tx)? {
        buried(tx, worker)?;
    }
    Ok(ended)
}

/// Returns who asks questions as their states say, and has ended or does not exist: another program wrote that, and nobody would end
/// them. No number of a worker is used again, so none of these comes to life meanwhile.
fn lost(tx: &mut Tx<'_>) -> Result<Vec<Option<i64>>, FleetError> {
    let rows = tx.rows(
        "SELECT DISTINCT j.worker FROM kd_jobs j WHERE j.state = 1
         AND NOT EXISTS (SELECT 1 FROM kd_workers w WHERE w.id = j.worker AND w.ended IS NULL)",
        &[],
    )?;
    let lost: Result<Vec<_>, postgres::Error> = rows.iter().map(|row| row.try_get(0)).collect();
    Ok(lost?)
}

/// Ends a worker if that can be done: one that cannot be ended, because of what another program wrote, must not stop those that live.
fn buried(tx: &mut Tx<'_>, worker: Option<i64>) -> Result<bool, FleetError> {
    tx.script("SAVEPOINT burial")?;
    match bury(tx, worker) {
        Ok(()) => Ok(true),
        Err(error) if error.is_lost() => Err(error),
        Err(_) => {
            tx.script("ROLLBACK TO SAVEPOINT burial")?;
            Ok(false)
        }
    }
}

/// Ends a worker. Its questions are given to other workers, and its sent requests count with their maximum. The
/// attempt counts, because the question may be what killed it. `None`: questions that no worker asks.
fn bury(tx: &mut Tx<'_>, worker: Option<i64>) -> Result<(), FleetError> {
    if let Some(worker) = worker {
        tx.run(
            concat!(
                "UPDATE kd_workers SET ended = ",
                now!(),
                " WHERE id = $1 AND ended IS NULL"
            ),
            &[&worker],
        )?;
        money::close(tx, worker)?;
        tx.run("DELETE FROM kd_refusals WHERE worker = $1", &[&worker])?;
    }
    let held = tx.rows(
        "SELECT j.batch, j.place, j.attempts, b.method, b.attempts FROM kd_jobs j JOIN kd_batches b ON b.id = j.batch
         WHERE (j.worker = $1 OR $1 IS NULL AND j.worker IS NULL) AND j.state = 1 ORDER BY j.batch, j.place FOR UPDATE OF j",
        &[&worker],
    )?;
    for row in held {
        let (batch, place): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        let (asked, most): (i32, i32) = (row.try_get(2)?, row.try_get(4)?);
        if asked < most {
            let due = match asked == most - 1 {
                true => LAST_CHANCE,
                false => 0,
            };
            put_back(tx, &batch, place, due)?;
            continue;
        }
        let times = match asked {
            1 => "once".to_owned(),
            n => format!("{n} times"),
        };
        let reason = format!("a worker was lost {times} while this question was asked");
        let method = method_of(row.try_get(3)?)?;
        end(
            tx,
            &batch,
            place,
            &Row::failed(method, reason, Timestamp::now()),
            false,
        )?;
    }
    Ok(())
}

fn put_back(tx: &mut Tx<'_>, batch: &str, place: i64, due: i64) -> Result<(), FleetError> {
    tx.run(
        "UPDATE kd_jobs j SET worker = NULL, token = 0, due = $3, state = CASE WHEN b.cancelled THEN 4 ELSE 0 END
         FROM kd_batches b WHERE b.id = j.batch AND j.batch = $1 AND j.place = $2",
        &[&batch, &place, &due],
    )?;
    Ok(())
}

/// Puts back what a worker holds in the database but does not know of, because the connection broke when it claimed.
pub(super) fn forget_unknown(
    tx: &mut Tx<'_>,
    worker: i64,
    known: &[i64],
) -> Result<(), FleetError> {
    tx.run(
        "UPDATE kd_jobs SET state = 0, worker = NULL, token = 0, attempts = greatest(attempts, 1) - 1
         WHERE worker = $1 AND state = 1 AND NOT token = ANY($2)",
        &[&worker, &known],
    )?;
    Ok(())
}

/// Puts back what a worker is asking, in one batch or all: the attempts do not count.
pub(super) fn release(tx: &mut Tx<'_>, worker: i64, batch: Option<&str>) -> Result<(), FleetError> {
    tx.run(
        "UPDATE kd_jobs j SET worker = NULL, token = 0, attempts = greatest(j.attempts, 1) - 1, state = CASE WHEN b.cancelled THEN 4 ELSE 0 END
         FROM kd_batches b WHERE b.id = j.batch AND j.worker = $1 AND j.state = 1 AND ($2::text IS NULL OR j.batch = $2)",
        &[&worker, &batch],
    )?;
    Ok(())
}

/// Ends a worker that has nothing in hand.
pub(super) fn leave(tx: &mut Tx<'_>, worker: i64) -> Result<(), FleetError> {
    let alive = tx.row(
        "SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL FOR UPDATE",
        &[&worker],
    )?;
    if alive.is_some() {
        release(tx, worker, None)?;
        bury(tx, Some(worker))?;
    }
    Ok(())
}

/// Refuses to serve a batch, for a reason that its status shows.
pub(super) fn refuse(
    tx: &mut Tx<'_>,
    worker: i64,
    batch: &str,
    reason: &str,
) -> Result<(), FleetError> {
    tx.run(
        "INSERT INTO kd_refusals (batch, worker, reason) VALUES ($1, $2, $3)
         ON CONFLICT (batch, worker) DO UPDATE SET reason = excluded.reason",
        &[&batch, &worker, &stored(reason).as_ref()],
    )?;
    Ok(())
}

/// Withdraws the refusal of a batch.
pub(super) fn withdraw(tx: &mut Tx<'_>, worker: i64, batch: &str) -> Result<(), FleetError> {
    tx.run(
        "DELETE FROM kd_refusals WHERE batch = $1 AND worker = $2",
        &[&batch, &worker],
    )?;
    Ok(())
}

/// Returns the workers that have not ended, with the batches that they do not serve.
pub(super) fn alive(tx: &mut Tx<'_>) -> Result<Vec<Worker>, FleetError> {
    let rows = tx.rows(
        concat!(
            "SELECT w.id, left(w.name, 1000), left(w.kd, 1000), least(w.lease, $1), ",
            now!(),
            " - greatest(w.beat, 0), w.draining, (SELECT count(*) FROM kd_jobs j WHERE j.worker = w.id AND j.state = 1), ",
            now!(),
            " - greatest(w.started, 0) FROM kd_workers w WHERE w.ended IS NULL ORDER BY w.id LIMIT 1000"
        ),
        &[&LEASE_MAX],
    )?;
    let millis = |n: i64| Duration::from_millis(unsigned(n));
    let mut all = Vec::new();
    let mut refused = refused(tx)?;
    for row in rows {
        let id: i64 = row.try_get(0)?;
        all.push(Worker {
            name: unique(row.try_get(1)?, id),
            kd: line(row.try_get(2)?),
            lease: millis(row.try_get(3)?),
            silent: millis(row.try_get(4)?),
            up: millis(row.try_get(7)?),
            draining: row.try_get(5)?,
            asking: unsigned(row.try_get(6)?),
            refuses: refused.remove(&id).unwrap_or_default(),
        });
    }
    Ok(all)
}

/// Returns the refusals of workers that have not ended, by worker.
fn refused(tx: &mut Tx<'_>) -> Result<BTreeMap<i64, Vec<Refused>>, FleetError> {
    let rows = tx.rows(
        "SELECT r.worker, left(r.batch, 1000), left(r.reason, 2000) FROM kd_refusals r JOIN kd_workers w ON w.id = r.worker
         WHERE w.ended IS NULL ORDER BY r.worker, r.batch LIMIT 1000",
        &[],
    )?;
    let mut all: BTreeMap<i64, Vec<Refused>> = BTreeMap::new();
    for row in rows {
        all.entry(row.try_get(0)?).or_default().push(Refused {
            batch: line(row.try_get(1)?),
            reason: reason(row.try_get(2)?),
        });
    }
    Ok(all)
}

/// Returns a reason of the database for one line of a terminal.
pub(super) fn reason(text: &str) -> String {
    clean_text(text).replace(['\n', '\t'], " ")
}

/// Returns the unique name of a worker.
pub(super) fn unique(name: &str, id: i64) -> String {
    format!("{}-{id}", line(name))
}

/// Returns a name of the database for one line of a terminal.
pub(super) fn line(text: &str) -> String {
    let text: String = clean_text(text).chars().take(NAME_CHARS_MAX).collect();
    text.replace(['\n', '\t'], " ")
}

// The statements of this module have these numbers in them.
const _: () = assert!(
    State::Waiting as i16 == 0 && State::Running as i16 == 1 && State::Cancelled as i16 == 4
);
