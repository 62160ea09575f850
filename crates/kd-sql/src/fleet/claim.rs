//! Claiming jobs.

use super::error::FleetError;
use super::link::Tx;
use super::workers::LAST_CHANCE;
use super::{finish, now, unsigned};
use crate::batch::Job;
use jiff::Timestamp;
use kd_core::batch::{Method, QUESTION_BYTES_MAX, Row};
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
    let about = tx.row(ABOUT, &[&batch, &worker, &!alone])?;
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
    if about.try_get(4)? {
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
    let mut taken = take(tx, (worker, batch), most, cursor)?;
    let mut alone = false;
    if taken.is_empty() {
        if cursor != (0, 0) {
            // Something may have been put back before the cursor.
            let idle = Idle::Later(Some(Duration::ZERO));
            return Ok((Claimed::none(idle), (0, 0)));
        }
        alone = true;
        match last_chance(tx, worker, batch)? {
            LastChance::None => return none(idle(tx, batch)?),
            LastChance::Waits => {
                let waits = Claimed::none(Idle::Later(Some(LONE)));
                return Ok((Claimed { alone, ..waits }, cursor));
            }
            LastChance::Taken(one) => {
                taken = Taken {
                    next: cursor,
                    ..one
                }
            }
        }
    }
    let Taken {
        jobs,
        damaged,
        next,
    } = taken;
    if let Some(every) = rate.filter(|every| *every > 0) {
        count_started(tx, batch, every, jobs.len() + damaged.len())?;
    }
    let method = Method::of_word(about.try_get(3)?).unwrap_or_default();
    for place in damaged {
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

/// What was claimed.
struct Taken {
    jobs: Vec<Job>,
    /// The places of questions that cannot be asked.
    damaged: Vec<i64>,
    next: Cursor,
}

/// Claims the jobs of `$2` that a condition selects, for the worker `$1`, and reads their questions, those of `$3` bytes at most.
macro_rules! taking {
    ($($which:expr),+) => {
        concat!(
            // The lock on the worker's row makes a worker that is being given up wait, or claim nothing.
            "WITH me AS MATERIALIZED (SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL FOR KEY SHARE),
             next AS MATERIALIZED (SELECT place FROM kd_jobs WHERE batch = $2 AND state = 0 AND ",
            $($which,)+
            " FOR UPDATE SKIP LOCKED),
             taken AS (UPDATE kd_jobs j SET state = 1, worker = me.id, token = nextval('kd_tokens'),
             attempts = least(j.attempts, 2147483646) + 1
             FROM next, me WHERE j.batch = $2 AND j.place = next.place AND j.state = 0
             RETURNING j.place, j.attempts, j.token, j.due)
             SELECT t.place, t.attempts, t.token, t.due, left(q.id, 1000),
             CASE WHEN octet_length(q.question) <= $3 THEN q.question END
             FROM taken t LEFT JOIN kd_questions q ON q.batch = $2 AND q.place = t.place ORDER BY t.place"
        )
    };
}

/// What another program wrote there must not fill the memory.
const BYTES: i32 = QUESTION_BYTES_MAX as i32;

fn take(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    most: i64,
    cursor: Cursor,
) -> Result<Taken, FleetError> {
    let rows = tx.rows(
        taking!(
            "due <= ",
            now!(),
            " AND due <> $4 AND (due, place) > ($5, $6) ORDER BY due, place LIMIT $7"
        ),
        &[
            &worker,
            &batch,
            &BYTES,
            &LAST_CHANCE,
            &cursor.0,
            &cursor.1,
            &most,
        ],
    )?;
    Taken::of(&rows, cursor)
}

impl Taken {
    fn of(rows: &[postgres::Row], cursor: Cursor) -> Result<Self, FleetError> {
        let mut taken = Self {
            jobs: Vec::new(),
            damaged: Vec::new(),
            next: cursor,
        };
        for row in rows {
            let place: i64 = row.try_get(0)?;
            taken.next = taken.next.max((row.try_get(3)?, place));
            match row.try_get::<_, Option<String>>(5)? {
                Some(question) => taken.jobs.push(Job {
                    place: unsigned(place),
                    id: row.try_get(4)?,
                    question,
                    attempt: u32::try_from(row.try_get::<_, i32>(1)?).unwrap_or(0),
                    token: row.try_get(2)?,
                }),
                None => taken.damaged.push(place),
            }
        }
        Ok(taken)
    }

    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.damaged.is_empty()
    }
}

/// A question that is asked alone.
enum LastChance {
    /// There is none.
    None,
    /// This worker holds other jobs, or another worker has just taken it.
    Waits,
    /// It was claimed.
    Taken(Taken),
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
    let rows = tx.rows(
        taking!("due = $4 ORDER BY place LIMIT 1"),
        &[&worker, &batch, &BYTES, &LAST_CHANCE],
    )?;
    let taken = Taken::of(&rows, (0, 0))?;
    Ok(match taken.is_empty() {
        false => LastChance::Taken(taken),
        true => LastChance::Waits,
    })
}

/// What a batch is, and if `$3`, whether one with a higher priority has jobs for the worker.
const ABOUT: &str = concat!(
    "SELECT b.cancelled, b.limited, b.every, b.method, $3 AND EXISTS (SELECT 1 FROM kd_batches h
     WHERE h.priority > b.priority AND NOT h.cancelled AND NOT h.limited AND (h.every IS NULL OR h.next_start <= 1000 * ",
    now!(),
    ") AND NOT EXISTS (SELECT 1 FROM kd_refusals r WHERE r.batch = h.id AND r.worker = $2)
     AND EXISTS (SELECT 1 FROM kd_jobs j WHERE j.batch = h.id AND j.state = 0 AND j.due <= ",
    now!(),
    ")) FROM kd_batches b WHERE b.id = $1"
);

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
            " - greatest(least(next_start, 1000 * ",
            now!(),
            " + $3), 1000 * ",
            now!(),
            " - $2) FROM kd_batches WHERE id = $1 FOR NO KEY UPDATE"
        ),
        // A later start in the database is of another program.
        &[&batch, &burst(every), &every],
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
            "UPDATE kd_batches SET next_start = greatest(least(next_start, 1000 * ",
            now!(),
            " + $4), 1000 * ",
            now!(),
            " - $2) + $3 WHERE id = $1"
        ),
        &[&batch, &burst(every), &taken, &every],
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
            ", EXISTS (SELECT 1 FROM kd_jobs WHERE batch = $1 AND state = 1), EXISTS (SELECT 1 FROM kd_jobs WHERE batch = $1 AND state = 5)"
        ),
        &[&batch],
    )?;
    let Some(row) = row else {
        return Ok(Idle::Over);
    };
    let (due, running): (Option<i64>, bool) = (row.try_get(0)?, row.try_get(1)?);
    let equal: bool = row.try_get(2)?;
    Ok(match (due, running) {
        (Some(due), _) => Idle::Later(Some(Duration::from_millis(unsigned(due)))),
        (None, true) => Idle::Later(None),
        (None, false) if !equal => Idle::Over,
        (None, false) => match finish::free_twins(tx, batch)? {
            0 => Idle::Later(None),
            _ => Idle::Later(Some(Duration::ZERO)),
        },
    })
}
