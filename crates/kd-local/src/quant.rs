//! Unpacks weights from their file formats, and packs them into the tiles that the kernels read.
//!
//! Converts the bytes of a tensor to numbers or tiles. In formats with one scale per 32 columns, the integers are kept
//! exactly; in the K formats, where the scale is a product of two numbers, the scale is rounded to 16 bits. Weights of
//! all other formats are rounded to 8 bits. This loses less precision than the rounding of the activations.
//!
//! The formats are the block layouts of the ggml project.

use half::{bf16, f16};

use crate::error::Error;
use crate::gguf::{GgmlType, Tensor};
use crate::kernels::{Acts, BLOCK, LANES, Simd, Tile4, Tile8, matmul4, matmul8};

/// Number of columns that share the super-scales in a K format.
const SUPER: usize = 256;

/// Some rows of a weight matrix, ready for the kernels.
pub(crate) enum Tiles {
    /// 4-bit formats.
    Four(Vec<Tile4>),
    /// All other formats.
    Eight(Vec<Tile8>),
}

/// 32 weights of one row: `weight = d * q + m`.
struct Block {
    q: [i8; BLOCK],
    d: f16,
    m: f16,
}

impl Tiles {
    /// Packs `rows` of `tensor`; an incomplete last group is padded with rows of zeros.
    pub(crate) fn pack(tensor: &Tensor<'_>, rows: std::ops::Range<usize>) -> Result<Self, Error> {
        let columns = tensor.row_len();
        let row_bytes = check(tensor.kind, columns)?;
        let blocks = columns / BLOCK;
        let groups = rows.len().div_ceil(LANES);
        let end = rows.end.min(tensor.rows());
        let row = |g: usize, r: usize| {
            let row = rows.start + g * LANES + r;
            (row < end).then(|| &tensor.bytes[row * row_bytes..(row + 1) * row_bytes])
        };
        Ok(if four_bits(tensor.kind) {
            let mut tiles = Vec::with_capacity(groups * blocks);
            for g in 0..groups {
                for b in 0..blocks {
                    let mut tile = Tile4::ZERO;
                    for r in 0..LANES {
                        let Some(bytes) = row(g, r) else { continue };
                        let block = block(tensor.kind, bytes, b);
                        (tile.d[r], tile.m[r]) = (block.d, block.m);
                        for c in 0..4 {
                            for j in 0..4 {
                                let (low, high) = (block.q[c * 4 + j], block.q[16 + c * 4 + j]);
                                tile.q[c * 32 + r * 4 + j] = low as u8 | ((high as u8) << 4);
                            }
                        }
                    }
                    tiles.push(tile);
                }
            }
            Self::Four(tiles)
        } else {
            let mut tiles = Vec::with_capacity(groups * blocks);
            for g in 0..groups {
                for b in 0..blocks {
                    let mut tile = Tile8::ZERO;
                    for r in 0..LANES {
                        let Some(bytes) = row(g, r) else { continue };
                        let block = block(tensor.kind, bytes, b);
                        (tile.d[r], tile.m[r]) = (block.d, block.m);
                        for c in 0..8 {
                            tile.q[c * 32 + r * 4..][..4].copy_from_slice(&block.q[c * 4..][..4]);
                        }
                    }
                    tiles.push(tile);
                }
            }
            Self::Eight(tiles)
        })
    }

    /// Computes the outputs of the groups `groups`, laid out as by [`matmul4`].
    pub(crate) fn matmul(
        &self,
        simd: Simd,
        groups: std::ops::Range<usize>,
        acts: &Acts,
        out: &mut [f32],
    ) {
        let blocks = acts.columns / BLOCK;
        let range = groups.start * blocks..groups.end * blocks;
        match self {
            Self::Four(tiles) => matmul4(simd, &tiles[range], acts, out),
            Self::Eight(tiles) => matmul8(simd, &tiles[range], acts, out),
        }
    }

