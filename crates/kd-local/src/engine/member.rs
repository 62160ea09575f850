//! One running job: its tokens, the evaluated part of them, and the pieces sent to its sink.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::brain::Evaluated;
use super::text::TextOut;
use super::{Piece, Sink, StopReason, Usage};
use crate::constrain::Constraint;
use crate::error::Error;
use crate::kernels::Simd;
use crate::sampler::{Sampler, Sampling};
use crate::tokenizer::Tokenizer;

/// One running job.
pub(super) struct Member<S> {
    /// Prompt and answer so far. Tokens that `sequence` does not hold yet are evaluated next.
    pub(super) tokens: Vec<u32>,
    pub(super) sequence: S,
    pub(super) prompt: usize,
    /// Leading tokens taken over from the cache or from another member.
    pub(super) shared: usize,
    limit: usize,
    forced: usize,
    sampler: Sampler,
    constraint: Option<Constraint>,
    text: TextOut,
    sink: Sink,
    cancelled: Arc<AtomicBool>,
    started: bool,
    over: bool,
}

/// The initial data of a job.
pub(super) struct Start<S> {
    pub(super) prompt: Vec<u32>,
    pub(super) sequence: S,
    /// Maximum tokens of the answer.
    pub(super) limit: usize,
    pub(super) sampling: Sampling,
    pub(super) stop: Vec<String>,
    pub(super) constraint: Option<Constraint>,
    pub(super) sink: Sink,
    pub(super) cancelled: Arc<AtomicBool>,
}

impl<S: Evaluated> Member<S> {
    pub(super) fn new(start: Start<S>, simd: Simd) -> Self {
        let mut member = Self {
            prompt: start.prompt.len(),
            tokens: start.prompt,
            shared: start.sequence.len(),
            sequence: start.sequence,
            limit: start.limit,
            forced: 0,
            sampler: Sampler::new(start.sampling, simd),
            constraint: start.constraint,
            text: TextOut::new(start.stop),
            sink: start.sink,
            cancelled: start.cancelled,
            started: false,
            over: false,
        };
        // Forced tokens are evaluated along with the prompt.
        if let Err(error) = member.force() {
            member.fail(error);
        }
        member
    }

    /// Returns whether `Done` or `Failed` has been sent.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Returns whether part of the prompt is still to be evaluated.
    pub(super) fn is_reading(&self) -> bool {
        self.sequence.len() < self.prompt
    }

    /// Returns whether the job has been cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the number of tokens that the answer may still have.
    pub(super) fn unsaid(&self) -> usize {
        self.limit.saturating_sub(self.answered())
    }

    /// Chooses the next token and sends the text it adds.
    pub(super) fn advance(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) {
        if !self.started {
            self.started = true;
            self.say(Piece::Started {
                prompt_tokens: self.prompt,
                shared_tokens: self.shared,
            });
            self.write(self.prompt, tokenizer);
        }
        if self.over {
            return;
        }
        let token = match self.choose(logits, tokenizer) {
            Ok(token) => token,
            Err(error) => return self.fail(error),
        };
        if tokenizer.eos_ids().contains(&token) {
            return self.done(StopReason::End);
        }
        let from = self.tokens.len();
        self.tokens.push(token);
        let accepted = self.constraint.as_mut().map_or(Ok(()), |c| c.accept(token));
        if let Err(error) = accepted.and_then(|()| self.force()) {
            return self.fail(error);
        }
        self.write(from, tokenizer);
    }

    /// Samples an allowed token; reports the probabilities of a watched choice.
    fn choose(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) -> Result<u32, Error> {
        if let Some(choice) = self
            .constraint
            .as_mut()
            .map_or(Ok(None), Constraint::choice)?
        {
            let probabilities = choice.probabilities(&logits[..tokenizer.vocab_len()]);
            let told = choice.labels().iter().cloned().zip(probabilities);
            self.say(Piece::Choice(told.collect()));
        }
        match &mut self.constraint {
            Some(constraint) => {
                let mask = constraint.mask()?;
                self.sampler.sample(logits, |token| mask.allows(token))
            }
            None => {
                let known = tokenizer.vocab_len() as u32;
                self.sampler.sample(logits, |token| token < known)
            }
        }
    }

    /// Appends the tokens that the schema forces, up to the limit.
    fn force(&mut self) -> Result<(), Error> {
        if let Some(constraint) = &mut self.constraint {
            let room = self.limit.saturating_sub(self.tokens.len() - self.prompt);
            let forced = constraint.forced()?;
            let forced = &forced[..forced.len().min(room)];
            self.forced += forced.len();
            self.tokens.extend_from_slice(forced);
        }
        Ok(())
    }

    /// Sends the text of the tokens from `from` on, and ends the answer if it is complete.
    fn write(&mut self, from: usize, tokenizer: &Tokenizer) {
        for i in from..self.tokens.len() {
            let (text, stopped) = self.text.push(tokenizer.decode_bytes(self.tokens[i]));
            if !text.is_empty() {
                self.say(Piece::Text(text));
            }
            if stopped {
                self.tokens.truncate(i + 1);
                return self.done(StopReason::Stop);
            }
        }
        if self.answered() >= self.limit {
            // The last token within the limit may also complete the answer.
            let complete = self.constraint.as_ref().is_some_and(Constraint::is_done);
            self.done(if complete {
                StopReason::End
            } else {
                StopReason::Length
            });
        } else if self.constraint.as_ref().is_some_and(Constraint::is_done) {
            self.done(StopReason::End);
        }
    }

    /// Ends the answer.
    fn done(&mut self, reason: StopReason) {
        let rest = if reason == StopReason::Stop {
            String::new()
        } else {
            self.text.finish()
        };
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

    /// Fails the job.
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
            // A sink that panics receives nothing more; the other members continue.
            self.over = true;
        }
    }
}

/// Calls a sink; returns false if it panicked.
pub(super) fn speak(sink: &mut Sink, piece: Piece) -> bool {
    catch_unwind(AssertUnwindSafe(|| sink(piece))).is_ok()
}
