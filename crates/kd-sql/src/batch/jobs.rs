//! Jobs: claiming, ending, putting back. Every function runs inside a transaction of its caller.

use super::new::Asked;
use super::parcel_rows;
use jiff::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_core::formats::{BATCH_RESULT, stated};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be asked when it is due.
    Waiting = 0,
    /// Being asked.
    Running = 1,
    /// Answered.
    Done = 2,
    /// Failed for good.
    Dead = 3,
    /// Not asked, because the batch was cancelled.
    Cancelled = 4,
    /// Waits for an equal question.
    Twin = 5,
}

impl State {
    pub(crate) fn of(number: i64) -> Self {
        match number {
            0 => State::Waiting,
            1 => State::Running,
            2 => State::Done,
            4 => State::Cancelled,
            5 => State::Twin,
            _ => State::Dead,
        }
    }
}

/// A job to do: a question to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its place in the batch, from 1.
    pub place: u64,
    /// The id of the question.
    pub id: String,
    /// The question.
    pub question: String,
    /// How often it was asked, this time included.
    pub attempt: u32,
    /// Its claim: a result under another one is refused.
    pub token: i64,
}

/// A job that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'r> {
    /// The batch.
    pub batch: &'r str,
    /// The place of the job.
    pub place: u64,
    /// The result. Its batch, id, place, question and attempts are filled in from the job.
    pub row: &'r Row,
    /// Whether the answer may be used for the same question later.
    pub keep: bool,
}

/// Returns the state of a job that has to be asked again: it waits, unless the batch was cancelled in the meantime.
fn later(tx: &Transaction<'_>, batch: &str) -> rusqlite::Result<State> {
    let mut found = tx.prepare_cached("SELECT cancelled FROM batches WHERE id = ?1")?;
    let is_cancelled: bool = found.query_row([batch], |row| row.get(0))?;
    Ok(match is_cancelled {
        true => State::Cancelled,
        false => State::Waiting,
    })
}