    /// Unpacks row `row`.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let (blocks, lane) = (out.len() / BLOCK, row % LANES);
        for (b, out) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
            let at = row / LANES * blocks + b;
            for (i, out) in out.iter_mut().enumerate() {
                let (d, q, m) = match self {
                    Self::Four(tiles) => {
                        let tile = &tiles[at];
                        let byte = tile.q[i % 16 / 4 * 32 + lane * 4 + i % 4];
                        (
                            tile.d[lane],
                            if i < 16 { byte & 15 } else { byte >> 4 } as i8,
                            tile.m[lane],
                        )
                    }
                    Self::Eight(tiles) => {
                        let tile = &tiles[at];
                        (
                            tile.d[lane],
                            tile.q[i / 4 * 32 + lane * 4 + i % 4],
                            tile.m[lane],
                        )
                    }
                };
                *out = d.to_f32() * f32::from(q) + m.to_f32();
            }
        }
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Four(tiles) => size_of_val(tiles.as_slice()),
            Self::Eight(tiles) => size_of_val(tiles.as_slice()),
        }
    }
}

/// Returns all numbers of a float tensor, such as a norm's weights or a bias.
pub(crate) fn floats(tensor: &Tensor<'_>) -> Result<Vec<f32>, Error> {
    let bytes = tensor.bytes;
    Ok(match tensor.kind {
        GgmlType::F32 => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect(),
        GgmlType::F16 => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|b| f16::from_le_bytes(*b).to_f32())
            .collect(),
        GgmlType::BF16 => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .map(|b| bf16::from_le_bytes(*b).to_f32())
            .collect(),
        kind => {
            return Err(unsupported(format!(
                "{} as {kind:?} where floats are usual",
                tensor.name
            )));
        }
    })
}

/// Unpacks one row of any supported format, without the rounding that packing may add.
#[cfg(test)]
fn dequantise(kind: GgmlType, row: &[u8], out: &mut [f32]) -> Result<(), Error> {
    let bytes = check(kind, out.len())?;
    if row.len() != bytes {
        return Err(Error::Gguf {
            what: format!(
                "a row of {} {kind:?} values has {} bytes",
                out.len(),
                row.len()
            ),
        });
    }
    for (b, out) in out.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        match integers(kind, row, b) {
            Some((q, d, m)) => (0..BLOCK).for_each(|i| out[i] = d * f32::from(q[i]) + m),
            None => *out = numbers(kind, row, b),
        }
    }
    Ok(())
}

/// Returns the bytes of a row of `columns`, or an error if the format is unsupported.
fn check(kind: GgmlType, columns: usize) -> Result<usize, Error> {
    let known = matches!(
        kind,
        GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 | GgmlType::Q6_K | GgmlType::Q5_0
    ) || matches!(kind, GgmlType::Q5_1 | GgmlType::Q8_0 | GgmlType::Q5_K)
        || four_bits(kind);
    if !known {
        return Err(unsupported(format!("weights of type {kind:?}")));
    }
    if columns == 0 || !columns.is_multiple_of(BLOCK) {
        return Err(unsupported(format!(
            "rows of {columns} weights (only multiples of {BLOCK})"
        )));
    }
    kind.row_bytes(columns).ok_or_else(|| Error::Gguf {
        what: format!("{columns} columns do not divide into {kind:?} blocks"),
    })
}

fn unsupported(what: String) -> Error {
    Error::Unsupported { what }
}

fn four_bits(kind: GgmlType) -> bool {
    matches!(kind, GgmlType::Q4_0 | GgmlType::Q4_1 | GgmlType::Q4_K)
}

