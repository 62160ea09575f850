//! Vote weights of members: from how often they are right, or fitted on answers of all members.

use std::collections::BTreeMap;

/// Minimum distance of shares from 0 and 1: no member is infallible on the next question.
const CLIP: f64 = 0.01;

/// Returns the odds `p / (1 - p)` that each is right.
///
/// Log-odds are optimal for independent errors (Nitzan and Paroush 1982). Real members' errors correlate, so the weaker
/// ones agree on wrong answers more often than log-odds account for; plain odds do account for it. On 40 random
/// councils of each of four recorded data sets log-odds lose to the best member on two, odds gain on all
/// (`docs/eval.md`).
pub fn odds(right: &[f64]) -> Vec<f64> {
    right
        .iter()
        .map(|p| {
            let p = if p.is_finite() {
                p.clamp(CLIP, 1.0 - CLIP)
            } else {
                0.5
            };
            p / (1.0 - p)
        })
        .collect()
}

/// Maximum weight of the heaviest vote, as a share of the weight of all others.
const OUTVOTABLE: f64 = 0.95;

/// Lowers the heaviest weight so far that all others together outvote it, where there are at least two others. For
/// weights that are not from the user's own marks: they must not let one member decide alone.
pub fn outvotable(weights: &mut [f64]) {
    let n = weights.len();
    let sum: f64 = weights.iter().sum();
    let Some(heaviest) = (0..n).max_by(|a, b| weights[*a].total_cmp(&weights[*b])) else {
        return;
    };
    let most = (sum - weights[heaviest]) * OUTVOTABLE;
    if n > 2 && weights[heaviest] > most {
        weights[heaviest] = most;
    }
}

/// Strength with which [`learned`] shrinks weights towards zero: the precision of a normal prior with variance one.
pub(crate) const PRIOR: f64 = 1.0;
/// Maximum steps; Newton's method needs five to eight here.
const STEPS: usize = 40;
/// Maximum length of a Newton step in any weight, in log-odds.
const STEP_MAX: f64 = 1.0;

/// The answers of all members to one question: `None` abstains, equal numbers are equal answers.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// Each member's answer.
    pub answers: &'a [Option<usize>],
    /// Whether an answer is right.
    pub right: &'a [bool],
}

