//! The gate of a fleet: request rates and pauses of a service that hold for processes on any number of machines.

use crate::Backend;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::sync::Arc;
use std::time::Duration;

/// The pause after a refusal that names none.
const PAUSE: Duration = Duration::from_secs(1);

/// A service, as a gate knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatedService {
    /// The host of its address, with the port if it has one.
    pub name: String,
    /// Maximum requests per minute of the whole fleet; `None` is no limit.
    pub per_minute: Option<u32>,
}

/// Lets requests of a whole fleet pass.
pub trait Gate: std::fmt::Debug + Send + Sync {
    /// Waits until a request may be sent.
    fn turn(&self, service: &GatedService) -> BoxFuture<'static, ()>;
    /// The service refused a request because there were too many: everybody waits for this time.
    fn pause(&self, service: &GatedService, time: Duration);
}

/// Passes a request on when the gate lets it.
pub struct Gated {
    inner: Arc<dyn Backend>,
    gate: Arc<dyn Gate>,
    service: GatedService,
}

impl Gated {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>, gate: Arc<dyn Gate>, service: GatedService) -> Self {
        Self {
            inner,
            gate,
            service,
        }
    }
}

impl Backend for Gated {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let (inner, gate) = (Arc::clone(&self.inner), Arc::clone(&self.gate));
        let service = self.service.clone();
        let turn = gate.turn(&service);
        stream::once(async move {
            turn.await;
            inner.ask(request)
        })
        .flatten()
        .inspect(move |delta| {
            if let Err(failure) = delta
                && failure.kind == FailureKind::RateLimit
            {
                gate.pause(&service, failure.retry_after.unwrap_or(PAUSE));
            }
        })
        .boxed()
    }
}
