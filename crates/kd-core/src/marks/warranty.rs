//! The warranty of an answer: what share of answers that scored as high was right, tested on the user's own marks.
//!
//! Input: marks with their scores, the promise. Output: the lowest score from which the promise holds, or how far the marks
//! are from one. The test is the fixed-sequence test of Learn then Test (Angelopoulos et al. 2021, arXiv 2110.01052): groups
//! of the surest marks, each a quarter larger than the one before, are tested one after another by the exact binomial test,
//! and the first that fails ends it. So with chance `1 - risk`, at most a share `wrong` of the answers from that score on
//! is wrong, as long as questions and members stay what they were.

use super::bound;
use serde::{Deserialize, Serialize};

/// Each group of the sequence is larger than the one before by this factor.
const GROWTH: f64 = 1.25;
/// The chance of success at which a number of further marks is called enough.
const LIKELY: f64 = 0.8;
/// More marks than this are not named: nobody will give them.
const MORE_MAX: u64 = 100_000;

/// What is promised of the answers that the warranty covers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    /// The greatest share of them that is wrong, above 0 and below 1.
    pub wrong: f64,
    /// The chance that the promise is broken although the test passed.
    pub risk: f64,
}

impl Promise {
    /// The promise that this share is right, at the usual risk of one in ten. `None` unless it lies above 0 and below 1.
    pub fn of(right: f64) -> Option<Self> {
        let is_share = right > 0.0 && right < 1.0;
        is_share.then_some(Self {
            wrong: 1.0 - right,
            risk: 0.1,
        })
    }
}

/// A marked answer: how sure its council was, and whether it was right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The score; more is surer. See [`super::score`].
    pub score: f64,
    /// Whether it was right.
    pub right: bool,
}

/// What the marks allow to promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Warranty {
    /// The promise holds from this score on.
    Holds {
        /// The lowest score that is covered.
        from: f64,
        /// Marks with such a score.
        marks: u64,
        /// How many of them were wrong.
        wrong: u64,
        /// The share of all marks that is covered.
        covers: f64,
        /// The share right that is exceeded with chance `1 - risk`, of this group alone.
        at_least: f64,
    },
    /// Nothing can be promised.
    None {
        /// Marks that were looked at.
        marks: u64,
        /// About how many more would do; `None` where more of the same would not.
        more: Option<u64>,
    },
}

impl Warranty {
    /// Whether an answer with this score is covered.
    pub fn covers(&self, score: f64) -> bool {
        matches!(self, Warranty::Holds { from, .. } if score >= *from)
    }
}

/// Finds the lowest score from which the promise holds. Scores that are no numbers count as the lowest.
pub fn fit(marks: &[Scored], promise: Promise) -> Warranty {
    let marks = ranked(marks);
    holds(&marks, promise).unwrap_or_else(|| Warranty::None {
        marks: marks.iter().map(|equal| equal.marks).sum(),
        more: more(&marks, promise),
    })
}

/// The warranty if it holds, for marks that were [`ranked`] once and are tested for several promises.
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

/// The marks of a score, or from a score on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Group {
    from: f64,
    marks: u64,
    wrong: u64,
}

/// The marks of each score, the surest first.
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

/// The groups that are tested, the surest first: the first has `least` marks or more. Equal scores stay together, so that
/// the groups depend on the scores alone.
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

/// Marks of the first group: as few as pass with one wrong answer among them. A smaller group would end the sequence at the
/// first council that is sure and wrong.
pub(super) fn first_group(promise: Promise) -> u64 {
    let passes = |n: u64| bound::at_most(1, n, promise.wrong) <= promise.risk;
    let mut high = bound::least(promise.wrong, promise.risk);
    let mut low = high;
    while !passes(high) {
        (low, high) = (high + 1, high * 2);
    }
    // What is below `low` does not pass, `high` does.
    while low < high {
        let middle = low.midpoint(high);
        match passes(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    high
}

/// How many of `n` may be wrong; `None` if `n` are too few for the promise.
fn most_wrong(n: u64, promise: Promise) -> Option<u64> {
    let passes = |k: u64| bound::at_most(k, n, promise.wrong) <= promise.risk;
    let (mut low, mut high) = (0, n + 1);
    // What passes is below `low`, what does not from `high` on.
    while low < high {
        let middle = low.midpoint(high);
        match passes(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low.checked_sub(1)
}

/// About how many more marks would do, if they came as these did: the group that needs the fewest decides.
fn more(marks: &[Group], promise: Promise) -> Option<u64> {
    let total = marks.iter().map(|equal| equal.marks).sum::<u64>() as f64;
    if marks.is_empty() {
        return Some(first_group(promise));
    }
    let of_group = |group: Group| {
        // One wrong answer more than was seen: few marks look better than they are.
        let share = (group.wrong as f64 + 0.5) / (group.marks as f64 + 1.0);
        if share >= promise.wrong {
            return None;
        }
        let enough = |n: u64| {
            // The most that may be wrong, and the chance that no more are.
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
        // 38 with at most one wrong are the least for nine of ten.
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
        // The surest are wrong: what is below them does not count.
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

    /// The promise itself, on made-up councils of which the true share wrong at each score is known.
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
                // Scores are drawn evenly, so the covered share wrong is the one in the middle.
                broken += u32::from(share_wrong((from + 1.0) / 2.0) > TEN.wrong);
            }
        }
        assert!(held > RUNS / 2, "{held} promises");
        // Three standard errors above the risk.
        let most = f64::from(RUNS) * 0.1 + 3.0 * (f64::from(RUNS) * 0.09).sqrt();
        assert!(f64::from(broken) <= most, "{broken} of {RUNS}");
    }
}
