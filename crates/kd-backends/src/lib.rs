//! The hands of Kingdom that reach models: turns a [`Request`] into a stream of [`Delta`]s.
//!
//! Knows nothing of threads or files of ours.

use futures::stream::BoxStream;
use kd_core::{Delta, Failure, Request};

/// Whatever answers a request.
///
/// The stream ends after [`Delta::Finished`] or after the first `Err`; a stream that ends with neither is a failure.
/// Dropping the stream cancels the call: the connection closes, children are stopped.
pub trait Backend: Send + Sync {
    /// Asks. Nothing happens before the stream is polled.
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>>;
}
