//! Beginnings that were evaluated before, so that the next round of a conversation only evaluates what is new.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kv::Segment;

/// A chain of stretches, each with how many of its positions count.
pub(super) type Chain = Vec<(Arc<Segment>, usize)>;

/// Beginnings, the one used last at the end, together at most so many bytes.
pub(super) struct Cache {
    room: usize,
    entries: Vec<(Vec<u32>, Chain)>,
}

impl Cache {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            entries: Vec::new(),
        }
    }

    /// The entry that has the longest beginning in common with `tokens`, cut to it.
    pub(super) fn find(&mut self, tokens: &[u32]) -> Chain {
        let best = self
            .entries
            .iter()
            .enumerate()
            .map(|(i, (known, _))| (common(known, tokens), i))
            .max();
        let Some((len @ 1.., i)) = best else {
            return Chain::new();
        };
        let entry = self.entries.remove(i);
        let chain = cut(&entry.1, len);
        self.entries.push(entry);
        chain
    }

    /// Keeps the beginning `tokens`, unless a longer one that begins so is there already.
    pub(super) fn keep(&mut self, tokens: Vec<u32>, chain: Chain) {
        if tokens.is_empty()
            || self
                .entries
                .iter()
                .any(|(known, _)| common(known, &tokens) == tokens.len())
        {
            return;
        }
        self.entries
            .retain(|(known, _)| common(known, &tokens) < known.len());
        self.entries.push((tokens, chain));
        while self.bytes() > self.room && !self.entries.is_empty() {
            self.entries.remove(0);
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    fn bytes(&self) -> usize {
        let segments = self.entries.iter().flat_map(|(_, chain)| chain);
        let unique: HashMap<_, _> = segments.map(|(s, _)| (Arc::as_ptr(s), s.bytes())).collect();
        unique.values().sum()
    }
}

/// How many tokens two sequences have in common at the beginning.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn cut(chain: &Chain, len: usize) -> Chain {
    let mut left = len;
    let mut out = Chain::new();
    for (segment, n) in chain {
        let n = left.min(*n);
        if n == 0 {
            break;
        }
        out.push((Arc::clone(segment), n));
        left -= n;
    }
    out
}
