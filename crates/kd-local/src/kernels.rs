//! The arithmetic: every inner loop of the model, once in portable Rust and once per instruction set.
//!
//! The portable code is the reference: the vectorized code does the same operations on each number in the same order,
//! so all variants give the same bits, and nothing depends on how many rows are computed together or where a sequence
//! was split. `KD_SIMD=off` forces the portable code.
//!
//! `unsafe` is confined to this module (with `x86` and `neon` below it): each block is guarded by asserts on the
//! lengths and by a [`Simd`] value, which only run-time detection can create.
#![allow(unsafe_code)]
#![allow(
    clippy::needless_range_loop,
    reason = "lanes are numbered across several arrays at once"
)]

use half::f16;

/// Rows of a weight matrix computed side by side.
pub(crate) const LANES: usize = 8;
/// Columns that share a scale.
pub(crate) const BLOCK: usize = 32;

/// 8 rows by 32 columns of 4-bit weights: `weight = d * q + m`.
///
/// Byte `c * 32 + r * 4 + j` holds, for row `r`, column `c * 4 + j` in the low half and column `16 + c * 4 + j` in the high.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Tile4 {
    pub(crate) q: [u8; 128],
    pub(crate) d: [f16; LANES],
    pub(crate) m: [f16; LANES],
}

/// 8 rows by 32 columns of 8-bit weights: `weight = d * q + m`. Byte `c * 32 + r * 4 + j` holds row `r`, column `c * 4 + j`.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Tile8 {
    pub(crate) q: [i8; 256],
    pub(crate) d: [f16; LANES],
    pub(crate) m: [f16; LANES],
}

impl Tile4 {
    pub(crate) const ZERO: Self = Self {
        q: [0; 128],
        d: [f16::ZERO; LANES],
        m: [f16::ZERO; LANES],
    };
}

impl Tile8 {
    pub(crate) const ZERO: Self = Self {
        q: [0; 256],
        d: [f16::ZERO; LANES],
        m: [f16::ZERO; LANES],
    };
}

/// Rows of activations, quantized to 8 bits in blocks of 32.
#[derive(Default)]
pub(crate) struct Acts {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Number of columns, a multiple of 32.
    pub(crate) columns: usize,
    /// `rows * columns` values in -127..=127.
    pub(crate) q: Vec<i8>,
    /// One scale per block.
    pub(crate) d: Vec<f32>,
    /// One sum per block, times the scale: the factor for the `m` of a tile.
    pub(crate) s: Vec<f32>,
}

impl Acts {
    /// Resizes to `rows` by `columns` values; the contents are unspecified until overwritten.
    pub(crate) fn shape(&mut self, rows: usize, columns: usize) {
        assert_eq!(columns % BLOCK, 0);
        (self.rows, self.columns) = (rows, columns);
        self.q.resize(rows * columns, 0);
        self.d.resize(rows * columns / BLOCK, 0.0);
        self.s.resize(rows * columns / BLOCK, 0.0);
    }
}

/// Selects the code to run. Only [`Simd::detect`] and [`Simd::available`] create anything but the portable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Simd {
    /// The portable code.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// Returns the fastest code for this processor, or the portable one under `KD_SIMD=off`.
    pub fn detect() -> Self {
        if std::env::var_os("KD_SIMD").is_some_and(|v| v == "off" || v == "0") {
            return Self::SCALAR;
        }
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// Returns everything this processor can run, from the portable code to the fastest.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::SCALAR];
        if cfg!(miri) {
            return all;
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            all.push(Self(Kind::Avx2));
            if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512vl") {
                all.push(Self(Kind::Vnni));
            }
        }
        #[cfg(target_arch = "aarch64")]
        all.push(Self(Kind::Neon));
        all
    }

    /// Returns its name, for `kd model bench` and bug reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni => "avx512-vnni",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
        }
    }
}

/// Defines a function whose portable body is also compiled with the processor's features enabled.
///
/// The bodies use `mul_add` and fixed lanes, so that wider registers give the same bits, only faster.
macro_rules! everywhere {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $body:ident) => {
        $(#[$doc])*
        pub(crate) fn $name(simd: Simd, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            if simd != Simd::SCALAR {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn fast($($arg: $ty),*) {
                    $body($($arg),*);
                }
                // SAFETY: a `Simd` other than the portable one on x86-64 guarantees that these features were detected.
                return unsafe { fast($($arg),*) };
            }
            let _ = simd;
            $body($($arg),*);
        }
    };
}

