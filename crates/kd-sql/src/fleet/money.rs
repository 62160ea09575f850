//! What requests may spend and have spent, over all workers. A request that was sent and not settled counts with its maximum.

use super::error::FleetError;
use super::link::Tx;
use super::{signed, unsigned};
use crate::batch::{certainty, certainty_name};
use kd_core::spending::{Cut, Spent};
use kd_core::usage::Certainty;

/// A request that has been settled, and is not in the database yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) worker: i64,
    pub(super) request: i64,
    pub(super) spent: Spent,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// It may.
    Yes,
    /// A limit of the batch forbids it.
    Over(Cut),
    /// The lease of the worker is over.
    Gone,
}

/// Records that a request is about to be sent, if it fits into the limits of the batch.
pub(super) fn sending(
    tx: &mut Tx<'_>,
    (worker, request): (i64, i64),
    batch: &str,
    most: &Spent,
) -> Result<Sending, FleetError> {
    // A worker whose lease is over must not spend: what it holds was given to others.
    let alive = tx.row(
        "SELECT id FROM kd_workers WHERE id = $1 AND ended IS NULL FOR KEY SHARE",
        &[&worker],
    )?;
    if alive.is_none() {
        return Ok(Sending::Gone);
    }
    let limits = tx.row(
        "SELECT max_calls, max_tokens, max_pico_usd FROM kd_batches WHERE id = $1",
        &[&batch],
    )?;
    let Some(limits) = limits else {
        return Ok(Sending::Gone);
    };
    let limits: [Option<i64>; 3] = [limits.try_get(0)?, limits.try_get(1)?, limits.try_get(2)?];
    if limits.iter().any(Option::is_some) {
        // One request after the other, so that two do not both take the last of a limit.
        tx.row(
            "SELECT id FROM kd_batches WHERE id = $1 FOR NO KEY UPDATE",
            &[&batch],
        )?;
        let spent = committed(tx, batch, (worker, request))? + *most;
        let over = |limit: Option<i64>, n: u64| limit.is_some_and(|limit| n > unsigned(limit));
        for (limit, n, cut) in [
            (limits[0], spent.calls, Cut::Calls),
            (limits[1], spent.tokens, Cut::Tokens),
            (limits[2], spent.pico_usd, Cut::Money),
        ] {
            if over(limit, n) {
                return Ok(Sending::Over(cut));
            }
        }
    }
    tx.run(
        "INSERT INTO kd_requests (worker, request, batch, calls, tokens, pico_usd) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (worker, request) DO NOTHING",
        &[
            &worker,
            &request,
            &batch,
            &signed(most.calls),
            &signed(most.tokens),
            &signed(most.pico_usd),
        ],
    )?;
    Ok(Sending::Yes)
}

/// Returns what a batch has spent and may still spend for requests that were sent, except one.
fn committed(
    tx: &mut Tx<'_>,
    batch: &str,
    (worker, request): (i64, i64),
) -> Result<Spent, FleetError> {
    let open = tx.row(
        "SELECT least(coalesce(sum(calls), 0), 9223372036854775807)::bigint, least(coalesce(sum(tokens), 0), 9223372036854775807)::bigint,
         least(coalesce(sum(pico_usd), 0), 9223372036854775807)::bigint
         FROM kd_requests WHERE batch = $1 AND NOT (worker = $2 AND request = $3)",
        &[&batch, &worker, &request],
    )?;
    Ok(spent(tx, batch)? + open.map_or(Ok(Spent::default()), |row| amounts(&row))?)
}

/// Returns what a batch has spent.
pub(super) fn spent(tx: &mut Tx<'_>, batch: &str) -> Result<Spent, FleetError> {
    let rows = tx.rows(
        "SELECT least(sum(calls), 9223372036854775807)::bigint, least(sum(tokens), 9223372036854775807)::bigint,
         least(sum(pico_usd), 9223372036854775807)::bigint, certainty
         FROM kd_spending WHERE batch = $1 GROUP BY certainty",
        &[&batch],
    )?;
    let mut all = Spent::default();
    for row in rows {
        let part = Spent {
            certainty: certainty(row.try_get(3)?),
            ..amounts(&row)?
        };
        all += part;
    }
    Ok(all)
}

