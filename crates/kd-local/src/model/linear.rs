//! Weight matrices: packed from a file in parallel, and multiplied in pieces.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::gguf::{Gguf, Tensor};
use crate::kernels::{Acts, LANES, Simd};
use crate::pool::Pool;
use crate::quant::Tiles;

/// Rows of a matrix packed as one unit of work.
const PACK_ROWS: usize = 2048;

/// A weight matrix as tiles, in parts that may have different formats.
pub(super) struct Linear {
    columns: usize,
    pub(super) groups: usize,
    parts: Vec<Part>,
}

struct Part {
    first: usize,
    groups: usize,
    tiles: Tiles,
}

/// A range of rows of a tensor.
type Piece<'a> = (Tensor<'a>, Range<usize>);

/// Matrices to pack.
pub(super) struct Plan<'a> {
    gguf: &'a Gguf,
    pieces: Vec<(usize, Vec<Piece<'a>>)>,
}

impl Linear {
    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|p| p.tiles.bytes()).sum()
    }

    /// Computes all outputs for `acts`, as a panel: `y[(group * rows + row) * 8 + lane]`.
    pub(super) fn apply(&self, pool: &Pool, simd: Simd, acts: &Acts, y: &mut Vec<f32>) {
        debug_assert_eq!(acts.columns, self.columns);
        y.resize(self.groups * acts.rows * LANES, 0.0);
        // Several pieces per thread, so that a delayed thread does not delay all; few enough that claiming stays cheap.
        let groups = match pool.threads() {
            1 => self.groups,
            threads => self.groups.div_ceil(threads * 4).max(2),
        };
        let unit = acts.rows * LANES;
        pool.run_chunks(y, groups * unit, |c, y| {
            let mut at = c * groups;
            let end = at + y.len() / unit;
            let mut y = y;
            for part in &self.parts {
                let (from, to) = (at.max(part.first), end.min(part.first + part.groups));
                if from < to {
                    let (out, rest) = y.split_at_mut((to - from) * unit);
                    part.tiles
                        .matmul(simd, from - part.first..to - part.first, acts, out);
                    (y, at) = (rest, to);
                }
            }
        });
    }

    /// Unpacks row `row`.
    pub(super) fn row(&self, row: usize, out: &mut [f32]) {
        let group = row / LANES;
        if let Some(part) = self
            .parts
            .iter()
            .find(|p| (p.first..p.first + p.groups).contains(&group))
        {
            part.tiles.row(row - part.first * LANES, out);
        }
    }
}

impl<'a> Plan<'a> {
    pub(super) fn new(gguf: &'a Gguf) -> Self {
        Self {
            gguf,
            pieces: Vec::new(),
        }
    }

    /// Plans one matrix from vertically stacked tensors, after checking their sizes.
    pub(super) fn add(&mut self, tensors: &[(String, usize)], columns: usize) -> Result<(), Error> {
        let mut pieces = Vec::new();
        for (name, rows) in tensors {
            let tensor = self.gguf.tensor(name)?;
            if tensor.row_len() != columns || tensor.rows() != *rows {
                return Err(Error::Gguf {
                    what: format!(
                        "`{name}` is {:?}, but the model's sizes ask for [{columns}, {rows}]",
                        tensor.dims
                    ),
                });
            }
            for start in (0..*rows).step_by(PACK_ROWS) {
                pieces.push((tensor.clone(), start..(start + PACK_ROWS).min(*rows)));
            }
        }
        self.pieces.push((columns, pieces));
        Ok(())
    }

    /// Packs all matrices in parallel; returns them in the order in which they were planned.
    pub(super) fn pack(self, pool: &Pool) -> Result<Vec<Linear>, Error> {
        let flat: Vec<_> = self.pieces.iter().flat_map(|(_, pieces)| pieces).collect();
        let done: Vec<Mutex<Option<Result<Tiles, Error>>>> =
            flat.iter().map(|_| Mutex::new(None)).collect();
        pool.run(flat.len(), &|i| {
            let (tensor, rows) = flat[i];
            let tiles = Tiles::pack(tensor, rows.clone());
            *done[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(tiles);
        });
        let mut done = done
            .into_iter()
            .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.pieces
            .iter()
            .map(|(columns, pieces)| {
                let mut linear = Linear {
                    columns: *columns,
                    groups: 0,
                    parts: Vec::new(),
                };
                for (_, rows) in pieces {
                    let missing = || Error::Worker {
                        what: "a matrix was not packed".into(),
                    };
                    let tiles = done.next().flatten().ok_or_else(missing)??;
                    let groups = rows.len().div_ceil(LANES);
                    linear.parts.push(Part {
                        first: linear.groups,
                        groups,
                        tiles,
                    });
                    linear.groups += groups;
                }
                Ok(linear)
            })
            .collect()
    }
}
