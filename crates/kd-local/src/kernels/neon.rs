//! NEON, available on every 64-bit ARM processor.

use super::{Acts, BLOCK, LANES, Tile4, Tile8};
use std::arch::aarch64::*;

/// Loads four activations of one row, duplicated.
#[inline(always)]
unsafe fn four_twice(q: *const i8) -> int8x8_t {
    // SAFETY: the caller points at four values.
    unsafe { vreinterpret_s8_s32(vdup_n_s32(q.cast::<i32>().read_unaligned())) }
}

/// Adds the products of two rows by four columns, 16 bits wide.
#[inline(always)]
unsafe fn add4(sum: [int16x8_t; 4], w0: int8x16_t, w1: int8x16_t, a: int8x8_t) -> [int16x8_t; 4] {
    // SAFETY: plain arithmetic on registers.
    unsafe {
        [
            vmlal_s8(sum[0], vget_low_s8(w0), a),
            vmlal_s8(sum[1], vget_high_s8(w0), a),
            vmlal_s8(sum[2], vget_low_s8(w1), a),
            vmlal_s8(sum[3], vget_high_s8(w1), a),
        ]
    }
}

/// Sums eight rows from sums of column pairs.
#[inline(always)]
unsafe fn rows_of(pairs: [int32x4_t; 4]) -> [i32; LANES] {
    let mut out = [0; LANES];
    // SAFETY: `out` holds eight numbers.
    unsafe {
        vst1q_s32(out.as_mut_ptr(), vpaddq_s32(pairs[0], pairs[1]));
        vst1q_s32(out.as_mut_ptr().add(4), vpaddq_s32(pairs[2], pairs[3]));
    }
    out
}

#[inline(always)]
fn finish(
    acc: &mut [f32; LANES],
    sum: [i32; LANES],
    d: &[half::f16; 8],
    m: &[half::f16; 8],
    a: f32,
    s: f32,
) {
    for r in 0..LANES {
        acc[r] = (sum[r] as f32).mul_add(d[r].to_f32() * a, acc[r]);
        acc[r] = m[r].to_f32().mul_add(s, acc[r]);
    }
}

pub(super) unsafe fn rows4(tiles: &[Tile4], acts: &Acts, out: &mut [f32]) {
    let nb = tiles.len();
    for row in 0..acts.rows {
        let mut acc = [0f32; LANES];
        for (b, tile) in tiles.iter().enumerate() {
            let at = row * nb + b;
            // SAFETY: block `at` lies inside `acts.q`, whose length the caller checked; a tile has 128 bytes. A 16-bit
            // lane holds at most 8 * 15 * 127 = 15,240.
            let sum = unsafe {
                let q = acts.q.as_ptr().add(at * BLOCK);
                let mut sum = [vdupq_n_s16(0); 4];
                for c in 0..4 {
                    let w0 = vld1q_u8(tile.q.as_ptr().add(c * 32));
                    let w1 = vld1q_u8(tile.q.as_ptr().add(c * 32 + 16));
                    let mask = vdupq_n_u8(15);
                    let low =
                        [vandq_u8(w0, mask), vandq_u8(w1, mask)].map(|v| vreinterpretq_s8_u8(v));
                    let high =
                        [vshrq_n_u8::<4>(w0), vshrq_n_u8::<4>(w1)].map(|v| vreinterpretq_s8_u8(v));
                    sum = add4(sum, low[0], low[1], four_twice(q.add(c * 4)));
                    sum = add4(sum, high[0], high[1], four_twice(q.add(16 + c * 4)));
                }
                rows_of(sum.map(|s| vpaddlq_s16(s)))
            };
            finish(&mut acc, sum, &tile.d, &tile.m, acts.d[at], acts.s[at]);
        }
        out[row * LANES..(row + 1) * LANES].copy_from_slice(&acc);
    }
}

pub(super) unsafe fn rows8(tiles: &[Tile8], acts: &Acts, out: &mut [f32]) {
    let nb = tiles.len();
    for row in 0..acts.rows {
        let mut acc = [0f32; LANES];
        for (b, tile) in tiles.iter().enumerate() {
            let at = row * nb + b;
            // SAFETY: as in `rows4`; a tile has 256 bytes. A 16-bit lane holds at most 2 * 128 * 127 = 32,512.
            let sum = unsafe {
                let q = acts.q.as_ptr().add(at * BLOCK);
                let mut pairs = [vdupq_n_s32(0); 4];
                for c in (0..8).step_by(2) {
                    let mut sum = [vdupq_n_s16(0); 4];
                    for c in [c, c + 1] {
                        let w0 = vld1q_s8(tile.q.as_ptr().add(c * 32));
                        let w1 = vld1q_s8(tile.q.as_ptr().add(c * 32 + 16));
                        sum = add4(sum, w0, w1, four_twice(q.add(c * 4)));
                    }
                    for (pair, sum) in pairs.iter_mut().zip(sum) {
                        *pair = vpadalq_s16(*pair, sum);
                    }
                }
                rows_of(pairs)
            };
            finish(&mut acc, sum, &tile.d, &tile.m, acts.d[at], acts.s[at]);
        }
        out[row * LANES..(row + 1) * LANES].copy_from_slice(&acc);
    }
}
