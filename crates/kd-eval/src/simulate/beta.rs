//! The quantiles of a beta distribution: how hard a question is for a member of known strength.

use statrs::function::gamma::ln_gamma;

/// Number of quantiles.
pub(super) const STEPS: usize = 4096;

/// Returns, for each of [`STEPS`] equally likely questions from the hardest to the easiest, the probability that a
/// member of accuracy `p` is right, so that two members' errors correlate by `rho`. The mean of the values is `p`.
pub(super) fn quantiles(p: f64, rho: f64) -> Vec<f64> {
    if rho <= 0.0 || p <= 0.0 || p >= 1.0 {
        return vec![p.clamp(0.0, 1.0); STEPS];
    }
    let s = (1.0 - rho) / rho;
    let (a, b) = (p * s, (1.0 - p) * s);
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let mut from = 0.0;
    let mut values: Vec<f64> = (0..STEPS)
        .map(|i| {
            let u = (i as f64 + 0.5) / STEPS as f64;
            let (mut low, mut high) = (from, 1.0);
            for _ in 0..60 {
                let middle = (low + high) / 2.0;
                if below(middle, a, b, front) < u {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            from = low;
            low
        })
        .collect();
    // Corrects what the grid misses at its ends, so that the mean is exactly `p`.
    let miss = p - values.iter().sum::<f64>() / STEPS as f64;
    values
        .iter_mut()
        .for_each(|v| *v = (*v + miss).clamp(0.0, 1.0));
    values
}

/// Returns the probability that a beta variable is below `x`: Lentz's continued fraction of the incomplete beta
/// function.
fn below(x: f64, a: f64, b: f64, front: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let scale = (front + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        scale * fraction(x, a, b) / a
    } else {
        1.0 - scale * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for step in [even, odd] {
            d = 1.0 / keep(1.0 + step * d);
            c = keep(1.0 + step / c);
            last = c * d;
            h *= last;
        }
        if (last - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beta_is_what_tables_say() {
        let at =
            |x: f64, a: f64, b: f64| below(x, a, b, ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b));
        assert!((at(0.3, 1.0, 1.0) - 0.3).abs() < 1e-12);
        assert!((at(0.5, 2.0, 3.0) - 0.6875).abs() < 1e-12);
        assert!((at(0.5, 0.5, 0.5) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn difficulty_has_the_mean_and_the_spread_asked_for() {
        for (p, rho) in [(0.7, 0.4), (0.9, 0.2), (0.5, 0.6), (0.7, 0.0)] {
            let q = quantiles(p, rho);
            let mean = q.iter().sum::<f64>() / STEPS as f64;
            let variance = q.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / STEPS as f64;
            assert!((mean - p).abs() < 1e-6, "{mean}");
            // The intra-class correlation is the variance of the difficulty in units of p (1 - p).
            assert!(
                (variance / (p * (1.0 - p)) - rho).abs() < 2e-3,
                "{p} {rho}: {variance}"
            );
            assert!(q.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
