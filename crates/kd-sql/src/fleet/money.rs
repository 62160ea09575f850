//! The limits and spending of requests, over all workers. A request that was sent and not settled counts with its
//! maximum.

use super::error::FleetError;
use super::link::Tx;
use super::{added, signed, sum, sums, unsigned};
use crate::batch::{certainty, certainty_name};
use kd_core::spending::{Cut, Spent};
use kd_core::usage::Certainty;
use postgres::types::ToSql;
use std::collections::HashMap;
use std::sync::Arc;

/// A request that has been settled, and is not in the database yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settled {
    pub(super) worker: i64,
    pub(super) request: i64,
    pub(super) spent: Spent,
}

/// A request that is about to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) worker: i64,
    pub(super) number: i64,
    pub(super) batch: Arc<str>,
    /// The maximum that it may spend.
    pub(super) most: Spent,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// It may.
    Yes,
    /// The batch has limits, so it is not recorded yet.
    Limited,
    /// A limit of the batch forbids it.
    Over(Cut),
    /// The lease of the worker is over.
    Gone,
}

/// Records in one statement that requests are about to be sent. Skips requests of batches with limits.
pub(super) fn sending(tx: &mut Tx<'_>, all: &[Request]) -> Result<Vec<Sending>, FleetError> {
    // A worker whose lease is over must not spend: what it holds was given to others.
    let rows = tx.rows(
        "WITH new AS (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
             AS n (worker, request, batch, calls, tokens, pico_usd)),
         me AS MATERIALIZED (SELECT id FROM kd_workers WHERE id = ANY($1) AND ended IS NULL ORDER BY id FOR KEY SHARE),
         found AS MATERIALIZED (SELECT n.*, num_nonnulls(b.max_calls, b.max_tokens, b.max_pico_usd) > 0 AS limited
             FROM new n JOIN me ON me.id = n.worker JOIN kd_batches b ON b.id = n.batch),
         sent AS (INSERT INTO kd_requests (worker, request, batch, calls, tokens, pico_usd)
             SELECT worker, request, batch, calls, tokens, pico_usd FROM found WHERE NOT limited
             ON CONFLICT (worker, request) DO NOTHING)
         SELECT worker, request, limited FROM found",
        &[
            &column(all, |one| one.worker),
            &column(all, |one| one.number),
            &all.iter().map(|one| &*one.batch).collect::<Vec<_>>(),
            &column(all, |one| signed(one.most.calls)),
            &column(all, |one| signed(one.most.tokens)),
            &column(all, |one| signed(one.most.pico_usd)),
        ],
    )?;
    let mut found = HashMap::new();
    for row in rows {
        let key: (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let is_limited: bool = row.try_get(2)?;
        found.insert(key, is_limited);
    }
    let answer = |one: &Request| match found.get(&(one.worker, one.number)) {
        None => Sending::Gone,
        Some(true) => Sending::Limited,
        Some(false) => Sending::Yes,
    };
    Ok(all.iter().map(answer).collect())
}

fn column<F, T>(all: &[F], value: impl Fn(&F) -> T) -> Vec<T> {
    all.iter().map(value).collect()
}