fn amounts(row: &postgres::Row) -> Result<Spent, FleetError> {
    Ok(Spent {
        calls: unsigned(row.try_get(0)?),
        tokens: unsigned(row.try_get(1)?),
        pico_usd: unsigned(row.try_get(2)?),
        certainty: Certainty::Exact,
    })
}

/// Counts settled requests. One that is no longer open was counted with its maximum when its worker was lost; of one without
/// a known maximum, only the call was.
pub(super) fn settle(tx: &mut Tx<'_>, all: &[Settled]) -> Result<(), FleetError> {
    for settled in all {
        let gone = tx.row(
            "DELETE FROM kd_requests WHERE worker = $1 AND request = $2 RETURNING batch, calls",
            &[&settled.worker, &settled.request],
        )?;
        if let Some(row) = gone {
            let is_called = row.try_get::<_, i64>(1)? > 0;
            let spent = Spent {
                calls: if is_called { settled.spent.calls } else { 0 },
                ..settled.spent
            };
            add(tx, row.try_get(0)?, settled.worker, &spent)?;
        }
    }
    Ok(())
}

/// Counts the requests that a lost worker has sent and not settled. One without a known maximum keeps its row, without its
/// call: the worker may only have been stopped, and still know what it has spent.
pub(super) fn close(tx: &mut Tx<'_>, worker: i64) -> Result<(), FleetError> {
    let open = tx.rows(
        "WITH gone AS (DELETE FROM kd_requests WHERE worker = $1 AND tokens > 0 RETURNING batch, calls, tokens, pico_usd)
         SELECT least(sum(calls), 9223372036854775807)::bigint, least(sum(tokens), 9223372036854775807)::bigint,
         least(sum(pico_usd), 9223372036854775807)::bigint, batch FROM gone GROUP BY batch ORDER BY batch",
        &[&worker],
    )?;
    for row in open {
        let most = Spent {
            certainty: Certainty::AtMost,
            ..amounts(&row)?
        };
        add(tx, row.try_get(3)?, worker, &most)?;
    }
    let unknown = tx.rows(
        "WITH open AS (SELECT request, calls FROM kd_requests WHERE worker = $1 AND calls > 0 FOR UPDATE),
         late AS (UPDATE kd_requests r SET calls = 0 FROM open WHERE r.worker = $1 AND r.request = open.request
         RETURNING r.batch, open.calls)
         SELECT least(sum(calls), 9223372036854775807)::bigint, batch FROM late GROUP BY batch ORDER BY batch",
        &[&worker],
    )?;
    for row in unknown {
        let least = Spent {
            calls: unsigned(row.try_get(0)?),
            certainty: Certainty::AtLeast,
            ..Spent::default()
        };
        add(tx, row.try_get(1)?, worker, &least)?;
    }
    Ok(())
}

fn add(tx: &mut Tx<'_>, batch: &str, worker: i64, spent: &Spent) -> Result<(), FleetError> {
    let before = tx.row(
        "SELECT certainty FROM kd_spending WHERE batch = $1 AND worker = $2 FOR UPDATE",
        &[&batch, &worker],
    )?;
    let before = match &before {
        Some(row) => certainty(row.try_get(0)?),
        None => Certainty::Exact,
    };
    let now = certainty_name(before.and(spent.certainty));
    tx.run(
        "INSERT INTO kd_spending (batch, worker, calls, tokens, pico_usd, certainty) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (batch, worker) DO UPDATE SET calls = kd_spending.calls + excluded.calls,
         tokens = kd_spending.tokens + excluded.tokens, pico_usd = kd_spending.pico_usd + excluded.pico_usd,
         certainty = excluded.certainty",
        &[
            &batch,
            &worker,
            &signed(spent.calls),
            &signed(spent.tokens),
            &signed(spent.pico_usd),
            &now,
        ],
    )?;
    Ok(())
}

/// Records how long a worker has been asking for a batch.
pub(super) fn add_time(
    tx: &mut Tx<'_>,
    batch: &str,
    worker: i64,
    millis: i64,
) -> Result<(), FleetError> {
    tx.run(
        "INSERT INTO kd_spending (batch, worker, millis) VALUES ($1, $2, $3)
         ON CONFLICT (batch, worker) DO UPDATE SET millis = kd_spending.millis + excluded.millis",
        &[&batch, &worker, &millis],
    )?;
    Ok(())
}
