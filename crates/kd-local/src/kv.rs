//! The KV cache of a sequence: keys and values of every layer for every token so far.
//!
//! A sequence is a chain of immutable shared segments followed by its own growing tail. Sequences with a common prefix
//! hold the same segments (an `Arc` tree), so a shared prefix is stored and computed once. A segment may be shared in
//! part: only its first `n` positions count.

use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::kernels::LANES;

/// The dimensions of a model's keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    /// Number of key-value heads.
    pub(crate) heads: usize,
    /// Numbers per head.
    pub(crate) dim: usize,
}

/// A run of positions. Keys are laid out as `kernels::scores` expects, values as rows, separately per layer and head.
pub(crate) struct Segment {
    shape: Shape,
    room: usize,
    len: usize,
    data: Vec<f16>,
}

/// A sequence of tokens, as far as it has been evaluated.
pub(crate) struct Sequence {
    shared: Vec<(Arc<Segment>, usize)>,
    tail: Segment,
}

impl Segment {
    fn new(shape: Shape, room: usize) -> Self {
        let room = room.next_multiple_of(LANES);
        let data = vec![f16::ZERO; shape.layers * shape.heads * 2 * room * shape.dim];
        Self {
            shape,
            room,
            len: 0,
            data,
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len() * size_of::<f16>()
    }

    /// Returns the keys of one head, in blocks of 8 positions.
    pub(crate) fn keys(&self, layer: usize, head: usize) -> &[f16] {
        let at = self.at(layer, head, 0);
        &self.data[at..at + self.room * self.shape.dim]
    }

    /// Returns the values of one head, position by position.
    pub(crate) fn values(&self, layer: usize, head: usize) -> &[f16] {
        let at = self.at(layer, head, 1);
        &self.data[at..at + self.room * self.shape.dim]
    }

    fn at(&self, layer: usize, head: usize, part: usize) -> usize {
        ((layer * self.shape.heads + head) * 2 + part) * self.room * self.shape.dim
    }

    /// Returns a copy with another capacity; positions beyond it are lost.
    fn with_room(&self, room: usize) -> Self {
        let mut other = Self::new(self.shape, room);
        other.len = self.len.min(other.room);
        let numbers = self.room.min(other.room) * self.shape.dim;
        for layer in 0..self.shape.layers {
            for head in 0..self.shape.heads {
                for part in 0..2 {
                    let (from, to) = (self.at(layer, head, part), other.at(layer, head, part));
                    other.data[to..to + numbers].copy_from_slice(&self.data[from..from + numbers]);
                }
            }
        }
        other
    }
}

impl Sequence {
    /// Creates a sequence that begins with the first positions of other sequences' segments.
    pub(crate) fn new(shape: Shape, shared: Vec<(Arc<Segment>, usize)>) -> Self {
        Self {
            shared,
            tail: Segment::new(shape, 0),
        }
    }

    /// Returns the number of positions evaluated so far.
    pub(crate) fn len(&self) -> usize {
        self.shared_len() + self.tail.len
    }

    /// Iterates over the segments in order, each with how many of its positions count, for `total` positions. Those
    /// beyond [`Sequence::len`] have been written but do not count yet.
    pub(crate) fn stretches(&self, total: usize) -> impl Iterator<Item = (&Segment, usize)> {
        let own = total - self.shared_len();
        self.shared
            .iter()
            .map(|(segment, n)| (&**segment, *n))
            .chain([(&self.tail, own)])
    }

    /// Iterates over the shared segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.shared.iter().map(|(segment, _)| segment)
    }

    /// Reserves space for `more` positions, which [`Sequence::write`] requires.
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = self.tail.len + more;
        if needed > self.tail.room {
            // Doubling amortizes the copies; the first segment of a prompt gets exactly what it needs.
            self.tail = self
                .tail
                .with_room(needed.max(self.tail.len * 2).max(LANES * 2));
        }
    }

    /// Writes keys and values of one head `ahead` positions past the end; [`Sequence::advance`] makes them count.
    pub(crate) fn write(
        &mut self,
        layer: usize,
        head: usize,
        ahead: usize,
        keys: &[f32],
        values: &[f32],
    ) {
        let (dim, p) = (self.tail.shape.dim, self.tail.len + ahead);
        let (k, v) = (self.tail.at(layer, head, 0), self.tail.at(layer, head, 1));
        let block = k + p / LANES * dim * LANES + p % LANES;
        // Convert into a row first: the values' slot serves as scratch space and is overwritten right after.
        let row = v + p * dim..v + (p + 1) * dim;
        self.tail.data[row.clone()].convert_from_f32_slice(keys);
        for j in 0..dim {
            self.tail.data[block + j * LANES] = self.tail.data[row.start + j];
        }
        self.tail.data[row].convert_from_f32_slice(values);
    }

    /// Makes `n` more positions count; they must have been written in every layer.
    pub(crate) fn advance(&mut self, n: usize) {
        self.tail.len += n;
    }

    /// Turns the tail into a shared segment and returns the chain for the first `len` positions.
    pub(crate) fn share(&mut self, len: usize) -> Vec<(Arc<Segment>, usize)> {
        if self.tail.len > 0 {
            let shape = self.tail.shape;
            let tail = std::mem::replace(&mut self.tail, Segment::new(shape, 0));
            // Reserved but unused space would stay allocated for as long as anything holds the segment.
            let slack = tail.room - tail.len.next_multiple_of(LANES);
            let tail = if slack > tail.len / 4 {
                tail.with_room(tail.len)
            } else {
                tail
            };
            let n = tail.len;
            self.shared.push((Arc::new(tail), n));
        }
        let mut left = len;
        let mut chain = Vec::new();
        for (segment, n) in &self.shared {
            let n = left.min(*n);
            if n == 0 {
                break;
            }
            chain.push((Arc::clone(segment), n));
            left -= n;
        }
        chain
    }

    fn shared_len(&self) -> usize {
        self.shared.iter().map(|(_, n)| n).sum()
    }
}
