//! Every code variant against the portable one, bit for bit, and the portable one against textbook arithmetic.

use super::*;
use crate::tiny::Random;

fn numbers(random: &mut Random, n: usize, size: f32) -> Vec<f32> {
    (0..n).map(|_| random.signed() * size).collect()
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|v| v.to_bits()).collect()
}

fn acts(random: &mut Random, simd: Simd, rows: usize, columns: usize) -> Acts {
    let x = numbers(random, rows * columns, 3.0);
    let mut acts = Acts::default();
    acts.shape(rows, columns);
    quantise(simd, &x, &mut acts.q, &mut acts.d, &mut acts.s);
    acts
}

fn halves(random: &mut Random) -> [f16; LANES] {
    std::array::from_fn(|_| f16::from_f32(random.signed() * 0.02))
}

fn tiles4(random: &mut Random, n: usize) -> Vec<Tile4> {
    (0..n)
        .map(|_| Tile4 {
            q: std::array::from_fn(|_| random.next() as u8),
            d: halves(random),
            m: halves(random),
        })
        .collect()
}

fn tiles8(random: &mut Random, n: usize) -> Vec<Tile8> {
    (0..n)
        .map(|_| Tile8 {
            q: std::array::from_fn(|_| random.next() as i8),
            d: halves(random),
            m: halves(random),
        })
        .collect()
}

/// Shapes: row counts around the steps of 4 and 8, one block and several.
fn shapes() -> impl Iterator<Item = (usize, usize, usize)> {
    let rows: &[usize] = if cfg!(miri) {
        &[1, 3]
    } else {
        &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 21]
    };
    rows.iter()
        .flat_map(|rows| [(*rows, 1, 1), (*rows, 3, 2), (*rows, 18, 1)])
}

#[test]
fn matrices_are_the_same_bits_everywhere() {
    let mut random = Random(3);
    for (rows, blocks, groups) in shapes() {
        let acts = acts(&mut random, Simd::SCALAR, rows, blocks * BLOCK);
        let (t4, t8) = (
            tiles4(&mut random, blocks * groups),
            tiles8(&mut random, blocks * groups),
        );
        let run = |simd| {
            let (mut four, mut eight) = (
                vec![0.0; groups * rows * LANES],
                vec![0.0; groups * rows * LANES],
            );
            matmul4(simd, &t4, &acts, &mut four);
            matmul8(simd, &t8, &acts, &mut eight);
            (bits(&four), bits(&eight))
        };
        let truth = run(Simd::SCALAR);
        for simd in Simd::available() {
            assert_eq!(run(simd), truth, "{} {rows}x{blocks}", simd.name());
        }
    }
}

#[test]
fn extreme_integers_do_not_overflow() {
    for sign in [-127i8, 127] {
        let mut acts = Acts::default();
        acts.shape(5, BLOCK);
        acts.q.fill(sign);
        acts.d.fill(1.0);
        acts.s.fill(0.0);
        let one = [f16::ONE; LANES];
        let t4 = [Tile4 {
            q: [0xff; 128],
            d: one,
            m: one,
        }];
        for simd in Simd::available() {
            let mut out = [0.0; 5 * LANES];
            matmul4(simd, &t4, &acts, &mut out);
            assert_eq!(
                out,
                [32.0 * 15.0 * f32::from(sign); 5 * LANES],
                "{}",
                simd.name()
            );
            for weight in [-128i8, -127, 127] {
                matmul8(
                    simd,
                    &[Tile8 {
                        q: [weight; 256],
                        d: one,
                        m: one,
                    }],
                    &acts,
                    &mut out,
                );
                assert_eq!(
                    out,
                    [32.0 * f32::from(weight) * f32::from(sign); 5 * LANES],
                    "{}",
                    simd.name()
                );
            }
        }
    }
}

