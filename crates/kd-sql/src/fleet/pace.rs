//! The request rates of services, over the whole fleet: slots are taken from the database in small blocks, and a pause that a
//! service asked for holds for every worker.

use super::error::FleetError;
use super::link::Tx;
use super::{now, unsigned};
use std::time::Duration;

/// Maximum pause that one response of a service can cause, in milliseconds. A longer pause in the database was
/// written by another program.
const PAUSE_MILLIS: i64 = 600_000;
/// A block of slots of one worker, in microseconds, unless one slot is longer.
const BLOCK_MICROS: i64 = 500_000;
/// Maximum number of workers that may hold a block that has not begun. Later values in the database were written by
/// another program.
const BLOCKS_MAX: i64 = 1000;

/// When requests to a service may be sent: after `wait`, then one after each `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The time until the first.
    pub wait: Duration,
    /// The time from one to the next.
    pub every: Duration,
}

/// Takes `count` slots of a service with this many requests per minute; without a rate, returns only its pause.
pub(super) fn slots(
    tx: &mut Tx<'_>,
    service: &str,
    per_minute: Option<u32>,
    count: u32,
) -> Result<Slots, FleetError> {
    let every = per_minute.map_or(0, |n| 60_000_000 / i64::from(n.max(1)));
    if every == 0 {
        let row = tx.row(
            concat!(
                "SELECT least(greatest(paused_until, 0) - ",
                now!(),
                ", $2) FROM kd_services WHERE name = $1"
            ),
            &[&service, &PAUSE_MILLIS],
        )?;
        let wait: i64 = match row {
            Some(row) => row.try_get(0)?,
            None => 0,
        };
        return Ok(Slots {
            wait: Duration::from_millis(unsigned(wait)),
            every: Duration::ZERO,
        });
    }
    let taken = every.saturating_mul(i64::from(count.max(1)));
    let row = tx.row(
        concat!(
            "INSERT INTO kd_services AS s (name, next_start) VALUES ($1, 1000 * ",
            now!(),
            " + $2) ON CONFLICT (name) DO UPDATE SET next_start =
             greatest(least(s.next_start, 1000 * ",
            now!(),
            " + $3), 1000 * least(greatest(s.paused_until, 0), ",
            now!(),
            " + $4), 1000 * ",
            now!(),
            ") + $2 RETURNING next_start - $2 - 1000 * ",
            now!()
        ),
        &[&service, &taken, &queue(every), &PAUSE_MILLIS],
    )?;
    let wait: i64 = match row {
        Some(row) => row.try_get(0)?,
        None => 0,
    };
    Ok(Slots {
        wait: Duration::from_micros(unsigned(wait)),
        every: Duration::from_micros(unsigned(every)),
    })
}

/// Returns how far ahead slots may be taken, in microseconds.
fn queue(every: i64) -> i64 {
    1000 * PAUSE_MILLIS + BLOCKS_MAX * every.max(BLOCK_MICROS)
}

/// Records that a service asked for a pause.
pub(super) fn pause(tx: &mut Tx<'_>, service: &str, time: Duration) -> Result<(), FleetError> {
    let millis = i64::try_from(time.as_millis()).map_or(PAUSE_MILLIS, |n| n.min(PAUSE_MILLIS));
    tx.run(
        concat!(
            "INSERT INTO kd_services AS s (name, paused_until) VALUES ($1, ",
            now!(),
            " + $2) ON CONFLICT (name) DO UPDATE SET paused_until = greatest(least(s.paused_until, ",
            now!(),
            " + $3), ",
            now!(),
            " + $2)"
        ),
        &[&service, &millis, &PAUSE_MILLIS],
    )?;
    Ok(())
}
