//! Rate limit: a maximum number of requests per minute to one provider, across all callers.

use crate::Backend;
use futures::stream::{self, BoxStream, StreamExt};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use kd_core::{Delta, Failure, Request};
use std::num::NonZeroU32;
use std::sync::Arc;

/// A provider's limit, shared by all its callers (a leaky bucket: up to a minute's worth at once, then spread evenly).
pub struct Limit {
    bucket: DefaultDirectRateLimiter,
    clock: DefaultClock,
}

impl Limit {
    /// Creates a limit of requests per minute.
    pub fn per_minute(requests: NonZeroU32) -> Self {
        Self {
            bucket: DefaultDirectRateLimiter::direct(Quota::per_minute(requests)),
            clock: DefaultClock::default(),
        }
    }

    /// Waits for a free slot and takes it.
    pub async fn turn(&self) {
        while let Err(early) = self.bucket.check() {
            tokio::time::sleep(early.wait_time_from(self.clock.now())).await;
        }
    }
}

/// Passes a request on when its provider has a free slot.
pub struct Rate {
    inner: Arc<dyn Backend>,
    limit: Arc<Limit>,
}

impl Rate {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>, limit: Arc<Limit>) -> Self {
        Self { inner, limit }
    }
}

impl Backend for Rate {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let inner = Arc::clone(&self.inner);
        let limit = Arc::clone(&self.limit);
        stream::once(async move {
            limit.turn().await;
            inner.ask(request)
        })
        .flatten()
        .boxed()
    }
}
