//! Retries transient failures after growing pauses.

use crate::Backend;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The number of retries of a call, and the pauses between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Maximum number of attempts, including the first; at least 1.
    pub attempts: u32,
    /// Pause after the first failure; it doubles with each further one.
    pub base: Duration,
    /// Maximum pause, unless the service asks for a longer one.
    pub max: Duration,
}

impl Default for Backoff {
    /// Three attempts; half a second, then a second, at most half a minute.
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            max: Duration::from_secs(30),
        }
    }
}

impl Backoff {
    /// Returns the pause after attempt number `attempt` (from 1). `chance` is 0 to 1 and scales the pause by a factor
    /// from 0.5 to 1.5, so that members that failed together do not retry together. The pause is at least what the
    /// service asked for.
    pub fn pause(&self, attempt: u32, chance: f64, asked: Option<Duration>) -> Duration {
        let doubled = self
            .base
            .saturating_mul(1_u32 << attempt.saturating_sub(1).min(20))
            .min(self.max);
        let ours = doubled.mul_f64(0.5 + chance.clamp(0.0, 1.0));
        match asked {
            // A little later than asked: clocks differ, and several members wait for the same time.
            Some(asked) => asked.max(Duration::ZERO) + ours.mul_f64(0.1),
            None => ours,
        }
    }
}

/// Retries failed calls. Before each new attempt a [`Delta::Retrying`] voids all earlier output.
pub struct Retry {
    inner: Arc<dyn Backend>,
    backoff: Backoff,
}

impl Retry {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>, backoff: Backoff) -> Self {
        Self { inner, backoff }
    }

    /// Returns whether an attempt failed that only a limit kept from being made again.
    pub(crate) fn gave_up_at_limit(failure: &Failure) -> bool {
        failure.message.contains(NOT_RETRIED)
    }
}

/// Between the failure of an attempt and the limit that allows no other.
const NOT_RETRIED: &str = "; not retried: ";

/// State of the stream.
struct Attempts {
    inner: Arc<dyn Backend>,
    request: Request,
    backoff: Backoff,
    attempt: u32,
    begun: Option<Instant>,
    /// The reason why the previous attempt failed.
    before: Option<Failure>,
    now: Now,
}

enum Now {
    Ask,
    Stream(BoxStream<'static, Result<Delta, Failure>>),
    Pause(Duration),
    Over,
}

impl Backend for Retry {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        if self.backoff.attempts <= 1 {
            return self.inner.ask(request);
        }
        let state = Attempts {
            inner: Arc::clone(&self.inner),
            request,
            backoff: self.backoff,
            attempt: 1,
            begun: None,
            before: None,
            now: Now::Ask,
        };
        stream::unfold(state, |mut state| async move {
            state.next().await.map(|item| (item, state))
        })
        .boxed()
    }
}

impl Attempts {
    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        loop {
            match &mut self.now {
                Now::Over => return None,
                Now::Ask => self.now = Now::Stream(self.inner.ask(self.request.clone())),
                Now::Pause(time) => {
                    tokio::time::sleep(*time).await;
                    self.attempt += 1;
                    self.now = Now::Ask;
                }
                Now::Stream(deltas) => match deltas.next().await {
                    Some(Err(limit)) if limit.kind == FailureKind::Limit => {
                        self.now = Now::Over;
                        return Some(Err(self.not_again(limit)));
                    }
                    Some(Err(failure)) => {
                        let after = self
                            .backoff
                            .pause(self.attempt, chance(), failure.retry_after);
                        let total = self.request.deadlines.total;
                        let in_time = total.is_zero() || begun.elapsed() + after < total;
                        if !failure.retryable() || self.attempt >= self.backoff.attempts || !in_time
                        {
                            self.now = Now::Over;
                            return Some(Err(self.tell(failure)));
                        }
                        self.now = Now::Pause(after);
                        self.before = Some(failure.clone());
                        return Some(Ok(Delta::Retrying {
                            attempt: self.attempt,
                            after,
                            failure,
                        }));
                    }
                    other => return other,
                },
            }
        }
    }

    /// Returns the failure for a retry that a limit does not allow: the failure of the earlier attempt, with the
    /// limit's advice.
    fn not_again(&mut self, limit: Failure) -> Failure {
        match self.before.take() {
            None => limit,
            Some(before) => Failure {
                message: format!("{}{NOT_RETRIED}{limit}", before.message),
                advice: Some(limit.hint().to_owned()),
                ..before
            },
        }
    }

    /// Adds the number of attempts to the last failure.
    fn tell(&self, mut failure: Failure) -> Failure {
        if self.attempt > 1 {
            failure.message = format!("{} ({} attempts)", failure.message, self.attempt);
        }
        failure
    }
}

