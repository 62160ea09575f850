//! One running job: its tokens, what it has evaluated of them, and what it says to its sink.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::text::TextOut;
use super::{Piece, Sink, StopReason, Usage};
use crate::error::Error;
use crate::kernels::Simd;
use crate::kv::Sequence;
use crate::sampler::{Sampler, Sampling};
use crate::tokenizer::Tokenizer;

/// One running job.
pub(super) struct Member {
    /// Prompt and answer so far. What `sequence` does not hold yet is to be evaluated next.
    pub(super) tokens: Vec<u32>,
    pub(super) sequence: Sequence,
    pub(super) prompt: usize,
    /// Tokens at the beginning that came from the cache or from another member.
    pub(super) shared: usize,
    limit: usize,
    forced: usize,
    sampler: Sampler,
    text: TextOut,
    sink: Sink,
    cancelled: Arc<AtomicBool>,
    started: bool,
    over: bool,
}

/// What a job brings along.
pub(super) struct Start {
    pub(super) prompt: Vec<u32>,
    pub(super) sequence: Sequence,
    /// Tokens that the answer may have.
    pub(super) limit: usize,
    pub(super) sampling: Sampling,
    pub(super) stop: Vec<String>,
    pub(super) sink: Sink,
    pub(super) cancelled: Arc<AtomicBool>,
}

impl Member {
    pub(super) fn new(start: Start, simd: Simd) -> Self {
        Self {
            prompt: start.prompt.len(),
            tokens: start.prompt,
            shared: start.sequence.len(),
            sequence: start.sequence,
            limit: start.limit,
            forced: 0,
            sampler: Sampler::new(start.sampling, simd),
            text: TextOut::new(start.stop),
            sink: start.sink,
            cancelled: start.cancelled,
            started: false,
            over: false,
        }
    }

    /// Whether `Done` or `Failed` has been said.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether part of the prompt is still to be evaluated.
    pub(super) fn is_reading(&self) -> bool {
        self.sequence.len() < self.prompt
    }

    /// Whether the holder of the ticket has lost interest.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Chooses the token after the last one, and says what it adds to the answer.
    pub(super) fn advance(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) {
        if !self.started {
            self.started = true;
            self.say(Piece::Started { prompt_tokens: self.prompt, shared_tokens: self.shared });
        }
        if self.limit == 0 {
            return self.done(StopReason::Length);
        }
        let known = tokenizer.vocab_len() as u32;
        match self.sampler.sample(logits, |token| token < known) {
            Ok(token) => self.take(token, tokenizer),
            Err(error) => self.fail(error),
        }
    }

    /// Appends a token to the answer.
    fn take(&mut self, token: u32, tokenizer: &Tokenizer) {
        if tokenizer.eos_ids().contains(&token) {
            return self.done(StopReason::End);
        }
        self.tokens.push(token);
        let (text, stopped) = self.text.push(tokenizer.decode_bytes(token));
        if !text.is_empty() {
            self.say(Piece::Text(text));
        }
        if stopped {
            self.done(StopReason::Stop);
        } else if self.answered() >= self.limit {
            self.done(StopReason::Length);
        }
    }

    /// Ends the answer.
    fn done(&mut self, reason: StopReason) {
        let rest = if reason == StopReason::Stop { String::new() } else { self.text.finish() };
        if !rest.is_empty() {
            self.say(Piece::Text(rest));
        }
        let usage = Usage {
            prompt_tokens: self.prompt,
            shared_tokens: self.shared,
            answer_tokens: self.answered(),
            forced_tokens: self.forced,
        };
        self.say(Piece::Done { reason, usage });
        self.over = true;
    }

    /// Gives the job up.
    pub(super) fn fail(&mut self, error: Error) {
        if !self.over {
            self.say(Piece::Failed(error));
            self.over = true;
        }
    }

    fn answered(&self) -> usize {
        self.tokens.len() - self.prompt
    }

    fn say(&mut self, piece: Piece) {
        if !self.over && !speak(&mut self.sink, piece) {
            // A sink that panics hears no more; the other members go on.
            self.over = true;
        }
    }
}

/// Calls a sink; false if it panicked.
pub(super) fn speak(sink: &mut Sink, piece: Piece) -> bool {
    catch_unwind(AssertUnwindSafe(|| sink(piece))).is_ok()
}
