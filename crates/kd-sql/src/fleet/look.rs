//! An overview of a fleet, with few statements for any number of batches, and without writing anything.

use super::address::Store;
use super::batches::{is_id, reason_of};
use super::error::FleetError;
use super::link::{Link, Tx};
use super::workers::{self, line, reason, unique};
use super::{schema, signed, totals, unsigned};
use crate::batch::State;
use jiff::Timestamp;
use kd_core::batch::{Dead, Overview, Refusal, Worker};
use kd_core::clean::clean_text;
use std::collections::{BTreeMap, HashMap};

/// Failed questions of a batch that are shown.
const DEAD_SHOWN: i64 = 5;
/// Maximum bytes of a line of a failed question.
const DEAD_BYTES_MAX: i32 = 1 << 20;
/// Maximum kinds of failures of a batch.
const KINDS_MAX: usize = 30;

/// Reads the state of a fleet, for monitoring: it changes nothing, creates no table, and gives up after a few seconds.
pub struct FleetReader {
    link: Link,
    store: Store,
}

impl std::fmt::Debug for FleetReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetReader")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl FleetReader {
    /// Creates a reader; it connects when it looks.
    pub fn new(store: &Store) -> Self {
        Self {
            link: Link::to_read(store),
            store: store.clone(),
        }
    }

    /// Returns the newest `most` batches, newest first, and the workers that have not ended. It blocks.
    ///
    /// # Errors
    /// The database cannot be reached or fails, or a newer `kd` wrote it.
    pub fn look(&mut self, most: usize) -> Result<(Vec<Overview>, Vec<Worker>), FleetError> {
        let store = &self.store;
        self.link.read(&mut |tx| {
            if schema::is_new(tx)? {
                return Ok((Vec::new(), Vec::new()));
            }
            schema::check(tx, store)?;
            let batches = overviews(tx, most)?;
            Ok((batches, workers::alive(tx)?))
        })
    }
}

fn overviews(tx: &mut Tx<'_>, most: usize) -> Result<Vec<Overview>, FleetError> {
    let mut all = heads(tx, most)?;
    let ids: Vec<String> = all.iter().map(|one| one.id.clone()).collect();
    let mut counts = totals::counts(tx, &ids)?;
    let mut spent = totals::spent(tx, &ids)?;
    let failed = |one: &&Overview| counts.get(&one.id).is_some_and(|counts| counts.failed > 0);
    let failed: Vec<String> = all
        .iter()
        .filter(failed)
        .map(|one| one.id.clone())
        .collect();
    let mut kinds = failure_kinds(tx, &failed)?;
    let mut dead = dead(tx, &failed)?;
    let mut refusals = refusals(tx, &ids)?;
    for one in &mut all {
        let counts = counts.remove(&one.id).unwrap_or_default();
        one.states = counts.states();
        one.cached = counts.cached;
        one.running_now = counts.running > 0;
        let (spent, millis) = spent.remove(&one.id).unwrap_or_default();
        one.calls = spent.calls;
        one.tokens = spent.tokens;
        one.usd = spent.usd();
        one.certainty = spent.certainty;
        one.seconds = millis as f64 / 1e3;
        one.failures = kinds.remove(&one.id).unwrap_or_default();
        one.dead = dead.remove(&one.id).unwrap_or_default();
        one.refusals = refusals.remove(&one.id).unwrap_or_default();
    }
    Ok(all)
}

fn heads(tx: &mut Tx<'_>, most: usize) -> Result<Vec<Overview>, FleetError> {
    let rows = tx.rows(
        "SELECT id, left(method, 1000), left(source, 1000), created, cancelled, limited FROM kd_batches
         WHERE octet_length(id) <= 100 ORDER BY created DESC, id LIMIT $1",
        &[&signed(most as u64)],
    )?;
    let mut all = Vec::new();
    for row in rows {
        let id: String = row.try_get(0)?;
        // Something that `kd` never writes is not a batch.
        if is_id(&id) {
            all.push(Overview {
                id,
                method: line(row.try_get(1)?),
                questions: clean_text(row.try_get(2)?).into_owned(),
                created_at: Timestamp::from_millisecond(row.try_get(3)?).unwrap_or_default(),
                cancelled: row.try_get(4)?,
                limited: row.try_get(5)?,
                ..Overview::default()
            });
        }
    }
    Ok(all)
}

/// Returns the number of failed questions by the kind of the first failure of a member. The kind is taken from the text of
/// the line: a line of another program that is not JSON must not fail the statement.
fn failure_kinds(
    tx: &mut Tx<'_>,
    ids: &[String],
) -> Result<HashMap<String, BTreeMap<String, u64>>, FleetError> {
    let rows = tx.rows(
        r#"SELECT j.batch, left(coalesce(substring(r.line from '"failures":\[\{"member":"[^"]*","kind":"([^"]*)"'), 'other'), 80),
         count(*) FROM kd_jobs j JOIN kd_results r USING (batch, place)
         WHERE j.batch = ANY($1) AND j.state = 3 AND octet_length(r.line) <= $2 GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2"#,
        &[&ids, &DEAD_BYTES_MAX],
    )?;
    let mut all: HashMap<String, BTreeMap<String, u64>> = HashMap::new();
    for row in rows {
        let kinds = all.entry(row.try_get(0)?).or_default();
        if kinds.len() < KINDS_MAX {
            kinds.insert(line(row.try_get(1)?), unsigned(row.try_get(2)?));
        }
    }
    Ok(all)
}

fn dead(tx: &mut Tx<'_>, ids: &[String]) -> Result<HashMap<String, Vec<Dead>>, FleetError> {
    let rows = tx.rows(
        "SELECT b.id, d.place, d.attempts, d.question, d.line FROM unnest($1::text[]) AS b (id) CROSS JOIN LATERAL (
         SELECT j.place, j.attempts, coalesce(left(q.id, 1000), j.place::text) AS question, r.line FROM kd_jobs j
         JOIN kd_results r USING (batch, place) LEFT JOIN kd_questions q USING (batch, place)
         WHERE j.batch = b.id AND j.state = 3 AND octet_length(r.line) <= $2 ORDER BY j.place LIMIT $3) d ORDER BY b.id, d.place",
        &[&ids, &DEAD_BYTES_MAX, &DEAD_SHOWN],
    )?;
    let mut all: HashMap<String, Vec<Dead>> = HashMap::new();
    for row in rows {
        all.entry(row.try_get(0)?).or_default().push(Dead {
            id: line(row.try_get(3)?),
            n: unsigned(row.try_get(1)?),
            attempts: u32::try_from(row.try_get::<_, i32>(2)?).unwrap_or(0),
            reason: reason(&reason_of(row.try_get(4)?)),
        });
    }
    Ok(all)
}

fn refusals(tx: &mut Tx<'_>, ids: &[String]) -> Result<HashMap<String, Vec<Refusal>>, FleetError> {
    let rows = tx.rows(
        "SELECT r.batch, left(w.name, 1000), w.id, left(r.reason, 2000) FROM kd_refusals r JOIN kd_workers w ON w.id = r.worker
         WHERE r.batch = ANY($1) AND w.ended IS NULL ORDER BY r.batch, w.id LIMIT 1000",
        &[&ids],
    )?;
    let mut all: HashMap<String, Vec<Refusal>> = HashMap::new();
    for row in rows {
        all.entry(row.try_get(0)?).or_default().push(Refusal {
            worker: unique(row.try_get(1)?, row.try_get(2)?),
            reason: reason(row.try_get(3)?),
        });
    }
    Ok(all)
}

// The statements of this module have this number in them.
const _: () = assert!(State::Dead as i16 == 3);
