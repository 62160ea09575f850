//! The totals of many batches: their questions by state, and their spending. One statement each, whatever the number
//! of batches.

use super::error::FleetError;
use super::link::Tx;
use super::{sum, sums, unsigned};
use crate::batch::{Counts, State, certainty};
use kd_core::spending::Spent;
use std::collections::HashMap;

/// Returns the questions of batches by state.
pub(super) fn counts(
    tx: &mut Tx<'_>,
    ids: &[String],
) -> Result<HashMap<String, Counts>, FleetError> {
    // A question that was answered without an attempt has the answer of an equal one.
    let rows = tx.rows(
        "SELECT batch, state::bigint, count(*), count(*) FILTER (WHERE state = 2 AND attempts = 0)
         FROM kd_jobs WHERE batch = ANY($1) GROUP BY batch, state",
        &[&ids],
    )?;
    let mut all: HashMap<String, Counts> = HashMap::new();
    for row in rows {
        let counts = all.entry(row.try_get(0)?).or_default();
        counts.add(State::of(row.try_get(1)?), unsigned(row.try_get(2)?));
        counts.cached += unsigned(row.try_get(3)?);
    }
    Ok(all)
}

/// Returns the spending of batches, and the time of their workers in milliseconds.
pub(super) fn spent(
    tx: &mut Tx<'_>,
    ids: &[String],
) -> Result<HashMap<String, (Spent, u64)>, FleetError> {
    let rows = tx.rows(
        concat!(
            "SELECT batch, certainty, ",
            sums!(),
            ", ",
            sum!("millis"),
            "
             FROM kd_spending WHERE batch = ANY($1) GROUP BY batch, certainty"
        ),
        &[&ids],
    )?;
    let mut all: HashMap<String, (Spent, u64)> = HashMap::new();
    for row in rows {
        let (spent, millis) = all.entry(row.try_get(0)?).or_default();
        *spent += Spent {
            calls: unsigned(row.try_get(2)?),
            tokens: unsigned(row.try_get(3)?),
            pico_usd: unsigned(row.try_get(4)?),
            certainty: certainty(row.try_get(1)?),
        };
        *millis = millis.saturating_add(unsigned(row.try_get(5)?));
    }
    Ok(all)
}

// The statements of this module have this number in them.
const _: () = assert!(State::Done as i16 == 2);
