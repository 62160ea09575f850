//! Deadlines: ends a stream with a `Timeout` when it is silent or runs for too long.

use crate::Backend;
use futures::stream::{BoxStream, Stream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

type Deltas = BoxStream<'static, Result<Delta, Failure>>;

/// Limits the wait for the first sign of life and between two signs (`deadlines.first`, `deadlines.idle`).
///
/// An empty piece of text is a sign of life without text (a keep-alive of the provider); it is not passed on.
pub struct Silence {
    inner: Arc<dyn Backend>,
}

/// Limits a whole turn, retries included (`deadlines.total`).
pub struct Total {
    inner: Arc<dyn Backend>,
    /// Advice for a turn without any output.
    unheard: Option<String>,
}

impl Silence {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner }
    }
}

impl Total {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>) -> Self {
        Self {
            inner,
            unheard: None,
        }
    }

    /// Sets the advice for a turn that times out before its first output.
    #[must_use]
    pub fn advise_unheard(mut self, advice: String) -> Self {
        self.unheard = Some(advice);
        self
    }
}

impl Backend for Silence {
    fn ask(&self, request: Request) -> Deltas {
        let deadlines = request.deadlines;
        Watched {
            inner: Some(self.inner.ask(request)),
            clock: None,
            heard: false,
            first: deadlines.first,
            idle: deadlines.idle,
            trouble: None,
        }
        .boxed()
    }
}

impl Backend for Total {
    fn ask(&self, request: Request) -> Deltas {
        let total = request.deadlines.total;
        let inner = self.inner.ask(request);
        if total.is_zero() {
            return inner;
        }
        Bounded {
            inner: Some(inner),
            timer: None,
            total,
            trouble: None,
            unheard: self.unheard.clone(),
        }
        .boxed()
    }
}

/// The stream of [`Silence`].
struct Watched {
    /// Dropped once the stream has ended, so that the connection closes at once.
    inner: Option<Deltas>,
    clock: Option<Clock>,
    heard: bool,
    first: Duration,
    idle: Duration,
    /// The reason why the last attempt failed; unset when text arrives.
    trouble: Option<Failure>,
}

/// The timer is moved only when it fires: a token costs reading the clock, not resetting a timer.
struct Clock {
    last: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Watched {
    fn limit(&self) -> Duration {
        if self.heard { self.idle } else { self.first }
    }

    fn end(
        &mut self,
        item: Option<Result<Delta, Failure>>,
    ) -> Poll<Option<Result<Delta, Failure>>> {
        self.inner = None;
        Poll::Ready(item)
    }
}

impl Stream for Watched {
    type Item = Result<Delta, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let Some(inner) = this.inner.as_mut() else {
                return Poll::Ready(None);
            };
            if this.clock.is_none() {
                let now = Instant::now();
                this.clock = Some(Clock {
                    last: now,
                    timer: Box::pin(sleep_until(now)),
                });
            }
            match inner.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(delta))) => {
                    note(&mut this.trouble, &delta);
                    let first = !std::mem::replace(&mut this.heard, true);
                    if let Some(clock) = this.clock.as_mut() {
                        clock.last = Instant::now();
                        if first {
                            // It was set for the first sign, which may be later than the next one is due.
                            clock.timer.as_mut().reset(clock.last);
                        }
                    }
                    match delta {
                        Delta::Text { text } if text.is_empty() => continue,
                        delta => return Poll::Ready(Some(Ok(delta))),
                    }
                }
                Poll::Ready(end) => return this.end(end),
                Poll::Pending => {}
            }
            let limit = this.limit();
            if limit.is_zero() {
                return Poll::Pending;
            }
            let Some(clock) = this.clock.as_mut() else {
                return Poll::Pending;
            };
            loop {
                if clock.timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                // A limit beyond the clock's range is no limit.
                let Some(due) = clock.last.checked_add(limit) else {
                    return Poll::Pending;
                };
                if Instant::now() >= due {
                    break;
                }
                clock.timer.as_mut().reset(due);
            }
            let what = if this.heard {
                "no further output"
            } else {
                "no output"
            };
            let failure = Failure::new(
                FailureKind::Timeout,
                format!("{what} for {}", seconds(limit)),
            )
            .advise(if this.heard {
                "raise `council.idle_secs`, or try again"
            } else {
                "raise `council.first_secs`, or check whether the service is up"
            });
            let failure = explained(failure, this.trouble.take());
            return this.end(Some(Err(failure)));
        }
    }
}

