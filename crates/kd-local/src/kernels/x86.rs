//! AVX2 with FMA and F16C; the dot products also with the 8-bit instructions of AVX-512 VNNI, at 256 bits.

use super::{Acts, BLOCK, LANES, Tile4, Tile8};
use half::f16;
use std::arch::x86_64::*;

/// Runs `$tile::<T>` over all rows of activations, four or eight at a time, so that weights are unpacked once per
/// group.
macro_rules! rows {
    ($name:ident, $tile:ident, $kind:ty, $features:literal, $most:literal) => {
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(tiles: &[$kind], acts: &Acts, out: &mut [f32]) {
            let mut row = 0;
            // SAFETY: the caller checked that `out` holds eight numbers for each row of `acts`.
            unsafe {
                while row + $most <= acts.rows {
                    $tile::<$most>(tiles, acts, row, out);
                    row += $most;
                }
                while row + 4 <= acts.rows {
                    $tile::<4>(tiles, acts, row, out);
                    row += 4;
                }
                match acts.rows - row {
                    3 => $tile::<3>(tiles, acts, row, out),
                    2 => $tile::<2>(tiles, acts, row, out),
                    1 => $tile::<1>(tiles, acts, row, out),
                    _ => {}
                }
            }
        }
    };
}

rows!(rows4, tile4, Tile4, "avx2,fma,f16c", 4);
rows!(rows8, tile8, Tile8, "avx2,fma,f16c", 4);
rows!(
    rows4_vnni,
    tile4_vnni,
    Tile4,
    "avx2,fma,f16c,avx512f,avx512vl,avx512vnni",
    8
);
rows!(
    rows8_vnni,
    tile8_vnni,
    Tile8,
    "avx2,fma,f16c,avx512f,avx512vl,avx512vnni",
    8
);

/// Broadcasts four activations of one row to every lane.
#[inline(always)]
unsafe fn four(q: *const i8) -> i32 {
    // SAFETY: the caller points at four values.
    unsafe { q.cast::<i32>().read_unaligned() }
}

/// Computes `acc = sum * (d * a) + m * s`, in the order of the portable code.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn finish(acc: __m256, sum: __m256i, d: __m256, m: __m256, a: f32, s: f32) -> __m256 {
    let acc = _mm256_fmadd_ps(
        _mm256_cvtepi32_ps(sum),
        _mm256_mul_ps(d, _mm256_set1_ps(a)),
        acc,
    );
    _mm256_fmadd_ps(m, _mm256_set1_ps(s), acc)
}

#[inline]
#[target_feature(enable = "f16c,avx2")]
unsafe fn halves(p: *const f16) -> __m256 {
    // SAFETY: the caller points at eight values.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
}

