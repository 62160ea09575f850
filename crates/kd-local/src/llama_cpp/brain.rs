//! Evaluates tokens with llama.cpp: one context with many sequences, whose common prefixes are stored once.

use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use crate::engine::brain::{Brain, Evaluated, Fault};
use crate::error::Error;
use crate::model::Row;

/// Maximum number of prefixes kept for later jobs.
pub(super) const KEPT: usize = 8;

/// A llama.cpp model and its evaluated sequences.
pub(super) struct LlamaBrain<'a> {
    context: LlamaContext<'a>,
    batch: LlamaBatch<'a>,
    room: usize,
    /// Whether a sequence may start with part of another one.
    forks: bool,
    /// Approximate bytes of keys and values per token.
    token_bytes: usize,
    /// Unused sequence ids; until swept, their tokens are still stored (see `given_back`).
    free: Vec<i32>,
    given_back: GivenBack,
}

type GivenBack = Arc<Mutex<Vec<i32>>>;

/// One of llama.cpp's sequences. Dropping it returns its id.
pub(super) struct LlamaSequence {
    id: i32,
    len: usize,
    given_back: GivenBack,
}

impl<'a> LlamaBrain<'a> {
    /// Wraps a new context with space for `together` sequences, the kept ones, and two more.
    pub(super) fn new(context: LlamaContext<'a>, model: &LlamaModel, together: usize) -> Self {
        let room = context.n_ctx() as usize;
        let per_head = model.n_embd().max(0) as usize / (model.n_head() as usize).max(1);
        Self {
            batch: LlamaBatch::new(room, 1),
            room,
            forks: !model.is_recurrent() && !model.is_hybrid(),
            token_bytes: model.n_layer() as usize * model.n_head_kv() as usize * per_head * 4,
            free: (0..(together + KEPT + 2) as i32).rev().collect(),
            given_back: GivenBack::default(),
            context,
        }
    }

    /// Removes the tokens of dropped sequences.
    fn sweep(&mut self) {
        let ids = std::mem::take(
            &mut *self
                .given_back
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for id in ids {
            // Removing a whole sequence cannot fail; only partial removal from a recurrent one can.
            let _ = self.context.clear_kv_cache_seq(Some(id as u32), None, None);
            self.free.push(id);
        }
    }
}

impl Brain for LlamaBrain<'_> {
    type Sequence = LlamaSequence;

    fn empty(&mut self) -> LlamaSequence {
        self.sweep();
        let id = self.free.pop();
        assert!(id.is_some(), "more sequences than llama.cpp was made for");
        LlamaSequence {
            id: id.unwrap_or(0),
            len: 0,
            given_back: Arc::clone(&self.given_back),
        }
    }

    fn fork(&mut self, from: &mut LlamaSequence, len: usize) -> LlamaSequence {
        let mut sequence = self.empty();
        if (self.forks || len == from.len)
            && self
                .context
                .kv_cache_seq_cp(from.id, sequence.id, Some(0), Some(len as u32))
                .is_ok()
        {
            sequence.len = len;
        }
        sequence
    }

    fn forward(
        &mut self,
        sequences: &mut [&mut LlamaSequence],
        rows: &[Row],
    ) -> Result<Vec<Vec<f32>>, Fault> {
        self.sweep();
        if rows.len() > self.room {
            return Err(Fault::Full);
        }
        let broken = |what: String| Fault::Broken(Error::Worker { what });
        self.batch.clear();
        let mut ends: Vec<usize> = sequences.iter().map(|s| s.len).collect();
        for row in rows {
            let end = &mut ends[row.sequence];
            let token = LlamaToken(row.token as i32);
            let id = sequences[row.sequence].id;
            self.batch
                .add(token, *end as i32, &[id], row.logits)
                .map_err(|e| broken(e.to_string()))?;
            *end += 1;
        }
        match self.context.decode(&mut self.batch) {
            Ok(()) => {}
            Err(DecodeError::NoKvCacheSlot) => return Err(Fault::Full),
            Err(error) => return Err(broken(format!("llama.cpp: {error}"))),
        }
        for (sequence, end) in sequences.iter_mut().zip(ends) {
            sequence.len = end;
        }
        let wanted = (0..rows.len()).filter(|i| rows[*i].logits);
        Ok(wanted
            .map(|i| self.context.get_logits_ith(i as i32).to_vec())
            .collect())
    }

    fn bytes<'b>(&self, sequences: impl Iterator<Item = &'b LlamaSequence>) -> usize
    where
        LlamaSequence: 'b,
    {
        sequences.map(|s| s.len * self.token_bytes).sum()
    }

    fn room(&self) -> usize {
        self.room
    }

    fn keeps(&self) -> usize {
        if self.forks { KEPT } else { 0 }
    }

    fn reset(&mut self) {
        self.context.clear_kv_cache();
        self.sweep();
    }
}

impl Evaluated for LlamaSequence {
    fn len(&self) -> usize {
        self.len
    }
}

impl Drop for LlamaSequence {
    fn drop(&mut self) {
        let mut ids = self
            .given_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ids.push(self.id);
    }
}