/// Remembers why an attempt failed, and forgets it when text arrives.
fn note(trouble: &mut Option<Failure>, delta: &Delta) {
    match delta {
        Delta::Retrying { failure, .. } => *trouble = Some(failure.clone()),
        Delta::Text { text } | Delta::Thinking { text } if !text.is_empty() => *trouble = None,
        _ => {}
    }
}

/// Returns whether a delta shows that the model works on its answer.
fn is_output(delta: &Delta) -> bool {
    match delta {
        Delta::Text { text } | Delta::Thinking { text } => !text.is_empty(),
        Delta::Tool { .. } => true,
        _ => false,
    }
}

/// Builds the timeout failure; if an attempt failed before, that failure is its cause.
fn explained(timeout: Failure, trouble: Option<Failure>) -> Failure {
    match trouble {
        Some(why) => Failure {
            message: format!("{}; the last attempt failed: {why}", timeout.message),
            ..timeout
        }
        .advise(why.hint()),
        None => timeout,
    }
}

/// The stream of [`Total`].
struct Bounded {
    inner: Option<Deltas>,
    timer: Option<Pin<Box<Sleep>>>,
    total: Duration,
    /// As in [`Watched`].
    trouble: Option<Failure>,
    /// The same deadline as in [`Total`], but only until the first output.
    unheard: Option<String>,
}

impl Bounded {
    /// Builds the timeout failure.
    fn timeout(&mut self) -> Failure {
        let message = format!("timed out after {}", seconds(self.total));
        let failure = Failure::new(FailureKind::Timeout, message);
        match self.trouble.take() {
            None => self.ended_by(failure),
            trouble => explained(failure, trouble),
        }
    }

    /// Adds the advice to a timeout before the first output, unless a failed attempt explains it.
    fn ended_by(&mut self, failure: Failure) -> Failure {
        match self.unheard.take() {
            Some(advice) if failure.kind == FailureKind::Timeout && self.trouble.is_none() => {
                failure.advise(advice)
            }
            _ => failure,
        }
    }
}

impl Stream for Bounded {
    type Item = Result<Delta, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(inner) = this.inner.as_mut() else {
            return Poll::Ready(None);
        };
        let total = this.total;
        // Unlike an addition, `sleep` accepts a time beyond the clock's range and then never fires.
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(total)));
        match inner.poll_next_unpin(cx) {
            // Checked for every item: a backend that always has one ready must not outrun the limit.
            Poll::Ready(Some(Ok(delta)))
                if matches!(delta, Delta::Finished { .. }) || Instant::now() < timer.deadline() =>
            {
                note(&mut this.trouble, &delta);
                if is_output(&delta) {
                    this.unheard = None;
                }
                return Poll::Ready(Some(Ok(delta)));
            }
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(end) => {
                this.inner = None;
                return Poll::Ready(end.map(|end| end.map_err(|failure| this.ended_by(failure))));
            }
            Poll::Pending => {
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        }
        this.inner = None;
        Poll::Ready(Some(Err(this.timeout())))
    }
}