/// Returns a random number from 0 to 1, from the standard library's hasher: good enough for jitter.
fn chance() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::scripted::{Act, Script, Scripted};
    use crate::testing::{request, run};

    fn retrying(runs: Vec<Vec<Act>>, attempts: u32) -> Retry {
        let backoff = Backoff {
            attempts,
            ..Backoff::default()
        };
        Retry::new(Arc::new(Scripted::new(Script { runs })), backoff)
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_stream_is_asked_again_and_its_text_is_void() {
        let cut = vec![Act::text("half"), Act::fail(FailureKind::Decode, "cut")];
        let good = vec![Act::text("whole"), Act::finish()];
        let deltas: Vec<_> = retrying(vec![cut, good], 3)
            .ask(request("q"))
            .collect()
            .await;
        let retrying = deltas
            .iter()
            .position(|d| matches!(d, Ok(Delta::Retrying { attempt: 1, .. })))
            .unwrap();
        assert!(deltas[..retrying].contains(&Ok(Delta::Text {
            text: "half".into()
        })));
        assert!(deltas[retrying..].contains(&Ok(Delta::Text {
            text: "whole".into()
        })));
        assert!(matches!(deltas.last(), Some(Ok(Delta::Finished { .. }))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waiting_cannot_mend_is_not_asked_again() {
        for kind in [
            FailureKind::Auth,
            FailureKind::Invalid,
            FailureKind::Refused,
            FailureKind::Missing,
            FailureKind::Timeout,
        ] {
            let runs = vec![
                vec![Act::fail(kind, "no")],
                vec![Act::text("never"), Act::finish()],
            ];
            let (text, end) = run(&retrying(runs, 3), request("q")).await;
            assert_eq!((text.as_str(), end.unwrap_err().kind), ("", kind));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_are_bounded_and_counted_in_the_failure() {
        let runs = vec![vec![Act::fail(FailureKind::Overloaded, "busy")]];
        let (_, end) = run(&retrying(runs, 3), request("q")).await;
        let failure = end.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Overloaded);
        assert_eq!(failure.message, "busy (3 attempts)");
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_the_least_and_too_long_a_wait_fails_at_once() {
        let asked = |secs| {
            let mut failure = Failure::new(FailureKind::RateLimit, "slow down");
            failure.retry_after = Some(Duration::from_secs(secs));
            vec![vec![Act::Fail(failure)], vec![Act::finish()]]
        };
        let begun = Instant::now();
        let (_, end) = run(&retrying(asked(7), 2), request("q")).await;
        end.unwrap();
        assert!(
            begun.elapsed() >= Duration::from_secs(7),
            "the paused clock has moved by what was asked"
        );
        let begun = Instant::now();
        let (_, end) = run(&retrying(asked(100_000), 2), request("q")).await;
        assert_eq!(end.unwrap_err().kind, FailureKind::RateLimit);
        assert!(
            begun.elapsed() < Duration::from_secs(1),
            "a wait beyond the total limit is not begun"
        );
    }

    #[test]
    fn pauses_double_up_to_their_limit_and_spread() {
        let backoff = Backoff {
            attempts: 9,
            base: Duration::from_secs(1),
            max: Duration::from_secs(8),
        };
        let middle: Vec<u64> = (1..=6)
            .map(|n| backoff.pause(n, 0.5, None).as_secs())
            .collect();
        assert_eq!(middle, [1, 2, 4, 8, 8, 8]);
        assert!(backoff.pause(1, 0.0, None) < backoff.pause(1, 1.0, None));
        assert_eq!(backoff.pause(u32::MAX, 0.5, None).as_secs(), 8);
        assert!((0..100).map(|_| chance()).all(|c| (0.0..1.0).contains(&c)));
    }
}
