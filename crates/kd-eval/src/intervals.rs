//! Confidence intervals of shares and differences: Wilson's interval, a paired bootstrap, and the detectable effect
//! size.

use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// The 97.5 % point of the normal distribution.
pub const Z95: f64 = 1.959_963_984_540_054;
/// The 95 % point: the end of a one-sided interval.
pub const Z95_ONE_SIDED: f64 = 1.644_853_626_951_472_7;
/// The 80 % point: the usual power of planned tests.
const Z80: f64 = 0.841_621_233_572_914;

/// An interval, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Returns whether it contains zero (no difference), ends included.
    pub fn spans_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

/// Returns Wilson's 95 % interval for a share (Wilson 1927), within 0 and 1. `hits` may be a sum of expectations. The
/// whole range without trials.
pub fn wilson(hits: f64, n: u64) -> Interval {
    if n == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let n = n as f64;
    let p = (hits / n).clamp(0.0, 1.0);
    let z2 = Z95 * Z95;
    let middle = p + z2 / (2.0 * n);
    let half = Z95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At the ends the interval touches them exactly; floats may be off by the last bit.
    Interval {
        low: if p == 0.0 {
            0.0
        } else {
            ((middle - half) / scale).max(0.0)
        },
        high: if p == 1.0 {
            1.0
        } else {
            ((middle + half) / scale).min(1.0)
        },
    }
}

/// Returns the 95 % percentile interval of the mean of paired differences, by a bootstrap of `draws` samples with
/// replacement. Deterministic for the same differences and seed. 0 to 0 if there are no differences.
pub fn bootstrap(differences: &[f64], draws: usize, seed: u64) -> Interval {
    let n = differences.len();
    if n == 0 || draws == 0 {
        return Interval {
            low: 0.0,
            high: 0.0,
        };
    }
    // There are few distinct values, so a sample draws how often each of them occurs.
    let mut values: Vec<(f64, u64)> = Vec::new();
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    for d in sorted {
        match values.last_mut() {
            Some((v, count)) if *v == d => *count += 1,
            _ => values.push((d, 1)),
        }
    }
    // The most common value is the last: its count is the remainder and is not drawn.
    values.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)));
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..draws)
        .map(|_| {
            let (mut left, mut mass, mut sum) = (n as u64, n as u64, 0.0);
            for (at, (value, count)) in values.iter().enumerate() {
                let drawn = if at + 1 == values.len() {
                    left
                } else {
                    binomial(&mut chance, left, *count as f64 / mass as f64)
                };
                sum += drawn as f64 * value;
                left -= drawn;
                mass -= count;
            }
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |q: f64| means[((draws - 1) as f64 * q).round() as usize];
    Interval {
        low: at(0.025),
        high: at(0.975),
    }
}

/// Returns the 95 % interval of a mean difference, within -1 and 1, if all `n` observed ones are equal: a bootstrap would have
/// no width then. By the bound of Clopper and Pearson, at least `0.025^(1/n)` of all questions show this difference; the
/// others may show any.
pub fn of_equal(difference: f64, n: u64) -> Interval {
    let least = if n == 0 {
        0.0
    } else {
        0.025_f64.powf(1.0 / n as f64)
    };
    let (middle, rest) = (least * difference, 1.0 - least);
    Interval {
        low: (middle - rest).max(-1.0),
        high: (middle + rest).min(1.0),
    }
}

/// Draws how many of `n` trials succeed, each with probability `p`: exact, by waiting times between successes for rare
/// ones, and by rejection sampling for frequent ones (BTRS, Hörmann 1993).
pub fn binomial(chance: &mut ChaCha12Rng, n: u64, p: f64) -> u64 {
    if p <= 0.0 || n == 0 {
        return 0;
    }
    if p >= 1.0 {
        return n;
    }
    if p > 0.5 {
        return n - binomial(chance, n, 1.0 - p);
    }
    let mean = n as f64 * p;
    if mean < 10.0 {
        let per = (-p).ln_1p();
        let (mut hits, mut at) = (0u64, 0.0f64);
        loop {
            let u: f64 = 1.0 - chance.random::<f64>();
            at += (u.ln() / per).floor() + 1.0;
            if at > n as f64 {
                return hits;
            }
            hits += 1;
        }
    }
    let nf = n as f64;
    let q = 1.0 - p;
    let spread = (mean * q).sqrt();
    let b = 1.15 + 2.53 * spread;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = mean + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let alpha = (2.83 + 5.1 / b) * spread;
    let odds = p / q;
    let mode = ((nf + 1.0) * p).floor();
    loop {
        let u = chance.random::<f64>() - 0.5;
        let v: f64 = 1.0 - chance.random::<f64>();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        if k < 0.0 || k > nf {
            continue;
        }
        if us >= 0.07 && v <= v_r {
            return k as u64;
        }
        let hat = (v * alpha / (a / (us * us) + b)).ln();
        let bound = (mode + 0.5) * ((mode + 1.0) / (odds * (nf - mode + 1.0))).ln()
            + (nf + 1.0) * ((nf - mode + 1.0) / (nf - k + 1.0)).ln()
            + (k + 0.5) * (odds * (nf - k + 1.0) / (k + 1.0)).ln()
            + stirling(mode)
            + stirling(nf - mode)
            - stirling(k)
            - stirling(nf - k);
        if hat <= bound {
            return k as u64;
        }
    }
}

/// Returns the error of Stirling's formula for `ln k!`.
fn stirling(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.081_061_466_795_327_26,
        0.041_340_695_955_409_29,
        0.027_677_925_684_998_34,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_19,
        0.013_876_128_823_070_75,
        0.011_896_709_945_891_77,
        0.010_411_265_261_972_09,
        0.009_255_462_182_712_733,
        0.008_330_563_433_362_87,
    ];
    if k < 10.0 {
        return FIRST[k as usize];
    }
    let k1 = k + 1.0;
    let k2 = k1 * k1;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / k2) / k2) / k1
}