#[test]
fn a_row_is_the_same_alone_and_among_others() {
    let mut random = Random(4);
    let (rows, blocks) = (13, 4);
    let all = acts(&mut random, Simd::SCALAR, rows, blocks * BLOCK);
    let tiles = tiles4(&mut random, blocks);
    for simd in Simd::available() {
        let mut together = vec![0.0; rows * LANES];
        matmul4(simd, &tiles, &all, &mut together);
        for r in 0..rows {
            let one = Acts {
                rows: 1,
                columns: all.columns,
                q: all.q[r * all.columns..(r + 1) * all.columns].to_vec(),
                d: all.d[r * blocks..(r + 1) * blocks].to_vec(),
                s: all.s[r * blocks..(r + 1) * blocks].to_vec(),
            };
            let mut alone = [0.0; LANES];
            matmul4(simd, &tiles, &one, &mut alone);
            assert_eq!(bits(&alone), bits(&together[r * LANES..(r + 1) * LANES]));
        }
    }
}

#[test]
fn a_matrix_is_what_the_book_says() {
    let mut random = Random(5);
    let blocks = 6;
    let x = numbers(&mut random, blocks * BLOCK, 2.0);
    let mut acts = Acts::default();
    acts.shape(1, blocks * BLOCK);
    quantise(Simd::SCALAR, &x, &mut acts.q, &mut acts.d, &mut acts.s);
    let tiles = tiles8(&mut random, blocks);
    let mut out = [0.0; LANES];
    matmul8(Simd::SCALAR, &tiles, &acts, &mut out);
    for (r, out) in out.iter().enumerate() {
        let mut exact = 0.0f64;
        let mut size = 0.0f64;
        for (b, tile) in tiles.iter().enumerate() {
            for i in 0..BLOCK {
                let weight = tile.d[r].to_f64() * f64::from(tile.q[i / 4 * 32 + r * 4 + i % 4])
                    + tile.m[r].to_f64();
                exact += weight * f64::from(x[b * BLOCK + i]);
                size += (weight * f64::from(x[b * BLOCK + i])).abs();
            }
        }
        // The only difference allowed is the rounding of activations to 8 bits.
        assert!(
            (f64::from(*out) - exact).abs() < 0.004 * size,
            "{out} {exact}"
        );
    }
}

#[test]
fn quantising_rounds_to_the_nearest_and_keeps_the_sum() {
    let mut random = Random(6);
    let x = [
        numbers(&mut random, BLOCK, 1e-3),
        numbers(&mut random, BLOCK, 1e4),
        vec![0.0; BLOCK],
        vec![1e-38; BLOCK],
    ]
    .concat();
    let run = |simd| {
        let (mut q, mut d, mut s) = (vec![0; x.len()], vec![0.0; 4], vec![0.0; 4]);
        quantise(simd, &x, &mut q, &mut d, &mut s);
        (q, bits(&d), bits(&s))
    };
    let truth = run(Simd::SCALAR);
    for simd in Simd::available() {
        assert_eq!(run(simd), truth, "{}", simd.name());
    }
    let (q, d, s) = truth;
    for b in 0..2 {
        let d = f32::from_bits(d[b]);
        let sum: i32 = q[b * BLOCK..(b + 1) * BLOCK]
            .iter()
            .map(|q| i32::from(*q))
            .sum();
        assert_eq!(f32::from_bits(s[b]), d * sum as f32);
        for i in b * BLOCK..(b + 1) * BLOCK {
            assert!((f32::from(q[i]) * d - x[i]).abs() <= 0.5001 * d);
        }
    }
    assert!(q[2 * BLOCK..].iter().all(|q| *q == 0));
}

#[test]
fn what_is_no_number_does_no_harm_here() {
    for simd in Simd::available() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (mut q, mut d, mut s) = (vec![0; BLOCK], vec![0.0], vec![0.0]);
            let mut x = vec![1.0; BLOCK];
            x[7] = bad;
            quantise(simd, &x, &mut q, &mut d, &mut s);
            assert!(q.iter().all(|q| (-127..=127).contains(q)));
        }
    }
}

