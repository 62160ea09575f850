//! The SQL storage of `kd`: forums, in SQLite or PostgreSQL, the user's batches, and the user's marks of verdicts.
//!
//! All calls block. SQLite is inside the program. Tokio is inside the PostgreSQL client: its calls must not be made from a
//! thread that runs an asynchronous task.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod amounts;
pub mod batch;
mod brief;
mod connect;
pub mod fleet;
pub mod forget;
pub mod forum;
pub mod marks;
