//! What becomes of a batch on other workers: whether failures are those of the questions, or of one worker.

use super::error::FleetError;
use super::link::Tx;
use super::unsigned;

/// Results that are looked at.
const RESULTS_MAX: i64 = 100;

/// What other workers have written since a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Questions that were answered.
    pub answered: u64,
    /// Questions that have failed.
    pub failed: u64,
    /// Whether any of them is asking a question of the batch, and does not refuse it.
    pub asking: bool,
}

/// Returns the moment: results of transactions that begin later are told by [`since`].
pub(super) fn moment(tx: &mut Tx<'_>) -> Result<String, FleetError> {
    let row = tx.row("SELECT pg_snapshot_xmax(pg_current_snapshot())::text", &[])?;
    let row = row.ok_or_else(|| FleetError::Damaged("the server tells no moment".into()))?;
    Ok(row.try_get(0)?)
}

/// Returns the first results since a moment, if the worker itself has written none.
pub(super) fn since(
    tx: &mut Tx<'_>,
    (worker, batch): (i64, &str),
    moment: &str,
) -> Result<Others, FleetError> {
    let row = tx.row(
        "SELECT count(*) FILTER (WHERE j.state = 2), count(*) FILTER (WHERE j.state = 3), EXISTS (SELECT 1 FROM kd_jobs h
         JOIN kd_workers w ON w.id = h.worker WHERE h.batch = $1 AND h.state = 1 AND h.worker <> $3 AND w.ended IS NULL
         AND NOT EXISTS (SELECT 1 FROM kd_refusals f WHERE f.batch = $1 AND f.worker = h.worker))
         FROM (SELECT place FROM kd_results WHERE batch = $1 AND tx >= $2::text::xid8 AND NOT cached ORDER BY tx LIMIT $4) r
         JOIN kd_jobs j ON j.batch = $1 AND j.place = r.place",
        &[&batch, &moment, &worker, &RESULTS_MAX],
    )?;
    let Some(row) = row else {
        return Ok(Others::default());
    };
    Ok(Others {
        answered: unsigned(row.try_get(0)?),
        failed: unsigned(row.try_get(1)?),
        asking: row.try_get(2)?,
    })
}
