//! A runtime for programs that have none.

use crate::error::{ErrorKind, UserError};
use kd_backends::transport::process;
use std::future::Future;
use std::time::Duration;

/// One thread for members and one for timers, so that a service that sends without end cannot hold up its own deadline.
const WORKERS: usize = 2;
/// Time limit for dropped calls to close their connections.
const FAREWELL: Duration = Duration::from_millis(200);
/// Time limit for agent programs and their tools to exit; longer than their grace period.
const CHILDREN: Duration = Duration::from_secs(3);

/// A tokio runtime for sessions. When it is dropped, open calls are cancelled and agent programs of this process end.
pub struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts its threads.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub fn new() -> Result<Self, UserError> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_all()
            .build()
            .map(|runtime| Self(Some(runtime)))
            .map_err(|e| UserError::new(ErrorKind::Io, "cannot start an OS thread").because(e))
    }

    /// Runs a future to its end on this thread, inside the runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let runtime = self.0.as_ref().expect("only drop takes it");
        runtime.block_on(future)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(FAREWELL);
        }
        // No agent program, and no tool of one, outlives the runtime.
        process::settle(CHILDREN);
    }
}
