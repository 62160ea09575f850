//! The warranty of an answer: the share of right answers among those with at least its score, tested on the user's
//! marks.
//!
//! Input: marks with their scores, the promise. Output: the lowest score for which the promise holds, or how many
//! marks are missing. The test is the fixed-sequence test of Learn then Test (Angelopoulos et al. 2021, arXiv
//! 2110.01052): groups of the highest-scoring marks, each a quarter larger than the one before, are tested in turn by
//! the exact binomial test, up to the first failure. So with probability `1 - risk`, at most a share `wrong` of the
//! answers with at least that score is wrong, provided that questions and members do not change.

use super::bound;
use serde::{Deserialize, Serialize};

/// Each group of the sequence is larger than the one before by this factor.
const GROWTH: f64 = 1.25;
/// The probability of success at which a number of further marks counts as enough.
const LIKELY: f64 = 0.8;
/// Larger estimates are not reported: no user gives that many marks.
pub(super) const MORE_MAX: u64 = 100_000;

/// A promise about the covered answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The maximum share of wrong answers, above 0 and below 1.
    pub wrong: f64,
    /// The probability that the promise is broken although the test passed.
    pub risk: f64,
}

impl Promise {
    /// Promises this share of right answers, at the usual risk of one in ten. `None` unless it is above 0 and below 1.
    pub fn of(right: f64) -> Option<Self> {
        let is_share = right > 0.0 && right < 1.0;
        is_share.then_some(Self {
            wrong: 1.0 - right,
            risk: 0.1,
        })
    }
}

/// A marked answer: its council's score, and whether it was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The score; higher is more certain. See [`super::score`].
    pub score: f64,
    /// Whether it was right.
    pub right: bool,
}

/// The promise that the marks support, if any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Warranty {
    /// The promise holds from this score on.
    Holds {
        /// The lowest covered score.
        from: f64,
        /// Number of marks with such a score.
        marks: u64,
        /// Number of them that were wrong.
        wrong: u64,
        /// The covered share of all marks.
        covers: f64,
        /// The lower bound of the share of right answers, with confidence `1 - risk`, for this group alone.
        at_least: f64,
    },
    /// Nothing can be promised.
    None {
        /// Number of marks examined.
        marks: u64,
        /// Roughly how many more are needed; `None` if more like these would not suffice.
        more: Option<u64>,
    },
}

impl Warranty {
    /// Returns whether an answer with this score is covered.
    pub fn covers(&self, score: f64) -> bool {
        matches!(self, Warranty::Holds { from, .. } if score >= *from)
    }
}

/// Finds the lowest score from which the promise holds. NaN scores count as the lowest.
pub fn fit(marks: &[Scored], promise: Promise) -> Warranty {
    let marks = ranked(marks);
    holds(&marks, promise).unwrap_or_else(|| Warranty::None {
        marks: marks.iter().map(|equal| equal.marks).sum(),
        more: more(&marks, promise),
    })
}

/// Returns the warranty if it holds. Takes [`ranked`] marks, so that several promises can be tested on them.
pub(super) fn holds(marks: &[Group], promise: Promise) -> Option<Warranty> {
    let all: u64 = marks.iter().map(|equal| equal.marks).sum();
    let groups = groups(marks, first_group(promise));
    let passes =
        |group: &&Group| bound::at_most(group.wrong, group.marks, promise.wrong) <= promise.risk;
    let group = groups.iter().take_while(passes).last()?;
    Some(Warranty::Holds {
        from: group.from,
        marks: group.marks,
        wrong: group.wrong,
        covers: group.marks as f64 / all as f64,
        at_least: 1.0 - bound::upper(group.wrong, group.marks, promise.risk),
    })
}

/// The marks with a score, or from a score on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    from: f64,
    marks: u64,
    wrong: u64,
}

/// Groups the marks by score, highest first.
pub(super) fn ranked(marks: &[Scored]) -> Vec<Group> {
    let rank = |score: f64| {
        if score.is_nan() {
            f64::NEG_INFINITY
        } else {
            score
        }
    };
    let mut sorted: Vec<(f64, bool)> = marks.iter().map(|m| (rank(m.score), m.right)).collect();
    sorted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let of = |equal: &[(f64, bool)]| Group {
        from: equal[0].0,
        marks: equal.len() as u64,
        wrong: equal.iter().filter(|(_, right)| !right).count() as u64,
    };
    sorted.chunk_by(|a, b| a.0 == b.0).map(of).collect()
}