/// Returns block `b` of a row, rounded to values that a tile can hold.
fn block(kind: GgmlType, row: &[u8], b: usize) -> Block {
    if let Some((q, d, m)) = integers(kind, row, b) {
        // A 4-bit tile holds 0..=15: for centered formats the offset moves into the minimum.
        let (q, m) = if kind == GgmlType::Q4_0 {
            (q.map(|q| q + 8), -8.0 * d)
        } else {
            (q, m)
        };
        return Block {
            q,
            d: f16::from_f32(d),
            m: f16::from_f32(m),
        };
    }
    let x = numbers(kind, row, b);
    let top = x.iter().fold(0f32, |a, v| a.max(v.abs()));
    let d = f16::from_f32(top / 127.0);
    let inverse = if d.to_f32() > 0.0 {
        1.0 / d.to_f32()
    } else {
        0.0
    };
    let q = x.map(|v| (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8);
    Block { q, d, m: f16::ZERO }
}

/// Returns block `b` of a row as `(q, d, m)`, for formats with one scale per 32 columns.
fn integers(kind: GgmlType, row: &[u8], b: usize) -> Option<([i8; BLOCK], f32, f32)> {
    let mut q = [0i8; BLOCK];
    let half_at = |bytes: &[u8], at: usize| f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32();
    Some(match kind {
        GgmlType::Q4_0 => {
            let s = &row[b * 18..][..18];
            for i in 0..16 {
                q[i] = (s[2 + i] & 15) as i8 - 8;
                q[i + 16] = (s[2 + i] >> 4) as i8 - 8;
            }
            (q, half_at(s, 0), 0.0)
        }
        GgmlType::Q4_1 => {
            let s = &row[b * 20..][..20];
            for i in 0..16 {
                q[i] = (s[4 + i] & 15) as i8;
                q[i + 16] = (s[4 + i] >> 4) as i8;
            }
            (q, half_at(s, 0), half_at(s, 2))
        }
        GgmlType::Q5_0 | GgmlType::Q5_1 => {
            let centred = kind == GgmlType::Q5_0;
            let (size, head) = if centred { (22, 2) } else { (24, 4) };
            let s = &row[b * size..][..size];
            let fifth = u32::from_le_bytes([s[head], s[head + 1], s[head + 2], s[head + 3]]);
            let zero = if centred { 16 } else { 0 };
            for i in 0..16 {
                let byte = s[head + 4 + i];
                q[i] = (byte & 15) as i8 + ((fifth >> i & 1) << 4) as i8 - zero;
                q[i + 16] = (byte >> 4) as i8 + ((fifth >> (i + 16) & 1) << 4) as i8 - zero;
            }
            (q, half_at(s, 0), if centred { 0.0 } else { half_at(s, 2) })
        }
        GgmlType::Q8_0 => {
            let s = &row[b * 34..][..34];
            for i in 0..BLOCK {
                q[i] = s[2 + i] as i8;
            }
            (q, half_at(s, 0), 0.0)
        }
        GgmlType::Q4_K | GgmlType::Q5_K => {
            let five = kind == GgmlType::Q5_K;
            let size = if five { 176 } else { 144 };
            let s = &row[b / (SUPER / BLOCK) * size..][..size];
            let part = b % (SUPER / BLOCK);
            let (scale, min) = six_bits(&s[4..16], part);
            let low = if five { 48 } else { 16 };
            for i in 0..BLOCK {
                let byte = s[low + part / 2 * BLOCK + i];
                let nibble = if part.is_multiple_of(2) {
                    byte & 15
                } else {
                    byte >> 4
                };
                let fifth = if five {
                    (s[16 + i] >> part & 1) << 4
                } else {
                    0
                };
                q[i] = (nibble | fifth) as i8;
            }
            (
                q,
                half_at(s, 0) * f32::from(scale),
                -half_at(s, 2) * f32::from(min),
            )
        }
        _ => return None,
    })
}

/// Extracts the `part`-th scale and minimum from the twelve bytes of a K block.
fn six_bits(s: &[u8], part: usize) -> (u8, u8) {
    if part < 4 {
        (s[part] & 63, s[part + 4] & 63)
    } else {
        (
            (s[part + 4] & 15) | (s[part - 4] >> 6) << 4,
            (s[part + 4] >> 4) | (s[part] >> 6) << 4,
        )
    }
}

/// Returns block `b` of a row as numbers, for the other formats.
fn numbers(kind: GgmlType, row: &[u8], b: usize) -> [f32; BLOCK] {
    std::array::from_fn(|i| {
        let at = b * BLOCK + i;
        match kind {
            GgmlType::F16 => f16::from_le_bytes([row[at * 2], row[at * 2 + 1]]).to_f32(),
            GgmlType::BF16 => bf16::from_le_bytes([row[at * 2], row[at * 2 + 1]]).to_f32(),
            GgmlType::Q6_K => {
                let s = &row[at / SUPER * 210..][..210];
                let (half, quarter, l) = (at % SUPER / 128, at % 128 / 32, at % 32);
                let low = s[half * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
                let high = s[128 + half * 32 + l] >> (quarter * 2) & 3;
                let scale = s[192 + half * 8 + quarter * 2 + l / 16] as i8;
                let d = f16::from_le_bytes([s[208], s[209]]).to_f32();
                d * f32::from(scale) * f32::from((low | high << 4) as i8 - 32)
            }
            // `check` lets only F32 reach this arm.
            _ => f32::from_le_bytes([
                row[at * 4],
                row[at * 4 + 1],
                row[at * 4 + 2],
                row[at * 4 + 3],
            ]),
        }
    })
}

#[cfg(test)]
mod tests;
