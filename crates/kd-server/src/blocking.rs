//! Calls of the host, which may block.

use crate::error::Stopped;
use kd_app::host::Host;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum sessions that are opened at the same time: each takes a thread for some milliseconds.
const OPENING_MAX: usize = 16;

/// Makes a host call off the event loop.
///
/// # Errors
/// If the call panicked, or the process stops.
pub(crate) async fn off<T: Send + 'static>(
    host: &Arc<dyn Host>,
    work: impl FnOnce(&dyn Host) -> T + Send + 'static,
) -> Result<T, Stopped> {
    let host = host.clone();
    let done = tokio::task::spawn_blocking(move || work(host.as_ref())).await;
    done.map_err(|e| Stopped(e.to_string()))
}

/// Opens sessions, a few at the same time, so that hundreds of clients that ask at once do not get hundreds of threads.
/// A call keeps its place until it returns, also after its client left.
pub(crate) struct Opening(Arc<Semaphore>);

impl Default for Opening {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(OPENING_MAX)))
    }
}

impl Opening {
    /// Makes a host call that opens a session, off the event loop, when it is its turn.
    ///
    /// # Errors
    /// If the call panicked.
    pub(crate) async fn off<T: Send + 'static>(
        &self,
        host: &Arc<dyn Host>,
        work: impl FnOnce(&dyn Host) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let host = host.clone();
        self.run(move || work(host.as_ref())).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        // It is never closed.
        let place = self.0.clone().acquire_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(place);
            done
        });
        let done = done.await;
        done.map_err(|e| Stopped(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn hundreds_of_sessions_are_opened_a_few_at_a_time() {
        let opening = Opening::default();
        let (now, most) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let most = Arc::new(most);
        let calls = (0..200).map(|call| {
            let (now, most) = (now.clone(), most.clone());
            opening.run(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
                assert_ne!(call, 7, "a bad call");
                call
            })
        });
        let done = futures::future::join_all(calls).await;
        assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 199);
        assert!(most.load(Ordering::SeqCst) <= OPENING_MAX);
    }

    #[tokio::test]
    async fn a_client_that_leaves_does_not_give_its_place_away() {
        let opening = Opening::default();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (began, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let call = opening.run(move || {
            began.send(()).unwrap();
            let _ = wait.recv();
        });
        tokio::select! {
            _ = call => unreachable!("it waits"),
            begun = has_begun.recv() => begun.unwrap(),
        }
        assert_eq!(opening.0.available_permits(), OPENING_MAX - 1);
        drop(go);
        let all = opening.0.acquire_many(OPENING_MAX as u32).await;
        assert!(all.is_ok());
    }
}
