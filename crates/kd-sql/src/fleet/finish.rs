//! Ending jobs: the result, its cost, its thread and the end of the job in one transaction.

use super::error::FleetError;
use super::link::Tx;
use super::money::{self, Settled};
use super::{now, signed, stored, unsigned};
use crate::batch::{Job, State};
use kd_core::batch::{QUESTION_BYTES_MAX, Row, Status};
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of lines and threads that are sent to the database together: a message of its protocol has at most 1 GiB.
const BYTES: usize = 16 << 20;

/// Longest pause before a question is asked again, in milliseconds: a year. `kd` asks for less.
const PAUSE_MAX: i64 = 31_536_000_000;

/// A file of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFile {
    /// Its name in the folder of the thread.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The result of a job.
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

/// A result to write: its job, the line, and the files of its thread.
struct Finished<'e> {
    job: &'e Job,
    row: Row,
    line: String,
    keep: bool,
    thread: &'e [ThreadFile],
}

/// What was written.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The tokens of the claims that held.
    held: BTreeSet<i64>,
    /// The places of the questions that have ended.
    pub(super) places: Vec<i64>,
}

impl Written {
    /// Returns for each whether its claim held.
    pub(super) fn held(&self, all: &[Ended]) -> Vec<bool> {
        let holds = |one: &Ended| self.held.contains(&one.job().token);
        all.iter().map(holds).collect()
    }
}

impl Ended {
    /// Returns the job.
    pub(super) fn job(&self) -> &Job {
        let (Self::Finished { job, .. } | Self::Back { job, .. }) = self;
        job
    }
}

/// Writes the results of jobs whose claims still hold, and counts settled requests. Equal questions wait until
/// [`free`].
pub(super) fn write(
    tx: &mut Tx<'_>,
    of: (i64, &str),
    all: &[Ended],
    settled: &[Settled],
) -> Result<Written, FleetError> {
    let mut written = Written::default();
    let mut together: Vec<Finished<'_>> = Vec::new();
    let mut bytes = 0;
    let is_finished = |one: &Ended| matches!(one, Ended::Finished { .. });
    let mut settled = match all.iter().any(is_finished) {
        true => settled,
        false => {
            money::settle(tx, settled)?;
            &[]
        }
    };
    for one in all {
        match one {
            Ended::Back { .. } => {}
            Ended::Finished { .. } => {
                let Some(one) = Finished::of(of.1, one)? else {
                    continue;
                };
                let more = one.bytes();
                if bytes + more > BYTES && !together.is_empty() {
                    write_together(tx, of, &together, settled, &mut written)?;
                    settled = &[];
                    together.clear();
                    bytes = 0;
                }
                bytes += more;
                together.push(one);
            }
        }
    }
    if !together.is_empty() {
        write_together(tx, of, &together, settled, &mut written)?;
    }
    for one in all {
        if let Ended::Back { job, pause, asked } = one
            && put_back(tx, of, job, *pause, *asked)?
        {
            written.held.insert(job.token);
        }
    }
    Ok(written)
}

/// Returns the places of ended questions that equal questions wait for. This is a separate statement
/// from [`write`], which does not see rows that it had to wait for: an equal question that is asked again.
pub(super) fn awaited(
    tx: &mut Tx<'_>,
    batch: &str,
    written: &Written,
) -> Result<Vec<i64>, FleetError> {
    if written.places.is_empty() {
        return Ok(Vec::new());
    }
    let rows = tx.rows(
        "SELECT DISTINCT twin FROM kd_jobs WHERE batch = $1 AND twin = ANY($2) AND state = 5 ORDER BY twin",
        &[&batch, &written.places],
    )?;
    let places: Result<Vec<i64>, postgres::Error> = rows.iter().map(|row| row.try_get(0)).collect();
    Ok(places?)
}

