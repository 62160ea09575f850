//! The threads that run agents. Shutting them down never waits for a server that keeps one busy.

use std::ops::Deref;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Time limit for busy threads to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// A runtime that is abandoned when dropped, without waiting for it.
pub(super) struct Threads(Option<Runtime>);

impl Threads {
    /// Starts one thread for the agent and one for the timers: a service that never stops sending must not delay its
    /// own deadline. The built-in model has its own threads.
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }
}

impl Deref for Threads {
    type Target = Runtime;

    #[allow(clippy::expect_used, reason = "it is taken only on drop")]
    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until the end")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(FAREWELL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_thread_that_never_ends_is_not_waited_for() {
        let (begun, busy) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let threads = Threads::start().unwrap();
        threads.spawn(async move {
            begun.send(()).unwrap();
            // Blocks its thread, like a future that never yields.
            let _ = held.recv();
        });
        busy.recv().unwrap();
        // The test finishes only if dropping does not wait.
        drop(threads);
        drop(release);
    }
}
