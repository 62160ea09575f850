//! Asking failed and cancelled questions again, and cancelling.

use super::create::known;
use super::error::FleetError;
use super::finish::write_line;
use super::link::Tx;
use super::unsigned;
use crate::batch::{Asked, Retried, State};
use jiff::Timestamp;
use std::collections::HashMap;

pub(super) fn retry(tx: &mut Tx<'_>, batch: &str, now: Timestamp) -> Result<Retried, FleetError> {
    let fresh = tx.row(
        "UPDATE kd_batches SET cancelled = false, limited = false WHERE id = $1 RETURNING fresh",
        &[&batch],
    )?;
    let Some(fresh) = fresh else {
        return Ok(Retried::default());
    };
    let fresh: bool = fresh.try_get(0)?;
    for sql in [
        "DELETE FROM kd_results r USING kd_jobs j WHERE j.batch = $1 AND j.state = 3 AND r.batch = j.batch AND r.place = j.place",
        "DELETE FROM kd_threads t USING kd_jobs j WHERE j.batch = $1 AND j.state = 3 AND t.batch = j.batch AND t.place = j.place",
        "DELETE FROM kd_refusals WHERE batch = $1",
    ] {
        tx.run(sql, &[&batch])?;
    }
    let open = tx.rows(
        "SELECT j.place, q.id, q.key FROM kd_jobs j JOIN kd_questions q USING (batch, place)
         WHERE j.batch = $1 AND j.state IN (3, 4) ORDER BY j.place FOR UPDATE OF j",
        &[&batch],
    )?;
    let mut asked = Vec::new();
    for row in open {
        let question = Asked {
            id: row.try_get(1)?,
            text: String::new(),
            key: row.try_get(2)?,
        };
        asked.push((row.try_get::<_, i64>(0)?, question));
    }
    let questions: Vec<Asked> = asked.iter().map(|(_, question)| question.clone()).collect();
    let mut first = match fresh {
        true => HashMap::new(),
        false => asked_now(tx, batch, &questions)?,
    };
    // After the locks: what has ended meanwhile is known.
    let known = match fresh {
        true => HashMap::new(),
        false => known(tx, &questions)?,
    };
    let mut retried = Retried::default();
    for (place, question) in asked {
        let twin = first.get(&question.key).copied();
        let row = known.get(&question.key);
        let state = match (row, twin) {
            (None, Some(_)) => State::Twin,
            _ => State::Waiting,
        };
        let twin = twin.filter(|_| row.is_none());
        tx.run(
            "UPDATE kd_jobs SET state = $3, twin = $4, attempts = 0, due = 0, token = 0, worker = NULL WHERE batch = $1 AND place = $2",
            &[&batch, &place, &(state as i16), &twin],
        )?;
        match row {
            Some(row) => {
                let line = row.for_another(batch, &question.id, unsigned(place), now);
                write_line(tx, (batch, place), &question.key, &line, false)?;
                retried.answered += 1;
            }
            None => retried.asked += 1,
        }
        if !fresh && row.is_none() {
            first.entry(question.key).or_insert(place);
        }
    }
    Ok(retried)
}

/// Returns the places of equal questions that are asked or will be, by key. They stay locked: each ends after this transaction,
/// and then finds those that wait for its answer.
fn asked_now(
    tx: &mut Tx<'_>,
    batch: &str,
    questions: &[Asked],
) -> Result<HashMap<String, i64>, FleetError> {
    let keys: Vec<&str> = questions.iter().map(|one| one.key.as_str()).collect();
    let rows = tx.rows(
        "SELECT q.key, j.place FROM kd_jobs j JOIN kd_questions q USING (batch, place)
         WHERE j.batch = $1 AND j.state IN (0, 1) AND q.key = ANY($2) ORDER BY j.place DESC FOR UPDATE OF j",
        &[&batch, &keys],
    )?;
    let mut first = HashMap::new();
    for row in rows {
        first.insert(row.try_get(0)?, row.try_get(1)?);
    }
    Ok(first)
}

pub(super) fn cancel(tx: &mut Tx<'_>, batch: &str) -> Result<u64, FleetError> {
    tx.run(
        "UPDATE kd_batches SET cancelled = true WHERE id = $1",
        &[&batch],
    )?;
    Ok(tx.run(
        "UPDATE kd_jobs SET state = 4 WHERE batch = $1 AND state IN (0, 5)",
        &[&batch],
    )?)
}
