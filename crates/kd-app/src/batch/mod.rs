//! Many questions, asked in the same way: creates or continues a batch, and runs it.
//!
//! Input: the questions, how they are asked, and limits for all of them together. Output: progress while it runs, and how
//! it ended; results are in the database, and in a file if one is named.

mod ask;
mod drive;
mod estimate;
pub mod fleet;
mod how;
mod key;
mod log;
mod look;
mod on;
mod provider;
mod queue;
mod request;
mod results;
mod running;
mod shelf;
mod slots;
mod started;

pub use drive::{Ended, Handler, Pace, Progress, Step, Stop, Why, drive};
pub use how::How;
pub use kd_backends::collect::{Told, Waiting};
pub use kd_sql::batch::{Batch, Batches, Counts, Dead, MemberFailures, NewBatch, Retried};
pub use look::{Overview, find, newest, of, overview, pick, threads};
pub use provider::cancel_parcels;
pub use request::BatchRequest;
pub use results::{Results, check_own};
pub use running::Batching;
pub use shelf::{Shelf, Workers};
pub use started::Running;
