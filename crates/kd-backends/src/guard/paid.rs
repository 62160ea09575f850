//! Reserves the cost of a request in an account before it is sent, and charges it at the end. For backends that send no
//! HTTP requests of their own: scripts, the built-in model, agent programs.

use crate::Backend;
use crate::spending::{Permit, Spending, Worst};
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::spending::Price;
use kd_core::{Delta, Failure, FailureKind, Prompt, Request};
use std::sync::Arc;

/// Reserves and charges each request.
pub struct Paid {
    inner: Arc<dyn Backend>,
    spending: Spending,
    /// Name and budget of an agent program: its usage is its own choice, within the budget.
    program: Option<(String, Option<u64>)>,
}

impl Paid {
    /// Wraps a backend that costs no money.
    pub fn new(inner: Arc<dyn Backend>, spending: &Spending) -> Self {
        Self {
            inner,
            spending: spending.clone(),
            program: None,
        }
    }

    /// Wraps an agent program, which may enforce a budget itself, in pico-dollars.
    pub fn program(
        inner: Arc<dyn Backend>,
        spending: &Spending,
        agent: &str,
        budget: Option<u64>,
    ) -> Self {
        Self {
            program: Some((agent.to_owned(), budget)),
            ..Self::new(inner, spending)
        }
    }

    fn permit(&self, request: &mut Request) -> Result<Permit, Failure> {
        if let Some((agent, budget)) = &self.program {
            return self.spending.reserve_program(agent, *budget);
        }
        let permit = self.spending.reserve(Worst {
            bytes: bytes(&request.prompt),
            answer: request.sampling.max_tokens,
            price: Some(Price::default()),
        })?;
        if permit.answer().is_some() {
            request.sampling.max_tokens = permit.answer();
        }
        Ok(permit)
    }
}

/// Returns the bytes of a prompt, including separators between its parts.
fn bytes(prompt: &Prompt) -> u64 {
    let parts = [
        prompt.rules.as_str(),
        &prompt.persona,
        &prompt.history,
        &prompt.turn,
    ];
    parts.iter().map(|part| part.len() as u64 + 2).sum()
}

impl Backend for Paid {
    fn ask(&self, mut request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let permit = match self.permit(&mut request) {
            Ok(permit) => permit,
            Err(failure) => return stream::once(async move { Err(failure) }).boxed(),
        };
        let inner = self.inner.ask(request);
        let deltas = stream::unfold(
            (inner, Some(permit), false),
            |(mut inner, mut permit, has_begun)| async move {
                if let Some(reserved) = &permit
                    && let Err(failure) = reserved.sending().await
                {
                    let nothing = (stream::empty().boxed(), None, has_begun);
                    return Some(((None, Err(failure)), nothing));
                }
                let item = inner.next().await?;
                if let Err(failure) = &item
                    && failure.kind == FailureKind::Missing
                    && !has_begun
                    && let Some(permit) = permit.take()
                {
                    // There is no such program or model: nobody was asked.
                    permit.unsent();
                }
                let told = match &item {
                    Ok(Delta::Finished { usage, .. }) => Some(usage.as_ref()),
                    Err(failure) => failure.used.as_ref().map(|used| Some(&used.usage)),
                    Ok(_) => None,
                };
                let settled = told.and_then(|usage| Some((permit.take()?, usage)));
                let notice = settled.and_then(|(permit, usage)| permit.settle(usage));
                let notice = notice.map(|text| Ok(Delta::Notice { text }));
                Some(((notice, item), (inner, permit, true)))
            },
        );
        let each = |(notice, item): (Option<_>, _)| stream::iter(notice.into_iter().chain([item]));
        deltas.flat_map(each).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::spending::Spent;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the requests that reach it.
    #[derive(Default)]
    struct Counts(AtomicUsize);

    impl Backend for Arc<Counts> {
        fn ask(&self, _: Request) -> BoxStream<'static, Result<Delta, Failure>> {
            let counts = Arc::clone(self);
            stream::once(async move {
                counts.0.fetch_add(1, Ordering::Relaxed);
                Ok(Delta::Text { text: "x".into() })
            })
            .boxed()
        }
    }

    /// Fails, with or without having begun.
    struct Fails(bool);

    impl Backend for Fails {
        fn ask(&self, _: Request) -> BoxStream<'static, Result<Delta, Failure>> {
            let begins = self.0.then(|| Ok(Delta::Text { text: "x".into() }));
            let fails = Err(Failure::new(FailureKind::Missing, "no such program"));
            stream::iter(begins.into_iter().chain([fails])).boxed()
        }
    }

    #[tokio::test]
    async fn a_program_that_never_started_was_not_asked() {
        for (begins, requests) in [(false, 0), (true, 1)] {
            let turn = Spending::default().turn(Spent::default());
            let paid = Paid::program(Arc::new(Fails(begins)), &turn, "codex", None);
            let stream = paid.ask(crate::testing::request("x"));
            let _: Vec<_> = stream.collect().await;
            assert_eq!(turn.close().requests, requests);
        }
    }

    #[tokio::test]
    async fn a_turn_that_was_closed_asks_nobody() {
        let counts = Arc::new(Counts::default());
        let turn = Spending::default().turn(Spent::default());
        let paid = Paid::program(Arc::new(Arc::clone(&counts)), &turn, "codex", None);
        let stream = paid.ask(crate::testing::request("x"));
        turn.close();
        let said: Vec<_> = stream.collect().await;
        let kinds: Vec<_> = said
            .iter()
            .map(|r| r.as_ref().map_err(|f| f.kind))
            .collect();
        assert_eq!(kinds, [Err(FailureKind::Cancelled)]);
        assert_eq!(counts.0.load(Ordering::Relaxed), 0);
    }
}
