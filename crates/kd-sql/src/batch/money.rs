//! The upper bound of a batch's spending: the maximum of a request is recorded before it is sent, and replaced when
//! its usage is known. Requests of a killed run count with their maximum, so a limit holds across kills.

use crate::amounts::signed;
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

pub(super) fn sending(
    tx: &Transaction<'_>,
    (batch, run): (&str, i64),
    request: u64,
    most: &Spent,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO requests (batch, run, request, calls, tokens, pico_usd) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        batch,
        run,
        signed(request),
        signed(most.calls),
        signed(most.tokens),
        signed(most.pico_usd)
    ])?;
    Ok(())
}

pub(super) fn settled(
    tx: &Transaction<'_>,
    (batch, run): (&str, i64),
    request: u64,
    spent: &Spent,
) -> rusqlite::Result<()> {
    let gone = tx
        .prepare_cached("DELETE FROM requests WHERE batch = ?1 AND run = ?2 AND request = ?3")?
        .execute(params![batch, run, signed(request)])?;
    match gone {
        // A later run has counted it already, with its maximum.
        0 => Ok(()),
        _ => add(tx, batch, spent),
    }
}

/// Returns the requests that were sent and not settled: with their maximum, and with the calls alone where none is known.
pub(super) fn open(db: &Connection, batch: &str) -> rusqlite::Result<Vec<Spent>> {
    let sums =
        "SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(pico_usd), 0)
         FROM requests WHERE batch = ?1 AND (tokens > 0) = ?2";
    let mut open = Vec::new();
    for (is_bounded, certainty) in [(true, Certainty::AtMost), (false, Certainty::AtLeast)] {
        let (calls, tokens, pico_usd): (i64, i64, i64) = db
            .prepare_cached(sums)?
            .query_row(params![batch, is_bounded], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        if calls > 0 {
            open.push(Spent {
                calls: calls.unsigned_abs(),
                tokens: tokens.unsigned_abs(),
                pico_usd: pico_usd.unsigned_abs(),
                certainty,
            });
        }
    }
    Ok(open)
}

/// Counts the requests that earlier runs have sent and not settled.
pub(super) fn close(tx: &Transaction<'_>, batch: &str) -> rusqlite::Result<()> {
    for spent in open(tx, batch)? {
        add(tx, batch, &spent)?;
    }
    tx.execute("DELETE FROM requests WHERE batch = ?1", [batch])?;
    Ok(())
}

pub(super) fn add(tx: &Transaction<'_>, batch: &str, spent: &Spent) -> rusqlite::Result<()> {
    let before: Option<String> = tx
        .prepare_cached("SELECT certainty FROM batches WHERE id = ?1")?
        .query_row([batch], |row| row.get(0))
        .optional()?;
    let Some(before) = before else { return Ok(()) };
    let now = certainty(&before).and(spent.certainty);
    tx.prepare_cached(
        "UPDATE batches SET calls = calls + ?2, tokens = tokens + ?3, pico_usd = pico_usd + ?4, certainty = ?5
         WHERE id = ?1",
    )?
    .execute(params![
        batch,
        signed(spent.calls),
        signed(spent.tokens),
        signed(spent.pico_usd),
        certainty_name(now)
    ])?;
    Ok(())
}

/// Returns the name of a certainty in the file.
pub(crate) fn certainty_name(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::AtMost => "at_most",
        Certainty::AtLeast => "at_least",
        Certainty::About => "about",
    }
}

pub(crate) fn certainty(name: &str) -> Certainty {
    match name {
        "exact" => Certainty::Exact,
        "at_most" => Certainty::AtMost,
        "at_least" => Certainty::AtLeast,
        _ => Certainty::About,
    }
}
