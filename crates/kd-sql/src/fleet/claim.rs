//! Claiming jobs.

use super::error::FleetError;
use super::link::Tx;
use super::workers::LAST_CHANCE;
use super::{finish, now, unsigned};
use crate::batch::Job;
use jiff::Timestamp;
use kd_core::batch::{Method, QUESTION_BYTES_MAX, Row};
use std::collections::BTreeMap;
use std::time::Duration;

/// Questions that a batch with a rate may start at once after a pause: those of this time.
const BURST_MICROS: i64 = 1_000_000;

/// Maximum time from the start of one question to the next, in microseconds: a day. `kd` asks for less.
const EVERY_MAX: i64 = 86_400_000_000;

/// How long a worker serves a batch with a higher priority before it looks at this one again.
const PRECEDED: Duration = Duration::from_secs(1);

/// The pause of a worker that waits until it can ask a question alone, or until such a question has ended.
pub(super) const LONE: Duration = Duration::from_millis(200);

/// The place up to which the waiting jobs of a batch were claimed: what is before it was dead when it was looked at. A
/// transaction that is held open for long keeps the index entries of claimed jobs, and every claim would read all of them.
pub(super) type Cursor = (i64, i64);

/// Jobs that were claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What is left if there are none.
    pub idle: Idle,
    /// Whether the worker must ask nothing else meanwhile, or take nothing else before: see [`Fleet::claim`](super::Fleet::claim).
    pub alone: bool,
}

impl Claimed {
    /// Returns that there is no job.
    pub(super) fn none(idle: Idle) -> Self {
        Self {
            jobs: Vec::new(),
            idle,
            alone: false,
        }
    }
}

/// What is left of a batch to claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Jobs wait, or will when others fail.
    Later(Option<Duration>),
    /// Every job has ended.
    Over,
    /// A limit of the batch refused a request.
    Limited,
    /// The batch was cancelled or does not exist.
    Cancelled,
}

/// Takes up to `most` jobs of a batch that are due. `alone`: batches with a higher priority do not matter.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    most: usize,
    alone: bool,
    cursor: Cursor,
) -> Result<(Claimed, Cursor), FleetError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let about = tx.row(
        "SELECT cancelled, limited, every, method FROM kd_batches WHERE id = $1",
        &[&batch],
    )?;
    let none = |idle| Ok((Claimed::none(idle), cursor));
    let Some(about) = about else {
        return none(Idle::Cancelled);
    };
    if about.try_get(0)? {
        return none(Idle::Cancelled);
    }
    if about.try_get(1)? {
        return none(Idle::Limited);
    }
    if !alone && is_preceded(tx, worker, batch)? {
        return none(Idle::Later(Some(PRECEDED)));
    }
    let rate = about.try_get::<_, Option<i64>>(2)?;
    let rate = rate.map(|every| every.min(EVERY_MAX));
    let (most, early) = match rate.filter(|every| *every > 0) {
        Some(every) => admitted(tx, batch, every, most)?,
        None => (most, None),
    };
    if let Some(early) = early {
        return none(Idle::Later(Some(early)));
    }
    let (mut places, next) = take(tx, (worker, batch), most, cursor)?;
    let mut alone = false;
    if places.is_empty() {
        if cursor != (0, 0) {
            // Something may have been put back before the cursor.
            let idle = Idle::Later(Some(Duration::ZERO));
            return Ok((Claimed::none(idle), (0, 0)));
        }
        match last_chance(tx, worker, batch)? {
            LastChance::None => return none(idle(tx, batch)?),
            LastChance::Waits => {
                let idle = Idle::Later(Some(LONE));
                let alone = true;
                return Ok((
                    Claimed {
                        alone,
                        ..Claimed::none(idle)
                    },
                    cursor,
                ));
            }
            LastChance::Taken(place, taken) => {
                alone = true;
                places.insert(place, taken);
            }
        }
    }
    if let Some(every) = rate.filter(|every| *every > 0) {
        count_started(tx, batch, every, places.len())?;
    }
    let jobs = questions(tx, batch, &mut places)?;
    let method = Method::of_word(about.try_get(3)?).unwrap_or_default();
    for place in places.into_keys() {
        let reason = format!(
            "the database is damaged: the question is missing, or longer than {} MiB",
            QUESTION_BYTES_MAX >> 20
        );
        let row = Row::failed(method, reason, Timestamp::now());
        finish::end(tx, batch, place, &row, false)?;
    }
    let idle = Idle::Later(jobs.is_empty().then_some(Duration::ZERO));
    Ok((Claimed { jobs, idle, alone }, next))
}

