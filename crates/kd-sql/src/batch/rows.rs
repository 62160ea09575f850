//! Batches as rows: creating them with their questions, and their state.

use super::jobs::{State, kept_line, write_line};
use super::money::{self, certainty};
use super::new::{Asked, NewBatch};
use jiff::Timestamp;
use kd_core::batch::{Dead, MemberFailures};
use kd_core::spending::Spent;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The lines of a batch, in the order of the questions.
pub(super) const RESULTS: &str = "SELECT line FROM results WHERE batch = ?1 ORDER BY place";

/// A batch and its state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Its id, key, source, output and command.
    pub about: NewBatch,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// How long its runs have been asking, together.
    pub time: Duration,
    /// The amount spent. Requests of a killed run count with their maximum.
    pub spent: Spent,
    /// Its questions.
    pub counts: Counts,
}

/// Questions of a batch by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: u64,
    /// Not asked yet, to be asked again, or equal to one that is asked.
    pub waiting: u64,
    /// Being asked.
    pub running: u64,
    /// Answered.
    pub answered: u64,
    /// Answered by an earlier answer to the same question; also counted as answered.
    pub cached: u64,
    /// Failed for good.
    pub failed: u64,
    /// Not asked, because the batch was cancelled.
    pub cancelled: u64,
}

impl Counts {
    /// Counts jobs in a state.
    pub(crate) fn add(&mut self, state: State, n: u64) {
        self.total += n;
        match state {
            State::Waiting | State::Twin => self.waiting += n,
            State::Running => self.running += n,
            State::Done => self.answered += n,
            State::Dead => self.failed += n,
            State::Cancelled => self.cancelled += n,
        }
    }

    /// Returns how many questions have ended.
    pub fn ended(&self) -> u64 {
        self.answered + self.failed + self.cancelled
    }

    /// Returns them by the names that other output has.
    pub fn states(&self) -> BTreeMap<&'static str, u64> {
        [
            ("waiting", self.waiting),
            ("running", self.running),
            ("answered", self.answered),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
        ]
        .into()
    }

    /// Returns whether nothing is left to ask.
    pub fn is_over(&self) -> bool {
        self.waiting + self.running == 0
    }
}

pub(super) fn create(
    tx: &Transaction<'_>,
    new: &NewBatch,
    questions: &[Asked],
    now: Timestamp,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO batches (id, key, method, source, output, command, fresh, created)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            new.id,
            new.key,
            new.method,
            new.source,
            new.output,
            new.command,
            new.fresh,
            now.as_millisecond()
        ],
    )?;
    let mut insert = tx.prepare(
        "INSERT INTO jobs (batch, place, id, question, key, twin, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut first: HashMap<&str, i64> = HashMap::new();
    for (at, question) in questions.iter().enumerate() {
        let place = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(1);
        let twin = match new.fresh {
            true => None,
            false => match first.get(question.key.as_str()) {
                Some(twin) => Some(*twin),
                None => {
                    first.insert(&question.key, place);
                    None
                }
            },
        };
        let known = match new.fresh {
            true => None,
            false => kept_line(tx, &question.key)?,
        };
        let (state, twin) = match (&known, twin) {
            (Some(_), _) => (State::Done, None),
            (None, Some(twin)) => (State::Twin, Some(twin)),
            (None, None) => (State::Waiting, None),
        };
        insert.execute(params![
            new.id,
            place,
            question.id,
            question.text,
            question.key,
            twin,
            state as i64
        ])?;
        if let Some(row) = known {
            let line = row.for_another(&new.id, &question.id, place.unsigned_abs(), now);
            write_line(tx, (&new.id, place), &question.key, &line, false)?;
        }
    }
    Ok(())
}