fn seconds(time: Duration) -> String {
    if time.as_millis().is_multiple_of(1000) {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::scripted::{Act, Script, Scripted};
    use crate::testing::{request, run};
    use kd_core::request::Deadlines;

    fn asked(acts: Vec<Act>, deadlines: Deadlines) -> (Arc<dyn Backend>, Request) {
        let backend = Arc::new(Scripted::new(Script { runs: vec![acts] }));
        (
            backend,
            Request {
                deadlines,
                ..request("q")
            },
        )
    }

    fn deadlines(first: u64, idle: u64, total: u64) -> Deadlines {
        let s = Duration::from_secs;
        Deadlines {
            first: s(first),
            idle: s(idle),
            total: s(total),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_before_the_first_sign_is_a_timeout() {
        let (backend, request) = asked(vec![Act::Hang], deadlines(5, 2, 0));
        let (text, end) = run(&Silence::new(backend), request).await;
        let failure = end.unwrap_err();
        assert_eq!((text.as_str(), failure.kind), ("", FailureKind::Timeout));
        assert!(failure.message.contains("5 s"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_two_signs_is_a_timeout_that_keeps_the_text() {
        let acts = vec![
            Act::text("a"),
            Act::SleepMs(1_900),
            Act::text("b"),
            Act::Hang,
        ];
        let begun = Instant::now();
        let (backend, request) = asked(acts, deadlines(60, 2, 0));
        let (text, end) = run(&Silence::new(backend), request).await;
        assert_eq!(
            (text.as_str(), end.unwrap_err().kind),
            ("ab", FailureKind::Timeout)
        );
        let (least, most) = (Duration::from_millis(3_900), Duration::from_secs(5));
        assert!(
            (least..most).contains(&begun.elapsed()),
            "of the paused clock"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_piece_is_a_sign_of_life_and_goes_no_further() {
        let mut acts = Vec::new();
        for _ in 0..10 {
            acts.extend([Act::SleepMs(1_500), Act::text("")]);
        }
        acts.extend([Act::text("late"), Act::finish()]);
        let (backend, request) = asked(acts, deadlines(2, 2, 0));
        let deltas: Vec<_> = Silence::new(backend).ask(request).collect().await;
        assert_eq!(deltas.len(), 3, "started, one text, finished: {deltas:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_ends_even_a_backend_that_never_pauses_for_long() {
        let mut acts = Vec::new();
        for _ in 0..100 {
            acts.extend([Act::SleepMs(1_000), Act::text("x")]);
        }
        let (backend, request) = asked(acts, deadlines(0, 0, 10));
        let (text, end) = run(&Total::new(backend), request).await;
        assert_eq!(end.unwrap_err().kind, FailureKind::Timeout);
        assert!((9..=10).contains(&text.len()), "{text}");
    }

    #[test]
    fn a_timeout_names_the_failure_of_the_last_attempt() {
        let unreachable = Failure::new(FailureKind::Crashed, "failed to lookup address")
            .advise("check the network");
        let again = Delta::Retrying {
            attempt: 1,
            after: Duration::ZERO,
            failure: unreachable,
        };
        let text = Delta::Text { text: "a".into() };
        for (deltas, named) in [
            (vec![&again], true),
            (vec![&text, &again], true),
            (vec![&again, &text], false),
            (vec![], false),
        ] {
            let mut trouble = None;
            deltas
                .into_iter()
                .for_each(|delta| note(&mut trouble, delta));
            let failure = explained(Failure::new(FailureKind::Timeout, "late"), trouble);
            assert_eq!(
                failure.message.contains("lookup address"),
                named,
                "{failure}"
            );
            assert_eq!(failure.hint() == "check the network", named, "{failure:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_says_nothing_has_advice_of_its_own() {
        let notice = || Act::Notice("an update is there".into());
        let tool = || Act::Tool {
            name: "read".into(),
            detail: "a".into(),
        };
        for (acts, first, advised) in [
            (vec![Act::Hang], 0, true),
            (vec![Act::Hang], 5, true),
            (vec![notice(), Act::Hang], 0, true),
            (vec![Act::text("a"), Act::Hang], 0, false),
            (vec![Act::Thinking("hm".into()), Act::Hang], 0, false),
            (vec![tool(), Act::Hang], 0, false),
        ] {
            let (backend, request) = asked(acts.clone(), deadlines(first, 0, 10));
            let silence = Arc::new(Silence::new(backend));
            let guarded = Total::new(silence).advise_unheard("start it once".into());
            let (_, end) = run(&guarded, request).await;
            let failure = end.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Timeout, "{acts:?}");
            assert_eq!(
                failure.hint() == "start it once",
                advised,
                "{acts:?}: {failure:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_no_clock_can_tell_is_none() {
        let mut acts = vec![Act::text("a"), Act::SleepMs(86_400_000), Act::text("b")];
        acts.push(Act::finish());
        let (backend, request) = asked(acts, deadlines(5, u64::MAX, u64::MAX));
        let guarded = Total::new(Arc::new(Silence::new(backend)));
        let (text, end) = run(&guarded, request).await;
        assert!(end.is_ok(), "{end:?}");
        assert_eq!(text, "ab");
    }

    #[tokio::test(start_paused = true)]
    async fn zero_means_without_limit() {
        let (backend, request) = asked(
            vec![Act::SleepMs(86_400_000), Act::text("a"), Act::finish()],
            deadlines(0, 0, 0),
        );
        let guarded = Total::new(Arc::new(Silence::new(backend)));
        let (text, end) = run(&guarded, request).await;
        assert_eq!(text, "a");
        end.unwrap();
    }
}