/// A claimed place: its attempts and its token.
type Places = BTreeMap<i64, (i32, i64)>;

fn take(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    most: i64,
    cursor: Cursor,
) -> Result<(Places, Cursor), FleetError> {
    // The lock on the worker's row makes a worker that is being given up wait, or claim nothing.
    let rows = tx.rows(
        concat!(
            "WITH me AS MATERIALIZED (SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL FOR KEY SHARE),
             next AS MATERIALIZED (SELECT place FROM kd_jobs WHERE batch = $2 AND state = 0 AND due <= ",
            now!(),
            " AND due <> $6 AND (due, place) > ($4, $5) ORDER BY due, place LIMIT $3 FOR UPDATE SKIP LOCKED)
             UPDATE kd_jobs j SET state = 1, worker = me.id, token = nextval('kd_tokens'), attempts = least(j.attempts, 2147483646) + 1
             FROM next, me WHERE j.batch = $2 AND j.place = next.place AND j.state = 0
             RETURNING j.place, j.attempts, j.token, j.due"
        ),
        &[&worker, &batch, &most, &cursor.0, &cursor.1, &LAST_CHANCE],
    )?;
    let (mut places, mut next) = (Places::new(), cursor);
    for row in rows {
        let place: i64 = row.try_get(0)?;
        next = next.max((row.try_get(3)?, place));
        places.insert(place, (row.try_get(1)?, row.try_get(2)?));
    }
    Ok((places, next))
}

/// A question that is asked alone.
enum LastChance {
    /// There is none.
    None,
    /// This worker holds other jobs, or another worker has just taken it.
    Waits,
    /// Its place, its attempts and its token.
    Taken(i64, (i32, i64)),
}

/// Takes a question that has one attempt left and may kill its worker, if this worker holds nothing.
fn last_chance(tx: &mut Tx<'_>, worker: i64, batch: &str) -> Result<LastChance, FleetError> {
    let waits = tx.row(
        "SELECT EXISTS (SELECT 1 FROM kd_jobs WHERE worker = $1 AND state = 1) FROM kd_jobs
         WHERE batch = $2 AND state = 0 AND due = $3 LIMIT 1",
        &[&worker, &batch, &LAST_CHANCE],
    )?;
    match waits {
        None => return Ok(LastChance::None),
        Some(row) if row.try_get(0)? => return Ok(LastChance::Waits),
        Some(_) => {}
    }
    let taken = tx.row(
        "WITH me AS MATERIALIZED (SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL FOR KEY SHARE),
         next AS MATERIALIZED (SELECT place FROM kd_jobs WHERE batch = $2 AND state = 0 AND due = $3 ORDER BY place LIMIT 1
         FOR UPDATE SKIP LOCKED)
         UPDATE kd_jobs j SET state = 1, worker = me.id, token = nextval('kd_tokens'), attempts = least(j.attempts, 2147483646) + 1
         FROM next, me WHERE j.batch = $2 AND j.place = next.place AND j.state = 0
         RETURNING j.place, j.attempts, j.token",
        &[&worker, &batch, &LAST_CHANCE],
    )?;
    Ok(match taken {
        Some(row) => LastChance::Taken(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)),
        None => LastChance::Waits,
    })
}

