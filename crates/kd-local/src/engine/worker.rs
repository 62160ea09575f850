//! The thread that runs the model: takes jobs, evaluates their tokens in common batches, returns the logits.
//!
//! Jobs join and leave between two steps. A job whose prompt starts like another's waits for the common prefix instead
//! of evaluating it again. A panic inside a step fails the running jobs, and the thread continues.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use super::brain::{Brain, Evaluated, Fault};
use super::cache::{Cache, common};
use super::member::{Member, Start, speak};
use super::{Layout, Piece, Request};
use crate::error::Error;
use crate::kernels::Simd;
use crate::model::Row;
use crate::tokenizer::Tokenizer;

/// Time for which an idle engine waits for a second job, so that the members of a council start together.
const QUIET: Duration = Duration::from_millis(2);
/// Maximum of that wait in total.
const GATHER: Duration = Duration::from_millis(12);
/// Target duration of a step: the longest that running answers stall and that cancelling takes, roughly.
const STEP: Duration = Duration::from_millis(120);
/// Minimum and maximum prompt rows per step.
const ROWS: (usize, usize) = (16, 256);

/// The parts of a worker.
pub(crate) struct Parts<B> {
    pub(crate) brain: B,
    pub(crate) simd: Simd,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) context: usize,
    pub(crate) together: usize,
    pub(crate) cache_bytes: usize,
}

struct Worker<B: Brain> {
    parts: Parts<B>,
    waiting: VecDeque<Request>,
    members: Vec<Member<B::Sequence>>,
    cache: Cache<B::Sequence>,
    /// Rows per step, derived from the speed of earlier steps.
    rows: usize,
}

/// Runs until the last handle of the engine is dropped. Unfinished jobs then fail with `Cancelled`.
pub(crate) fn run<B: Brain>(parts: Parts<B>, requests: &Receiver<Request>) {
    let cache = Cache::new(parts.cache_bytes);
    let mut worker = Worker {
        parts,
        waiting: VecDeque::new(),
        members: Vec::new(),
        cache,
        rows: 64,
    };
    while worker.take_in(requests) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            worker.admit();
            worker.step();
        }));
        if let Err(panic) = outcome {
            worker.recover(&panic);
        }
    }
    for mut member in worker.members {
        member.fail(Error::Cancelled);
    }
    for mut request in worker.waiting {
        speak(&mut request.sink, Piece::Failed(Error::Cancelled));
    }
}

