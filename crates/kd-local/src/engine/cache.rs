//! A cache of evaluated prefixes, so that the next round of a conversation evaluates only new tokens.

use super::brain::Brain;

/// Evaluated prefixes, most recently used last, with a limit on their total bytes.
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

    /// Returns a sequence with the longest cached prefix of `tokens`.
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

    /// Caches the prefix `tokens`, unless a cached entry already starts with it.
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
        // The fork reserves no space for more tokens and shares what it can.
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

/// Returns the length of the common prefix of two token sequences.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
