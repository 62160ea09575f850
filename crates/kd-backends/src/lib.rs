//! The hands of Kingdom that reach models: turns a [`Request`] into a stream of [`Delta`]s.
//!
//! [`Hands`] seats members: it finds the backend that answers for each and puts the guards (deadlines, retries, rate
//! limits) around it. Knows nothing of threads or files of ours.

use futures::stream::BoxStream;
use kd_core::{Delta, Failure, Request};

pub mod adapters;
pub mod checkout;
pub mod checkup;
pub mod delivery;
pub mod depth;
pub mod dialects;
pub mod discovery;
pub mod env;
pub mod guard;
pub mod hands;
pub mod keys;
mod mcp;
pub mod providers;
pub mod remote;
pub mod secret_file;
pub mod servers;
pub mod spending;
mod status;
#[cfg(test)]
mod testing;
pub mod transport;

pub use env::Env;
pub use hands::{Hands, Options};
pub use spending::Spending;

/// Whatever answers a request.
///
/// The stream ends after [`Delta::Finished`] or after the first `Err`; a stream that ends with neither is a failure.
/// Dropping the stream cancels the call: the connection closes, children are stopped.
pub trait Backend: Send + Sync {
    /// Asks. Nothing happens before the stream is polled.
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>>;
}