/// Ends questions that wait for these, or lets them be asked.
pub(super) fn free(
    tx: &mut Tx<'_>,
    batch: &str,
    all: &[Ended],
    written: &Written,
    awaited: &[i64],
) -> Result<(), FleetError> {
    for place in awaited {
        let ended = |one: &&Ended| {
            signed(one.job().place) == *place && written.held.contains(&one.job().token)
        };
        if let Some(one) = all.iter().find(ended)
            && let Some(one) = Finished::of(batch, one)?
        {
            twins(tx, (batch, *place), &one.row, one.keep)?;
        }
    }
    Ok(())
}

impl<'e> Finished<'e> {
    fn of(batch: &str, ended: &'e Ended) -> Result<Option<Self>, FleetError> {
        let Ended::Finished {
            job,
            row,
            keep,
            thread,
        } = ended
        else {
            return Ok(None);
        };
        let row = Row {
            batch: batch.to_owned(),
            id: job.id.clone(),
            n: job.place,
            question: job.question.clone(),
            attempts: job.attempt,
            ..(**row).clone()
        };
        Ok(Some(Self {
            job,
            line: stored(&serde_json::to_string(&row)?).into_owned(),
            keep: *keep && row.status == Status::Answered,
            row,
            thread,
        }))
    }

    fn bytes(&self) -> usize {
        let files = self.thread.iter().map(|file| file.bytes.len());
        self.line.len() + files.sum::<usize>()
    }
}

