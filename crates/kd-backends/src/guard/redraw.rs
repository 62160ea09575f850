//! Repeats requests to small models whose answers repeat the prompt.
//!
//! Such an answer is stopped where the repetition begins, and asked for again with another seed, at most twice; each
//! attempt is a separate request, within the limits of the run. Repetitions are never shown: text is held back while
//! it may still become one. If every attempt repeats, the longest beginning without a repetition is the answer, with
//! a notice; without one, the turn fails and says so.

use crate::Backend;
use crate::delivery;
use crate::env::Env;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::config::LocalConfig;
use kd_core::echo::{Known, Listener};
use kd_core::usage::Certainty;
use kd_core::{Delta, Failure, FailureKind, Finish, Request, Usage, prompt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Attempts per answer.
const ATTEMPTS: u32 = 3;
/// Minimum words of a beginning that is worth keeping.
const KEPT_WORDS_LEAST: usize = 5;
/// Model files up to this size get prompts that a very small model can follow.
const SMALL_BYTES_MAX: u64 = 256 << 20;
/// The rise of the temperature with each attempt, and where it ends.
const WARMER: f32 = 0.25;
const WARMEST: f32 = 0.8;
/// The distance between the seeds of attempts.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The model behind the guard.
#[derive(Clone, Debug)]
pub enum Model {
    /// The built-in engine's, as configured.
    File(LocalConfig, Env),
    /// A small model of a service on this machine.
    Service,
}

impl Model {
    /// Returns whether the model needs prompts for very small models.
    async fn is_tiny(&self) -> bool {
        let Self::File(config, env) = self.clone() else {
            return false;
        };
        // Finding a file may verify its checksum, which takes a moment.
        let size = tokio::task::spawn_blocking(move || {
            let found = delivery::locate(&config, &env).ok()?;
            Some(std::fs::metadata(found.path).ok()?.len())
        });
        matches!(size.await, Ok(Some(bytes)) if bytes <= SMALL_BYTES_MAX)
    }
}

/// Asks again for answers that repeat the prompt.
pub struct Redraw {
    inner: Arc<dyn Backend>,
    model: Model,
}

impl Redraw {
    /// Wraps this backend.
    pub fn new(inner: Arc<dyn Backend>, model: Model) -> Self {
        Self { inner, model }
    }
}

impl Backend for Redraw {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        if request.tools.is_some() {
            return self.inner.ask(request);
        }
        let (inner, model) = (Arc::clone(&self.inner), self.model.clone());
        // Answers in a schema are parsed, and judged by those who parse them.
        if request.schema.is_some() {
            let begin = async move {
                let mut request = request;
                if model.is_tiny().await {
                    request.prompt = prompt::small(&request.prompt).unwrap_or(request.prompt);
                }
                inner.ask(request)
            };
            return stream::once(begin).flatten().boxed();
        }
        let begin = async move {
            let draws = Draws::new(inner, model, request).await;
            stream::unfold(draws, |mut draws| async move {
                draws.next().await.map(|item| (item, draws))
            })
        };
        stream::once(begin).flatten().boxed()
    }
}

/// State of the stream.
struct Draws {
    inner: Arc<dyn Backend>,
    request: Request,
    known: Arc<Known>,
    attempt: u32,
    answer: Option<Attempt>,
    /// The longest beginning without a repetition.
    best: String,
    /// The text that the previous attempt repeated.
    before: Option<&'static str>,
    /// Usage of the attempts before.
    spent: Option<Usage>,
    /// Items to send next.
    ready: VecDeque<Result<Delta, Failure>>,
}

/// One attempt.
struct Attempt {
    deltas: BoxStream<'static, Result<Delta, Failure>>,
    listener: Listener<Arc<Known>>,
    /// Bytes of the text sent.
    sent: usize,
}

impl Draws {
    async fn new(inner: Arc<dyn Backend>, model: Model, mut request: Request) -> Self {
        let mut known = Known::of_prompt(&request.prompt, &request.seat);
        if model.is_tiny().await {
            if let Some(small) = prompt::small(&request.prompt) {
                known = known.instructions(&small.rules);
                request.prompt = small;
            }
        } else {
            // A larger model quotes others on purpose.
            known = known.without_answers();
        }
        let mut draws = Self {
            inner,
            request,
            known: Arc::new(known),
            attempt: 0,
            answer: None,
            best: String::new(),
            before: None,
            spent: None,
            ready: VecDeque::new(),
        };
        draws.ask();
        draws
    }

    fn ask(&mut self) {
        let mut request = self.request.clone();
        let step = SEED_STEP.wrapping_mul(u64::from(self.attempt));
        request.sampling.seed = request.sampling.seed.map(|seed| seed.wrapping_add(step));
        // Near the most likely tokens, another seed often gives the same text.
        let warmer = |t: f32| t.max((t + WARMER * self.attempt as f32).min(WARMEST));
        if self.attempt > 0 {
            request.sampling.temperature = request.sampling.temperature.map(warmer);
        }
        self.attempt += 1;
        self.answer = Some(Attempt {
            deltas: self.inner.ask(request),
            listener: Listener::new(Arc::clone(&self.known)),
            sent: 0,
        });
    }