/// Takes the places with a question from `places`, which keeps those that are damaged.
fn questions(tx: &mut Tx<'_>, batch: &str, places: &mut Places) -> Result<Vec<Job>, FleetError> {
    let wanted: Vec<i64> = places.keys().copied().collect();
    // What another program wrote there must not fill the memory.
    let bytes = QUESTION_BYTES_MAX as i32;
    let rows = tx.rows(
        "SELECT place, left(id, 1000), CASE WHEN octet_length(question) <= $3 THEN question END
         FROM kd_questions WHERE batch = $1 AND place = ANY($2) ORDER BY place",
        &[&batch, &wanted, &bytes],
    )?;
    let mut jobs = Vec::new();
    for row in rows {
        let place: i64 = row.try_get(0)?;
        let Some(question) = row.try_get::<_, Option<String>>(2)? else {
            continue;
        };
        let Some((attempt, token)) = places.remove(&place) else {
            continue;
        };
        jobs.push(Job {
            place: unsigned(place),
            id: row.try_get(1)?,
            question,
            attempt: u32::try_from(attempt).unwrap_or(0),
            token,
        });
    }
    Ok(jobs)
}

/// Returns whether a batch with a higher priority has jobs for this worker.
fn is_preceded(tx: &mut Tx<'_>, worker: i64, batch: &str) -> Result<bool, FleetError> {
    let found = tx.row(
        concat!(
            "SELECT 1 FROM kd_batches b JOIN kd_batches h ON h.priority > b.priority AND NOT h.cancelled AND NOT h.limited
             WHERE b.id = $2 AND (h.every IS NULL OR h.next_start <= 1000 * ",
            now!(),
            ") AND NOT EXISTS (SELECT 1 FROM kd_refusals r WHERE r.batch = h.id AND r.worker = $1)
             AND EXISTS (SELECT 1 FROM kd_jobs j WHERE j.batch = h.id AND j.state = 0 AND j.due <= ",
            now!(),
            ") LIMIT 1"
        ),
        &[&worker, &batch],
    )?;
    Ok(found.is_some())
}

/// Returns how many questions the rate of a batch admits now, up to `most`; else after which time it admits one. The row of the
/// batch stays locked, so that no other worker is admitted at the same time.
fn admitted(
    tx: &mut Tx<'_>,
    batch: &str,
    every: i64,
    most: i64,
) -> Result<(i64, Option<Duration>), FleetError> {
    let row = tx.row(
        concat!(
            "SELECT 1000 * ",
            now!(),
            " - greatest(next_start, 1000 * ",
            now!(),
            " - $2) FROM kd_batches WHERE id = $1 FOR NO KEY UPDATE"
        ),
        &[&batch, &burst(every)],
    )?;
    let late: i64 = match row {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    Ok(match late {
        early if early < 0 => (0, Some(Duration::from_micros(early.unsigned_abs()))),
        late => ((late / every + 1).min(most), None),
    })
}

/// Counts questions that were started.
fn count_started(tx: &mut Tx<'_>, batch: &str, every: i64, count: usize) -> Result<(), FleetError> {
    let taken = every
        .saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
        .min(i64::MAX / 4);
    tx.run(
        concat!(
            "UPDATE kd_batches SET next_start = least(greatest(next_start, 1000 * ",
            now!(),
            " - $2), 4000000000000000000) + $3 WHERE id = $1"
        ),
        &[&batch, &burst(every), &taken],
    )?;
    Ok(())
}

/// Returns for how long a pause may be made up for, in microseconds.
fn burst(every: i64) -> i64 {
    (BURST_MICROS - every).max(0)
}

/// Returns what is left of a batch of which nothing is due.
fn idle(tx: &mut Tx<'_>, batch: &str) -> Result<Idle, FleetError> {
    let row = tx.row(
        concat!(
            "SELECT (SELECT min(greatest(due, 0)) FROM kd_jobs WHERE batch = $1 AND state = 0) - ",
            now!(),
            ", EXISTS (SELECT 1 FROM kd_jobs WHERE batch = $1 AND state = 1)"
        ),
        &[&batch],
    )?;
    let Some(row) = row else {
        return Ok(Idle::Over);
    };
    let (due, running): (Option<i64>, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(match (due, running) {
        (Some(due), _) => Idle::Later(Some(Duration::from_millis(unsigned(due)))),
        (None, true) => Idle::Later(None),
        (None, false) => Idle::Over,
    })
}
