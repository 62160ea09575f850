//! Asking failed and cancelled questions again.

use super::jobs::{State, kept_line, write_line};
use jiff::Timestamp;
use rusqlite::{Transaction, params};
use std::collections::HashMap;

/// The result of a request to ask questions again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retried {
    /// Questions that will be asked, or wait for an equal one.
    pub asked: u64,
    /// Questions that have an answer now, because an equal one was answered.
    pub answered: u64,
}

/// A question to ask again.
struct Open {
    place: i64,
    id: String,
    key: String,
}

pub(super) fn retry(
    tx: &Transaction<'_>,
    batch: &str,
    now: Timestamp,
) -> rusqlite::Result<Retried> {
    tx.execute("UPDATE batches SET cancelled = 0 WHERE id = ?1", [batch])?;
    tx.execute(
        "DELETE FROM results WHERE batch = ?1
         AND place IN (SELECT place FROM jobs WHERE batch = ?1 AND state = ?2)",
        params![batch, State::Dead as i64],
    )?;
    let fresh: bool = tx.query_row("SELECT fresh FROM batches WHERE id = ?1", [batch], |row| {
        row.get(0)
    })?;
    let open = open(tx, batch)?;
    let mut first = match fresh {
        true => HashMap::new(),
        false => asked_now(tx, batch)?,
    };
    let mut update = tx.prepare(
        "UPDATE jobs SET state = ?3, twin = ?4, attempts = 0, due = 0, reason = NULL WHERE batch = ?1 AND place = ?2",
    )?;
    let mut retried = Retried::default();
    for Open { place, id, key } in open {
        let known = match fresh {
            true => None,
            false => kept_line(tx, &key)?,
        };
        if let Some(row) = known {
            let line = row.for_another(batch, &id, place.unsigned_abs(), now);
            update.execute(params![batch, place, State::Done as i64, None::<i64>])?;
            write_line(tx, (batch, place), &key, &line, false)?;
            retried.answered += 1;
            continue;
        }
        // Equal questions wait for the first of them.
        let twin = first.get(&key).copied();
        let state = match twin {
            Some(_) => State::Twin,
            None => State::Waiting,
        };
        update.execute(params![batch, place, state as i64, twin])?;
        if !fresh {
            first.entry(key).or_insert(place);
        }
        retried.asked += 1;
    }
    Ok(retried)
}

/// Returns the failed and cancelled questions of a batch, in order.
fn open(tx: &Transaction<'_>, batch: &str) -> rusqlite::Result<Vec<Open>> {
    let mut found = tx.prepare(
        "SELECT place, id, key FROM jobs WHERE batch = ?1 AND state IN (?2, ?3) ORDER BY +place",
    )?;
    let rows = found.query_map(
        params![batch, State::Dead as i64, State::Cancelled as i64],
        |row| {
            Ok(Open {
                place: row.get(0)?,
                id: row.get(1)?,
                key: row.get(2)?,
            })
        },
    )?;
    rows.collect()
}

/// Returns the places of the questions that are asked or will be, by key.
fn asked_now(tx: &Transaction<'_>, batch: &str) -> rusqlite::Result<HashMap<String, i64>> {
    let mut found =
        tx.prepare("SELECT key, place FROM jobs WHERE batch = ?1 AND state IN (?2, ?3)")?;
    let rows = found.query_map(
        params![batch, State::Waiting as i64, State::Running as i64],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    rows.collect()
}
