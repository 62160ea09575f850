//! Batches on PostgreSQL, for processes on any number of machines: the fleet.
//!
//! Input: an address; questions, results, and the limits and spending of requests. Output: the jobs to do next, and
//! the state of a batch. A worker is one start of a process: it holds a lease, renewed by [`Fleet::beat`], and every
//! claim of a job has a token. A result is written, and its job is ended, in one transaction that the token guards.
//! Only the clock of the database is used; the clocks of workers do not matter.
//!
//! All calls block. They must not be made from a thread that runs an asynchronous task.

mod account;
mod address;
mod batches;
mod claim;
mod clerk;
mod create;
mod error;
mod finish;
mod forget;
mod help;
mod link;
mod look;
mod money;
mod pace;
mod retry;
mod runs;
mod schema;
mod store;
mod threads;
mod totals;
mod turns;
mod workers;

pub use account::FleetAccount;
pub use address::Store;
pub use batches::{Asks, FleetBatch, FleetLimits, Line, Seen};
pub use claim::{Claimed, Idle};
pub use create::NewFleetBatch;
pub use error::FleetError;
pub use finish::{Ended, ThreadFile};
pub use forget::Erased;
pub use kd_core::batch::{Refusal, Refused, Worker};
pub use look::FleetReader;
pub use pace::Slots;
pub use store::Fleet;
pub use workers::NewWorker;

use crate::amounts::signed;

/// The time of the database, in milliseconds since 1970: an SQL expression.
macro_rules! now {
    () => {
        "(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
    };
}
use now;

/// The sum of a column of amounts, as one that fits: an SQL expression. Negative amounts, which `kd` never writes, count as none.
macro_rules! sum {
    ($column:literal) => {
        concat!(
            "least(coalesce(sum(greatest(",
            $column,
            ", 0)), 0), 9223372036854775807)::bigint"
        )
    };
}
use sum;

/// Whether a column has the id of a batch, see [`batches::is_id`]: no worker can serve other rows.
macro_rules! named {
    ($column:literal) => {
        concat!($column, " ~ '^batch-[0-9A-Za-z]{1,64}$'")
    };
}
use named;

/// The sums of calls, tokens and money, in this order: SQL expressions.
macro_rules! sums {
    () => {
        concat!(
            $crate::fleet::sum!("calls"),
            ", ",
            $crate::fleet::sum!("tokens"),
            ", ",
            $crate::fleet::sum!("pico_usd")
        )
    };
}
use sums;

/// An amount and one that is added, as an amount that fits: an SQL expression.
macro_rules! added {
    ($before:literal, $more:literal) => {
        concat!(
            "least(greatest(coalesce(",
            $before,
            ", 0), 0)::numeric + greatest(",
            $more,
            ", 0), 9223372036854775807)::bigint"
        )
    };
}
use added;

/// Maximum bytes of a line of results.
const LINE_BYTES_MAX: i64 = 64 << 20;
/// Maximum bytes of the files of a thread together.
pub const THREAD_BYTES_MAX: usize = 64 << 20;

/// Converts an amount of the database; negative ones, which `kd` never writes, count as none.
fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Returns the method that a word of the database names.
fn method_of(word: &str) -> Result<kd_core::batch::Method, FleetError> {
    let unknown = || format!("`{}` is no method of asking", workers::line(word));
    kd_core::batch::Method::of_word(word).ok_or_else(|| FleetError::Damaged(unknown()))
}

/// Returns a text that PostgreSQL accepts: it has no NUL characters.
fn stored(text: &str) -> std::borrow::Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text.into(),
    }
}