/// Records that requests of a batch with limits are about to be sent, in this order. Skips requests that do not fit
/// in the limits.
pub(super) fn sending_limited(
    tx: &mut Tx<'_>,
    batch: &str,
    requests: &[&Request],
) -> Result<Vec<Sending>, FleetError> {
    // A worker whose lease is over must not spend: what it holds was given to others.
    let alive = tx.rows(
        "SELECT id FROM kd_workers WHERE id = ANY($1) AND ended IS NULL ORDER BY id FOR KEY SHARE",
        &[&column(requests, |one| one.worker)],
    )?;
    let alive: Result<Vec<i64>, postgres::Error> = alive.iter().map(|row| row.try_get(0)).collect();
    let alive = alive?;
    // One worker after the other, so that two do not both take the last of a limit.
    let limits = tx.row(
        "SELECT max_calls, max_tokens, max_pico_usd FROM kd_batches WHERE id = $1 FOR NO KEY UPDATE",
        &[&batch],
    )?;
    let Some(limits) = limits else {
        return Ok(vec![Sending::Gone; requests.len()]);
    };
    let limits: [Option<i64>; 3] = [limits.try_get(0)?, limits.try_get(1)?, limits.try_get(2)?];
    let over = |spent: &Spent| {
        let amounts = [spent.calls, spent.tokens, spent.pico_usd];
        let cuts = [Cut::Calls, Cut::Tokens, Cut::Money];
        let mut all = limits.iter().zip(amounts).zip(cuts);
        let found = all.find(|((limit, n), _)| limit.is_some_and(|limit| *n > unsigned(limit)));
        found.map(|(_, cut)| cut)
    };
    let mut committed = committed(tx, batch, requests)?;
    let mut answers = Vec::new();
    for one in requests {
        let spent = committed + one.most;
        answers.push(match over(&spent) {
            _ if !alive.contains(&one.worker) => Sending::Gone,
            Some(cut) => Sending::Over(cut),
            None => {
                committed = spent;
                Sending::Yes
            }
        });
    }
    let fitting = requests.iter().zip(&answers);
    let fitting = fitting.filter(|(_, answer)| **answer == Sending::Yes);
    let fitting: Vec<&Request> = fitting.map(|(one, _)| *one).collect();
    tx.run(
        "INSERT INTO kd_requests (worker, request, batch, calls, tokens, pico_usd)
         SELECT n.worker, n.request, $1, n.calls, n.tokens, n.pico_usd
         FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) AS n (worker, request, calls, tokens, pico_usd)
         ON CONFLICT (worker, request) DO NOTHING",
        &[
            &batch,
            &column(&fitting, |one| one.worker),
            &column(&fitting, |one| one.number),
            &column(&fitting, |one| signed(one.most.calls)),
            &column(&fitting, |one| signed(one.most.tokens)),
            &column(&fitting, |one| signed(one.most.pico_usd)),
        ],
    )?;
    Ok(answers)
}

/// Returns what a batch has spent and may still spend for requests that were sent, except these. It is one statement: between
/// two, a request that is settled would count twice.
fn committed(tx: &mut Tx<'_>, batch: &str, except: &[&Request]) -> Result<Spent, FleetError> {
    let rows = tx.rows(
        concat!(
            "SELECT ",
            sums!(),
            ", certainty FROM (
             SELECT calls, tokens, pico_usd, certainty FROM kd_spending WHERE batch = $1
             UNION ALL SELECT calls, tokens, pico_usd, 'exact' FROM kd_requests r WHERE batch = $1
             AND NOT EXISTS (SELECT 1 FROM unnest($2::bigint[], $3::bigint[]) AS e (worker, request)
             WHERE e.worker = r.worker AND e.request = r.request)) AS parts GROUP BY certainty"
        ),
        &[
            &batch,
            &column(except, |one| one.worker),
            &column(except, |one| one.number),
        ],
    )?;
    total(&rows)
}

/// Returns what a batch has spent.
pub(super) fn spent(tx: &mut Tx<'_>, batch: &str) -> Result<Spent, FleetError> {
    let rows = tx.rows(
        concat!(
            "SELECT ",
            sums!(),
            ", certainty
             FROM kd_spending WHERE batch = $1 GROUP BY certainty"
        ),
        &[&batch],
    )?;
    total(&rows)
}

