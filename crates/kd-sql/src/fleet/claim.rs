//! Claiming jobs.

use super::error::FleetError;
use super::link::Tx;
use super::workers::LAST_CHANCE;
use super::{finish, method_of, now, signed, unsigned};
use crate::batch::Job;
use jiff::Timestamp;
use kd_core::batch::{Method, QUESTION_BYTES_MAX, Row};
use std::time::Duration;

/// After a pause, a batch with a rate may start the questions of this time at once.
const BURST_MICROS: i64 = 1_000_000;

/// Maximum time from the start of one question to the start of the next, in microseconds: a day. `kd` never needs more.
const EVERY_MAX: i64 = 86_400_000_000;

/// How long a worker serves a batch with a higher priority before it looks at this one again.
const PRECEDED: Duration = Duration::from_secs(1);

/// The pause between checks of a worker that waits until it can ask a question alone, or until such a question has ended.
pub(super) const LONE: Duration = Duration::from_millis(200);

/// The position up to which the waiting jobs of a batch were claimed: all index entries before it were dead when they
/// were read. While another transaction stays open for long, index entries of claimed jobs remain, and without this
/// position every claim would read all of them.
pub(super) type Cursor = (i64, i64);

/// The position before every job, including jobs that another program wrote.
pub(super) const START: Cursor = (i64::MIN, 0);

/// Jobs that were claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The state if there are no jobs.
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

/// The jobs of a batch that can still be claimed.
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

/// The result of one statement: the state of a batch, and the jobs claimed from it if it may be asked.
#[derive(Debug)]
pub(super) struct First {
    about: Option<About>,
    taken: Taken,
    /// The places of the named questions that have ended and that equal questions wait for.
    pub(super) awaited: Vec<i64>,
}

/// A batch, as a claim sees it.
#[derive(Debug)]
struct About {
    cancelled: bool,
    limited: bool,
    /// The time from one start to the next, if it has a rate.
    every: Option<i64>,
    method: Method,
    /// Whether another one comes first.
    preceded: bool,
}

/// Whose jobs are claimed, and how many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want<'a> {
    pub(super) worker: i64,
    pub(super) batch: &'a str,
    pub(super) most: usize,
    /// Batches with a higher priority do not matter.
    pub(super) alone: bool,
    pub(super) cursor: Cursor,
}

/// Takes up to `most` jobs that are due, unless the batch has a rate or is not to be asked. It waits for no lock. `ended`: see
/// [`First::awaited`].
pub(super) fn first(tx: &mut Tx<'_>, want: Want<'_>, ended: &[i64]) -> Result<First, FleetError> {
    let rows = tx.rows(
        FIRST,
        &[
            &want.worker,
            &want.batch,
            &BYTES,
            &LAST_CHANCE,
            &want.cursor.0,
            &want.cursor.1,
            &signed(want.most as u64),
            &!want.alone,
            &ended,
        ],
    )?;
    let mut found = First {
        about: None,
        taken: Taken::of(&rows, want.cursor)?,
        awaited: Vec::new(),
    };
    if let Some(row) = rows.first() {
        let every = row.try_get::<_, Option<i64>>(8)?;
        found.about = Some(About {
            cancelled: row.try_get(6)?,
            limited: row.try_get(7)?,
            every: every.map(|n| n.min(EVERY_MAX)).filter(|n| *n > 0),
            method: method_of(row.try_get(9)?)?,
            preceded: row.try_get(10)?,
        });
        found.awaited = row.try_get(11)?;
    }
    Ok(found)
}

impl First {
    /// Returns the claimed jobs if that is the whole result; otherwise [`rest`] does the remaining work.
    pub(super) fn is_all(&mut self, cursor: Cursor) -> Option<(Claimed, Cursor)> {
        let none = |idle| Some((Claimed::none(idle), cursor));
        let Some(about) = &self.about else {
            return none(Idle::Cancelled);
        };
        if about.cancelled {
            return none(Idle::Cancelled);
        }
        if about.limited {
            return none(Idle::Limited);
        }
        if about.preceded {
            return none(Idle::Later(Some(PRECEDED)));
        }
        if self.taken.jobs.is_empty() || !self.taken.damaged.is_empty() {
            return None;
        }
        let claimed = Claimed {
            jobs: std::mem::take(&mut self.taken.jobs),
            idle: Idle::Later(None),
            alone: false,
        };
        Some((claimed, self.taken.next))
    }
}

