//! Ending jobs: the result, its cost, its thread and the end of the job in one transaction.

use super::error::FleetError;
use super::link::Tx;
use super::{now, signed, stored, unsigned};
use crate::batch::{Job, State};
use kd_core::batch::{QUESTION_BYTES_MAX, Row, Status};
use std::time::Duration;

/// A file of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFile {
    /// Its name in the folder of the thread.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What a job gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// Its result.
    Finished {
        /// The job, as it was claimed.
        job: Job,
        /// The line. Its batch, id, place, question and attempts are filled in.
        row: Box<Row>,
        /// Whether the answer may be used for the same question later.
        keep: bool,
        /// The files of its thread.
        thread: Vec<ThreadFile>,
    },
    /// It may succeed later.
    Back {
        /// The job, as it was claimed.
        job: Job,
        /// The pause before that.
        pause: Duration,
        /// Whether the attempt counts.
        asked: bool,
    },
}

/// Writes what a job gave, if its claim still holds. Returns whether it did.
pub(super) fn write(
    tx: &mut Tx<'_>,
    worker: i64,
    batch: &str,
    ended: &Ended,
) -> Result<bool, FleetError> {
    match ended {
        Ended::Finished {
            job,
            row,
            keep,
            thread,
        } => {
            let place = signed(job.place);
            let held = tx.row(
                "SELECT 1 FROM kd_jobs WHERE batch = $1 AND place = $2 AND worker = $3 AND token = $4 AND state = 1 FOR UPDATE",
                &[&batch, &place, &worker, &job.token],
            )?;
            if held.is_none() {
                return Ok(false);
            }
            end(tx, batch, place, row, *keep)?;
            for file in thread {
                tx.run(
                    "INSERT INTO kd_threads (batch, place, name, bytes) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (batch, place, name) DO UPDATE SET bytes = excluded.bytes",
                    &[&batch, &place, &file.name, &file.bytes],
                )?;
            }
            Ok(true)
        }
        Ended::Back { job, pause, asked } => {
            let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX / 4);
            let held = tx.run(
                concat!(
                    "UPDATE kd_jobs j SET worker = NULL, token = 0, attempts = j.attempts - $6,
                     due = CASE WHEN $5::bigint = 0 THEN 0 ELSE ",
                    now!(),
                    " + $5 END, state = CASE WHEN b.cancelled THEN 4 ELSE 0 END
                     FROM kd_batches b WHERE b.id = j.batch AND j.batch = $1 AND j.place = $2 AND j.worker = $3
                     AND j.token = $4 AND j.state = 1"
                ),
                &[
                    &batch,
                    &signed(job.place),
                    &worker,
                    &job.token,
                    &pause,
                    &i32::from(!asked),
                ],
            )?;
            Ok(held > 0)
        }
    }
}

/// Ends a job, and the jobs of equal questions if its answer is kept. Otherwise the next of them is asked.
pub(super) fn end(
    tx: &mut Tx<'_>,
    batch: &str,
    place: i64,
    row: &Row,
    keep: bool,
) -> Result<(), FleetError> {
    let about = tx.row(
        "SELECT coalesce(left(q.id, 1000), j.place::text), CASE WHEN octet_length(q.question) <= $3 THEN q.question ELSE '' END,
         coalesce(left(q.key, 1000), ''), j.attempts FROM kd_jobs j LEFT JOIN kd_questions q USING (batch, place)
         WHERE j.batch = $1 AND j.place = $2",
        &[&batch, &place, &(QUESTION_BYTES_MAX as i32)],
    )?;
    let Some(about) = about else {
        return Err(FleetError::Damaged(format!(
            "the job of question {place} of {batch} is missing"
        )));
    };
    let key: String = about.try_get(2)?;
    let row = Row {
        batch: batch.to_owned(),
        id: about.try_get(0)?,
        n: unsigned(place),
        question: about.try_get(1)?,
        attempts: u32::try_from(about.try_get::<_, i32>(3)?).unwrap_or(0),
        ..row.clone()
    };
    let keep = keep && row.status == Status::Answered;
    write_line(tx, (batch, place), &key, &row, keep)?;
    let twins = tx.rows(
        "SELECT j.place, q.id FROM kd_jobs j JOIN kd_questions q USING (batch, place)
         WHERE j.batch = $1 AND j.twin = $2 AND j.state = 5 ORDER BY j.place FOR UPDATE OF j",
        &[&batch, &place],
    )?;
    if keep {
        for twin in &twins {
            let (at, id): (i64, String) = (twin.try_get(0)?, twin.try_get(1)?);
            let line = row.for_another(batch, &id, unsigned(at), row.at);
            write_line(tx, (batch, at), &key, &line, false)?;
        }
    } else if let Some(next) = twins.first() {
        let next: i64 = next.try_get(0)?;
        tx.run(
            "UPDATE kd_jobs SET state = CASE WHEN place = $3 THEN 0 ELSE 5 END, twin = CASE WHEN place = $3 THEN NULL ELSE $3 END
             WHERE batch = $1 AND twin = $2 AND state = 5",
            &[&batch, &place, &next],
        )?;
    }
    Ok(())
}

/// Writes a line and ends its job.
pub(super) fn write_line(
    tx: &mut Tx<'_>,
    (batch, place): (&str, i64),
    key: &str,
    row: &Row,
    keep: bool,
) -> Result<(), FleetError> {
    let line = serde_json::to_string(row)?;
    tx.run(
        "INSERT INTO kd_results (batch, place, key, kept, cached, line) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (batch, place) DO UPDATE SET key = excluded.key, kept = excluded.kept, cached = excluded.cached,
         line = excluded.line, tx = excluded.tx",
        &[&batch, &place, &key, &keep, &row.cached, &stored(&line).as_ref()],
    )?;
    let state = match row.status {
        Status::Answered => State::Done,
        Status::Failed => State::Dead,
    };
    tx.run(
        "UPDATE kd_jobs SET state = $3, worker = NULL, token = 0 WHERE batch = $1 AND place = $2",
        &[&batch, &place, &(state as i16)],
    )?;
    Ok(())
}