/// Adds amounts of each certainty.
fn total(rows: &[postgres::Row]) -> Result<Spent, FleetError> {
    let mut all = Spent::default();
    for row in rows {
        let part = Spent {
            certainty: certainty(row.try_get(3)?),
            ..amounts(row)?
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

/// Counts settled requests: parts of a statement, `counted` is the last. One that is no longer open was counted with its maximum when its
/// worker was lost; of one without a known maximum, only the call was.
macro_rules! counting {
    ($worker:literal, $request:literal, $calls:literal, $tokens:literal, $pico_usd:literal) => {
        concat!(
            "gone AS (DELETE FROM kd_requests r USING unnest(", $worker, "::bigint[], ", $request, "::bigint[], ", $calls, "::bigint[], ",
            $tokens, "::bigint[], ", $pico_usd, "::bigint[]) AS s (worker, request, calls, tokens, pico_usd)
             WHERE r.worker = s.worker AND r.request = s.request
             RETURNING r.batch, r.worker, CASE WHEN r.calls > 0 THEN s.calls ELSE 0 END AS calls, s.tokens, s.pico_usd),
             counted AS (INSERT INTO kd_spending (batch, worker, calls, tokens, pico_usd)
             SELECT batch, worker, ", $crate::fleet::sums!(), "
             FROM gone GROUP BY batch, worker ORDER BY batch, worker
             ON CONFLICT (batch, worker) DO UPDATE SET calls = ", $crate::fleet::added!("kd_spending.calls", "excluded.calls"), ",
             tokens = ", $crate::fleet::added!("kd_spending.tokens", "excluded.tokens"), ",
             pico_usd = ", $crate::fleet::added!("kd_spending.pico_usd", "excluded.pico_usd"), " RETURNING 1)"
        )
    };
}
pub(super) use counting;

/// The columns of settled requests for such a statement.
pub(super) struct Columns([Vec<i64>; 5]);

impl Columns {
    /// Counts those whose amounts are not exact, and returns the columns of the others.
    pub(super) fn of(tx: &mut Tx<'_>, all: &[Settled]) -> Result<Self, FleetError> {
        let (exact, others): (Vec<&Settled>, Vec<&Settled>) = all
            .iter()
            .partition(|one| one.spent.certainty == Certainty::Exact);
        for one in others {
            settle_one(tx, one)?;
        }
        Ok(Self([
            column(&exact, |one| one.worker),
            column(&exact, |one| one.request),
            column(&exact, |one| signed(one.spent.calls)),
            column(&exact, |one| signed(one.spent.tokens)),
            column(&exact, |one| signed(one.spent.pico_usd)),
        ]))
    }

    /// Returns them as parameters.
    pub(super) fn args(&self) -> [&(dyn ToSql + Sync); 5] {
        self.0.each_ref().map(|one| one as _)
    }
}

/// Counts settled requests.
pub(super) fn settle(tx: &mut Tx<'_>, all: &[Settled]) -> Result<(), FleetError> {
    if all.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(tx, all)?;
    tx.rows(
        concat!(
            "WITH ",
            counting!("$1", "$2", "$3", "$4", "$5"),
            " SELECT 1 FROM counted"
        ),
        &columns.args(),
    )?;
    Ok(())
}

fn settle_one(tx: &mut Tx<'_>, settled: &Settled) -> Result<(), FleetError> {
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
    Ok(())
}

/// Counts the requests that a lost worker has sent and not settled. One without a known maximum keeps its row, without its
/// call: the worker may only have been paused, and may still report its spending.
pub(super) fn close(tx: &mut Tx<'_>, worker: i64) -> Result<(), FleetError> {
    let open = tx.rows(
        concat!(
            "WITH gone AS (DELETE FROM kd_requests WHERE worker = $1 AND tokens > 0 RETURNING batch, calls, tokens, pico_usd)
             SELECT ", sums!(), ", batch FROM gone GROUP BY batch ORDER BY batch"
        ),
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
        concat!(
            "WITH open AS (SELECT request, calls FROM kd_requests WHERE worker = $1 AND calls > 0 FOR UPDATE),
             late AS (UPDATE kd_requests r SET calls = 0 FROM open WHERE r.worker = $1 AND r.request = open.request
             RETURNING r.batch, open.calls)
             SELECT ", sum!("calls"), ", batch FROM late GROUP BY batch ORDER BY batch"
        ),
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
        concat!(
            "INSERT INTO kd_spending (batch, worker, calls, tokens, pico_usd, certainty) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (batch, worker) DO UPDATE SET calls = ", added!("kd_spending.calls", "excluded.calls"), ",
             tokens = ", added!("kd_spending.tokens", "excluded.tokens"), ",
             pico_usd = ", added!("kd_spending.pico_usd", "excluded.pico_usd"), ", certainty = excluded.certainty"
        ),
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
        concat!(
            "INSERT INTO kd_spending (batch, worker, millis) VALUES ($1, $2, $3)
             ON CONFLICT (batch, worker) DO UPDATE SET millis = ",
            added!("kd_spending.millis", "excluded.millis")
        ),
        &[&batch, &worker, &millis],
    )?;
    Ok(())
}