pub(super) fn all(db: &Connection) -> rusqlite::Result<Vec<Batch>> {
    let ids: Vec<String> = {
        let mut found = db.prepare("SELECT id FROM batches ORDER BY created, id")?;
        let rows = found.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut batches = Vec::new();
    for id in ids {
        batches.extend(get(db, &id)?);
    }
    Ok(batches)
}

pub(super) fn of_key(db: &Connection, key: &str) -> rusqlite::Result<Option<Batch>> {
    let ids: Vec<String> = {
        let mut found =
            db.prepare("SELECT id FROM batches WHERE key = ?1 ORDER BY created DESC, id")?;
        let rows = found.query_map([key], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut newest = None;
    for id in ids {
        let Some(batch) = get(db, &id)? else { continue };
        if !batch.counts.is_over() {
            return Ok(Some(batch));
        }
        newest = newest.or(Some(batch));
    }
    Ok(newest)
}

pub(super) fn get(db: &Connection, id: &str) -> rusqlite::Result<Option<Batch>> {
    let batch = db
        .prepare_cached(
            "SELECT id, key, method, source, output, command, fresh, created, cancelled, millis, calls, tokens,
             pico_usd, certainty FROM batches WHERE id = ?1",
        )?
        .query_row([id], batch)
        .optional()?;
    let Some(mut batch) = batch else {
        return Ok(None);
    };
    batch.counts = counts(db, id)?;
    // Of a run that was killed, or is going on.
    let open = money::open(db, id)?;
    batch.spent = open.into_iter().fold(batch.spent, |sum, one| sum + one);
    Ok(Some(batch))
}

fn batch(row: &Row<'_>) -> rusqlite::Result<Batch> {
    let positive = |at: usize| row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0));
    Ok(Batch {
        about: NewBatch {
            id: row.get(0)?,
            key: row.get(1)?,
            method: row.get(2)?,
            source: row.get(3)?,
            output: row.get(4)?,
            command: row.get(5)?,
            fresh: row.get(6)?,
        },
        created: time(row.get(7)?),
        cancelled: row.get(8)?,
        time: Duration::from_millis(positive(9)?),
        spent: Spent {
            calls: positive(10)?,
            tokens: positive(11)?,
            pico_usd: positive(12)?,
            certainty: certainty(&row.get::<_, String>(13)?),
        },
        counts: Counts::default(),
    })
}

pub(super) fn failure_kinds(
    db: &Connection,
    batch: &str,
) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut found = db.prepare_cached(
        "SELECT coalesce(json_extract(results.line, '$.failures[0].kind'), 'other'), count(*)
         FROM jobs JOIN results ON results.batch = jobs.batch AND results.place = jobs.place
         WHERE jobs.batch = ?1 AND jobs.state = ?2 GROUP BY 1",
    )?;
    let rows = found.query_map(params![batch, State::Dead as i64], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    rows.collect()
}

pub(super) fn member_failures(
    db: &Connection,
    batch: &str,
    most: usize,
) -> rusqlite::Result<Vec<MemberFailures>> {
    let mut found = db.prepare_cached(
        "SELECT coalesce(json_extract(failure.value, '$.member'), ''), count(DISTINCT results.place),
         coalesce(max(json_extract(failure.value, '$.message')), '')
         FROM jobs JOIN results ON results.batch = jobs.batch AND results.place = jobs.place,
         json_each(results.line, '$.failures') AS failure
         WHERE jobs.batch = ?1 AND jobs.state = ?2 AND instr(results.line, '\"failures\":')
         AND json_extract(failure.value, '$.kind') IS NOT 'cancelled'
         GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?3",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = found.query_map(params![batch, State::Done as i64, most], |row| {
        Ok(MemberFailures {
            member: row.get(0)?,
            questions: row.get::<_, i64>(1)?.unsigned_abs(),
            reason: row.get(2)?,
        })
    })?;
    rows.collect()
}

fn counts(db: &Connection, batch: &str) -> rusqlite::Result<Counts> {
    let mut counts = Counts::default();
    let mut found =
        db.prepare_cached("SELECT state, count(*) FROM jobs WHERE batch = ?1 GROUP BY state")?;
    let mut rows = found.query([batch])?;
    while let Some(row) = rows.next()? {
        let n = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        counts.add(State::of(row.get(0)?), n);
    }
    let cached: i64 = db
        .prepare_cached("SELECT count(*) FROM results WHERE batch = ?1 AND cached = 1")?
        .query_row([batch], |row| row.get(0))?;
    counts.cached = u64::try_from(cached).unwrap_or(0);
    Ok(counts)
}

pub(super) fn dead(db: &Connection, batch: &str, most: usize) -> rusqlite::Result<Vec<Dead>> {
    let mut found = db.prepare_cached(
        "SELECT id, place, attempts, reason FROM jobs WHERE batch = ?1 AND state = ?2 ORDER BY place LIMIT ?3",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = found.query_map(params![batch, State::Dead as i64, most], |row| {
        Ok(Dead {
            id: row.get(0)?,
            n: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            attempts: row.get(2)?,
            reason: row.get::<_, Option<String>>(3)?.unwrap_or_default(),
        })
    })?;
    rows.collect()
}

pub(super) fn add_time(tx: &Transaction<'_>, batch: &str, millis: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE batches SET millis = millis + ?2 WHERE id = ?1",
        params![batch, millis],
    )?;
    Ok(())
}

fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or_default()
}
