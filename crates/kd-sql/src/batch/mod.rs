//! Batches: one SQLite file for each project, in the user's own data folder. A question is a row, the queue is a column
//! of it, and its result and the end of its job are written in one transaction.
//!
//! Input: questions, results, and the limits and spending of requests. Output: the jobs to do next, and the state of a
//! batch. One process runs a batch at a time: it holds [`Batches::lock`] and gets a run number, and a result of
//! another run is refused.

mod account;
mod batches;
mod forget;
mod jobs;
mod money;
mod new;
mod parcel_rows;
mod parcels;
mod retry;
mod rows;
mod schema;

pub use account::BatchAccount;
pub use batches::{Batches, path};
pub use forget::BatchesFile;
pub use jobs::{Finished, Job};
pub use kd_core::batch::{Dead, MemberFailures};
pub use new::{Asked, NewBatch};
pub use parcels::{Parcel, ParcelItem};
pub use retry::Retried;
pub use rows::{Batch, Counts};

pub(crate) use jobs::State;
pub(crate) use money::{certainty, certainty_name};
