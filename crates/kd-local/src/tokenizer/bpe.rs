//! Byte pair encoding of one word: merges neighbors, the pair learned earliest first, until no pair is left.
//!
//! Input: token ids of single bytes. Output: the merged ids. A word of n bytes takes O(n log n): neighbors in a linked
//! list, candidate pairs in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The merge table.
#[derive(Debug, Default)]
pub(super) struct Merges {
    /// (left, right) to (rank, merged); a lower rank was learned earlier and goes first.
    pairs: HashMap<(u32, u32), (u32, u32)>,
}

/// Buffers reused between words.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    nodes: Vec<Node>,
    heap: BinaryHeap<Reverse<(u32, u32, u32, u32)>>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    id: u32,
    before: u32,
    after: u32,
}

/// No neighbor, or a node that has been merged away.
const NONE: u32 = u32::MAX;

impl Merges {
    pub(super) fn with_capacity(n: usize) -> Self {
        Self {
            pairs: HashMap::with_capacity(n),
        }
    }

    /// Adds a pair; if it is already known, the lower rank stays.
    pub(super) fn add(&mut self, left: u32, right: u32, rank: u32, joined: u32) {
        self.pairs.entry((left, right)).or_insert((rank, joined));
    }

    /// Merges `word` and appends the result to `out`.
    pub(super) fn apply(&self, word: &[u32], scratch: &mut Scratch, out: &mut Vec<u32>) {
        let Scratch { nodes, heap } = scratch;
        nodes.clear();
        heap.clear();
        // Positions fit: a text of four billion bytes never gets this far, and would stay unmerged.
        let Ok(len) = u32::try_from(word.len()) else {
            out.extend_from_slice(word);
            return;
        };
        for (at, &id) in (0..len).zip(word) {
            let before = if at == 0 { NONE } else { at - 1 };
            let after = if at + 1 == len { NONE } else { at + 1 };
            nodes.push(Node { id, before, after });
        }
        for at in 1..len {
            self.propose(nodes, heap, at - 1, at);
        }
        // Equal ranks are the same pair; the leftmost goes first.
        while let Some(Reverse((rank, left, right, joined))) = heap.pop() {
            // The candidate may be stale: one of the two may have been merged since.
            let (l, r) = (nodes[left as usize], nodes[right as usize]);
            if l.after != right || self.pairs.get(&(l.id, r.id)) != Some(&(rank, joined)) {
                continue;
            }
            nodes[left as usize].id = joined;
            nodes[left as usize].after = r.after;
            nodes[right as usize] = Node {
                id: NONE,
                before: NONE,
                after: NONE,
            };
            if r.after != NONE {
                nodes[r.after as usize].before = left;
                self.propose(nodes, heap, left, r.after);
            }
            if l.before != NONE {
                self.propose(nodes, heap, l.before, left);
            }
        }
        out.extend(nodes.iter().map(|n| n.id).filter(|&id| id != NONE));
    }

    fn propose(
        &self,
        nodes: &[Node],
        heap: &mut BinaryHeap<Reverse<(u32, u32, u32, u32)>>,
        left: u32,
        right: u32,
    ) {
        if let Some(&(rank, joined)) = self
            .pairs
            .get(&(nodes[left as usize].id, nodes[right as usize].id))
        {
            heap.push(Reverse((rank, left, right, joined)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, literally: look at all pairs, merge the best, repeat.
    fn slowly(pairs: &HashMap<(u32, u32), (u32, u32)>, word: &[u32]) -> Vec<u32> {
        let mut word = word.to_vec();
        while let Some((_, at, joined)) = word
            .windows(2)
            .enumerate()
            .filter_map(|(at, p)| {
                pairs
                    .get(&(p[0], p[1]))
                    .map(|&(rank, joined)| (rank, at, joined))
            })
            .min()
        {
            word.splice(at..at + 2, [joined]);
        }
        word
    }

    #[test]
    fn agrees_with_the_slow_definition() {
        use rand::{RngExt, SeedableRng, rngs::ChaCha8Rng};
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..300 {
            let mut merges = Merges::default();
            let letters = rng.random_range(1..5u32);
            for rank in 0..rng.random_range(1..20) {
                let known = letters + rank;
                merges.add(
                    rng.random_range(0..known),
                    rng.random_range(0..known),
                    rank,
                    known,
                );
            }
            let word: Vec<u32> = (0..rng.random_range(0..40))
                .map(|_| rng.random_range(0..letters))
                .collect();
            let mut out = Vec::new();
            merges.apply(&word, &mut Scratch::default(), &mut out);
            assert_eq!(out, slowly(&merges.pairs, &word), "{word:?} by {merges:?}");
        }
    }

    #[test]
    fn a_word_of_a_million_equal_bytes_ends_soon() {
        let mut merges = Merges::default();
        for rank in 0..8 {
            merges.add(rank, rank, rank, rank + 1);
        }
        let mut out = Vec::new();
        merges.apply(&vec![0; 1 << 20], &mut Scratch::default(), &mut out);
        assert_eq!(out, vec![8; 1 << 12]);
    }
}
