//! The promise that marks of similar verdicts support: weights of votes, tested promises, probability.

use super::super::warranty::{MORE_MAX, first_group, holds, ranked};
use super::super::{By, Evidence, Mark, Promise, RECENT, Scored, Warranty, Watch, fit};
use super::probability::{PROBABILITY_MARKS, Probability};
use super::scorer::{Scorer, is_of_models, scored, weights, without};
use super::{LEVELS, RISK, Standing, State};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The promise that the marks support for a group of similar verdicts: computed once, queried per verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    kind: String,
    count: u64,
    imported: u64,
    required: Option<f64>,
    weights: BTreeMap<String, f64>,
    /// The test marks, in order of time.
    test: Vec<(Timestamp, Scored)>,
    /// The promises that hold, weakest first.
    found: Vec<(f64, Warranty)>,
    /// The probability that a verdict is right.
    probability: Probability,
    withdrawn: Option<Timestamp>,
}

impl Basis {
    /// Learns from the marks of verdicts like `verdict`, excluding marks of `verdict` itself.
    pub fn of(evidence: &Evidence, verdict: &Mark, required: Option<f64>) -> Self {
        let models = verdict.models();
        let is_like = |mark: &Mark| {
            mark.kind == verdict.kind
                && mark.protocol == verdict.protocol
                && mark.stopping == verdict.stopping
                && is_of_models(mark, verdict, &models)
        };
        // A verdict that is already marked must not influence its own promise.
        let (own, others): (Vec<&Mark>, Vec<&Mark>) =
            evidence.recent.iter().partition(|mark| mark.is_of(verdict));
        let mut like: Vec<&Mark> = others.into_iter().filter(|mark| is_like(mark)).collect();
        like.sort_by_key(|mark| (mark.at, &mark.thread, mark.message));
        let mut like = like.split_off(like.len().saturating_sub(RECENT));
        let count = like.len() as u64;
        let imported = like.iter().filter(|mark| mark.by == By::Import).count() as u64;
        let tested = like.split_off(like.len() / 4);
        let mut others = Evidence {
            sums: evidence.sums.clone(),
            recent: Vec::new(),
            published: evidence.published.clone(),
        };
        for mark in own {
            others.sums.subtract(mark);
        }
        let weights = weights(&without(&others, &tested), &verdict.kind, &models);
        let mut scorer = Scorer::new(&weights);
        let mut test: Vec<(Timestamp, Scored)> = (tested.iter())
            .map(|mark| {
                let score = scorer.score(mark).unwrap_or(f64::NEG_INFINITY);
                let right = mark.is_right();
                (mark.at, Scored { score, right })
            })
            .collect();
        let mut withdrawn = None;
        let mut found = fitted(&test, required);
        // The loop ends because each alarm leaves fewer marks.
        while let Some(at) = broken(&test, &found) {
            withdrawn = Some(test[at].0);
            test.drain(..=at);
            found = fitted(&test, required);
        }
        // After a withdrawal only later marks tell of the members as they are now.
        let late = tested[tested.len() - test.len()..].iter().copied();
        let counted: Vec<&Mark> = match withdrawn {
            None => like.iter().copied().chain(late).collect(),
            Some(_) => late.collect(),
        };
        Self {
            kind: verdict.kind.clone(),
            count,
            imported,
            required,
            probability: Probability::of(&others, &counted, &verdict.kind, &models),
            weights,
            test,
            found,
            withdrawn,
        }
    }

    /// Returns the strongest promise that covers a score.
    fn covering(&self, score: Option<f64>) -> Option<&(f64, Warranty)> {
        let score = score?;
        self.found.iter().rev().find(|(_, w)| w.covers(score))
    }

    /// Returns the share of right verdicts promised for a similar verdict; [`Standing::right`] without the rest.
    pub fn right(&self, verdict: &Mark) -> Option<f64> {
        self.covering(scored(verdict, &self.weights))
            .map(|(right, _)| *right)
    }

    /// Returns the probability that a similar verdict is right: how often verdicts with a similar score were right, never
    /// quite 0 or 1. `None` with fewer than [`PROBABILITY_MARKS`] test marks.
    pub fn probability(&self, verdict: &Mark) -> Option<f64> {
        (self.test.len() >= PROBABILITY_MARKS).then_some(())?;
        self.probability.at(verdict)
    }

    /// Returns the weight of a model's vote in the score.
    pub fn weight(&self, model: &str) -> f64 {
        self.weights.get(model).copied().unwrap_or(1.0)
    }

