//! Creating batches, and going on with them.

use super::batches::{Asks, FleetLimits};
use super::error::FleetError;
use super::finish::{free_twins, write_line};
use super::link::Tx;
use super::{now, signed, stored, unsigned};
use crate::batch::{Asked, NewBatch, State};
use jiff::Timestamp;
use kd_core::batch::Row;
use kd_core::formats::{BATCH_RESULT, stated};
use std::collections::HashMap;
use std::time::Duration;

/// Questions that are sent to the database together.
const CHUNK: usize = 2000;

/// A batch to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewFleetBatch {
    /// Its id, key, source, output and command.
    pub about: NewBatch,
    /// How it is asked.
    pub asks: Asks,
    /// Batches with a higher one are asked first.
    pub priority: i32,
    /// How often a question is asked before it counts as failed.
    pub attempts: u32,
    /// The pause before a failed question is asked again.
    pub pause: Duration,
    /// Time from the start of one question to the next, over the whole fleet.
    pub every: Option<Duration>,
    /// The limits on the spending of all questions together.
    pub limits: FleetLimits,
}

pub(super) fn create(
    tx: &mut Tx<'_>,
    new: &NewFleetBatch,
    questions: &[Asked],
    now: Timestamp,
) -> Result<(), FleetError> {
    let about = &new.about;
    tx.run(
        concat!(
            "INSERT INTO kd_batches (id, key, method, asks, parts, source, output, command, fresh, priority, attempts, pause, created)
             VALUES ($1, $2, $3, '', '', $4, $5, $6, $7, 0, 1, 0, ",
            now!(),
            ")"
        ),
        &[
            &about.id,
            &about.key,
            &about.method,
            &stored(&about.source).as_ref(),
            &about.output,
            &stored(&about.command).as_ref(),
            &about.fresh,
        ],
    )?;
    go_on(tx, new)?;
    let known = match about.fresh {
        true => HashMap::new(),
        false => known(tx, questions)?,
    };
    let mut first: HashMap<&str, i64> = HashMap::new();
    let mut answered = Vec::new();
    for (at, chunk) in questions.chunks(CHUNK).enumerate() {
        let mut columns = Columns::default();
        for (n, question) in chunk.iter().enumerate() {
            let place = signed((at * CHUNK + n) as u64 + 1);
            let twin = match about.fresh || known.contains_key(&question.key) {
                true => None,
                false => first.get(question.key.as_str()).copied(),
            };
            if !about.fresh {
                first.entry(&question.key).or_insert(place);
            }
            if let Some(row) = known.get(&question.key) {
                answered.push((place, question, row));
            }
            columns.push(place, question, twin);
        }
        columns.insert(tx, &about.id)?;
    }
    for (place, question, row) in answered {
        let line = row.for_another(&about.id, &question.id, unsigned(place), now);
        write_line(tx, (&about.id, place), &question.key, &line, false)?;
    }
    Ok(())
}

/// The columns of a chunk of questions.
#[derive(Default)]
struct Columns<'q> {
    places: Vec<i64>,
    ids: Vec<std::borrow::Cow<'q, str>>,
    texts: Vec<std::borrow::Cow<'q, str>>,
    keys: Vec<&'q str>,
    states: Vec<i16>,
    twins: Vec<Option<i64>>,
}

impl<'q> Columns<'q> {
    fn push(&mut self, place: i64, question: &'q Asked, twin: Option<i64>) {
        let state = match twin {
            Some(_) => State::Twin,
            None => State::Waiting,
        };
        self.places.push(place);
        self.ids.push(stored(&question.id));
        self.texts.push(stored(&question.text));
        self.keys.push(&question.key);
        self.states.push(state as i16);
        self.twins.push(twin);
    }

    fn insert(&self, tx: &mut Tx<'_>, batch: &str) -> Result<(), FleetError> {
        let ids: Vec<&str> = self.ids.iter().map(AsRef::as_ref).collect();
        let texts: Vec<&str> = self.texts.iter().map(AsRef::as_ref).collect();
        tx.run(
            "INSERT INTO kd_questions (batch, place, id, question, key)
             SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[])",
            &[&batch, &self.places, &ids, &texts, &self.keys],
        )?;
        tx.run(
            "INSERT INTO kd_jobs (batch, place, state, twin)
             SELECT $1, * FROM unnest($2::bigint[], $3::smallint[], $4::bigint[])",
            &[&batch, &self.places, &self.states, &self.twins],
        )?;
        Ok(())
    }
}

/// Stores the choices of the command that continues a batch, and clears the mark that a limit has ended it.
pub(super) fn go_on(tx: &mut Tx<'_>, new: &NewFleetBatch) -> Result<(), FleetError> {
    let limit = |limit: Option<u64>| limit.map(signed);
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    tx.run(
        "UPDATE kd_batches SET asks = $2, parts = $3, priority = $4, attempts = $5, pause = $6, every = $7,
         max_calls = $8, max_tokens = $9, max_pico_usd = $10, command = $11, limited = false WHERE id = $1",
        &[
            &new.about.id,
            &new.asks.asks,
            &new.asks.parts,
            &new.priority,
            &i32::try_from(new.attempts.max(1)).unwrap_or(i32::MAX),
            &i64::try_from(new.pause.as_millis()).unwrap_or(i64::MAX),
            &new.every.map(micros),
            &limit(new.limits.calls),
            &limit(new.limits.tokens),
            &limit(new.limits.pico_usd),
            &stored(&new.about.command).as_ref(),
        ],
    )?;
    tx.run("DELETE FROM kd_refusals WHERE batch = $1", &[&new.about.id])?;
    free_twins(tx, &new.about.id)?;
    Ok(())
}

/// Gives the questions of a batch that have not ended the keys of these.
pub(super) fn rekey(tx: &mut Tx<'_>, batch: &str, questions: &[Asked]) -> Result<(), FleetError> {
    for (at, chunk) in questions.chunks(CHUNK).enumerate() {
        let places: Vec<i64> = (0..chunk.len())
            .map(|n| signed((at * CHUNK + n) as u64 + 1))
            .collect();
        let keys: Vec<&str> = chunk.iter().map(|one| one.key.as_str()).collect();
        tx.run(
            "UPDATE kd_questions q SET key = n.key FROM unnest($2::bigint[], $3::text[]) AS n (place, key), kd_jobs j
             WHERE q.batch = $1 AND q.place = n.place AND j.batch = $1 AND j.place = n.place AND j.state NOT IN (2, 3)
             AND q.key <> n.key",
            &[&batch, &places, &keys],
        )?;
    }
    Ok(())
}

/// Returns the newest kept answers to these questions, by key.
pub(super) fn known(
    tx: &mut Tx<'_>,
    questions: &[Asked],
) -> Result<HashMap<String, Row>, FleetError> {
    let mut found = HashMap::new();
    for chunk in questions.chunks(CHUNK) {
        let keys: Vec<&str> = chunk.iter().map(|one| one.key.as_str()).collect();
        let rows = tx.rows(
            "SELECT DISTINCT ON (key) key, line FROM kd_results WHERE kept AND key = ANY($1) AND octet_length(line) <= $2
             ORDER BY key, tx DESC, batch, place",
            &[&keys, &(super::LINE_BYTES_MAX as i32)],
        )?;
        for row in rows {
            let line: &str = row.try_get(1)?;
            if BATCH_RESULT.check(stated(line.as_bytes(), "v")).is_err() {
                continue;
            }
            // A value that another program wrote is not an answer.
            if let Ok(line) = serde_json::from_str(line) {
                found.insert(row.try_get(0)?, line);
            }
        }
    }
    Ok(found)
}
