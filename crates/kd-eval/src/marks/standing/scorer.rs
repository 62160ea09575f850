//! Scores of verdicts, with weights learned from marks.

use super::super::{Evidence, Mark, Member, Sum, score, strengths};
use crate::auto::Strength;
use crate::weights::odds;
use std::collections::BTreeMap;

/// Weights each model's vote by the odds that it is right on this kind; 1 for all if some model has no marks.
pub(super) fn weights(evidence: &Evidence, kind: &str, models: &[&str]) -> BTreeMap<String, f64> {
    let known: Option<Vec<f64>> = strengths(evidence, kind, models)
        .into_iter()
        .map(|strength| strength.map(Strength::estimate))
        .collect();
    let weights = known.map_or_else(|| vec![1.0; models.len()], |right| odds(&right));
    let names = models.iter().map(|model| (*model).to_owned());
    names.zip(weights).collect()
}

/// Scores verdicts. Reuses its buffers, and caches the weight of the model at each position of a council.
pub(super) struct Scorer<'a> {
    weights: &'a BTreeMap<String, f64>,
    answers: Vec<Option<usize>>,
    given: Vec<f64>,
    last: Vec<(&'a str, f64)>,
}

impl<'a> Scorer<'a> {
    pub(super) fn new(weights: &'a BTreeMap<String, f64>) -> Self {
        Self {
            weights,
            answers: Vec::new(),
            given: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Scores a marked or unmarked verdict. `None` if the weights are zero.
    pub(super) fn score(&mut self, mark: &'a Mark) -> Option<f64> {
        self.answers.clear();
        self.given.clear();
        for (place, member) in mark.members.iter().enumerate() {
            let dissents = |m: &Member| !m.backs && m.key == member.key;
            self.answers.push(match &member.key {
                // 0 is the winner; another answer gets the position of the first member that gave it.
                _ if member.backs => Some(0),
                Some(_) => mark.members.iter().position(dissents).map(|at| at + 1),
                None => None,
            });
            let model = member.model.as_str();
            let known = self.last.get(place).filter(|(last, _)| *last == model);
            let weight = match known {
                Some((_, weight)) => *weight,
                None => {
                    let weight = self.weights.get(model).copied().unwrap_or(1.0);
                    match self.last.get_mut(place) {
                        Some(last) => *last = (model, weight),
                        None => self.last.push((model, weight)),
                    }
                    weight
                }
            };
            self.given.push(weight);
        }
        score(&self.answers, &self.given, 0)
    }
}

/// [`Scorer::score`] for a single verdict.
pub(super) fn scored(mark: &Mark, weights: &BTreeMap<String, f64>) -> Option<f64> {
    Scorer::new(weights).score(mark)
}

/// Returns whether a mark is of the council of a verdict, whose `models` are sorted.
pub(super) fn is_of_models(mark: &Mark, verdict: &Mark, models: &[&str]) -> bool {
    if mark.members.len() + mark.unasked.len() != models.len() {
        return false;
    }
    // Mostly the same members were asked, in the same order.
    let same = mark.unasked == verdict.unasked
        && (mark.members.iter().map(|m| &m.model)).eq(verdict.members.iter().map(|m| &m.model));
    same || mark.models() == models
}

/// Returns the evidence without these marks, which are of one kind and mostly of the same models.
pub(super) fn without(evidence: &Evidence, marks: &[&Mark]) -> Evidence {
    let mut found: Vec<(&str, Sum)> = Vec::new();
    for mark in marks {
        for (place, member) in mark.members.iter().enumerate() {
            let Some(right) = mark.was_right(member) else {
                continue;
            };
            let is_it = |(model, _): &(&str, Sum)| *model == member.model;
            let at = match found.get(place).is_some_and(is_it) {
                true => place,
                false => found.iter().position(is_it).unwrap_or_else(|| {
                    found.push((&member.model, Sum::default()));
                    found.len() - 1
                }),
            };
            found[at].1.right += u64::from(right);
            found[at].1.questions += 1;
        }
    }
    let mut rest = Evidence {
        sums: evidence.sums.clone(),
        recent: Vec::new(),
        published: evidence.published.clone(),
    };
    if let Some(first) = marks.first() {
        for (model, sum) in found {
            rest.sums.take(&first.kind, model, sum);
        }
    }
    rest
}
