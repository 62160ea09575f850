//! Beginnings that were evaluated before, so that the next round of a conversation only evaluates what is new.

use super::brain::Brain;

/// Beginnings, the one used last at the end, together at most so many bytes.
pub(super) struct Cache<S> {
    room: usize,
    entries: Vec<(Vec<u32>, S)>,
}

impl<S> Cache<S> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            entries: Vec::new(),
        }
    }

    /// A sequence with the longest known beginning of `tokens`.
    pub(super) fn find<B: Brain<Sequence = S>>(&mut self, tokens: &[u32], brain: &mut B) -> S {
        let best = self
            .entries
            .iter()
            .enumerate()
            .map(|(i, (known, _))| (common(known, tokens), i))
            .max();
        let Some((len @ 1.., i)) = best else {
            return brain.empty();
        };
        let mut entry = self.entries.remove(i);
        let sequence = brain.fork(&mut entry.1, len);
        self.entries.push(entry);
        sequence
    }

    /// Keeps the beginning `tokens`, unless a longer one that begins so is there already.
    pub(super) fn keep<B: Brain<Sequence = S>>(
        &mut self,
        tokens: Vec<u32>,
        mut sequence: S,
        brain: &mut B,
    ) {
        if self.room == 0
            || tokens.is_empty()
            || self
                .entries
                .iter()
                .any(|(known, _)| common(known, &tokens) == tokens.len())
        {
            return;
        }
        self.entries
            .retain(|(known, _)| common(known, &tokens) < known.len());
        // What is kept has no room for more, and shares what it can.
        let kept = brain.fork(&mut sequence, tokens.len());
        drop(sequence);
        self.entries.push((tokens, kept));
        while !self.entries.is_empty()
            && (self.entries.len() > brain.keeps()
                || brain.bytes(self.entries.iter().map(|(_, s)| s)) > self.room)
        {
            self.entries.remove(0);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

/// How many tokens two sequences have in common at the beginning.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
