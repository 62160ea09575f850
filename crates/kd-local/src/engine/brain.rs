//! What evaluates tokens for the worker: our own model, or llama.cpp where the feature `llama-cpp` is built in.
//!
//! Rows of several sequences go in, logits come out. A sequence can begin with what another has evaluated already.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::kv::Sequence;
use crate::model::{Model, Row, Scratch};
use crate::pool::Pool;

/// Evaluates tokens of several sequences at once.
pub(crate) trait Brain {
    /// What has been evaluated of one job.
    type Sequence: Evaluated;

    /// A sequence of which nothing has been evaluated.
    fn empty(&mut self) -> Self::Sequence;

    /// A sequence that begins with the first `len` tokens of another, which are not evaluated again.
    fn fork(&mut self, from: &mut Self::Sequence, len: usize) -> Self::Sequence;

    /// Evaluates `rows` and appends them to their sequences. Gives the logits of the rows that want them, in order.
    fn forward(
        &mut self,
        sequences: &mut [&mut Self::Sequence],
        rows: &[Row],
    ) -> Result<Vec<Vec<f32>>, Fault>;

    /// Bytes that these sequences take, what they share counted once.
    fn bytes<'a>(&self, sequences: impl Iterator<Item = &'a Self::Sequence>) -> usize
    where
        Self::Sequence: 'a;

    /// Tokens that all sequences may hold together, what they share counted once.
    fn room(&self) -> usize {
        usize::MAX
    }

    /// Sequences that may be kept for later jobs.
    fn keeps(&self) -> usize {
        usize::MAX
    }

    /// Forgets what a panic may have left half written. No sequence is alive.
    fn reset(&mut self);
}

/// Why nothing was evaluated.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "llama-cpp"),
    expect(dead_code, reason = "our own model always finds room")
)]
pub(crate) enum Fault {
    /// There is no room for the rows; nothing has changed.
    Full,
    /// It cannot go on with these sequences.
    Broken(Error),
}

/// What a worker must know about a sequence.
pub(crate) trait Evaluated {
    /// Tokens evaluated so far.
    fn len(&self) -> usize;

    /// `more` tokens will be appended soon.
    fn expect(&mut self, _more: usize) {}
}

/// Our own model.
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
