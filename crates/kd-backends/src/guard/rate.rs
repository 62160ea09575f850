//! A place in the queue: at most so many requests a minute reach one provider, whoever asks it.

use crate::Backend;
use futures::stream::{self, BoxStream, StreamExt};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota};
use kd_core::{Delta, Failure, Request};
use std::num::NonZeroU32;
use std::sync::Arc;

/// A provider's limit, shared by all who ask it (a leaky bucket: a full minute's worth may go at once, then they are
/// spread evenly).
pub struct Limit {
    bucket: DefaultDirectRateLimiter,
    clock: DefaultClock,
}

impl Limit {
    /// A limit of so many requests a minute.
    pub fn per_minute(requests: NonZeroU32) -> Self {
        Self {
            bucket: DefaultDirectRateLimiter::direct(Quota::per_minute(requests)),
            clock: DefaultClock::default(),
        }
    }

    /// Waits for a free place and takes it.
    pub async fn turn(&self) {
        while let Err(early) = self.bucket.check() {
            tokio::time::sleep(early.wait_time_from(self.clock.now())).await;
        }
    }
}

/// Lets a request through when its provider has a place for it.
pub struct Rate {
    inner: Arc<dyn Backend>,
    limit: Arc<Limit>,
}

impl Rate {
    /// Guards this backend.
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
