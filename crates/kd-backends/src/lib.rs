//! The backends of Kingdom: turns a [`Request`] into a stream of [`Delta`]s.
//!
//! [`Backends`] finds the backend that answers for each member and wraps it in guards (deadlines, retries, rate limits).
//! Knows nothing about threads or `kd`'s files.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use futures::stream::BoxStream;
use kd_core::{Delta, Failure, Request};

pub mod adapters;
mod attachments;
pub mod backends;
pub mod checkout;
pub mod checkup;
pub mod collect;
pub mod delivery;
pub mod depth;
pub mod dialects;
pub mod discovery;
pub mod env;
pub mod folder;
pub mod guard;
pub mod keys;
mod mcp;
pub mod namesake;
pub mod providers;
pub mod remote;
pub mod secret_file;
pub mod servers;
pub mod spending;
mod status;
#[cfg(test)]
mod testing;
pub mod transport;

pub use backends::{Backends, Options, OwnBackends};
pub use env::Env;
pub use folder::FolderReader;
pub use guard::{Gate, GatedService};
pub use spending::Spending;

/// Answers requests.
///
/// The stream ends after [`Delta::Finished`] or after the first `Err`; a stream that ends with neither is a failure.
/// Dropping the stream cancels the call: the connection is closed, child processes are stopped.
pub trait Backend: Send + Sync {
    /// Sends the request. Nothing happens before the stream is polled.
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>>;
}