#[test]
fn attention_is_the_same_bits_everywhere_and_wherever_it_is_cut() {
    let mut random = Random(7);
    for (n, dim, count) in [
        (1usize, 8, 1),
        (9, 16, 2),
        (20, 24, 3),
        (33, 64, 6),
        (17, 128, 13),
    ] {
        if cfg!(miri) && n > 9 {
            continue;
        }
        let padded = n.next_multiple_of(LANES);
        let half = |random: &mut Random, n: usize| -> Vec<f16> {
            (0..n).map(|_| f16::from_f32(random.signed())).collect()
        };
        let (keys, values) = (half(&mut random, padded * dim), half(&mut random, n * dim));
        let queries = numbers(&mut random, count * dim, 1.0);
        let stride = padded + LANES;
        let run = |simd, cut: usize| {
            let mut s = vec![0.0; count * stride];
            // A cut at a block boundary gives two segments: the second one's scores follow the first one's.
            scores(simd, &keys, cut, &queries, dim, &mut s, stride);
            if cut < n {
                scores(
                    simd,
                    &keys[cut * dim..],
                    n - cut,
                    &queries,
                    dim,
                    &mut s[cut..],
                    stride,
                );
            }
            let seen: Vec<f32> = s.chunks(stride).flat_map(|s| s[..n].to_vec()).collect();
            s.chunks_mut(stride)
                .for_each(|s| softmax(simd, &mut s[..n]));
            let mut out = vec![0.0; count * dim];
            mix(simd, &values, cut, &s, stride, dim, &mut out);
            if cut < n {
                mix(
                    simd,
                    &values[cut * dim..],
                    n - cut,
                    &s[cut..],
                    stride,
                    dim,
                    &mut out,
                );
            }
            (bits(&seen), bits(&out), seen, out)
        };
        let truth = run(Simd::SCALAR, n);
        for simd in Simd::available() {
            for cut in [n, n / LANES * LANES] {
                let got = run(simd, cut);
                assert_eq!(
                    (&got.0, &got.1),
                    (&truth.0, &truth.1),
                    "{} {n} {dim} {count} {cut}",
                    simd.name()
                );
            }
        }
        for i in 0..count {
            let exact: Vec<f64> = (0..n)
                .map(|p| {
                    (0..dim)
                        .map(|j| {
                            f64::from(queries[i * dim + j])
                                * keys[(p / 8 * dim + j) * 8 + p % 8].to_f64()
                        })
                        .sum()
                })
                .collect();
            for (got, exact) in truth.2[i * n..(i + 1) * n].iter().zip(&exact) {
                assert!((f64::from(*got) - exact).abs() < 1e-4, "{got} {exact}");
            }
            let weights = crate::tiny::softmax(&exact);
            for j in 0..dim {
                let exact: f64 = (0..n)
                    .map(|p| weights[p] * values[p * dim + j].to_f64())
                    .sum();
                assert!((f64::from(truth.3[i * dim + j]) - exact).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn row_functions_are_the_same_bits_everywhere_and_right() {
    let mut random = Random(8);
    for n in [1, 7, 8, 31, 576] {
        let (x, w) = (numbers(&mut random, n, 5.0), numbers(&mut random, n, 1.0));
        let run = |simd| {
            let (mut a, mut b, mut c) = (vec![0.0; n], vec![0.0; n], x.clone());
            rms_norm(simd, &x, &w, 1e-5, &mut a);
            silu_mul(simd, &x, &w, &mut b);
            softmax(simd, &mut c);
            (bits(&a), bits(&b), bits(&c))
        };
        let truth = run(Simd::SCALAR);
        for simd in Simd::available() {
            assert_eq!(run(simd), truth, "{} {n}", simd.name());
        }
        let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / n as f64;
        let soft = crate::tiny::softmax(&x.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
        for i in 0..n {
            let (v, w) = (f64::from(x[i]), f64::from(w[i]));
            let near = |bits: u32, exact: f64| {
                (f64::from(f32::from_bits(bits)) - exact).abs() <= 3e-6 * exact.abs().max(1e-3)
            };
            assert!(near(truth.0[i], v / (mean + 1e-5).sqrt() * w));
            assert!(near(truth.1[i], v / (1.0 + (-v).exp()) * w));
            assert!(near(truth.2[i], soft[i]));
        }
    }
}

#[test]
fn exp_is_good_to_the_last_places_and_stays_finite() {
    for i in -8700..=8800 {
        let x = i as f32 / 100.0;
        let exact = f64::from(x).exp();
        assert!(((f64::from(exp(x)) - exact) / exact).abs() < 2e-7, "{x}");
    }
    assert!(exp(1e30).is_finite() && exp(-1e30) >= 0.0 && exp(f32::NEG_INFINITY) < 1e-37);
}
