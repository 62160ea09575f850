//! Exact confidence bounds for a proportion estimated from a sample (Clopper and Pearson 1934).

use statrs::function::beta::{beta_reg, inv_beta_reg};

/// Returns the probability that at most `hits` of `n` independent trials succeed, each with probability `p`.
pub fn at_most(hits: u64, n: u64, p: f64) -> f64 {
    if hits >= n {
        return 1.0;
    }
    if p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    beta_reg((n - hits) as f64, hits as f64 + 1.0, 1.0 - p)
}

/// Returns the highest success probability at which `hits` or fewer of `n` still have a probability of at least `risk`:
/// with confidence `1 - risk`, the true share is at most this.
pub fn upper(hits: u64, n: u64, risk: f64) -> f64 {
    if hits >= n {
        return 1.0;
    }
    inv_beta_reg(hits as f64 + 1.0, (n - hits) as f64, 1.0 - risk)
}

/// Returns the minimum number of trials, none failing, that rules out a failure share of `share`.
pub fn least(share: f64, risk: f64) -> u64 {
    (risk.ln() / (1.0 - share).ln()).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: the sum of the terms.
    fn sum(hits: u64, n: u64, p: f64) -> f64 {
        let mut term = (1.0 - p).powi(n as i32);
        let mut total = term;
        for k in 0..hits {
            term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
            total += term;
        }
        total
    }

    #[test]
    fn tails_are_the_sum_of_their_terms() {
        for n in [1, 2, 7, 45, 200] {
            for hits in 0..n {
                for p in [0.01, 0.05, 0.3, 0.5, 0.9] {
                    let (is, should) = (at_most(hits, n, p), sum(hits, n, p));
                    assert!(
                        (is - should).abs() < 1e-9,
                        "{hits} of {n}, {p}: {is} {should}"
                    );
                }
            }
            assert_eq!(at_most(n, n, 0.3), 1.0);
        }
    }

    #[test]
    fn a_bound_is_where_the_tail_is_as_small_as_the_risk() {
        for (hits, n) in [(0, 1), (0, 45), (3, 100), (99, 100), (17, 1000)] {
            for risk in [0.1, 0.05, 0.01] {
                let bound = upper(hits, n, risk);
                assert!(
                    (at_most(hits, n, bound) - risk).abs() < 1e-6,
                    "{hits} of {n}"
                );
            }
        }
        assert_eq!(upper(5, 5, 0.1), 1.0);
        // Published value: none of 10 trials failed; one-sided 95 %.
        assert!((upper(0, 10, 0.05) - 0.258_866).abs() < 1e-5);
        assert_eq!((least(0.05, 0.1), least(0.1, 0.1)), (45, 22));
        assert!(at_most(0, 45, 0.05) <= 0.1 && at_most(0, 44, 0.05) > 0.1);
    }
}
