//! Compares two decisions on the same questions: which is better, and whether the data show it.

use super::intervals::{Interval, binomial, bootstrap, detectable_paired, of_equal};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

/// Bootstrap samples per comparison.
pub const DRAWS: usize = 10_000;

/// A comparison of two columns of scores, each between 0 and 1 on the same questions.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The mean score of our rule minus the mean score of the other.
    pub difference: f64,
    /// Its 95 % interval by a paired bootstrap; an exact one if all questions show the same difference. The bare difference
    /// if they show none.
    pub interval: Interval,
    /// Number of questions on which ours scored higher.
    pub won: u64,
    /// Number of questions on which it scored lower.
    pub lost: u64,
    /// The two-sided p-value of no difference: McNemar's exact test; if random tie-breaks give fractional scores, a
    /// sign-flip test.
    pub p: f64,
    /// The smallest true difference that this test would detect with 80 % power.
    pub detectable: f64,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The conclusion about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is above zero, and p is below .05.
    Better,
    /// The whole interval is below zero, and p is below .05.
    Worse,
    /// The interval contains zero, or p is not below .05: no conclusion.
    NotShown,
    /// They differ on no question.
    Same,
}

impl Verdict {
    /// Returns its words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotShown => "no difference shown",
            Verdict::Same => "the same",
        }
    }
}

/// Compares `ours` with `theirs`, question by question; surplus questions of either are ignored.
pub fn compare(ours: &[f64], theirs: &[f64], seed: u64) -> Comparison {
    let d: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
    let count = |sign: f64| d.iter().filter(|d| **d * sign > 0.0).count() as u64;
    let (won, lost) = (count(1.0), count(-1.0));
    let difference = if d.is_empty() {
        0.0
    } else {
        d.iter().sum::<f64>() / d.len() as f64
    };
    let mut interval = bootstrap(&d, DRAWS, seed);
    if interval.low == interval.high && won + lost > 0 {
        interval = of_equal(difference, d.len() as u64);
    }
    let p = if d.iter().all(|d| d.abs() == 1.0 || *d == 0.0) {
        mcnemar(won, lost)
    } else {
        sign_flip(&d, seed)
    };
    let verdict = if won + lost == 0 {
        Verdict::Same
    } else if interval.spans_zero() || p >= 0.05 {
        Verdict::NotShown
    } else if difference > 0.0 {
        Verdict::Better
    } else {
        Verdict::Worse
    };
    Comparison {
        difference,
        interval,
        won,
        lost,
        p,
        detectable: detectable_paired(won + lost, d.len() as u64),
        verdict,
    }
}

/// Returns the two-sided p-value of `won` against `lost` if both are equally likely (McNemar 1947, exact).
pub fn mcnemar(won: u64, lost: u64) -> f64 {
    let n = won + lost;
    if n == 0 {
        return 1.0;
    }
    let few = won.min(lost);
    // The tail is summed from its largest term down, each term derived from the one before, in logarithms.
    let half = n as f64 * std::f64::consts::LN_2;
    let mut term = ln_choose(n, few) - half;
    let mut sum = 0.0;
    for k in (0..=few).rev() {
        let p = term.exp();
        sum += p;
        if p < sum * 1e-17 {
            break;
        }
        term += (k as f64).ln() - ((n - k + 1) as f64).ln();
    }
    (2.0 * sum).min(1.0)
}

/// Returns the two-sided p-value of a zero mean if each difference could equally have the opposite sign: the share of
/// [`DRAWS`] random signings whose sum is at least as far from zero as the observed one, which is included.
fn sign_flip(differences: &[f64], seed: u64) -> f64 {
    let mut sizes: Vec<f64> = differences
        .iter()
        .map(|d| d.abs())
        .filter(|d| *d > 0.0)
        .collect();
    sizes.sort_by(f64::total_cmp);
    let groups: Vec<(f64, u64)> = sizes
        .chunk_by(|a, b| a == b)
        .map(|same| (same[0], same.len() as u64))
        .collect();
    let seen = differences.iter().sum::<f64>().abs() - 1e-9;
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let far = (0..DRAWS)
        .filter(|_| {
            let flipped = |(size, n): &(f64, u64)| {
                size * (2.0 * binomial(&mut chance, *n, 0.5) as f64 - *n as f64)
            };
            groups.iter().map(flipped).sum::<f64>().abs() >= seen
        })
        .count();
    (far + 1) as f64 / (DRAWS + 1) as f64
}