/// Returns weights for `n` members, fitted on questions with known right answers.
///
/// A conditional logit: an answer is right with probability `exp(Σ weights of those who gave it) / Σ over the answers
/// given`, fitted by Newton's method on the posterior with a normal prior, which has a single maximum. Because members
/// are fitted jointly, those with correlated errors share one weight and no correlation has to be specified. Questions
/// that no member or every member answered correctly, and those with one answer, are uninformative and skipped.
pub fn learned(questions: &[Labelled<'_>], n: usize) -> Vec<f64> {
    learned_towards(questions, &vec![0.0; n], PRIOR)
}

/// Returns weights like [`learned`], shrunk towards `prior`, one weight per member, with this precision.
pub fn learned_towards(questions: &[Labelled<'_>], prior: &[f64], precision: f64) -> Vec<f64> {
    learned_from(questions.iter().map(|q| (*q, 1.0)), prior, precision)
}

/// Returns weights like [`learned_towards`], from questions that each occurred a number of times.
pub(crate) fn learned_from<'a>(
    questions: impl Iterator<Item = (Labelled<'a>, f64)>,
    prior: &[f64],
    precision: f64,
) -> Vec<f64> {
    let n = prior.len();
    // Equal contests are added once, with their number.
    let mut taught: BTreeMap<Contest, f64> = BTreeMap::new();
    for (question, times) in questions {
        if let Some(contest) = Contest::of(&question, n) {
            *taught.entry(contest).or_default() += times;
        }
    }
    let mut w = prior.to_vec();
    for _ in 0..STEPS {
        let (mut gradient, mut curvature) = (vec![0.0; n], vec![vec![0.0; n]; n]);
        for m in 0..n {
            gradient[m] = precision * (prior[m] - w[m]);
            curvature[m][m] = precision;
        }
        for (contest, times) in &taught {
            contest.add(*times, &w, &mut gradient, &mut curvature);
        }
        let step = solve(curvature, gradient);
        let mut longest = 0.0f64;
        for (w, s) in w.iter_mut().zip(step) {
            let s = s.clamp(-STEP_MAX, STEP_MAX);
            longest = longest.max(s.abs());
            *w += s;
        }
        if longest < 1e-9 {
            break;
        }
    }
    w
}

/// The votes on a question with several answers, one of them right.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Contest {
    /// The index of each member's answer among the answers given, and `None` if it gave none.
    gave: Vec<Option<usize>>,
    answers: usize,
    right: usize,
}

impl Contest {
    fn of(question: &Labelled<'_>, n: usize) -> Option<Self> {
        let mut seen: Vec<usize> = Vec::new();
        let gave: Vec<Option<usize>> = (0..n)
            .map(|m| {
                let key = question.answers.get(m).copied().flatten()?;
                Some(seen.iter().position(|k| *k == key).unwrap_or_else(|| {
                    seen.push(key);
                    seen.len() - 1
                }))
            })
            .collect();
        let right = seen
            .iter()
            .position(|k| question.right.get(*k) == Some(&true))?;
        (seen.len() > 1).then_some(Self {
            gave,
            answers: seen.len(),
            right,
        })
    }

    fn add(&self, times: f64, w: &[f64], gradient: &mut [f64], curvature: &mut [Vec<f64>]) {
        let mut strength = vec![0.0; self.answers];
        for (m, a) in self.gave.iter().enumerate() {
            if let Some(a) = a {
                strength[*a] += w[m];
            }
        }
        let top = strength.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut share: Vec<f64> = strength.iter().map(|s| (s - top).exp()).collect();
        let sum: f64 = share.iter().sum();
        share.iter_mut().for_each(|s| *s /= sum);
        for (m, a) in self.gave.iter().enumerate() {
            let Some(a) = *a else { continue };
            gradient[m] += times * (f64::from(u8::from(a == self.right)) - share[a]);
            for (o, b) in self.gave.iter().enumerate() {
                let Some(b) = *b else { continue };
                let both = if a == b { share[a] } else { 0.0 };
                curvature[m][o] += times * (both - share[a] * share[b]);
            }
        }
    }
}

/// Solves `a x = b` for a positive definite `a`, by elimination with pivoting.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for c in 0..n {
        let pivot = (c..n)
            .max_by(|x, y| a[*x][c].abs().total_cmp(&a[*y][c].abs()))
            .unwrap_or(c);
        a.swap(c, pivot);
        b.swap(c, pivot);
        if a[c][c] == 0.0 {
            continue;
        }
        for r in c + 1..n {
            let f = a[r][c] / a[c][c];
            if f != 0.0 {
                let (upper, lower) = a.split_at_mut(r);
                for (x, y) in lower[0].iter_mut().zip(&upper[c]).skip(c) {
                    *x -= f * y;
                }
                b[r] -= f * b[c];
            }
        }
    }
    for c in (0..n).rev() {
        let known: f64 = (c + 1..n).map(|k| a[c][k] * b[k]).sum();
        b[c] = if a[c][c] == 0.0 {
            0.0
        } else {
            (b[c] - known) / a[c][c]
        };
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_odds_and_never_endless() {
        let w = odds(&[0.5, 0.8, 1.0, 0.0, f64::NAN]);
        for (w, expected) in w.iter().zip([1.0, 4.0, 99.0, 1.0 / 99.0, 1.0]) {
            assert!((w - expected).abs() < 1e-9, "{w} {expected}");
        }
    }

    #[test]
    fn a_weight_that_is_not_measured_can_be_outvoted() {
        let of = |weights: &[f64]| {
            let mut weights = weights.to_vec();
            outvotable(&mut weights);
            weights
        };
        assert_eq!(of(&[1.0, 9.0, 2.0]), [1.0, 3.0 * OUTVOTABLE, 2.0]);
        assert_eq!(of(&[2.0, 3.0, 2.0]), [2.0, 3.0, 2.0]);
        assert_eq!(
            of(&[9.0, 2.0]),
            [9.0, 2.0],
            "of two that disagree one decides"
        );
        assert_eq!(of(&[9.0]), [9.0]);
        assert_eq!(of(&[]), [0.0; 0]);
    }

    #[test]
    fn a_system_of_equations_is_solved() {
        let x = solve(vec![vec![4.0, 1.0], vec![1.0, 3.0]], vec![1.0, 2.0]);
        assert!((x[0] - 1.0 / 11.0).abs() < 1e-12 && (x[1] - 7.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn twins_share_one_weight_and_the_better_member_has_more() {
        // The first member is right on 80 of 100 questions. The two others are always right together, on 60.
        let right = [true, false];
        let rows: Vec<[Option<usize>; 3]> = (0..100)
            .map(|q| {
                let (a, b) = (usize::from(q % 5 == 0), usize::from(q % 5 < 2));
                [Some(a), Some(b), Some(b)]
            })
            .collect();
        let questions: Vec<Labelled<'_>> = rows
            .iter()
            .map(|answers| Labelled {
                answers,
                right: &right,
            })
            .collect();
        let w = learned(&questions, 3);
        assert!((w[1] - w[2]).abs() < 1e-9, "twins: {w:?}");
        assert!(
            w[0] > w[1] + w[2],
            "two who are one do not outvote the better: {w:?}"
        );
        // At the maximum no change is an improvement.
        let again = learned(&questions, 3);
        assert_eq!(w, again, "the same in, the same out");
    }

    #[test]
    fn what_teaches_nothing_changes_nothing() {
        let same = Labelled {
            answers: &[Some(0), Some(0)],
            right: &[true],
        };
        let none = Labelled {
            answers: &[Some(0), Some(1)],
            right: &[false, false],
        };
        let silent = Labelled {
            answers: &[None, None],
            right: &[true],
        };
        assert_eq!(learned(&[same, none, silent], 2), [0.0, 0.0]);
        assert_eq!(learned(&[], 0), Vec::<f64>::new());
        assert_eq!(learned_towards(&[none], &[0.5, 2.0], 4.0), [0.5, 2.0]);
    }
}
