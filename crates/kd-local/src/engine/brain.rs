//! The code that evaluates tokens for the worker: the built-in model, or llama.cpp with the feature `llama-cpp`.
//!
//! Takes rows of several sequences and returns logits. A sequence can start from the evaluated prefix of another.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::kv::Sequence;
use crate::model::{Model, Row, Scratch};
use crate::pool::Pool;

/// Evaluates tokens of several sequences at once.
pub(crate) trait Brain {
    /// The evaluated tokens of one job.
    type Sequence: Evaluated;

    /// Creates an empty sequence.
    fn empty(&mut self) -> Self::Sequence;

    /// Creates a sequence from the first `len` tokens of another, without evaluating them again.
    fn fork(&mut self, from: &mut Self::Sequence, len: usize) -> Self::Sequence;

    /// Evaluates `rows` and appends them to their sequences. Returns the logits of the rows that request them, in
    /// order.
    fn forward(
        &mut self,
        sequences: &mut [&mut Self::Sequence],
        rows: &[Row],
    ) -> Result<Vec<Vec<f32>>, Fault>;

    /// Returns the bytes that these sequences occupy, counting shared data once.
    fn bytes<'a>(&self, sequences: impl Iterator<Item = &'a Self::Sequence>) -> usize
    where
        Self::Sequence: 'a;

    /// Maximum tokens of all sequences together, counting shared tokens once.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Maximum number of sequences kept for later jobs.
    fn keeps(&self) -> usize {
        usize::MAX
    }

    /// Discards state that a panic may have left inconsistent. No sequence is alive.
    fn reset(&mut self);
}

/// The reason why nothing was evaluated.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "llama-cpp"),
    expect(dead_code, reason = "our own model always has room")
)]
pub(crate) enum Fault {
    /// There is no space for the rows; nothing has changed.
    Full,
    /// These sequences cannot be continued.
    Broken(Error),
}

/// The state of a sequence that the worker reads.
pub(crate) trait Evaluated {
    /// Returns the number of tokens evaluated so far.
    fn len(&self) -> usize;

    /// Announces that `more` tokens are about to be appended.
    fn expect(&mut self, _more: usize) {}
}

/// The built-in model.
pub(super) struct Own {
    model: Model,
    pool: Pool,
    scratch: Scratch,
}

impl Own {
    pub(super) fn new(model: Model, pool: Pool) -> Self {
        Self {
            model,
            pool,
            scratch: Scratch::default(),
        }
    }
}

impl Brain for Own {
    type Sequence = Sequence;

    fn empty(&mut self) -> Sequence {
        Sequence::new(self.model.config.shape, Vec::new())
    }

    fn fork(&mut self, from: &mut Sequence, len: usize) -> Sequence {
        Sequence::new(self.model.config.shape, from.share(len))
    }

    fn forward(
        &mut self,
        sequences: &mut [&mut Sequence],
        rows: &[Row],
    ) -> Result<Vec<Vec<f32>>, Fault> {
        self.pool.breathe();
        Ok(self
            .model
            .forward(&self.pool, sequences, rows, &mut self.scratch))
    }

    fn bytes<'a>(&self, sequences: impl Iterator<Item = &'a Sequence>) -> usize {
        let segments = sequences.flat_map(Sequence::segments);
        let unique: HashMap<_, _> = segments.map(|s| (Arc::as_ptr(s), s.bytes())).collect();
        unique.values().sum()
    }

    fn reset(&mut self) {
        self.scratch = Scratch::default();
    }
}

impl Evaluated for Sequence {
    fn len(&self) -> usize {
        Sequence::len(self)
    }

    fn expect(&mut self, more: usize) {
        self.reserve(more);
    }
}