    async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let item = self.answer.as_mut()?.deltas.next().await;
            self.hear(item);
        }
    }

    fn hear(&mut self, item: Option<Result<Delta, Failure>>) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        match item {
            Some(Ok(Delta::Text { text })) => self.heard(&text),
            Some(Ok(Delta::Finished {
                finish,
                text,
                mut usage,
                choices,
            })) => {
                let mut listener = match &text {
                    // The whole text replaces the pieces.
                    Some(text) => {
                        let mut listener = Listener::new(Arc::clone(&self.known));
                        if let Some(found) = listener.push(text) {
                            return self.repeated(found.what.words(), found.at, usage);
                        }
                        listener
                    }
                    None => answer.listener.clone(),
                };
                if let Some(found) = listener.finish() {
                    return self.repeated(found.what.words(), found.at, usage);
                }
                if listener.text().trim().is_empty() && self.attempt < ATTEMPTS {
                    return self.repeated("gave no answer", 0, usage);
                }
                let rest = listener.text().get(answer.sent..).unwrap_or_default();
                if text.is_none() && !rest.is_empty() {
                    let text = rest.to_owned();
                    self.ready.push_back(Ok(Delta::Text { text }));
                }
                if let Some(spent) = self.spent.take() {
                    let mut sum = usage.unwrap_or_default();
                    sum.add(&spent);
                    usage = Some(sum);
                }
                self.answer = None;
                self.ready.push_back(Ok(Delta::Finished {
                    finish,
                    text,
                    usage,
                    choices,
                }));
            }
            Some(Ok(delta)) => {
                if let Delta::Retrying { .. } = &delta {
                    answer.listener = Listener::new(Arc::clone(&self.known));
                    answer.sent = 0;
                }
                self.ready.push_back(Ok(delta));
            }
            Some(Err(failure)) => {
                self.answer = None;
                match self.before.take() {
                    Some(what) if failure.kind == FailureKind::Limit => {
                        self.stop(what, Some(failure));
                    }
                    _ => self.ready.push_back(Err(failure)),
                }
            }
            None => self.answer = None,
        }
    }

    /// Adds a piece of the answer, and passes on what can no longer become a repetition.
    fn heard(&mut self, piece: &str) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        if let Some(found) = answer.listener.push(piece) {
            return self.repeated(found.what.words(), found.at, None);
        }
        let safe = answer.listener.safe();
        if let Some(piece) = answer.listener.text().get(answer.sent..safe)
            && !piece.is_empty()
        {
            let text = piece.to_owned();
            answer.sent = safe;
            self.ready.push_back(Ok(Delta::Text { text }));
        }
    }

    /// Ends an attempt whose text repeats something from byte `at` on.
    fn repeated(&mut self, what: &'static str, at: usize, usage: Option<Usage>) {
        let Some(answer) = self.answer.take() else {
            return;
        };
        let begin = sentences(answer.listener.text().get(..at).unwrap_or_default());
        if begin.len() > self.best.len() && begin.split_whitespace().count() >= KEPT_WORDS_LEAST {
            self.best = begin.to_owned();
        }
        // A stopped attempt reports no usage.
        let mut used = usage.unwrap_or(Usage {
            certainty: Certainty::AtLeast,
            ..Usage::default()
        });
        used.repeats += 1;
        self.spent.get_or_insert_default().add(&used);
        // The most likely tokens are the same with every seed.
        let is_greedy = self.request.sampling.temperature.is_some_and(|t| t <= 0.0);
        if self.attempt < ATTEMPTS && !is_greedy {
            self.before = Some(what);
            self.ready.push_back(Ok(Delta::Retrying {
                attempt: self.attempt,
                after: Duration::ZERO,
                failure: Failure::new(FailureKind::Decode, format!("the model {what}")),
            }));
            return self.ask();
        }
        self.stop(what, None);
    }

    /// Ends the turn: with the longest beginning without a repetition, or as a failure. `limit` prevented the next
    /// attempt.
    fn stop(&mut self, what: &str, limit: Option<Failure>) {
        if !self.best.is_empty() {
            let text = format!("the answer ends where the model {what}");
            self.ready.push_back(Ok(Delta::Notice { text }));
            self.ready.push_back(Ok(Delta::Finished {
                finish: Finish::Repetition,
                text: Some(std::mem::take(&mut self.best)),
                usage: self.spent.take(),
                choices: Vec::new(),
            }));
            return;
        }
        let failure = match limit {
            Some(limit) => Failure {
                message: format!("the model {what}; not asked again: {limit}"),
                ..limit
            },
            None => {
                let times = match self.attempt {
                    1 => String::new(),
                    times => format!(" ({times} attempts)"),
                };
                Failure::new(FailureKind::Decode, format!("the model {what}{times}"))
                    .advise("ask again, or take a larger model: `kd model list`")
            }
        };
        let failure = failure.after(self.spent.as_ref());
        self.ready.push_back(Err(failure));
    }
}

/// Returns the complete sentences at the beginning of a text.
fn sentences(text: &str) -> &str {
    let mut ends = text.char_indices().filter(|(at, c)| {
        let after = text[at + c.len_utf8()..].chars().next();
        matches!(c, '.' | '!' | '?' | '…') && after.is_none_or(char::is_whitespace)
    });
    let end = ends.next_back().map_or(0, |(at, c)| at + c.len_utf8());
    text[..end].trim()
}

#[cfg(test)]
mod tests;
