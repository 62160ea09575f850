//! Batches on PostgreSQL, asked by processes on any number of machines. The process that runs the batch creates it, collects its
//! results and threads, and may ask too; workers ask.
//!
//! Input: an address, the user's own configuration, and jobs of the database, which name members, a method and a question.
//! Output: results and threads in the database, and in the project of the process that runs the batch.

mod asks;
mod follow;
mod gate;
mod plan;
mod queue;
mod run;
mod watch;
mod worker;

pub use super::request::FleetRequest;
pub use follow::lines;
pub use watch::Watch;
pub use worker::{News, WorkerRequest, Working};

pub(super) use run::{Prepared, prepare};

use crate::error::{ErrorKind, UserError};
use kd_sql::fleet::FleetError;
pub use kd_sql::fleet::{Erased, Fleet, Refusal, Store, Worker};
use std::time::Duration;

/// The usual lease: far longer than a pause of a network, and short enough to wait for.
pub const LEASE: Duration = Duration::from_secs(60);
/// The shortest: a worker renews it four times in it.
pub const LEASE_MIN: Duration = Duration::from_secs(1);

impl From<FleetError> for UserError {
    fn from(error: FleetError) -> Self {
        let kind = match &error {
            FleetError::Newer { .. } => ErrorKind::TooNew,
            _ => ErrorKind::Store,
        };
        UserError::new(kind, error.to_string()).next(error.hint())
    }
}

/// Parses the address of a store.
///
/// # Errors
/// The address is not an address of a PostgreSQL server. The text is not shown: it may hold a password.
pub fn store(text: &str) -> Result<Store, UserError> {
    Store::parse(text).ok_or_else(|| {
        UserError::new(
            ErrorKind::Usage,
            "the store is not the address of a PostgreSQL server",
        )
        .next("give --store, or KD_BATCH_STORE, an address such as postgresql://user@host/name")
    })
}

/// Opens a store to look at its batches. Must not be called from a thread that runs asynchronous tasks.
///
/// # Errors
/// It cannot be reached.
pub fn open(store: &Store) -> Result<Fleet, UserError> {
    Ok(Fleet::open(store, LEASE)?)
}

/// Runs a blocking call on a separate thread: the database client must not be used on threads that run async tasks.
fn outside<T: Send>(call: impl FnOnce() -> T + Send) -> Result<T, UserError> {
    std::thread::scope(|scope| scope.spawn(call).join())
        .map_err(|_| UserError::new(ErrorKind::Engine, "a call to the database ended too early"))
}

/// Returns the error of a second run of a batch.
fn busy(id: &str) -> UserError {
    UserError::new(ErrorKind::Busy, format!("{id} is run by another process"))
        .next("wait for its end, or start `kd worker`, which helps it")
}