everywhere! {
    /// Computes llama's norm, `out = x / rms(x) * weight`.
    fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) => rms_norm_plain
}
everywhere! {
    /// Quantizes one row to 8 bits: values, scale and scaled sum of each block of 32.
    fn quantise(x: &[f32], q: &mut [i8], d: &mut [f32], s: &mut [f32]) => quantise_plain
}
everywhere! {
    /// Turns scores into weights that sum to one.
    fn softmax(x: &mut [f32]) => softmax_plain
}
everywhere! {
    /// Computes `out = silu(gate) * up`.
    fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) => silu_mul_plain
}

/// Computes `out[(group * rows + row) * 8 + lane]`: eight outputs per group for each row of activations, 4-bit weights.
pub(crate) fn matmul4(simd: Simd, tiles: &[Tile4], acts: &Acts, out: &mut [f32]) {
    let (blocks, groups) = check(tiles.len(), acts, out.len());
    for g in 0..groups {
        let tiles = &tiles[g * blocks..(g + 1) * blocks];
        let out = &mut out[g * acts.rows * LANES..(g + 1) * acts.rows * LANES];
        match simd.0 {
            Kind::Scalar => plain4(tiles, acts, out),
            // SAFETY: `check` holds for the slices, and the `Simd` value guarantees that the processor has the
            // features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::rows4(tiles, acts, out) },
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni => unsafe { x86::rows4_vnni(tiles, acts, out) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { neon::rows4(tiles, acts, out) },
        }
    }
}

/// As [`matmul4`], with 8-bit weights.
pub(crate) fn matmul8(simd: Simd, tiles: &[Tile8], acts: &Acts, out: &mut [f32]) {
    let (blocks, groups) = check(tiles.len(), acts, out.len());
    for g in 0..groups {
        let tiles = &tiles[g * blocks..(g + 1) * blocks];
        let out = &mut out[g * acts.rows * LANES..(g + 1) * acts.rows * LANES];
        match simd.0 {
            Kind::Scalar => plain8(tiles, acts, out),
            // SAFETY: as in `matmul4`.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::rows8(tiles, acts, out) },
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni => unsafe { x86::rows8_vnni(tiles, acts, out) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { neon::rows8(tiles, acts, out) },
        }
    }
}

/// Checks that the slices belong together; returns blocks per row and groups of rows.
fn check(tiles: usize, acts: &Acts, out: usize) -> (usize, usize) {
    let blocks = acts.columns / BLOCK;
    assert!(blocks > 0 && acts.rows > 0);
    assert_eq!(acts.columns % BLOCK, 0);
    assert_eq!(acts.q.len(), acts.rows * acts.columns);
    assert_eq!(acts.d.len(), acts.rows * blocks);
    assert_eq!(acts.s.len(), acts.rows * blocks);
    assert_eq!(tiles % blocks, 0);
    assert_eq!(out, tiles / blocks * acts.rows * LANES);
    (blocks, tiles / blocks)
}

/// Computes `out[i * stride + p] = q_i . k_p` for `n` positions and each query of `dim` numbers in `queries`.
///
/// Keys are stored in blocks of 8 positions, dimension by dimension: `keys[(p / 8 * dim + j) * 8 + p % 8]`. Up to 7
/// numbers after the `n`-th of a row are overwritten.
pub(crate) fn scores(
    simd: Simd,
    keys: &[f16],
    n: usize,
    queries: &[f32],
    dim: usize,
    out: &mut [f32],
    stride: usize,
) {
    let count = queries.len() / dim;
    let padded = n.next_multiple_of(LANES);
    assert!(dim > 0 && dim.is_multiple_of(2) && queries.len() == count * dim);
    assert!(
        keys.len() >= padded * dim
            && stride >= padded
            && out.len() + stride >= count * stride + padded
    );
    let mut i = 0;
    while i < count {
        let step = (count - i).min(4);
        let (queries, out) = (&queries[i * dim..(i + step) * dim], &mut out[i * stride..]);
        match step {
            4 => scores_of::<4>(simd, keys, n, queries, dim, out, stride),
            3 => scores_of::<3>(simd, keys, n, queries, dim, out, stride),
            2 => scores_of::<2>(simd, keys, n, queries, dim, out, stride),
            _ => scores_of::<1>(simd, keys, n, queries, dim, out, stride),
        }
        i += step;
    }
}

fn scores_of<const Q: usize>(
    simd: Simd,
    k: &[f16],
    n: usize,
    q: &[f32],
    dim: usize,
    out: &mut [f32],
    stride: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if simd != Simd::SCALAR {
        // SAFETY: `scores` checked the lengths; the features were detected.
        return unsafe { x86::scores::<Q>(k, n, q, dim, out, stride) };
    }
    let _ = simd;
    for block in 0..n.div_ceil(LANES) {
        let keys = &k[block * dim * LANES..(block + 1) * dim * LANES];
        for i in 0..Q {
            let (mut even, mut odd) = ([0f32; LANES], [0f32; LANES]);
            for j in (0..dim).step_by(2) {
                for l in 0..LANES {
                    even[l] = keys[j * LANES + l]
                        .to_f32()
                        .mul_add(q[i * dim + j], even[l]);
                    odd[l] = keys[(j + 1) * LANES + l]
                        .to_f32()
                        .mul_add(q[i * dim + j + 1], odd[l]);
                }
            }
            for l in 0..LANES {
                out[i * stride + block * LANES + l] = even[l] + odd[l];
            }
        }
    }
}

/// Computes `out_i += sum over p of weights[i * stride + p] * values[p]` for `n` positions; rows of `dim` numbers, a
/// multiple of 8.
pub(crate) fn mix(
    simd: Simd,
    values: &[f16],
    n: usize,
    weights: &[f32],
    stride: usize,
    dim: usize,
    out: &mut [f32],
) {
    let count = out.len() / dim;
    assert!(dim > 0 && dim.is_multiple_of(LANES) && out.len() == count * dim);
    assert!(values.len() >= n * dim && stride >= n && weights.len() + stride >= count * stride + n);
    let mut i = 0;
    while i < count {
        let step = (count - i).min(4);
        let (weights, out) = (&weights[i * stride..], &mut out[i * dim..(i + step) * dim]);
        match step {
            4 => mix_of::<4>(simd, values, n, weights, stride, dim, out),
            3 => mix_of::<3>(simd, values, n, weights, stride, dim, out),
            2 => mix_of::<2>(simd, values, n, weights, stride, dim, out),
            _ => mix_of::<1>(simd, values, n, weights, stride, dim, out),
        }
        i += step;
    }
}

fn mix_of<const Q: usize>(
    simd: Simd,
    v: &[f16],
    n: usize,
    w: &[f32],
    stride: usize,
    dim: usize,
    out: &mut [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if simd != Simd::SCALAR {
        // SAFETY: `mix` checked the lengths; the features were detected.
        return unsafe { x86::mix::<Q>(v, n, w, stride, dim, out) };
    }
    let _ = simd;
    for p in 0..n {
        for i in 0..Q {
            let weight = w[i * stride + p];
            for (o, v) in out[i * dim..(i + 1) * dim]
                .iter_mut()
                .zip(&v[p * dim..(p + 1) * dim])
            {
                *o = v.to_f32().mul_add(weight, *o);
            }
        }
    }
}

fn plain4(tiles: &[Tile4], acts: &Acts, out: &mut [f32]) {
    for row in 0..acts.rows {
        let mut acc = [0f32; LANES];
        for (b, tile) in tiles.iter().enumerate() {
            let at = row * tiles.len() + b;
            let q = &acts.q[at * BLOCK..(at + 1) * BLOCK];
            for r in 0..LANES {
                let mut sum = 0i32;
                for c in 0..4 {
                    for j in 0..4 {
                        let byte = tile.q[c * 32 + r * 4 + j];
                        sum += i32::from(byte & 15) * i32::from(q[c * 4 + j]);
                        sum += i32::from(byte >> 4) * i32::from(q[16 + c * 4 + j]);
                    }
                }
                acc[r] = (sum as f32).mul_add(tile.d[r].to_f32() * acts.d[at], acc[r]);
                acc[r] = tile.m[r].to_f32().mul_add(acts.s[at], acc[r]);
            }
        }
        out[row * LANES..(row + 1) * LANES].copy_from_slice(&acc);
    }
}

fn plain8(tiles: &[Tile8], acts: &Acts, out: &mut [f32]) {
    for row in 0..acts.rows {
        let mut acc = [0f32; LANES];
        for (b, tile) in tiles.iter().enumerate() {
            let at = row * tiles.len() + b;
            let q = &acts.q[at * BLOCK..(at + 1) * BLOCK];
            for r in 0..LANES {
                let mut sum = 0i32;
                for c in 0..8 {
                    for j in 0..4 {
                        sum += i32::from(tile.q[c * 32 + r * 4 + j]) * i32::from(q[c * 4 + j]);
                    }
                }
                acc[r] = (sum as f32).mul_add(tile.d[r].to_f32() * acts.d[at], acc[r]);
                acc[r] = tile.m[r].to_f32().mul_add(acts.s[at], acc[r]);
            }
        }
        out[row * LANES..(row + 1) * LANES].copy_from_slice(&acc);
    }
}

/// Sums eight lanes, always in this order.
#[inline(always)]
fn sum_lanes(l: [f32; LANES]) -> f32 {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

#[inline(always)]
fn rms_norm_plain(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let mut lanes = [0f32; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for chunk in whole {
        for l in 0..LANES {
            lanes[l] = chunk[l].mul_add(chunk[l], lanes[l]);
        }
    }
    for (l, v) in rest.iter().enumerate() {
        lanes[l] = v.mul_add(*v, lanes[l]);
    }
    let scale = 1.0 / (sum_lanes(lanes) / x.len() as f32 + eps).sqrt();
    for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
        *o = v * scale * w;
    }
}

/// Adding this to a number below 2^22 in magnitude rounds it to an integer, ties to even.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
fn quantise_plain(x: &[f32], q: &mut [i8], d: &mut [f32], s: &mut [f32]) {
    let (blocks, _) = x.as_chunks::<BLOCK>();
    let (q, _) = q.as_chunks_mut::<BLOCK>();
    for (((x, q), d), s) in blocks.iter().zip(q).zip(d).zip(s) {
        let mut top = [0f32; LANES];
        for chunk in x.as_chunks::<LANES>().0 {
            for l in 0..LANES {
                let v = chunk[l].abs();
                top[l] = if v > top[l] { v } else { top[l] };
            }
        }
        let top = top.iter().fold(0f32, |a, b| if *b > a { *b } else { a });
        let scale = top / 127.0;
        // A block below this counts as zero; the reciprocal would overflow.
        let inverse = if top > 1e-30 { 127.0 / top } else { 0.0 };
        let mut whole = [0i32; BLOCK];
        for i in 0..BLOCK {
            whole[i] =
                ((x[i] * inverse + ROUND).to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
        }
        let mut sum = 0i32;
        for i in 0..BLOCK {
            // A row of NaN stays defined here, and is refused when the logits are read.
            let v = whole[i].clamp(-127, 127);
            q[i] = v as i8;
            sum += v;
        }
        *d = scale;
        *s = scale * sum as f32;
    }
}

/// Computes e^x to about one unit in the last place, for every finite x.
#[inline(always)]
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let n = x.mul_add(std::f32::consts::LOG2_E, ROUND) - ROUND;
    // ln 2 in two parts, so that the remainder keeps all its bits.
    let r = n.mul_add(-0.693_359_4, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_199_9e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 1.666_666_5e-1);
    p = p.mul_add(r, 5e-1);
    let y = p.mul_add(r * r, r) + 1.0;
    y * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

#[inline(always)]
fn softmax_plain(x: &mut [f32]) {
    let mut top = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for chunk in whole {
        for l in 0..LANES {
            top[l] = if chunk[l] > top[l] { chunk[l] } else { top[l] };
        }
    }
    let top = top
        .iter()
        .chain(rest)
        .fold(f32::NEG_INFINITY, |a, b| if *b > a { *b } else { a });
    let mut lanes = [0f32; LANES];
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    for chunk in whole {
        for l in 0..LANES {
            chunk[l] = exp(chunk[l] - top);
            lanes[l] += chunk[l];
        }
    }
    for (l, v) in rest.iter_mut().enumerate() {
        *v = exp(*v - top);
        lanes[l] += *v;
    }
    let scale = 1.0 / sum_lanes(lanes);
    for v in x {
        *v *= scale;
    }
}

#[inline(always)]
fn silu_mul_plain(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((o, g), u) in out.iter_mut().zip(gate).zip(up) {
        *o = g / (1.0 + exp(-g)) * u;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(test)]
mod tests;
