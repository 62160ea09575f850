//! The probability that a verdict is right, from marks of verdicts like it.

use super::super::{Evidence, Mark};
use super::scorer::{Scorer, scored, weights, without};
use crate::calibration::{Forecast, Logistic};
use std::collections::BTreeMap;

/// Minimum number of test marks for reporting a probability.
pub const PROBABILITY_MARKS: usize = 50;

/// The prior for scores without marks: a verdict without a lead is right in half of all cases, a verdict of a
/// unanimous council nearly always. Measured on recorded answers (`docs/eval.md#calibration`).
const PRIOR: Logistic = Logistic {
    base: 0.0,
    slope: 4.0,
};
/// The weight of the prior: about the weight of one undecided mark.
const PRIOR_PRECISION: f64 = 0.25;
/// The parts of the marks from which a probability is learned: each part is scored with weights from the others.
const FOLDS: usize = 4;

/// How often verdicts with a similar score were right. Other than a promise it needs no separate test, so all marks teach
/// both the weights and the map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probability {
    /// The weights learned from all marks.
    weights: BTreeMap<String, f64>,
    /// Maps scores to shares of right verdicts.
    map: Logistic,
    marks: usize,
}

impl Probability {
    /// Learns from the `counted` marks and from the marks of `others`, which include them. A mark is scored with
    /// weights that it did not teach, as a new verdict is.
    pub(super) fn of(others: &Evidence, counted: &[&Mark], kind: &str, models: &[&str]) -> Self {
        let mut forecasts: Vec<Forecast> = Vec::with_capacity(counted.len());
        for fold in 0..FOLDS {
            let is_here = |(at, _): &(usize, &&Mark)| fold_of(*at) == fold;
            let here = counted.iter().enumerate().filter(is_here);
            let here: Vec<&Mark> = here.map(|(_, mark)| *mark).collect();
            let weights = weights(&without(others, &here), kind, models);
            let mut scorer = Scorer::new(&weights);
            let scores = here.iter().map(|mark| {
                let score = scorer.score(mark).unwrap_or(f64::NEG_INFINITY);
                (score, mark.is_right())
            });
            forecasts.extend(scores);
        }
        Self {
            weights: weights(others, kind, models),
            map: Logistic::fit(&forecasts, PRIOR, PRIOR_PRECISION),
            marks: counted.len(),
        }
    }

    pub(super) fn at(&self, verdict: &Mark) -> Option<f64> {
        let edge = 1.0 / (self.marks as f64 + 2.0);
        let score = scored(verdict, &self.weights)?;
        Some(self.map.at(score).clamp(edge, 1.0 - edge))
    }
}

/// Returns the fold of a mark: without a pattern, as marks may have one.
fn fold_of(at: usize) -> usize {
    ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % FOLDS
}
