//! Condorcet's jury theorem: how often a majority of members with known strength is right, exactly.

/// Returns the probability that more than half of `n` independent members are right, each with probability `p`; an even
/// split counts half.
pub fn independent(n: u32, p: f64) -> f64 {
    majority(n, |k| {
        ln_choose(n, k) + times(k, p.ln()) + times(n - k, (1.0 - p).ln())
    })
}

/// Like [`independent`], with correlated errors: the question's difficulty is drawn from `Beta(p s, (1 - p) s)` with `s
/// = (1 - rho) / rho`, so that two members' errors correlate by `rho`. `rho` is at least 0 and below 1 (at 1 a council
/// is one member).
pub fn correlated(n: u32, p: f64, rho: f64) -> f64 {
    if rho <= 0.0 {
        return independent(n, p);
    }
    if rho >= 1.0 || p <= 0.0 || p >= 1.0 {
        return p.clamp(0.0, 1.0);
    }
    let s = (1.0 - rho) / rho;
    let (a, b) = (p * s, (1.0 - p) * s);
    // A ratio of beta functions as rising products: exact for integer k, without the gamma function.
    let rising = |x: f64, k: u32| (0..k).map(|i| (x + f64::from(i)).ln()).sum::<f64>();
    majority(n, |k| {
        ln_choose(n, k) + rising(a, k) + rising(b, n - k) - rising(s, n)
    })
}

/// Returns the probability that the heavier side is right, by enumerating all patterns of right and wrong members.
/// Members are independent, there are two answers, and a tie counts half. For at most 20 members.
pub fn unequal(p: &[f64], weights: &[f64]) -> f64 {
    let n = p.len().min(weights.len()).min(20);
    let mut sum = 0.0;
    for pattern in 0u32..1 << n {
        let (mut chance, mut lead) = (1.0, 0.0);
        for (m, (p, w)) in p.iter().zip(weights).take(n).enumerate() {
            let right = pattern >> m & 1 == 1;
            chance *= if right { *p } else { 1.0 - p };
            lead += if right { *w } else { -w };
        }
        // Weights that cancel exactly may be off by a bit in floats.
        sum += chance
            * if lead.abs() < 1e-9 {
                0.5
            } else {
                f64::from(u8::from(lead > 0.0))
            };
    }
    sum
}

/// Returns log-odds weights, optimal for independent members with two answers: `ln(p / (1 - p))`, never negative.
pub fn log_odds(p: &[f64]) -> Vec<f64> {
    p.iter().map(|p| (p / (1.0 - p)).ln().max(0.0)).collect()
}

fn majority(n: u32, ln_chance: impl Fn(u32) -> f64) -> f64 {
    (0..=n)
        .map(|k| match (2 * k).cmp(&n) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5 * ln_chance(k).exp(),
            std::cmp::Ordering::Greater => ln_chance(k).exp(),
        })
        .sum()
}

/// Returns `k ln x`, where zero times anything is zero.
fn times(k: u32, ln: f64) -> f64 {
    if k == 0 { 0.0 } else { f64::from(k) * ln }
}

fn ln_choose(n: u32, k: u32) -> f64 {
    super::paired::ln_choose(u64::from(n), u64::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-5, "{a} is not {b}");
    }

    #[test]
    fn independent_members_are_condorcets_jury() {
        for (p, expected) in [
            (0.6, [0.648, 0.68256, 0.71021, 0.73343, 0.7535]),
            (0.7, [0.784, 0.83692, 0.87396, 0.90119, 0.92178]),
            (0.8, [0.896, 0.94208, 0.96666, 0.98042, 0.98835]),
            (0.55, [0.57475, 0.59313, 0.60829, 0.62142, 0.63312]),
        ] {
            for (n, e) in [3, 5, 7, 9, 11].into_iter().zip(expected) {
                near(independent(n, p), e);
            }
        }
        near(independent(4, 0.5), 0.5);
        assert_eq!((independent(5, 0.0), independent(5, 1.0)), (0.0, 1.0));
    }

    #[test]
    fn members_who_err_together_gain_little() {
        for (rho, expected) in [
            (0.1, [0.76185, 0.79398, 0.81388, 0.82745]),
            (0.2, [0.7448, 0.76486, 0.77628, 0.78365]),
            (0.4, [0.7216, 0.72938, 0.73336, 0.73577]),
            (0.5, [0.714, 0.71864, 0.72093, 0.72229]),
        ] {
            for (n, e) in [3, 5, 7, 9].into_iter().zip(expected) {
                near(correlated(n, 0.7, rho), e);
            }
        }
        near(correlated(5, 0.8, 0.4), 0.83324);
        near(correlated(5, 0.7, 0.0), independent(5, 0.7));
        near(correlated(9, 0.7, 1.0), 0.7);
    }

    #[test]
    fn unequal_members_need_weights() {
        for (p, majority, weighted) in [
            (&[0.9, 0.6, 0.6][..], 0.792, 0.9),
            (&[0.8, 0.7, 0.6, 0.6, 0.55], 0.76868, 0.812),
            (&[0.95, 0.6, 0.6, 0.6, 0.6], 0.80352, 0.95),
            (&[0.7; 5], 0.83692, 0.83692),
        ] {
            near(unequal(p, &vec![1.0; p.len()]), majority);
            near(unequal(p, &log_odds(p)), weighted);
        }
    }
}