/// Returns the smallest true difference that a paired test detects with 80 % power, given the number `n` of questions
/// and the number of questions with different results.
pub fn detectable_paired(discordant: u64, n: u64) -> f64 {
    if n == 0 {
        f64::INFINITY
    } else {
        (Z95 + Z80) * (discordant as f64).sqrt() / n as f64
    }
}

/// Returns the smallest true difference that a test detects with 80 % power, for two separate samples of `n` questions
/// each around a share of `p`.
pub fn detectable_unpaired(p: f64, n: u64) -> f64 {
    if n == 0 {
        f64::INFINITY
    } else {
        (Z95 + Z80) * (2.0 * p * (1.0 - p) / n as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_says_what_textbooks_say() {
        let i = wilson(81.0, 263);
        assert!(
            (i.low - 0.2553).abs() < 5e-5 && (i.high - 0.3662).abs() < 5e-5,
            "{i:?}"
        );
        assert_eq!(wilson(0.0, 10).low, 0.0);
        assert!((wilson(0.0, 10).high - 0.2775).abs() < 5e-5);
        assert_eq!(wilson(10.0, 10).high, 1.0);
        assert_eq!(
            wilson(0.0, 0),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
    }

    #[test]
    fn binomial_draws_have_their_mean_and_spread() {
        let mut chance = ChaCha12Rng::seed_from_u64(5);
        for (n, p) in [
            (20u64, 0.1),
            (1000, 0.004),
            (1000, 0.3),
            (1000, 0.9),
            (12_000, 0.08),
            (50, 0.5),
        ] {
            let draws = 20_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let k = binomial(&mut chance, n, p);
                assert!(k <= n);
                sum += k as f64;
                squares += (k * k) as f64;
            }
            let mean = sum / f64::from(draws);
            let variance = squares / f64::from(draws) - mean * mean;
            let (true_mean, true_variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
            let se = (true_variance / f64::from(draws)).sqrt();
            assert!((mean - true_mean).abs() < 5.0 * se, "{n} {p}: {mean}");
            assert!(
                (variance / true_variance - 1.0).abs() < 0.06,
                "{n} {p}: {variance}"
            );
        }
        assert_eq!(binomial(&mut chance, 7, 0.0), 0);
        assert_eq!(binomial(&mut chance, 7, 1.0), 7);
    }

    #[test]
    fn the_bootstrap_agrees_with_the_normal_interval_and_with_itself() {
        // 100 won, 60 lost, 840 equal: mean .04, standard error sqrt(.16 - .0016) / sqrt(1000).
        let mut d = vec![0.0; 1000];
        d[..100].fill(1.0);
        d[100..160].fill(-1.0);
        let i = bootstrap(&d, 10_000, 1);
        let half = Z95 * ((0.16f64 - 0.0016) / 1000.0).sqrt();
        assert!(
            (i.low - (0.04 - half)).abs() < 0.0015 && (i.high - (0.04 + half)).abs() < 0.0015,
            "{i:?}"
        );
        assert!(!i.spans_zero());
        assert_eq!(i, bootstrap(&d, 10_000, 1));
        d.reverse();
        assert_eq!(
            i,
            bootstrap(&d, 10_000, 1),
            "the order of questions leaves no trace"
        );
        assert_eq!(
            bootstrap(&[0.0; 50], 1000, 1),
            Interval {
                low: 0.0,
                high: 0.0
            }
        );
        assert_eq!(
            bootstrap(&[], 1000, 1),
            Interval {
                low: 0.0,
                high: 0.0
            }
        );
    }

    #[test]
    fn small_tests_see_only_large_differences() {
        assert!((detectable_unpaired(0.67, 992) - 0.059).abs() < 5e-4);
        assert!((detectable_paired(160, 1000) - 2.8016 * 160f64.sqrt() / 1000.0).abs() < 1e-5);
        assert_eq!(detectable_paired(0, 0), f64::INFINITY);
    }
}
