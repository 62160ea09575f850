//! Erases a batch, or one of its questions, with all answers.

use super::error::FleetError;
use super::link::Tx;
use super::unsigned;
use super::workers::{self, line, unique};
use crate::batch::State;
use std::collections::BTreeMap;

/// The data to erase, or that was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Questions of the batch.
    pub questions: u64,
    /// Their results.
    pub results: u64,
    /// Their threads.
    pub threads: u64,
    /// Questions of other batches that have the same answer, by batch.
    pub elsewhere: BTreeMap<String, u64>,
    /// Questions that are being asked, by worker: nothing is erased while there are any.
    pub asking: BTreeMap<String, u64>,
}

/// Finds all rows of a question or a whole batch. Erases them unless a worker is asking the question, or with `dry`.
/// Equal questions of the batch belong together, and so do questions of other batches with an answer from the same
/// thread.
pub(super) fn forget(
    tx: &mut Tx<'_>,
    batch: &str,
    question: Option<&str>,
    dry: bool,
) -> Result<Erased, FleetError> {
    // The answers of all batches are looked through.
    tx.script("SET LOCAL statement_timeout = '30min'")?;
    // Workers that are lost do not ask.
    workers::reap(tx, 0)?;
    if !dry {
        tx.row(
            "SELECT 1 FROM kd_batches WHERE id = $1 FOR UPDATE",
            &[&batch],
        )?;
    }
    let (batches, places) = wanted(tx, batch, question)?;
    let mut erased = Erased::default();
    // Locked jobs are not claimed.
    let asking = tx.rows(
        "SELECT CASE WHEN j.state = 1 THEN coalesce(j.worker, 0) END, left(w.name, 1000) FROM kd_jobs j JOIN unnest($1::text[], $2::bigint[]) AS g (batch, place) USING (batch, place)
         LEFT JOIN kd_workers w ON w.id = j.worker ORDER BY j.batch, j.place FOR UPDATE OF j",
        &[&batches, &places],
    )?;
    for row in asking {
        let Some(worker) = row.try_get::<_, Option<i64>>(0)? else {
            continue;
        };
        let name: Option<&str> = row.try_get(1)?;
        let name = unique(name.unwrap_or("worker"), worker);
        *erased.asking.entry(name).or_default() += 1;
    }
    for of in &batches {
        match of == batch {
            true => erased.questions += 1,
            false => *erased.elsewhere.entry(line(of)).or_default() += 1,
        }
    }
    let counted = tx.row(
        "SELECT count(*), count(*) FILTER (WHERE EXISTS (SELECT 1 FROM kd_threads t WHERE t.batch = g.batch AND t.place = g.place))
         FROM unnest($1::text[], $2::bigint[]) AS g (batch, place) JOIN kd_results USING (batch, place)",
        &[&batches, &places],
    )?;
    if let Some(row) = counted {
        let all = unsigned(row.try_get(0)?);
        let others: u64 = erased.elsewhere.values().sum();
        erased.results = all.saturating_sub(others);
        erased.threads = unsigned(row.try_get(1)?);
    }
    if dry || !erased.asking.is_empty() {
        return Ok(erased);
    }
    for sql in [
        "DELETE FROM kd_threads t USING unnest($1::text[], $2::bigint[]) AS g (batch, place) WHERE t.batch = g.batch AND t.place = g.place",
        "DELETE FROM kd_results t USING unnest($1::text[], $2::bigint[]) AS g (batch, place) WHERE t.batch = g.batch AND t.place = g.place",
        "DELETE FROM kd_questions t USING unnest($1::text[], $2::bigint[]) AS g (batch, place) WHERE t.batch = g.batch AND t.place = g.place",
        "DELETE FROM kd_jobs t USING unnest($1::text[], $2::bigint[]) AS g (batch, place) WHERE t.batch = g.batch AND t.place = g.place",
    ] {
        tx.run(sql, &[&batches, &places])?;
    }
    if question.is_none() {
        for sql in [
            "DELETE FROM kd_requests WHERE batch = $1",
            "DELETE FROM kd_spending WHERE batch = $1",
            "DELETE FROM kd_refusals WHERE batch = $1",
            "DELETE FROM kd_batches WHERE id = $1",
        ] {
            tx.run(sql, &[&batch])?;
        }
    }
    Ok(erased)
}

/// Returns the batches and places of the questions to erase.
fn wanted(
    tx: &mut Tx<'_>,
    batch: &str,
    question: Option<&str>,
) -> Result<(Vec<String>, Vec<i64>), FleetError> {
    // The thread is taken from the text of the line: a line of another program that is no JSON must not fail the statement.
    let rows = tx.rows(
        r#"WITH asked AS (SELECT key FROM kd_questions WHERE batch = $1 AND id = $2),
         gone AS (SELECT j.batch, j.place FROM kd_jobs j LEFT JOIN kd_questions q USING (batch, place) WHERE j.batch = $1
         AND ($2::text IS NULL OR q.key IN (SELECT key FROM asked))),
         said AS (SELECT DISTINCT r.key, substring(r.line from '"thread":"([^"]*)"') AS thread FROM kd_results r JOIN gone USING (batch, place))
         SELECT batch, place FROM gone UNION
         SELECT r.batch, r.place FROM kd_results r JOIN said s ON s.key = r.key AND s.thread = substring(r.line from '"thread":"([^"]*)"')
         WHERE r.kept OR r.cached ORDER BY 1, 2"#,
        &[&batch, &question],
    )?;
    let (mut batches, mut places) = (Vec::new(), Vec::new());
    for row in rows {
        batches.push(row.try_get(0)?);
        places.push(row.try_get(1)?);
    }
    Ok((batches, places))
}

// The statements of this module have this number in them.
const _: () = assert!(State::Running as i16 == 1);
