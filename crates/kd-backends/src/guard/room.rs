//! Waits for running requests of other sessions, where what is reserved for them leaves too little for a request.

use crate::Backend;
use crate::spending::Spending;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::sync::Arc;

/// Asks again when a reservation of another session has ended, as long as that may help.
///
/// A reservation is the worst case of a request, and most answers cost much less: without this, the first of many
/// clients of a server would have the rest refused. The turns of one session share what is left instead
/// ([`Spending::turn`]). Only requests that were sent are waited for: these end.
pub struct Room {
    inner: Arc<dyn Backend>,
    spending: Spending,
}

impl Room {
    /// Wraps a backend that reserves its requests in this account.
    pub fn new(inner: Arc<dyn Backend>, spending: &Spending) -> Self {
        Self {
            inner,
            spending: spending.clone(),
        }
    }
}

impl Backend for Room {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        if !self.spending.is_limited() {
            return self.inner.ask(request);
        }
        let (inner, spending) = (Arc::clone(&self.inner), self.spending.clone());
        stream::once(async move {
            loop {
                // Before it is asked: what is freed meanwhile must not be missed.
                let mut freed = spending.freed();
                let mut deltas = inner.ask(request.clone());
                let first = deltas.next().await;
                let refused = matches!(&first, Some(Err(f)) if f.kind == FailureKind::Limit);
                let (fits_later, running) = match refused {
                    true => spending.may_fit_later(),
                    false => (false, false),
                };
                let has_changed = freed.has_changed().unwrap_or(false);
                if !fits_later || !(running || has_changed) || freed.changed().await.is_err() {
                    return stream::iter(first).chain(deltas);
                }
            }
        })
        .flatten()
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::scripted::{Act, Script, Scripted};
    use crate::guard::Paid;
    use crate::spending::{Permit, Worst};
    use crate::testing::{request, run};
    use kd_core::Usage;
    use kd_core::spending::{Ceiling, FRAMING_TOKENS, Spent};

    /// Creates an account with room for one answer of 1,000 tokens and little more.
    fn server() -> Spending {
        Spending::new(Ceiling {
            tokens: Some(1_500),
            ..Ceiling::default()
        })
    }

    /// Begins a turn in each of two sessions.
    fn turns(server: &Spending) -> [Spending; 2] {
        [(); 2].map(|()| {
            let session = server.within(Ceiling::default());
            session.turn(Spent::default())
        })
    }

    /// Sends a request that reserves up to 1,000 tokens, or whatever is left.
    async fn sent(turn: &Spending) -> Permit {
        let worst = Worst {
            bytes: 1,
            answer: Some(1_000),
            price: None,
        };
        let permit = turn.reserve(worst).unwrap();
        permit.sending().await.unwrap();
        permit
    }

    fn room(turn: &Spending) -> Room {
        let runs = vec![vec![Act::text("whole"), Act::finish()]];
        let paid = Paid::new(Arc::new(Scripted::new(Script { runs })), turn);
        Room::new(Arc::new(paid), turn)
    }

    fn asked() -> Request {
        let mut request = request("q");
        request.sampling.max_tokens = Some(600);
        request.prompt.history = "h".repeat(500).into();
        request
    }

    fn of(tokens: u64) -> Usage {
        Usage {
            input_tokens: tokens,
            output_tokens: 1,
            ..Usage::default()
        }
    }

    #[tokio::test]
    async fn a_request_waits_for_what_another_session_has_reserved() {
        let server = server();
        let [theirs, turn] = turns(&server);
        let permit = sent(&theirs).await;
        let asking = room(&turn);
        let mut answer = Box::pin(run(&asking, asked()));
        assert!(futures::poll!(&mut answer).is_pending());
        assert_eq!(permit.settle(Some(&of(20))), None);
        let (text, end) = answer.await;
        end.unwrap();
        assert_eq!(text, "whole");
    }

    #[tokio::test]
    async fn an_answer_is_not_shortened_for_a_request_that_may_cost_little() {
        let server = Spending::new(Ceiling {
            tokens: Some(2_500),
            ..Ceiling::default()
        });
        let [theirs, turn] = turns(&server);
        let permit = sent(&theirs).await;
        let asking = room(&turn);
        let mut whole = asked();
        whole.sampling.max_tokens = Some(1_000);
        let mut answer = Box::pin(run(&asking, whole));
        assert!(futures::poll!(&mut answer).is_pending());
        drop(permit);
        // What is left now is shared by nobody: the answer is shortened.
        answer.await.1.unwrap();
    }

    #[tokio::test]
    async fn it_is_refused_when_the_other_request_did_cost_that_much() {
        let server = server();
        let [theirs, turn] = turns(&server);
        let permit = sent(&theirs).await;
        let asking = room(&turn);
        let mut answer = Box::pin(run(&asking, asked()));
        assert!(futures::poll!(&mut answer).is_pending());
        assert_eq!(permit.settle(Some(&of(1_000 + FRAMING_TOKENS))), None);
        let (_, end) = answer.await;
        assert_eq!(end.unwrap_err().kind, FailureKind::Limit);
    }

    #[tokio::test]
    async fn nothing_waits_for_its_own_session_or_for_what_was_not_sent() {
        let server = server();
        let [other, ours] = [(); 2].map(|()| server.within(Ceiling::default()));
        let worst = Worst {
            bytes: 1,
            answer: Some(1_000),
            price: None,
        };
        for session in [&ours, &other] {
            let holder = session.turn(Spent::default());
            let permit = holder.reserve(worst).unwrap();
            if std::ptr::eq(session, &ours) {
                permit.sending().await.unwrap();
            }
            let turn = ours.turn(Spent::default());
            let (_, end) = run(&room(&turn), asked()).await;
            let failure = end.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Limit, "{failure}");
            permit.unsent();
        }
    }
}