/// Writes results in one statement, and counts settled requests: before it locks jobs, as the end of a lost worker does.
fn write_together(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    all: &[Finished<'_>],
    settled: &[Settled],
    written: &mut Written,
) -> Result<(), FleetError> {
    let spent = money::Columns::of(tx, settled)?;
    let [workers, requests, calls, amounts, money] = spent.args();
    let column = |value: &dyn Fn(&Finished<'_>) -> i64| all.iter().map(value).collect::<Vec<_>>();
    let states: Vec<i16> = all.iter().map(|one| state(&one.row) as i16).collect();
    let flags = |flag: &dyn Fn(&Finished<'_>) -> bool| all.iter().map(flag).collect::<Vec<_>>();
    let lines: Vec<&str> = all.iter().map(|one| one.line.as_str()).collect();
    let files = || {
        all.iter()
            .flat_map(|one| one.thread.iter().map(move |file| (one, file)))
    };
    let tokens_of_files: Vec<i64> = files().map(|(one, _)| one.job.token).collect();
    let names: Vec<&str> = files().map(|(_, file)| file.name.as_str()).collect();
    let bytes: Vec<&[u8]> = files().map(|(_, file)| file.bytes.as_slice()).collect();
    let rows = tx.rows(
        concat!("WITH ", money::counting!("$12", "$13", "$14", "$15", "$16"), ",
         new AS MATERIALIZED (SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::smallint[], $6::boolean[], $7::boolean[], $8::text[])
             AS n (place, token, state, kept, cached, line)),
         held AS MATERIALIZED (SELECT n.* FROM new n JOIN kd_jobs j ON j.batch = $1 AND j.place = n.place
             WHERE (SELECT count(*) FROM counted) >= 0 AND j.worker = $2 AND j.token = n.token AND j.state = 1
             ORDER BY j.place FOR UPDATE OF j),
         ended AS (UPDATE kd_jobs j SET state = h.state, worker = NULL, token = 0 FROM held h WHERE j.batch = $1 AND j.place = h.place),
         written AS (INSERT INTO kd_results (batch, place, key, kept, cached, line)
             SELECT $1, h.place, coalesce(left(q.key, 1000), ''), h.kept, h.cached, h.line
             FROM held h LEFT JOIN kd_questions q ON q.batch = $1 AND q.place = h.place
             ON CONFLICT (batch, place) DO UPDATE SET key = excluded.key, kept = excluded.kept, cached = excluded.cached,
             line = excluded.line, tx = excluded.tx),
         files AS (INSERT INTO kd_threads (batch, place, name, bytes)
             SELECT $1, h.place, f.name, f.bytes FROM unnest($9::bigint[], $10::text[], $11::bytea[]) AS f (token, name, bytes)
             JOIN held h ON h.token = f.token
             ON CONFLICT (batch, place, name) DO UPDATE SET bytes = excluded.bytes)
         SELECT h.token, h.place FROM held h"),
        &[
            &batch,
            &worker,
            &column(&|one| signed(one.job.place)),
            &column(&|one| one.job.token),
            &states,
            &flags(&|one| one.keep),
            &flags(&|one| one.row.cached),
            &lines,
            &tokens_of_files,
            &names,
            &bytes,
            workers,
            requests,
            calls,
            amounts,
            money,
        ],
    )?;
    for row in rows {
        written.held.insert(row.try_get(0)?);
        written.places.push(row.try_get(1)?);
    }
    Ok(())
}

/// Puts a job back. Returns whether its claim still held.
fn put_back(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    job: &Job,
    pause: Duration,
    asked: bool,
) -> Result<bool, FleetError> {
    let pause = i64::try_from(pause.as_millis()).map_or(PAUSE_MAX, |n| n.min(PAUSE_MAX));
    let held = tx.run(
        concat!(
            "UPDATE kd_jobs j SET worker = NULL, token = 0, attempts = greatest(j.attempts, $6) - $6,
             due = CASE WHEN $6 = 1 AND j.due = 1 THEN 1 WHEN $5::bigint = 0 THEN 0 ELSE ",
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
    twins(tx, (batch, place), &row, keep)
}

/// Ends the jobs of equal questions if an answer is kept. Otherwise the next of them is asked.
fn twins(
    tx: &mut Tx<'_>,
    (batch, place): (&str, i64),
    row: &Row,
    keep: bool,
) -> Result<(), FleetError> {
    let twins = tx.rows(
        "SELECT j.place, q.id, coalesce(left(q.key, 1000), '') FROM kd_jobs j JOIN kd_questions q USING (batch, place)
         WHERE j.batch = $1 AND j.twin = $2 AND j.state = 5 ORDER BY j.place FOR UPDATE OF j",
        &[&batch, &place],
    )?;
    if keep {
        for twin in &twins {
            let (at, id): (i64, String) = (twin.try_get(0)?, twin.try_get(1)?);
            let key: String = twin.try_get(2)?;
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

/// Lets the questions be asked that wait for an equal one that has ended, or is gone: the first of each. Returns how many wait
/// no longer for the same one.
pub(super) fn free_twins(tx: &mut Tx<'_>, batch: &str) -> Result<u64, FleetError> {
    // Not while `kd batch retry` makes some.
    tx.row(
        "SELECT 1 FROM kd_batches WHERE id = $1 FOR NO KEY UPDATE",
        &[&batch],
    )?;
    Ok(tx.run(
        "WITH lost AS MATERIALIZED (SELECT j.place, min(j.place) OVER (PARTITION BY j.twin) AS next FROM kd_jobs j
             WHERE j.batch = $1 AND j.state = 5 AND (NOT EXISTS (SELECT 1 FROM kd_jobs f WHERE f.batch = $1 AND f.place = j.twin
             AND f.state IN (0, 1, 5)) OR NOT EXISTS (SELECT 1 FROM kd_jobs f WHERE f.batch = $1 AND f.state IN (0, 1))))
         UPDATE kd_jobs j SET state = CASE WHEN j.place = l.next THEN 0 ELSE 5 END, twin = CASE WHEN j.place = l.next THEN NULL ELSE l.next END
         FROM lost l WHERE j.batch = $1 AND j.place = l.place AND j.state = 5",
        &[&batch],
    )?)
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
    tx.run(
        "UPDATE kd_jobs SET state = $3, worker = NULL, token = 0 WHERE batch = $1 AND place = $2",
        &[&batch, &place, &(state(row) as i16)],
    )?;
    Ok(())
}

/// Returns the state of a job with this line.
fn state(row: &Row) -> State {
    match row.status {
        Status::Answered => State::Done,
        Status::Failed => State::Dead,
    }
}