impl<B: Brain> Worker<B> {
    /// Waits for work if there is none, and takes in all queued requests. Returns false when no more can come.
    fn take_in(&mut self, requests: &Receiver<Request>) -> bool {
        if self.members.is_empty() && self.waiting.is_empty() {
            let Ok(first) = requests.recv() else {
                return false;
            };
            self.waiting.push_back(first);
            let until = Instant::now() + GATHER;
            while Instant::now() < until {
                match requests.recv_timeout(QUIET) {
                    Ok(next) => self.waiting.push_back(next),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return false,
                }
            }
        }
        loop {
            match requests.try_recv() {
                Ok(next) => self.waiting.push_back(next),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Turns waiting jobs into members while there is capacity.
    fn admit(&mut self) {
        // Cancelled jobs are notified without waiting for a free place.
        for _ in 0..self.waiting.len() {
            let Some(mut request) = self.waiting.pop_front() else {
                return;
            };
            if request.cancelled.load(Ordering::Relaxed) {
                speak(&mut request.sink, Piece::Failed(Error::Cancelled));
            } else {
                self.waiting.push_back(request);
            }
        }
        while self.members.len() < self.parts.together {
            let Some(mut request) = self.waiting.pop_front() else {
                return;
            };
            let context = self.parts.context;
            let prompt = match (self.parts.layout)(&request.job.messages) {
                Ok(prompt) if (1..context).contains(&prompt.len()) => prompt,
                Ok(prompt) => {
                    let error = Error::TooLong {
                        prompt: prompt.len(),
                        limit: context,
                    };
                    speak(&mut request.sink, Piece::Failed(error));
                    continue;
                }
                Err(error) => {
                    speak(&mut request.sink, Piece::Failed(error));
                    continue;
                }
            };
            let limit = request.job.max_tokens.min(context - prompt.len());
            if !self.fits(&prompt, limit) {
                self.waiting.push_front(request);
                return;
            }
            // The last token is always evaluated, to get its logits.
            let sequence = self
                .cache
                .find(&prompt[..prompt.len() - 1], &mut self.parts.brain);
            let start = Start {
                sequence,
                limit,
                prompt,
                sampling: request.job.sampling,
                stop: request.job.stop,
                constraint: request.constraint,
                sink: request.sink,
                cancelled: request.cancelled,
            };
            self.members.push(Member::new(start, self.parts.simd));
        }
    }

    /// Returns whether the tokens of a new member and everything the running ones may still generate fit together.
    fn fits(&self, prompt: &[u32], limit: usize) -> bool {
        let room = self.parts.brain.room();
        if room == usize::MAX || self.members.is_empty() {
            return true;
        }
        let own = |i: usize, tokens: &[u32]| {
            let before = self.members[..i].iter();
            let shared = before.map(|other| common(tokens, &other.tokens)).max();
            tokens.len() - shared.unwrap_or(0)
        };
        let running = self.members.iter().enumerate();
        let taken: usize = running.map(|(i, m)| own(i, &m.tokens) + m.unsaid()).sum();
        taken + own(self.members.len(), prompt) + limit <= room
    }

    /// Evaluates one batch; each member whose tokens are all evaluated then chooses its next token.
    fn step(&mut self) {
        for member in self.members.iter_mut().filter(|m| m.is_cancelled()) {
            member.fail(Error::Cancelled);
        }
        self.part();
        let reading = self.share();
        let (rows, asked) = self.batch(&reading);
        if rows.is_empty() {
            return;
        }
        let begun = Instant::now();
        let mut outcome = self.forward(&rows);
        if matches!(outcome, Err(Fault::Full)) && !self.cache.is_empty() {
            self.cache.clear();
            outcome = self.forward(&rows);
        }
        let mut logits = match outcome {
            Ok(logits) => logits,
            Err(fault) => {
                let error = match fault {
                    Fault::Full => Error::Worker {
                        what: "the running answers do not fit into its memory together".into(),
                    },
                    Fault::Broken(error) => error,
                };
                self.fail_all(&error);
                return;
            }
        };
        for (member, logits) in asked.iter().zip(&mut logits) {
            self.members[*member].advance(logits, &self.parts.tokenizer);
        }
        self.pace(rows.len(), begun.elapsed());
        self.part();
    }

    /// Removes finished members and caches their evaluated tokens.
    fn part(&mut self) {
        let mut i = 0;
        while i < self.members.len() {
            if self.members[i].is_over() {
                let mut member = self.members.remove(i);
                member.tokens.truncate(member.sequence.len());
                self.cache
                    .keep(member.tokens, member.sequence, &mut self.parts.brain);
            } else {
                i += 1;
            }
        }
    }

    /// Lets members reuse the evaluated tokens of a prefix that they share with others.
    ///
    /// Returns which members read in this step: all except those for which an earlier member is about to evaluate more
    /// of the common prefix.
    fn share(&mut self) -> Vec<bool> {
        (0..self.members.len())
            .map(|i| {
                let member = &self.members[i];
                if !member.is_reading() {
                    return true;
                }
                let own = member.sequence.len();
                let usable = &member.tokens[..member.prompt - 1];
                let (mut most, mut from, mut wait) = (own, None, false);
                for (j, other) in self.members.iter().enumerate().filter(|(j, _)| *j != i) {
                    let same = common(usable, &other.tokens);
                    let done = same.min(other.sequence.len());
                    if done > most {
                        (most, from) = (done, Some(j));
                    }
                    // An earlier member never waits for a later one, so at least one always reads.
                    wait |= j < i && other.is_reading() && same > done && same > own;
                }
                if let (Some(j), false) = (from, wait) {
                    let begun = &mut self.members[j].sequence;
                    self.members[i].sequence = self.parts.brain.fork(begun, most);
                    self.members[i].shared = most;
                }
                !wait
            })
            .collect()
    }

    /// Builds the rows of the next step and lists the members that need logits, in the same order.
    fn batch(&mut self, reading: &[bool]) -> (Vec<Row>, Vec<usize>) {
        let (mut rows, mut asked) = (Vec::new(), Vec::new());
        let mut left = self.rows;
        for (i, member) in self.members.iter_mut().enumerate() {
            let from = member.sequence.len();
            let pending = member.tokens.len() - from;
            let n = if !member.is_reading() {
                pending
            } else if reading[i] {
                // Reserving the whole prompt and part of the answer at once saves copies.
                member.sequence.expect(pending + 32);
                pending.min(left)
            } else {
                0
            };
            if member.is_reading() {
                left -= n;
            }
            for (k, token) in member.tokens[from..from + n].iter().enumerate() {
                rows.push(Row {
                    token: *token,
                    sequence: i,
                    logits: k + 1 == pending,
                });
            }
            if n == pending {
                asked.push(i);
            }
        }
        (rows, asked)
    }

    /// Adjusts the number of rows per step to the time that the last step took.
    fn pace(&mut self, rows: usize, took: Duration) {
        if rows >= ROWS.0 {
            let fits = rows as f64 * STEP.as_secs_f64() / took.as_secs_f64().max(1e-6);
            let fits = (self.rows as f64 + fits.clamp(ROWS.0 as f64, ROWS.1 as f64)) / 2.0;
            self.rows = fits as usize;
        }
    }

    /// Recovers from a panic: fails every running job and discards state that may be inconsistent.
    fn recover(&mut self, panic: &Box<dyn std::any::Any + Send>) {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let what = text
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic".into());
        self.fail_all(&Error::Worker { what });
        self.parts.brain.reset();
    }

    fn fail_all(&mut self, error: &Error) {
        for mut member in self.members.drain(..) {
            member.fail(error.clone());
        }
        self.cache.clear();
    }

    fn forward(&mut self, rows: &[Row]) -> Result<Vec<Vec<f32>>, Fault> {
        let mut sequences: Vec<_> = self.members.iter_mut().map(|m| &mut m.sequence).collect();
        self.parts.brain.forward(&mut sequences, rows)
    }
}