/// Continues a claim that needs more than its first statement: the batch has a rate, nothing is due, or a question is
/// damaged.
pub(super) fn rest(
    tx: &mut Tx<'_>,
    want: Want<'_>,
    first: &First,
) -> Result<(Claimed, Cursor), FleetError> {
    let Want {
        worker,
        batch,
        cursor,
        ..
    } = want;
    let none = |idle| Ok((Claimed::none(idle), cursor));
    let Some(about) = &first.about else {
        return none(Idle::Cancelled);
    };
    let mut taken = first.taken.clone();
    if let Some(every) = about.every {
        match admitted(tx, batch, every, signed(want.most as u64))? {
            (_, Some(early)) => return none(Idle::Later(Some(early))),
            (most, None) => taken = take(tx, (worker, batch), most, cursor)?,
        }
    }
    let mut alone = false;
    if taken.is_empty() {
        if cursor != START {
            // Something may have been put back before the cursor.
            let idle = Idle::Later(Some(Duration::ZERO));
            return Ok((Claimed::none(idle), START));
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
    if let Some(every) = about.every {
        count_started(tx, batch, every, jobs.len() + damaged.len())?;
    }
    for place in damaged {
        let reason = format!(
            "the database is damaged: the question is missing, or longer than {} MiB",
            QUESTION_BYTES_MAX >> 20
        );
        let row = Row::failed(about.method, reason, Timestamp::now());
        finish::end(tx, batch, place, &row, false)?;
    }
    let idle = Idle::Later(jobs.is_empty().then_some(Duration::ZERO));
    Ok((Claimed { jobs, idle, alone }, next))
}

/// What was claimed.
#[derive(Clone, Debug)]
struct Taken {
    jobs: Vec<Job>,
    /// The places of questions that cannot be asked.
    damaged: Vec<i64>,
    next: Cursor,
}

/// Claims the jobs of `$2` that a condition selects, for the worker `$1`, and reads their questions of at most `$3`
/// bytes. `with`: statements before it; `and`: a condition for the worker; `from` and `also`: further selected columns.
macro_rules! taking {
    (with $with:expr, and $and:literal, which $which:expr, also $also:expr, from $from:literal) => {
        concat!(
            "WITH ",
            $with,
            // The lock on the worker's row makes a worker that is being given up claim nothing. It is not waited for: the process that
            // ends the worker may wait for a job that this transaction has just ended.
            "me AS MATERIALIZED (SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL ",
            $and,
            " FOR KEY SHARE SKIP LOCKED),
             next AS MATERIALIZED (SELECT place FROM kd_jobs WHERE batch = $2 AND state = 0 AND EXISTS (SELECT 1 FROM me) AND ",
            $which,
            " FOR UPDATE SKIP LOCKED),
             taken AS (UPDATE kd_jobs j SET state = 1, worker = me.id, token = nextval('kd_tokens'),
             attempts = least(j.attempts, 2147483646) + 1
             FROM next, me WHERE j.batch = $2 AND j.place = next.place AND j.state = 0
             RETURNING j.place, j.attempts, j.token, j.due)
             SELECT t.place, t.attempts, t.token, t.due, left(q.id, 1000),
             CASE WHEN octet_length(q.question) <= $3 THEN q.question END",
            $also,
            $from,
            " LEFT JOIN kd_questions q ON q.batch = $2 AND q.place = t.place ORDER BY t.place"
        )
    };
}

/// Those that are due, after a place.
macro_rules! due {
    () => {
        concat!(
            "due <= ",
            now!(),
            " AND due <> $4 AND (due, place) > ($5, $6) ORDER BY due, place LIMIT $7"
        )
    };
}

/// Selects the data of a batch, if `$8`; whether a batch with a higher priority has jobs for the worker; and a claim.
const FIRST: &str = taking!(
    with concat!(
        "about AS MATERIALIZED (SELECT b.cancelled, b.limited, b.every, b.method, $8 AND EXISTS (SELECT 1 FROM kd_batches h
         WHERE h.priority > b.priority AND ",
        super::named!("h.id"),
        " AND NOT h.cancelled AND NOT h.limited AND (h.every IS NULL OR h.next_start <= 1000 * ",
        now!(),
        ") AND NOT EXISTS (SELECT 1 FROM kd_refusals r WHERE r.batch = h.id AND r.worker = $1)
         AND EXISTS (SELECT 1 FROM kd_jobs j WHERE j.batch = h.id AND j.state = 0 AND j.due <= ",
        now!(),
        ")) AS preceded FROM kd_batches b WHERE b.id = $2), "
    ),
    and "AND EXISTS (SELECT 1 FROM about WHERE NOT (cancelled OR limited OR preceded) AND coalesce(every, 0) <= 0)",
    which due!(),
    also ", a.cancelled, a.limited, a.every, a.method, a.preceded,
         ARRAY(SELECT DISTINCT twin FROM kd_jobs WHERE batch = $2 AND twin = ANY($9) AND state = 5 ORDER BY twin)",
    from " FROM about a LEFT JOIN taken t ON true"
);

/// Maximum size, so that a value written by another program cannot fill the memory.
const BYTES: i32 = QUESTION_BYTES_MAX as i32;

fn take(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    most: i64,
    cursor: Cursor,
) -> Result<Taken, FleetError> {
    let rows = tx.rows(
        taking!(with "", and "", which due!(), also "", from " FROM taken t"),
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
            let Some(place) = row.try_get::<_, Option<i64>>(0)? else {
                continue;
            };
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
        taking!(with "", and "", which "due = $4 ORDER BY place LIMIT 1", also "", from " FROM taken t"),
        &[&worker, &batch, &BYTES, &LAST_CHANCE],
    )?;
    let taken = Taken::of(&rows, START)?;
    Ok(match taken.is_empty() {
        false => LastChance::Taken(taken),
        true => LastChance::Waits,
    })
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

/// Returns the remaining work of a batch that has nothing due.
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