pub(super) fn begin(
    tx: &Transaction<'_>,
    batch: &str,
    attempts: u32,
    now: Timestamp,
) -> rusqlite::Result<i64> {
    tx.execute("UPDATE batches SET run = run + 1 WHERE id = ?1", [batch])?;
    let (run, method): (i64, String) = tx.query_row(
        "SELECT run, method FROM batches WHERE id = ?1",
        [batch],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let method = Method::of_word(&method).ok_or_else(|| {
        let why = format!("`{method}` is no method of asking");
        rusqlite::Error::FromSqlConversionFailure(1, Type::Text, why.into())
    })?;
    let left: Vec<(i64, u32)> = {
        let mut found =
            tx.prepare("SELECT place, attempts FROM jobs WHERE batch = ?1 AND state = ?2")?;
        let rows = found.query_map(params![batch, State::Running as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect::<Result<_, _>>()?
    };
    for (place, asked) in left {
        if asked >= attempts {
            let times = match asked {
                1 => "once".to_owned(),
                n => format!("{n} times"),
            };
            let reason = format!("kd was killed {times} while this question was asked");
            let row = Row::failed(method, reason, now);
            let finished = Finished {
                batch,
                place: place.unsigned_abs(),
                row: &row,
                keep: false,
            };
            end(tx, &finished)?;
        } else {
            tx.execute(
                "UPDATE jobs SET state = ?3 WHERE batch = ?1 AND place = ?2",
                params![batch, place, later(tx, batch)? as i64],
            )?;
        }
    }
    Ok(run)
}

pub(super) fn claim(
    tx: &Transaction<'_>,
    batch: &str,
    run: i64,
    most: usize,
    now: Timestamp,
) -> rusqlite::Result<Vec<Job>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut claim = tx.prepare_cached(
        "UPDATE jobs SET state = ?1, attempts = attempts + 1, run = ?2
         WHERE batch = ?3 AND place IN (
             SELECT place FROM jobs WHERE batch = ?3 AND state = ?4 AND due <= ?5 ORDER BY due, place LIMIT ?6)
         AND EXISTS (SELECT 1 FROM batches WHERE id = ?3 AND run = ?2 AND cancelled = 0)
         RETURNING place, id, question, attempts",
    )?;
    let jobs = claim.query_map(
        params![
            State::Running as i64,
            run,
            batch,
            State::Waiting as i64,
            now.as_millisecond(),
            most
        ],
        |row| {
            Ok(Job {
                place: row.get::<_, i64>(0)?.unsigned_abs(),
                id: row.get(1)?,
                question: row.get(2)?,
                attempt: row.get(3)?,
                token: run,
            })
        },
    )?;
    let mut jobs: Vec<Job> = jobs.collect::<Result<_, _>>()?;
    jobs.sort_by_key(|job| job.place);
    Ok(jobs)
}

pub(super) fn next_due(db: &Connection, batch: &str) -> rusqlite::Result<Option<Timestamp>> {
    let due: Option<i64> = db
        .prepare_cached("SELECT min(due) FROM jobs WHERE batch = ?1 AND state = ?2")?
        .query_row(params![batch, State::Waiting as i64], |row| row.get(0))?;
    Ok(due.map(|due| Timestamp::from_millisecond(due).unwrap_or_default()))
}

/// Returns whether a job is still this run's.
fn is_held(tx: &Transaction<'_>, batch: &str, run: i64, place: i64) -> rusqlite::Result<bool> {
    tx.prepare_cached(
        "SELECT 1 FROM jobs JOIN batches ON batches.id = jobs.batch
         WHERE jobs.batch = ?1 AND jobs.place = ?2 AND jobs.state = ?3 AND jobs.run = ?4 AND batches.run = ?4",
    )?
    .exists(params![batch, place, State::Running as i64, run])
}

pub(super) fn finish(
    tx: &Transaction<'_>,
    run: i64,
    finished: &Finished<'_>,
) -> rusqlite::Result<Vec<Row>> {
    let place = i64::try_from(finished.place).unwrap_or(i64::MAX);
    match is_held(tx, finished.batch, run, place)? {
        true => end(tx, finished),
        false => Ok(Vec::new()),
    }
}

/// Ends a job, and the jobs of equal questions if its answer is kept. Otherwise the next of them is asked.
fn end(tx: &Transaction<'_>, finished: &Finished<'_>) -> rusqlite::Result<Vec<Row>> {
    let Finished {
        batch, row, keep, ..
    } = *finished;
    let place = i64::try_from(finished.place).unwrap_or(i64::MAX);
    let (id, question, key, attempts): (String, String, String, u32) = tx
        .prepare_cached(
            "SELECT id, question, key, attempts FROM jobs WHERE batch = ?1 AND place = ?2",
        )?
        .query_row(params![batch, place], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    let row = Row {
        batch: batch.to_owned(),
        id,
        n: finished.place,
        question,
        attempts,
        ..row.clone()
    };
    let keep = keep && row.status == Status::Answered;
    write_line(tx, (batch, place), &key, &row, keep)?;
    if let Some(thread) = &row.thread {
        parcel_rows::used(tx, batch, thread)?;
    }
    let mut rows = vec![row];
    let twins: Vec<(i64, String)> = {
        let mut found = tx.prepare_cached(
            "SELECT place, id FROM jobs WHERE batch = ?1 AND twin = ?2 AND state = ?3 ORDER BY +place",
        )?;
        let twins = found.query_map(params![batch, place, State::Twin as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        twins.collect::<Result<_, _>>()?
    };
    if keep {
        for (twin, id) in twins {
            let line = rows[0].for_another(batch, &id, twin.unsigned_abs(), rows[0].at);
            write_line(tx, (batch, twin), &key, &line, false)?;
            rows.push(line);
        }
    } else if let Some((next, _)) = twins.first() {
        tx.execute(
            "UPDATE jobs SET state = ?3, twin = NULL WHERE batch = ?1 AND place = ?2",
            params![batch, next, State::Waiting as i64],
        )?;
        tx.execute(
            "UPDATE jobs SET twin = ?3 WHERE batch = ?1 AND twin = ?2 AND state = ?4",
            params![batch, place, next, State::Twin as i64],
        )?;
    }
    Ok(rows)
}

/// Writes a line and ends its job.
pub(super) fn write_line(
    tx: &Transaction<'_>,
    (batch, place): (&str, i64),
    key: &str,
    row: &Row,
    keep: bool,
) -> rusqlite::Result<()> {
    let line = serde_json::to_string(row)
        .map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))?;
    tx.prepare_cached(
        "INSERT INTO results (batch, place, key, kept, cached, line) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![batch, place, key, keep, row.cached, line])?;
    let state = match row.status {
        Status::Answered => State::Done,
        Status::Failed => State::Dead,
    };
    tx.prepare_cached("UPDATE jobs SET state = ?3, reason = ?4 WHERE batch = ?1 AND place = ?2")?
        .execute(params![batch, place, state as i64, row.reason])?;
    Ok(())
}

/// Returns the newest kept answer to a question.
pub(super) fn kept_line(db: &Connection, key: &str) -> rusqlite::Result<Option<Row>> {
    let line: Option<String> = db
        .prepare_cached(
            "SELECT line FROM results WHERE key = ?1 AND kept = 1 ORDER BY rowid DESC LIMIT 1",
        )?
        .query_row([key], |row| row.get(0))
        .optional()?;
    let Some(line) = line else { return Ok(None) };
    if BATCH_RESULT.check(stated(line.as_bytes(), "v")).is_err() {
        return Ok(None);
    }
    serde_json::from_str(&line)
        .map(Some)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(e)))
}

pub(super) fn put_back(
    tx: &Transaction<'_>,
    (batch, run): (&str, i64),
    place: u64,
    due: Timestamp,
    reason: Option<&str>,
    asked: bool,
) -> rusqlite::Result<()> {
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    if is_held(tx, batch, run, place)? {
        tx.prepare_cached(
            "UPDATE jobs SET state = ?3, due = ?4, reason = ?5, attempts = attempts - ?6 WHERE batch = ?1 AND place = ?2",
        )?
        .execute(params![
            batch,
            place,
            later(tx, batch)? as i64,
            due.as_millisecond(),
            reason,
            i64::from(!asked)
        ])?;
    }
    Ok(())
}

pub(super) fn release(tx: &Transaction<'_>, batch: &str, run: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE jobs SET state = ?3, attempts = attempts - 1 WHERE batch = ?1 AND run = ?2 AND state = ?4",
        params![batch, run, later(tx, batch)? as i64, State::Running as i64],
    )?;
    Ok(())
}

pub(super) fn rekey(
    tx: &Transaction<'_>,
    batch: &str,
    questions: &[Asked],
) -> rusqlite::Result<()> {
    let open: Vec<(i64, String)> = {
        let mut found = tx.prepare(
            "SELECT place, key FROM jobs WHERE batch = ?1 AND state NOT IN (?2, ?3) ORDER BY +place",
        )?;
        let rows = found.query_map(
            params![batch, State::Done as i64, State::Dead as i64],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        rows.collect::<Result<_, _>>()?
    };
    let mut update = tx.prepare("UPDATE jobs SET key = ?3 WHERE batch = ?1 AND place = ?2")?;
    for (place, key) in open {
        let at = usize::try_from(place - 1).ok();
        let question = at.and_then(|at| questions.get(at));
        if let Some(question) = question.filter(|question| question.key != key) {
            update.execute(params![batch, place, question.key])?;
        }
    }
    Ok(())
}

pub(super) fn cancel(tx: &Transaction<'_>, batch: &str) -> rusqlite::Result<u64> {
    tx.execute("UPDATE batches SET cancelled = 1 WHERE id = ?1", [batch])?;
    let changed = tx.execute(
        "UPDATE jobs SET state = ?2 WHERE batch = ?1 AND state IN (?3, ?4)",
        params![
            batch,
            State::Cancelled as i64,
            State::Waiting as i64,
            State::Twin as i64
        ],
    )?;
    Ok(changed as u64)
}

/// Removes a job, and equal questions that wait for it.
pub(super) fn remove(tx: &Transaction<'_>, batch: &str, place: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM jobs WHERE batch = ?1 AND (place = ?2 OR twin = ?2)")?
        .execute(params![batch, place])?;
    Ok(())
}
