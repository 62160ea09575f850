//! A second description of the weight formats, block by block after ggml's, with random rows of each.

use half::f16;

use super::Random;

/// A format that the engine supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
    /// F32 values around one.
    Norm,
    /// The same, far from one, so that exchanged norms are noticed.
    HeadNorm,
}

pub const ALL: [Format; 11] = [
    Format::F32,
    Format::F16,
    Format::BF16,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q5_0,
    Format::Q5_1,
    Format::Q8_0,
    Format::Q4K,
    Format::Q5K,
    Format::Q6K,
];

impl Format {
    /// Returns its id in a file.
    pub fn id(self) -> u32 {
        match self {
            Self::F32 | Self::Norm | Self::HeadNorm => 0,
            Self::F16 => 1,
            Self::Q4_0 => 2,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q5_1 => 7,
            Self::Q8_0 => 8,
            Self::Q4K => 12,
            Self::Q5K => 13,
            Self::Q6K => 14,
            Self::BF16 => 30,
        }
    }

    /// Returns values and bytes per block.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::F32 | Self::Norm | Self::HeadNorm => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q4K => (256, 144),
            Self::Q5K => (256, 176),
            Self::Q6K => (256, 210),
        }
    }

    /// Returns a row whose numbers are mostly within `size`: random bits with matching scales.
    pub fn random_row(self, columns: usize, size: f32, random: &mut Random) -> Vec<u8> {
        let (values, bytes) = self.block();
        let mut row = Vec::new();
        for _ in 0..columns / values {
            let mut block: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
            let v = random.signed();
            let scale = size * (0.75 + 0.25 * random.signed());
            let half = |x: f32| f16::from_f32(x).to_le_bytes();
            match self {
                Self::F32 => block.copy_from_slice(&(v * size).to_le_bytes()),
                Self::HeadNorm => block.copy_from_slice(&(1.0 + 2.0 * v).to_le_bytes()),
                Self::Norm => block.copy_from_slice(&(1.0 + 0.3 * v).to_le_bytes()),
                Self::F16 => block.copy_from_slice(&half(v * size)),
                Self::BF16 => block.copy_from_slice(&half::bf16::from_f32(v * size).to_le_bytes()),
                Self::Q4_0 => block[..2].copy_from_slice(&half(scale / 8.0)),
                Self::Q5_0 => block[..2].copy_from_slice(&half(scale / 16.0)),
                Self::Q8_0 => block[..2].copy_from_slice(&half(scale / 127.0)),
                Self::Q4_1 | Self::Q5_1 => {
                    let steps = if self == Self::Q4_1 { 15.0 } else { 31.0 };
                    block[..2].copy_from_slice(&half(2.0 * scale / steps));
                    block[2..4].copy_from_slice(&half(-scale));
                }
                Self::Q4K | Self::Q5K => {
                    let steps = if self == Self::Q4K { 15.0 } else { 31.0 };
                    block[..2].copy_from_slice(&half(2.0 * scale / steps / 32.0));
                    block[2..4].copy_from_slice(&half(scale / 32.0));
                }
                Self::Q6K => block[208..].copy_from_slice(&half(scale / 32.0 / 64.0)),
            }
            row.extend(block);
        }
        row
    }

    /// Returns the numbers of a row.
    pub fn numbers(self, row: &[u8], columns: usize) -> Vec<f64> {
        let mut out = Vec::with_capacity(columns);
        for block in row.chunks(self.block().1) {
            self.unpack(block, &mut out);
        }
        assert_eq!(out.len(), columns);
        out
    }

    fn unpack(self, b: &[u8], out: &mut Vec<f64>) {
        let half = |at: usize| f64::from(f16::from_le_bytes([b[at], b[at + 1]]));
        match self {
            Self::F32 | Self::Norm | Self::HeadNorm => {
                out.push(f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            }
            Self::F16 => out.push(half(0)),
            Self::BF16 => out.push(f64::from(f32::from_bits(
                u32::from(u16::from_le_bytes([b[0], b[1]])) << 16,
            ))),
            Self::Q4_0 => {
                out.extend(b[2..].iter().map(|q| half(0) * (f64::from(q & 15) - 8.0)));
                out.extend(b[2..].iter().map(|q| half(0) * (f64::from(q >> 4) - 8.0)));
            }
            Self::Q4_1 => {
                out.extend(b[4..].iter().map(|q| half(0) * f64::from(q & 15) + half(2)));
                out.extend(b[4..].iter().map(|q| half(0) * f64::from(q >> 4) + half(2)));
            }
            Self::Q5_0 | Self::Q5_1 => {
                let at = if self == Self::Q5_0 { 2 } else { 4 };
                let high = u32::from_le_bytes(b[at..at + 4].try_into().unwrap());
                let q: Vec<u32> = b[at + 4..]
                    .iter()
                    .map(|q| u32::from(q & 15))
                    .chain(b[at + 4..].iter().map(|q| u32::from(q >> 4)))
                    .collect();
                for (i, q) in q.into_iter().enumerate() {
                    let q = f64::from(q | ((high >> i) & 1) << 4);
                    out.push(if self == Self::Q5_0 {
                        half(0) * (q - 16.0)
                    } else {
                        half(0) * q + half(2)
                    });
                }
            }
            Self::Q8_0 => out.extend(b[2..].iter().map(|q| half(0) * f64::from(*q as i8))),
            Self::Q4K | Self::Q5K => {
                let five = self == Self::Q5K;
                let (mut q, high) = (if five { &b[48..] } else { &b[16..] }, &b[16..48]);
                for pair in 0..4 {
                    for second in [false, true] {
                        let j = pair * 2 + usize::from(second);
                        let s = &b[4..16];
                        let (scale, min) = if j < 4 {
                            (s[j] & 63, s[j + 4] & 63)
                        } else {
                            (
                                (s[j + 4] & 0xf) | ((s[j - 4] >> 6) << 4),
                                (s[j + 4] >> 4) | ((s[j] >> 6) << 4),
                            )
                        };
                        for l in 0..32 {
                            let mut v = if second { q[l] >> 4 } else { q[l] & 0xf };
                            if five && high[l] & (1 << j) != 0 {
                                v += 16;
                            }
                            out.push(
                                half(0) * f64::from(scale) * f64::from(v)
                                    - half(2) * f64::from(min),
                            );
                        }
                    }
                    q = &q[32..];
                }
            }
            Self::Q6K => {
                let d = half(208);
                for part in 0..2 {
                    let (ql, qh, sc) =
                        (&b[part * 64..], &b[128 + part * 32..], &b[192 + part * 8..]);
                    let mut y = [0f64; 128];
                    for l in 0..32 {
                        let is = l / 16;
                        let q1 = i32::from((ql[l] & 0xf) | ((qh[l] & 3) << 4)) - 32;
                        let q2 = i32::from((ql[l + 32] & 0xf) | (((qh[l] >> 2) & 3) << 4)) - 32;
                        let q3 = i32::from((ql[l] >> 4) | (((qh[l] >> 4) & 3) << 4)) - 32;
                        let q4 = i32::from((ql[l + 32] >> 4) | (((qh[l] >> 6) & 3) << 4)) - 32;
                        y[l] = d * f64::from(sc[is] as i8) * f64::from(q1);
                        y[l + 32] = d * f64::from(sc[is + 2] as i8) * f64::from(q2);
                        y[l + 64] = d * f64::from(sc[is + 4] as i8) * f64::from(q3);
                        y[l + 96] = d * f64::from(sc[is + 6] as i8) * f64::from(q4);
                    }
                    out.extend(y);
                }
            }
        }
    }
}
