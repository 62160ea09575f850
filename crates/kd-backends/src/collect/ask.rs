//! The backends of a run with provider batches: one that gathers, and one that counts direct requests.

use super::http::Link;
use super::{Answer, Collector, Free, Item, ParcelError, digest, endpoints, outcome};
use crate::Backend;
use crate::providers::AskedForm;
use crate::spending::{Permit, Spending, Worst};
use crate::transport::body::cache_key;
use crate::transport::http::{self, To};
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::request::Deadlines;
use kd_core::{Delta, Failure, FailureKind, Request};
use std::sync::Arc;
use std::time::Duration;

/// Asks a model through provider batches.
pub(crate) struct Collected {
    collector: Collector,
    link: Link,
    spending: Spending,
}

impl Collected {
    /// Creates a backend for this model; its requests are charged to this account. `run` is the account of the whole run.
    pub(crate) fn new(
        collector: &Collector,
        link: (
            Arc<crate::providers::Service>,
            &'static dyn http::Dialect,
            String,
        ),
        spending: Spending,
        run: &Spending,
    ) -> Self {
        let (service, dialect, model) = link;
        let payer = service.payer(&model);
        collector.know(&service, &run.paid_by(payer));
        Self {
            collector: collector.clone(),
            link: Link {
                service,
                dialect,
                model,
            },
            spending,
        }
    }
}

impl Backend for Collected {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let call = Call {
            collector: self.collector.clone(),
            link: self.link.clone(),
            spending: self.spending.clone(),
        };
        stream::once(async move { call.answer(&request).await })
            .flat_map(|answer| {
                let deltas = answer.deltas.into_iter().map(Ok);
                stream::iter(deltas.chain(answer.failure.map(Err)))
            })
            .boxed()
    }
}

struct Call {
    collector: Collector,
    link: Link,
    spending: Spending,
}

impl Call {
    /// Asks in the strictest form that the model is known to accept, and less strictly if it refuses.
    async fn answer(&self, request: &Request) -> Answer {
        let service = &self.link.service;
        let mut form = service.form(&self.link.model);
        loop {
            let answer = match self.once(request, form).await {
                Ok(answer) => answer,
                Err(failure) => return Answer::failed(failure),
            };
            let is_form = request.schema.is_some()
                && form != AskedForm::Words
                && answer
                    .error
                    .as_ref()
                    .is_some_and(|(code, text)| http::refuses_form(*code, text));
            if !is_form {
                return answer;
            }
            form = service.less_strict(&self.link.model, request, form);
        }
    }

    async fn once(&self, request: &Request, form: AskedForm) -> Result<Answer, Failure> {
        let inner = &self.collector.0;
        inner.load().await.map_err(|why| unkept(&why))?;
        let body = self.body(request, form);
        let bytes = body.to_string().into_bytes();
        let digest = digest(&self.link.service, &self.link.model, &bytes);
        let thread = self.spending.thread();
        if let Some((free, receiver)) = inner.take_free(&digest) {
            let id = match free {
                Free::Reply(id) | Free::Pending(id) => id,
                Free::Left(failure) => return Err(failure),
            };
            if let Some(receiver) = receiver {
                return receiver.await.map_err(|_| ended());
            }
            let reply = inner
                .stored(move |store| store.take(&id, thread.as_deref()))
                .await
                .map_err(|why| unkept(&why))?;
            if let Some(reply) = reply.and_then(|reply| serde_json::from_str(&reply).ok()) {
                let endpoint = endpoints::endpoint(self.link.service.wire);
                return Ok(outcome::read(&self.link, endpoint, reply).0);
            }
        }
        let (permit, request_body) = self.paid(request, form, (body, bytes.len()))?;
        let (most, usage) = permit.most().ok_or_else(ended)?;
        let item = Item {
            id: String::new(),
            digest,
            thread: self.spending.thread().map(|thread| thread.to_string()),
            bytes: request_body.to_string().into_bytes(),
            permit: Some(permit),
            most,
            usage,
        };
        let receiver = inner.gather(&self.link, item);
        receiver.await.map_err(|_| ended())
    }

    fn body(&self, request: &Request, form: AskedForm) -> serde_json::Value {
        let keeps_prompts = self.link.service.keeps_prompts;
        let key = keeps_prompts.then(|| cache_key(&request.prompt)).flatten();
        let to = To {
            base: &self.link.service.base,
            model: &self.link.model,
            keeps_prompts,
            cache_key: key.as_deref(),
        };
        http::body(self.link.dialect, to, request, form)
    }

    /// Reserves the worst case of a request, and lowers its answer limit if money or tokens are short.
    fn paid(
        &self,
        request: &Request,
        form: AskedForm,
        (body, bytes): (serde_json::Value, usize),
    ) -> Result<(Permit, serde_json::Value), Failure> {
        let permit = self.spending.reserve(Worst {
            bytes: bytes as u64,
            answer: request
                .sampling
                .max_tokens
                .or(self.link.dialect.answer_tokens()),
            price: outcome::price(&self.link),
        })?;
        if permit.answer() == request.sampling.max_tokens || permit.answer().is_none() {
            return Ok((permit, body));
        }
        let mut bounded = request.clone();
        bounded.sampling.max_tokens = permit.answer();
        let body = self.body(&bounded, form);
        Ok((permit, body))
    }
}

fn ended() -> Failure {
    Failure::new(
        FailureKind::Cancelled,
        "the run ended before the provider's batch",
    )
}

pub(super) fn unkept(why: &ParcelError) -> Failure {
    Failure::new(
        FailureKind::Crashed,
        format!(
            "the requests for a provider's batch cannot be recorded, so they are not sent: {why}"
        ),
    )
}

/// Counts requests to members that are asked directly. Collected requests wait for them.
pub(crate) struct Counted {
    collector: Collector,
    inner: Arc<dyn Backend>,
}

impl Counted {
    /// Wraps this backend.
    pub(crate) fn new(collector: &Collector, inner: Arc<dyn Backend>) -> Self {
        Self {
            collector: collector.clone(),
            inner,
        }
    }
}

struct Direct(Collector);

impl Drop for Direct {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.direct = state.direct.saturating_sub(1);
        // The answer may lead to another request.
        state.last = Some(tokio::time::Instant::now());
    }
}

impl Backend for Counted {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        self.collector.0.lock().direct += 1;
        let direct = Direct(self.collector.clone());
        let inner = self.inner.ask(request);
        stream::unfold((inner, direct), |(mut inner, direct)| async move {
            let item = inner.next().await?;
            Some((item, (inner, direct)))
        })
        .boxed()
    }
}

/// Removes the time limits of a request: a provider batch takes up to a day.
pub(crate) struct Untimed(pub(crate) Arc<dyn Backend>);

impl Backend for Untimed {
    fn ask(&self, mut request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        request.deadlines = Deadlines {
            first: Duration::ZERO,
            idle: Duration::ZERO,
            total: Duration::ZERO,
        };
        self.0.ask(request)
    }
}
