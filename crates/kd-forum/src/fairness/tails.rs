//! Probabilities of counts and sums: exact binomial tails and the normal tail for one test at the end, and e-values
//! that stay valid however often they are evaluated.

use statrs::function::gamma::ln_gamma;
use std::collections::BTreeMap;

/// Resolution of stored probabilities: finer than any displayed figure.
const STEPS: f64 = 1e6;
/// Maximum terms of a tail; they decrease geometrically.
const TERMS: u64 = 100_000;
/// Bet sizes of an e-value, in either direction: small ones for long runs, large ones for short ones.
const BETS: [f64; 9] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56];

/// Counted events, each with its probability.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trials {
    pub(super) hits: u64,
    /// Trials by their probability, in steps.
    at: BTreeMap<u32, u64>,
}

impl Trials {
    /// Adds a trial. A trial with a certain outcome is ignored.
    pub(super) fn add(&mut self, probability: f64, hit: bool) {
        self.add_many(probability, 1, u64::from(hit));
    }

    /// Adds trials with the same probability.
    pub(super) fn add_many(&mut self, probability: f64, trials: u64, hits: u64) {
        let step = (probability * STEPS).round();
        if step > 0.0 && step < STEPS && trials > 0 {
            *self.at.entry(step as u32).or_default() += trials;
            self.hits += hits;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.at.values().sum()
    }

    /// Returns the expected number of hits.
    pub(super) fn expected(&self) -> f64 {
        self.at
            .iter()
            .map(|(step, n)| f64::from(*step) / STEPS * *n as f64)
            .sum()
    }

    /// Returns the two-sided probability of a count this extreme. With different probabilities, the binomial
    /// distribution of their mean is an upper bound (Hoeffding, 1956).
    pub(super) fn p(&self) -> f64 {
        let n = self.count();
        if n == 0 {
            return 1.0;
        }
        let (below, above) = binomial_tails(self.hits, n, self.expected() / n as f64);
        (2.0 * below.min(above)).min(1.0)
    }

    /// Returns the reciprocal of the e-value: the probability that it is ever this small is at most this (Ville, 1939).
    pub(super) fn p_anytime(&self) -> f64 {
        let hits = self.hits as f64;
        p_of_bets(|bet| {
            let grown = bet.exp_m1();
            let cost = self
                .at
                .iter()
                .map(|(step, n)| (f64::from(*step) / STEPS * grown).ln_1p() * *n as f64);
            bet * hits - cost.sum::<f64>()
        })
    }

    /// Returns the smallest excess of hits over their expectation, as a share of the trials, that fails a test of this
    /// level in 95 of 100 runs.
    pub(super) fn visible(&self, level: f64) -> Option<f64> {
        let n = self.count();
        if n == 0 {
            return None;
        }
        let p = self.expected() / n as f64;
        let (mut low, mut high) = (self.expected().floor() as u64, n);
        while low < high {
            let middle = low + (high - low) / 2;
            match 2.0 * binomial_tails(middle, n, p).1 <= level {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let share = low as f64 / n as f64;
        let seen = share + 1.645 * (share * (1.0 - share) / n as f64).max(0.0).sqrt();
        (2.0 * binomial_tails(low, n, p).1 <= level).then_some((seen - p).min(1.0 - p))
    }
}

/// Mixes e-values, given by their logarithm, over all bets; returns the reciprocal, at most 1.
pub(super) fn p_of_bets(log_e: impl Fn(f64) -> f64) -> f64 {
    let logs: Vec<f64> = BETS
        .iter()
        .flat_map(|bet| [log_e(*bet), log_e(-*bet)])
        .collect();
    let greatest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !greatest.is_finite() {
        return 1.0;
    }
    let sum: f64 = logs.iter().map(|log| (log - greatest).exp()).sum();
    let log_mean = greatest + (sum / logs.len() as f64).ln();
    (-log_mean).exp().min(1.0)
}

/// Returns P(X ≤ k) and P(X ≥ k) of a binomial distribution.
pub(super) fn binomial_tails(k: u64, n: u64, p: f64) -> (f64, f64) {
    if p <= 0.0 {
        return (1.0, if k == 0 { 1.0 } else { 0.0 });
    }
    if p >= 1.0 {
        return (if k >= n { 1.0 } else { 0.0 }, 1.0);
    }
    let (kf, nf) = (k as f64, n as f64);
    let log = ln_gamma(nf + 1.0) - ln_gamma(kf + 1.0) - ln_gamma(nf - kf + 1.0)
        + kf * p.ln()
        + (nf - kf) * (-p).ln_1p();
    let at = log.exp();
    let odds = p / (1.0 - p);
    let (mut sum, mut term) = (at, at);
    if kf >= nf * p {
        for i in (k + 1..=n).take(TERMS as usize) {
            term *= (n - i + 1) as f64 / i as f64 * odds;
            sum += term;
            if term < sum * 1e-15 {
                break;
            }
        }
        return ((1.0 - sum + at).clamp(0.0, 1.0), sum.min(1.0));
    }
    for i in (0..k).rev().take(TERMS as usize) {
        term *= (i + 1) as f64 / (n - i) as f64 / odds;
        sum += term;
        if term < sum * 1e-15 {
            break;
        }
    }
    (sum.min(1.0), (1.0 - sum + at).clamp(0.0, 1.0))
}

/// Returns P(|Z| ≥ z) of the normal distribution, by the incomplete gamma function: a continued fraction above 2, a
/// series below.
pub(super) fn normal_two_sided(z: f64) -> f64 {
    let z = z.abs();
    let x = z * z / 2.0;
    if z < 2.0 {
        // erf(z/√2) = 2/√π · e^(−x) · Σ …
        let a = z / std::f64::consts::SQRT_2;
        let (mut term, mut sum) = (a, a);
        for n in 1..200 {
            term *= 2.0 * x / (2 * n + 1) as f64;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        let erf = 2.0 / std::f64::consts::PI.sqrt() * (-x).exp() * sum;
        return (1.0 - erf).clamp(0.0, 1.0);
    }
    // φ(z)/(z + 1/(z + 2/(z + 3/…)))
    let mut tail = z;
    for n in (1..120).rev() {
        tail = z + f64::from(n) / tail;
    }
    (2.0 * (-x).exp() / (2.0 * std::f64::consts::PI).sqrt() / tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (z, p) in [
            (0.0, 1.0),
            (1.0, 0.317_310_507_862_914),
            (1.959_963_984_540_054, 0.05),
            (2.575_829_303_548_901, 0.01),
            (4.0, 6.334_248_366_623_973e-5),
        ] {
            assert!((normal_two_sided(z) - p).abs() < 1e-10, "{z}");
        }
        let (below, above) = binomial_tails(3, 10, 0.2);
        assert!((below - 0.879_126_118_4).abs() < 1e-9);
        assert!((above - 0.322_200_473_6).abs() < 1e-9);
        let (below, above) = binomial_tails(0, 30, 0.02);
        assert!((below - 0.98f64.powi(30)).abs() < 1e-12 && above == 1.0);
        assert!(binomial_tails(10_000, 10_000, 0.2).1 < 1e-300);
    }

    #[test]
    fn a_certain_outcome_tells_nothing_and_a_strange_one_much() {
        let mut trials = Trials::default();
        trials.add(1.0, true);
        assert_eq!((trials.count(), trials.p()), (0, 1.0));
        trials.add_many(0.2, 500, 100);
        assert!(trials.p() > 0.9 && trials.p_anytime() > 0.9);
        trials.add_many(0.2, 500, 300);
        assert!(trials.p() < 1e-6 && trials.p_anytime() < 1e-6);
    }
}
