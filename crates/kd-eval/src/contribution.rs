//! The contribution of each member: leaving one out shows which member to dismiss, and the Shapley value divides the
//! credit.

use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Maximum number of members for which every subset is evaluated.
pub const EXACT_MAX: usize = 10;
/// Random orders of joining for larger councils, and questions per order.
const ORDERS: usize = 1000;
const SAMPLE: usize = 100;

/// The answers of all members to one question; equal numbers are equal answers.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The answer of each member.
    pub answers: &'a [Option<usize>],
    /// Whether each answer is right.
    pub right: &'a [bool],
}

/// Returns the expected share of right answers of a plurality of the members in `council`, with ties broken at random;
/// 0 if empty.
pub fn plurality(row: Row<'_>, council: impl Fn(usize) -> bool) -> f64 {
    // Councils are small: counting in place is faster than a map.
    let (mut top, mut tied, mut hits) = (0u32, 0u32, 0u32);
    for (m, key) in row.answers.iter().enumerate() {
        let Some(key) = *key else { continue };
        if !council(m) {
            continue;
        }
        let gave = |(o, k): (usize, &Option<usize>)| *k == Some(key) && council(o);
        // Each answer is counted once: at its first voter.
        if row.answers.iter().enumerate().take(m).any(gave) {
            continue;
        }
        let votes = row
            .answers
            .iter()
            .enumerate()
            .skip(m)
            .filter(|x| gave(*x))
            .count() as u32;
        if votes > top {
            (top, tied, hits) = (votes, 0, 0);
        }
        if votes == top {
            tied += 1;
            hits += u32::from(row.right.get(key) == Some(&true));
        }
    }
    if tied == 0 {
        0.0
    } else {
        f64::from(hits) / f64::from(tied)
    }
}

/// Returns, for each member and question, the score of the whole council minus the score without it.
pub fn leave_one_out(rows: &[Row<'_>], members: usize) -> Vec<Vec<f64>> {
    let all: Vec<f64> = rows.iter().map(|r| plurality(*r, |_| true)).collect();
    (0..members)
        .map(|out| {
            rows.iter()
                .zip(&all)
                .map(|(r, all)| all - plurality(*r, |m| m != out))
                .collect()
        })
        .collect()
}

/// Returns each member's share of what the whole council gets right beyond a guess (Shapley 1953); they sum to that.
/// `guess` is the score of an empty council: one divided by the number of possible answers. Exact up to [`EXACT_MAX`]
/// members, otherwise the mean over 1,000 random orders of joining, each on 100 random questions.
pub fn shapley(rows: &[Row<'_>], members: usize, guess: f64, seed: u64) -> Vec<f64> {
    if rows.is_empty() || members == 0 {
        return vec![0.0; members];
    }
    let all = if members <= EXACT_MAX {
        exact(rows, members)
    } else {
        sampled(rows, members, seed)
    };
    // The first to join replaces the guess, and every member is first equally often.
    all.iter().map(|s| s - guess / members as f64).collect()
}

fn exact(rows: &[Row<'_>], members: usize) -> Vec<f64> {
    let value: Vec<f64> = (0u32..1 << members)
        .map(|council| {
            let sum: f64 = rows
                .iter()
                .map(|r| plurality(*r, |m| council >> m & 1 == 1))
                .sum();
            sum / rows.len() as f64
        })
        .collect();
    // The weight of a council of k others: k! (n - k - 1)! / n!
    let weight: Vec<f64> = (0..members)
        .map(|k| {
            let ways: f64 = (0..k)
                .map(|i| (members - 1 - i) as f64 / (i + 1) as f64)
                .product();
            1.0 / (members as f64 * ways)
        })
        .collect();
    (0..members)
        .map(|m| {
            (0usize..1 << members)
                .filter(|council| council >> m & 1 == 0)
                .map(|council| {
                    let k = council.count_ones() as usize;
                    weight[k] * (value[council | 1 << m] - value[council])
                })
                .sum()
        })
        .collect()
}

fn sampled(rows: &[Row<'_>], members: usize, seed: u64) -> Vec<f64> {
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let mut order: Vec<usize> = (0..members).collect();
    let mut sum = vec![0.0; members];
    for _ in 0..ORDERS {
        order.shuffle(&mut chance);
        let mut place = vec![0; members];
        order.iter().enumerate().for_each(|(at, m)| place[*m] = at);
        for _ in 0..SAMPLE {
            let row = rows[chance.random_range(0..rows.len())];
            let mut before = 0.0;
            for (at, m) in order.iter().enumerate() {
                let after = plurality(row, |m| place[m] <= at);
                sum[*m] += after - before;
                before = after;
            }
        }
    }
    sum.iter().map(|s| s / (ORDERS * SAMPLE) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: [bool; 3] = [true, false, false];

    fn rows(answers: &[[Option<usize>; 3]]) -> Vec<Row<'_>> {
        answers
            .iter()
            .map(|a| Row {
                answers: a,
                right: &RIGHT,
            })
            .collect()
    }

    #[test]
    fn a_plurality_shares_what_a_lot_would_settle() {
        let all = |a: &[Option<usize>]| {
            plurality(
                Row {
                    answers: a,
                    right: &RIGHT,
                },
                |_| true,
            )
        };
        assert_eq!(all(&[Some(0), Some(1), Some(0)]), 1.0);
        assert_eq!(all(&[Some(0), Some(1), Some(2)]), 1.0 / 3.0);
        assert_eq!(all(&[Some(0), Some(0), Some(2), Some(2), Some(1)]), 0.5);
        assert_eq!(all(&[None, None, Some(1)]), 0.0);
        assert_eq!(all(&[]), 0.0);
    }

    #[test]
    fn shapley_divides_all_of_it_and_gives_equals_the_same() {
        let answers = [
            [Some(0), Some(0), Some(1)],
            [Some(0), Some(0), Some(2)],
            [Some(1), Some(1), Some(0)],
            [None, None, Some(0)],
        ];
        let rows = rows(&answers);
        let s = shapley(&rows, 3, 0.0, 1);
        let whole = rows.iter().map(|r| plurality(*r, |_| true)).sum::<f64>() / 4.0;
        assert!((s.iter().sum::<f64>() - whole).abs() < 1e-12);
        assert!((s[0] - s[1]).abs() < 1e-12);
        let guess = sampled(&rows, 3, 1);
        assert!(
            s.iter().zip(&guess).all(|(a, b)| (a - b).abs() < 0.01),
            "{s:?} {guess:?}"
        );
    }

    #[test]
    fn a_member_who_spoils_has_a_negative_leave_one_out() {
        // Without the third member, the first two are right together; with it, only the last question changes.
        let answers = [[Some(0), Some(0), Some(1)], [Some(0), None, Some(1)]];
        let l = leave_one_out(&rows(&answers), 3);
        assert_eq!(l[2], [0.0, -0.5]);
        assert_eq!(l[0], [0.5, 0.5]);
    }
}