/// Returns the logarithm of the binomial coefficient of `n` and `k`.
pub(crate) fn ln_choose(n: u64, k: u64) -> f64 {
    (1..=k.min(n - k))
        .map(|i| ((n - i + 1) as f64 / i as f64).ln())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_is_the_exact_binomial_test() {
        // R's binom.test(x, n, 0.5).
        for (won, lost, p) in [
            (0, 0, 1.0),
            (5, 5, 1.0),
            (8, 2, 0.109_375),
            (0, 6, 0.03125),
            (60, 100, 0.001_953_728_034),
        ] {
            assert!(
                (mcnemar(won, lost) - p).abs() < 1e-8,
                "{won} {lost}: {}",
                mcnemar(won, lost)
            );
            assert_eq!(mcnemar(won, lost), mcnemar(lost, won));
        }
        assert!(mcnemar(3000, 2000) < 1e-40);
    }

    #[test]
    fn better_is_said_only_where_the_interval_says_so() {
        let scores = |right: usize| -> Vec<f64> {
            (0..200).map(|q| f64::from(u8::from(q < right))).collect()
        };
        let clear = compare(&scores(150), &scores(110), 1);
        assert_eq!(clear.verdict, Verdict::Better);
        assert!((clear.difference - 0.2).abs() < 1e-12 && clear.won == 40 && clear.lost == 0);
        assert_eq!(
            compare(&scores(110), &scores(150), 1).verdict,
            Verdict::Worse
        );
        assert_eq!(
            compare(&scores(110), &scores(110), 1).verdict,
            Verdict::Same
        );
        let mut close = scores(110);
        close[..4].fill(0.0);
        close[110..116].fill(1.0);
        let close = compare(&close, &scores(110), 1);
        assert_eq!(close.verdict, Verdict::NotShown);
        assert!(close.difference > 0.0 && close.interval.spans_zero() && close.p > 0.5);
    }

    #[test]
    fn equal_differences_have_an_exact_interval() {
        let won = |n: usize| compare(&vec![1.0; n], &vec![0.0; n], 1);
        let one = won(1);
        assert!((one.interval.low + 0.95).abs() < 1e-9 && one.interval.high == 1.0);
        assert_eq!((one.difference, one.verdict), (1.0, Verdict::NotShown));
        // It excludes zero exactly if McNemar's test does: from six questions on.
        for n in 1..20 {
            let found = won(n);
            assert_eq!(found.p < 0.05, !found.interval.spans_zero(), "{n}");
            assert_eq!(found.verdict == Verdict::Better, n >= 6, "{n}");
            let lost = compare(&vec![0.0; n], &vec![1.0; n], 1).interval;
            assert_eq!(
                (lost.low, lost.high),
                (-found.interval.high, -found.interval.low)
            );
        }
        let half = compare(&[0.5; 4], &[0.0; 4], 1).interval;
        assert!(half.low < 0.0 && half.high > 0.5, "{half:?}");
    }

    #[test]
    fn a_lot_counts_what_it_is_expected_to_give() {
        let c = compare(&[0.5, 1.0, 0.0], &[1.0, 1.0, 0.0], 1);
        assert_eq!((c.won, c.lost), (0, 1));
        assert!((c.difference + 1.0 / 6.0).abs() < 1e-12);
        assert_eq!(c.verdict, Verdict::NotShown);
    }

    #[test]
    fn flipping_signs_tests_what_mcnemar_tests() {
        let mut d = vec![1.0; 30];
        d.extend([-1.0; 14]);
        assert!((sign_flip(&d, 3) - mcnemar(30, 14)).abs() < 0.01);
        // Many small losses and few large gains with the same sum show no difference.
        let mut even = vec![1.0; 50];
        even.extend([-0.5; 100]);
        assert!(sign_flip(&even, 3) > 0.9 && mcnemar(50, 100) < 1e-4);
    }
}