/// Builds the groups to test, highest scores first; the first has at least `least` marks. Equal scores stay together,
/// so that the groups depend only on the scores.
fn groups(ranked: &[Group], least: u64) -> Vec<Group> {
    let mut groups = Vec::new();
    let (mut seen, mut wrong, mut next) = (0u64, 0u64, least as f64);
    for equal in ranked {
        seen += equal.marks;
        wrong += equal.wrong;
        if seen as f64 >= next {
            groups.push(Group {
                from: equal.from,
                marks: seen,
                wrong,
            });
            next = seen as f64 * GROWTH;
        }
    }
    groups
}

/// Returns the size of the first group: the minimum that passes with one wrong answer. A smaller group would end the
/// sequence at the first council that is certain and wrong.
pub(super) fn first_group(promise: Promise) -> u64 {
    let passes = |n: u64| bound::at_most(1, n, promise.wrong) <= promise.risk;
    let mut high = bound::least(promise.wrong, promise.risk);
    let mut low = high;
    while !passes(high) {
        (low, high) = (high + 1, high * 2);
    }
    // Everything below `low` fails, `high` passes.
    while low < high {
        let middle = low.midpoint(high);
        match passes(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    high
}

/// Returns the maximum number of wrong verdicts among `n`; `None` if `n` is too small for the promise.
fn most_wrong(n: u64, promise: Promise) -> Option<u64> {
    let passes = |k: u64| bound::at_most(k, n, promise.wrong) <= promise.risk;
    let (mut low, mut high) = (0, n + 1);
    // Everything below `low` passes, everything from `high` on fails.
    while low < high {
        let middle = low.midpoint(high);
        match passes(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low.checked_sub(1)
}

/// Estimates how many more marks are needed if they resemble these. Returns the number for the group that needs the
/// fewest.
fn more(marks: &[Group], promise: Promise) -> Option<u64> {
    let total = marks.iter().map(|equal| equal.marks).sum::<u64>() as f64;
    if marks.is_empty() {
        return Some(first_group(promise));
    }
    let of_group = |group: Group| {
        // Adds half a wrong answer: few marks look better than they are.
        let share = (group.wrong as f64 + 0.5) / (group.marks as f64 + 1.0);
        if share >= promise.wrong {
            return None;
        }
        let enough = |n: u64| {
            // The maximum that may be wrong, and the probability of no more than that.
            let most = most_wrong(n, promise);
            most.is_some_and(|most| bound::at_most(most, n, share) >= LIKELY)
        };
        let covered = group.marks as f64 / total;
        let mut n = first_group(promise);
        while !enough(n) {
            n = (n as f64 * 1.1).ceil() as u64;
            if n > MORE_MAX {
                return None;
            }
        }
        Some((n as f64 / covered - total).ceil().max(1.0) as u64)
    };
    let groups = groups(marks, 1);
    groups.into_iter().filter_map(of_group).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    const TEN: Promise = Promise {
        wrong: 0.1,
        risk: 0.1,
    };

    fn marks(groups: &[(f64, usize, usize)]) -> Vec<Scored> {
        let one = |&(score, right, wrong): &(f64, usize, usize)| {
            let of = move |right| Scored { score, right };
            std::iter::repeat_n(of(true), right).chain(std::iter::repeat_n(of(false), wrong))
        };
        groups.iter().flat_map(one).collect()
    }

    #[test]
    fn the_lowest_score_that_passes_is_taken_and_the_first_failure_ends_it() {
        // 38 with at most one wrong is the minimum for nine of ten.
        let short = fit(&marks(&[(1.0, 37, 0)]), TEN);
        assert!(
            matches!(
                short,
                Warranty::None {
                    marks: 37,
                    more: Some(1..50)
                }
            ),
            "{short:?}"
        );
        for wrong in [0, 1] {
            let held = fit(&marks(&[(1.0, 38 - wrong, wrong)]), TEN);
            let covers = matches!(
                held,
                Warranty::Holds {
                    from: 1.0,
                    marks: 38,
                    ..
                }
            );
            assert!(covers, "{held:?}");
        }
        let two = fit(&marks(&[(1.0, 36, 2)]), TEN);
        assert!(matches!(two, Warranty::None { .. }), "{two:?}");
        let held = fit(&marks(&[(1.0, 60, 0), (0.6, 30, 2), (0.2, 10, 30)]), TEN);
        let Warranty::Holds {
            from,
            marks: n,
            wrong,
            covers,
            at_least,
        } = held
        else {
            panic!("{held:?}");
        };
        assert_eq!((from, n, wrong), (0.6, 92, 2));
        assert!((covers - 92.0 / 132.0).abs() < 1e-12);
        assert!((at_least - (1.0 - bound::upper(2, 92, 0.1))).abs() < 1e-12 && at_least > 0.9);
        assert!(fit(&marks(&[(1.0, 60, 0), (0.6, 30, 2)]), TEN).covers(0.6));
        assert!(!fit(&marks(&[(1.0, 60, 0), (0.6, 30, 2), (0.2, 10, 30)]), TEN).covers(0.59));
        // The highest-scoring marks are wrong: those below them do not count.
        let failed = fit(&marks(&[(1.0, 10, 30), (0.5, 500, 0)]), TEN);
        assert!(matches!(failed, Warranty::None { .. }), "{failed:?}");
        assert!(!failed.covers(1.0));
    }

    #[test]
    fn it_tells_how_many_marks_are_missing_or_that_no_number_will_do() {
        let more = |groups: &[(f64, usize, usize)], promise| match fit(&marks(groups), promise) {
            Warranty::None { more, .. } => more,
            held => panic!("{held:?}"),
        };
        assert_eq!(more(&[], TEN), Some(38));
        assert_eq!(more(&[(1.0, 50, 50)], TEN), None);
        let few = more(&[(1.0, 10, 0)], TEN).expect("some");
        assert!((28..200).contains(&few), "{few}");
        let strict = Promise {
            wrong: 0.01,
            risk: 0.1,
        };
        assert!(more(&[(1.0, 200, 0)], strict).expect("some") > 100);
    }

    #[test]
    fn the_first_group_is_the_least_that_passes_with_one_wrong() {
        for right in [0.01, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999] {
            let promise = Promise::of(right).expect("a share");
            let n = first_group(promise);
            assert!(most_wrong(n, promise) >= Some(1), "{right}: {n}");
            assert!(most_wrong(n - 1, promise) < Some(1), "{right}: {n}");
        }
        assert_eq!(first_group(TEN), 38);
    }

    #[test]
    fn nonsense_promises_nothing() {
        for right in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Promise::of(right), None);
        }
        let nan = marks(&[(f64::NAN, 100, 0)]);
        assert!(matches!(
            fit(&nan, TEN),
            Warranty::Holds {
                from: f64::NEG_INFINITY,
                ..
            }
        ));
    }

    /// The guarantee itself, on simulated councils whose true share of wrong answers is known for each score.
    #[test]
    fn promises_are_broken_no_more_often_than_the_risk() {
        let mut chance = ChaCha12Rng::seed_from_u64(7);
        let share_wrong = |score: f64| 0.4 * (1.0 - score);
        let (mut broken, mut held) = (0u32, 0u32);
        const RUNS: u32 = 2000;
        for _ in 0..RUNS {
            let marks: Vec<Scored> = (0..200)
                .map(|_| {
                    let score = f64::from(chance.random_range(0..=20u8)) / 20.0;
                    let right = chance.random::<f64>() >= share_wrong(score);
                    Scored { score, right }
                })
                .collect();
            if let Warranty::Holds { from, .. } = fit(&marks, TEN) {
                held += 1;
                // Scores are uniform, so the share of wrong answers covered is the one in the middle.
                broken += u32::from(share_wrong((from + 1.0) / 2.0) > TEN.wrong);
            }
        }
        assert!(held > RUNS / 2, "{held} promises");
        // Three standard errors above the risk.
        let most = f64::from(RUNS) * 0.1 + 3.0 * (f64::from(RUNS) * 0.09).sqrt();
        assert!(f64::from(broken) <= most, "{broken} of {RUNS}");
    }
}