    /// Returns the lowest score that is promised: at the required share, or by the weakest promise. `None` without one.
    pub fn edge(&self) -> Option<f64> {
        let least = self.required.unwrap_or(0.0);
        let mut found = self.found.iter().filter(|(right, _)| *right >= least);
        match found.next()? {
            (_, Warranty::Holds { from, .. }) => Some(*from),
            (_, Warranty::None { .. }) => None,
        }
    }

    /// Returns the distance of a verdict's score from the edge of the promise: the lowest score for which a promise
    /// holds, or, without a promise, the highest score. Verdicts that a promise covers come after all others. `None`
    /// without a score.
    pub fn gap(&self, verdict: &Mark) -> Option<f64> {
        const WIDEST: f64 = 2.0;
        let score = scored(verdict, &self.weights)?;
        Some(match self.found.first() {
            Some((_, Warranty::Holds { from, .. })) if score < *from => from - score,
            Some((_, Warranty::Holds { from, .. })) => WIDEST + score - from,
            _ => 1.0 - score,
        })
    }

    /// Returns the time when an earlier promise was withdrawn.
    pub fn withdrawn(&self) -> Option<Timestamp> {
        self.withdrawn
    }

    /// Returns the promise about a similar verdict.
    pub fn standing(&self, verdict: &Mark) -> Standing {
        let own = scored(verdict, &self.weights);
        let state = match (self.covering(own), self.found.first()) {
            (
                Some((
                    right,
                    Warranty::Holds {
                        from, marks, wrong, ..
                    },
                )),
                _,
            ) => {
                let times = || {
                    let covered = self.test.iter().filter(|(_, mark)| mark.score >= *from);
                    covered.map(|(at, _)| *at)
                };
                let zero = Timestamp::UNIX_EPOCH;
                State::Promised {
                    right: *right,
                    risk: RISK,
                    tested: *marks,
                    wrong: *wrong,
                    period: (times().min().unwrap_or(zero), times().max().unwrap_or(zero)),
                }
            }
            (_, Some((right, Warranty::Holds { from, .. }))) => State::Unsure {
                right: *right,
                // Also where it covers verdicts without a score.
                from: from.max(-1.0),
            },
            _ => self.missing(),
        };
        Standing {
            kind: self.kind.clone(),
            marks: self.count,
            score: own,
            probability: self.probability(verdict),
            state,
            imported: self.imported,
            withdrawn: self.withdrawn,
        }
    }

    /// Estimates how many more marks are needed.
    fn missing(&self) -> State {
        let scores: Vec<Scored> = self.test.iter().map(|(_, mark)| *mark).collect();
        let target = self.required.unwrap_or(LEVELS[0]);
        let more = Promise::of(target).and_then(|promise| {
            let Warranty::None { more, marks } = fit(&scores, promise) else {
                return None;
            };
            // Few marks can show neither that more of them would not suffice nor how many would.
            let first = first_group(promise);
            let few = (2 * first).checked_sub(marks);
            match (more, few) {
                (Some(more), Some(few)) if marks < first => Some(more.min(few)),
                (more, few) => more.or(few),
            }
        });
        // A quarter of the marks is used for training.
        State::None {
            more: more.map(|n| (n * 4).div_ceil(3)).filter(|n| *n <= MORE_MAX),
        }
    }
}

/// Returns the promises that hold, weakest first, up to the first failure.
fn fitted(test: &[(Timestamp, Scored)], required: Option<f64>) -> Vec<(f64, Warranty)> {
    let scores: Vec<Scored> = test.iter().map(|(_, mark)| *mark).collect();
    let ranked = ranked(&scores);
    let mut levels: Vec<f64> = LEVELS.into_iter().chain(required).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let fit = |right: f64| Some((right, holds(&ranked, Promise::of(right)?)?));
    levels.into_iter().map_while(fit).collect()
}

/// Returns the index of the mark at which a promise was found broken: the weakest such promise decides.
fn broken(test: &[(Timestamp, Scored)], found: &[(f64, Warranty)]) -> Option<usize> {
    let watch = |(right, warranty): &(f64, Warranty)| match warranty {
        Warranty::Holds { from, .. } => Some((*from, Watch::new(1.0 - right), None)),
        Warranty::None { .. } => None,
    };
    let mut watched: Vec<(f64, Watch, Option<usize>)> = found.iter().filter_map(watch).collect();
    // All watches run in one pass over the marks.
    for (at, (_, mark)) in test.iter().enumerate() {
        for (from, watch, alarm) in &mut watched {
            if mark.score >= *from && alarm.is_none() {
                watch.see(mark.right);
                *alarm = watch.alarm().map(|_| at);
            }
        }
        // After the alarm of the weakest promise nothing changes the result.
        if watched.first().is_some_and(|(_, _, alarm)| alarm.is_some()) {
            break;
        }
    }
    watched.into_iter().find_map(|(_, _, alarm)| alarm)
}