/// Writes the eight outputs of `T` rows from `row` on.
#[inline]
#[target_feature(enable = "avx2")]
fn store<const T: usize>(acc: [__m256; T], row: usize, out: &mut [f32]) {
    for (t, acc) in acc.into_iter().enumerate() {
        let out = &mut out[(row + t) * LANES..(row + t + 1) * LANES];
        // SAFETY: the slice holds eight numbers.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), acc) }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile4<const T: usize>(tiles: &[Tile4], acts: &Acts, row: usize, out: &mut [f32]) {
    let nb = tiles.len();
    let mask = _mm256_set1_epi8(15);
    let ones = _mm256_set1_epi16(1);
    let mut acc = [_mm256_setzero_ps(); T];
    for (b, tile) in tiles.iter().enumerate() {
        // At most 8 * 2 * 15 * 127 = 30,480 per lane: 16 bits hold the sum of a whole block.
        let mut sum = [_mm256_setzero_si256(); T];
        for c in 0..4 {
            // SAFETY: `c * 32 + 32 <= 128`, and a tile is aligned to 32 bytes.
            let raw = unsafe { _mm256_load_si256(tile.q.as_ptr().add(c * 32).cast()) };
            let low = _mm256_and_si256(raw, mask);
            let high = _mm256_and_si256(_mm256_srli_epi16(raw, 4), mask);
            for t in 0..T {
                // SAFETY: block `b` of row `row + t` lies inside `acts.q`, whose length the caller checked.
                let (a, z) = unsafe {
                    let q = acts.q.as_ptr().add(((row + t) * nb + b) * BLOCK + c * 4);
                    (
                        _mm256_set1_epi32(four(q)),
                        _mm256_set1_epi32(four(q.add(16))),
                    )
                };
                let both =
                    _mm256_add_epi16(_mm256_maddubs_epi16(low, a), _mm256_maddubs_epi16(high, z));
                sum[t] = _mm256_add_epi16(sum[t], both);
            }
        }
        // SAFETY: eight scales each.
        let (d, m) = unsafe { (halves(tile.d.as_ptr()), halves(tile.m.as_ptr())) };
        for t in 0..T {
            let at = (row + t) * nb + b;
            // SAFETY: one scale per block, checked by the caller.
            let (a, s) = unsafe { (*acts.d.get_unchecked(at), *acts.s.get_unchecked(at)) };
            acc[t] = finish(acc[t], _mm256_madd_epi16(sum[t], ones), d, m, a, s);
        }
    }
    store(acc, row, out);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512vnni")]
unsafe fn tile4_vnni<const T: usize>(tiles: &[Tile4], acts: &Acts, row: usize, out: &mut [f32]) {
    let nb = tiles.len();
    let mask = _mm256_set1_epi8(15);
    let mut acc = [_mm256_setzero_ps(); T];
    for (b, tile) in tiles.iter().enumerate() {
        let mut sum = [_mm256_setzero_si256(); T];
        for c in 0..4 {
            // SAFETY: as in `tile4`.
            let raw = unsafe { _mm256_load_si256(tile.q.as_ptr().add(c * 32).cast()) };
            let low = _mm256_and_si256(raw, mask);
            let high = _mm256_and_si256(_mm256_srli_epi16(raw, 4), mask);
            for t in 0..T {
                // SAFETY: as in `tile4`.
                let (a, z) = unsafe {
                    let q = acts.q.as_ptr().add(((row + t) * nb + b) * BLOCK + c * 4);
                    (
                        _mm256_set1_epi32(four(q)),
                        _mm256_set1_epi32(four(q.add(16))),
                    )
                };
                sum[t] = _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(sum[t], low, a), high, z);
            }
        }
        // SAFETY: eight scales each.
        let (d, m) = unsafe { (halves(tile.d.as_ptr()), halves(tile.m.as_ptr())) };
        for t in 0..T {
            let at = (row + t) * nb + b;
            // SAFETY: as in `tile4`.
            let (a, s) = unsafe { (*acts.d.get_unchecked(at), *acts.s.get_unchecked(at)) };
            acc[t] = finish(acc[t], sum[t], d, m, a, s);
        }
    }
    store(acc, row, out);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn tile8<const T: usize>(tiles: &[Tile8], acts: &Acts, row: usize, out: &mut [f32]) {
    let nb = tiles.len();
    let ones = _mm256_set1_epi16(1);
    let mut acc = [_mm256_setzero_ps(); T];
    for (b, tile) in tiles.iter().enumerate() {
        let mut sum = [_mm256_setzero_si256(); T];
        for c in 0..8 {
            // SAFETY: `c * 32 + 32 <= 256`, and a tile is aligned to 32 bytes.
            let raw = unsafe { _mm256_load_si256(tile.q.as_ptr().add(c * 32).cast()) };
            let size = _mm256_abs_epi8(raw);
            for t in 0..T {
                // SAFETY: as in `tile4`.
                let a = unsafe {
                    _mm256_set1_epi32(four(
                        acts.q.as_ptr().add(((row + t) * nb + b) * BLOCK + c * 4),
                    ))
                };
                // At most 2 * 128 * 127 = 32,512 per lane.
                let products = _mm256_maddubs_epi16(size, _mm256_sign_epi8(a, raw));
                sum[t] = _mm256_add_epi32(sum[t], _mm256_madd_epi16(products, ones));
            }
        }
        // SAFETY: eight scales each.
        let (d, m) = unsafe { (halves(tile.d.as_ptr()), halves(tile.m.as_ptr())) };
        for t in 0..T {
            let at = (row + t) * nb + b;
            // SAFETY: as in `tile4`.
            let (a, s) = unsafe { (*acts.d.get_unchecked(at), *acts.s.get_unchecked(at)) };
            acc[t] = finish(acc[t], sum[t], d, m, a, s);
        }
    }
    store(acc, row, out);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512vl,avx512vnni")]
unsafe fn tile8_vnni<const T: usize>(tiles: &[Tile8], acts: &Acts, row: usize, out: &mut [f32]) {
    let nb = tiles.len();
    let mut acc = [_mm256_setzero_ps(); T];
    for (b, tile) in tiles.iter().enumerate() {
        let mut sum = [_mm256_setzero_si256(); T];
        for c in 0..8 {
            // SAFETY: as in `tile8`.
            let raw = unsafe { _mm256_load_si256(tile.q.as_ptr().add(c * 32).cast()) };
            let size = _mm256_abs_epi8(raw);
            for t in 0..T {
                // SAFETY: as in `tile4`.
                let a = unsafe {
                    _mm256_set1_epi32(four(
                        acts.q.as_ptr().add(((row + t) * nb + b) * BLOCK + c * 4),
                    ))
                };
                sum[t] = _mm256_dpbusd_epi32(sum[t], size, _mm256_sign_epi8(a, raw));
            }
        }
        // SAFETY: eight scales each.
        let (d, m) = unsafe { (halves(tile.d.as_ptr()), halves(tile.m.as_ptr())) };
        for t in 0..T {
            let at = (row + t) * nb + b;
            // SAFETY: as in `tile4`.
            let (a, s) = unsafe { (*acts.d.get_unchecked(at), *acts.s.get_unchecked(at)) };
            acc[t] = finish(acc[t], sum[t], d, m, a, s);
        }
    }
    store(acc, row, out);
}

/// The inner loop of [`super::scores`]: lanes are positions, so no horizontal sums are needed.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn scores<const Q: usize>(
    k: &[f16],
    n: usize,
    q: &[f32],
    dim: usize,
    out: &mut [f32],
    stride: usize,
) {
    for block in 0..n.div_ceil(LANES) {
        let mut even = [_mm256_setzero_ps(); Q];
        let mut odd = [_mm256_setzero_ps(); Q];
        // SAFETY: `k` holds whole blocks of 8 positions for `n`, `q` holds `Q * dim` numbers, and every row of `out`
        // has space for whole blocks: `super::scores` asserted all three.
        unsafe {
            let keys = k.as_ptr().add(block * dim * LANES);
            for j in (0..dim).step_by(2) {
                let (k0, k1) = (
                    halves(keys.add(j * LANES)),
                    halves(keys.add((j + 1) * LANES)),
                );
                for i in 0..Q {
                    let q = q.as_ptr().add(i * dim + j);
                    even[i] = _mm256_fmadd_ps(k0, _mm256_set1_ps(*q), even[i]);
                    odd[i] = _mm256_fmadd_ps(k1, _mm256_set1_ps(*q.add(1)), odd[i]);
                }
            }
            for i in 0..Q {
                let at = out.as_mut_ptr().add(i * stride + block * LANES);
                _mm256_storeu_ps(at, _mm256_add_ps(even[i], odd[i]));
            }
        }
    }
}

/// The inner loop of [`super::mix`]: 16 or 8 dimensions stay in registers during the loop over positions.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn mix<const Q: usize>(
    v: &[f16],
    n: usize,
    w: &[f32],
    stride: usize,
    dim: usize,
    out: &mut [f32],
) {
    let mut j = 0;
    while j < dim {
        let wide = j + 2 * LANES <= dim;
        let mut acc = [[_mm256_setzero_ps(); 2]; Q];
        // SAFETY: `v` holds `n` rows of `dim`, `w` holds `n` weights from `i * stride` on, `out` holds `Q` rows of
        // `dim`, and `dim` is a multiple of 8: `super::mix` asserted it.
        unsafe {
            for i in 0..Q {
                let at = out.as_ptr().add(i * dim + j);
                acc[i][0] = _mm256_loadu_ps(at);
                if wide {
                    acc[i][1] = _mm256_loadu_ps(at.add(LANES));
                }
            }
            for p in 0..n {
                let at = v.as_ptr().add(p * dim + j);
                let v0 = halves(at);
                let v1 = if wide { halves(at.add(LANES)) } else { v0 };
                for i in 0..Q {
                    let w = _mm256_set1_ps(*w.as_ptr().add(i * stride + p));
                    acc[i][0] = _mm256_fmadd_ps(v0, w, acc[i][0]);
                    acc[i][1] = _mm256_fmadd_ps(v1, w, acc[i][1]);
                }
            }
            for i in 0..Q {
                let at = out.as_mut_ptr().add(i * dim + j);
                _mm256_storeu_ps(at, acc[i][0]);
                if wide {
                    _mm256_storeu_ps(at.add(LANES), acc[i][1]);
                }
            }
        }
        j += if wide { 2 * LANES } else { LANES };
    }
}
