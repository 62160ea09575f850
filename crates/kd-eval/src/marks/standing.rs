//! The promise that the user's marks support for a verdict.
//!
//! Input: marks, and the verdict. Output: the highest share of right verdicts that can be promised for verdicts
//! like it, or what is missing. "Like it" means the same kind of question, the same models, the same protocol
//! and the same rule by which members are not asked. The first quarter of these marks, and all other marks, train the weights of the score; the rest test the promise, so
//! that no mark does both. Promises are tested from the weakest to the strongest, up to the first failure, so the total
//! risk is that of one test. Marks are monitored in order of time: if verdicts covered by a promise are wrong too
//! often, the promise is withdrawn, and only later marks count.

use super::warranty::{MORE_MAX, first_group, holds, ranked};
use super::{
    By, Evidence, Mark, Promise, RECENT, Scored, Sum, Warranty, Watch, fit, score, strengths,
};
use crate::auto::Strength;
use crate::calibration::{Forecast, Logistic};
use crate::weights::odds;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The shares of right verdicts that can be promised, weakest first.
pub const LEVELS: [f64; 5] = [0.7, 0.8, 0.9, 0.95, 0.99];

/// Minimum number of test marks for reporting a probability.
pub const PROBABILITY_MARKS: usize = 50;

/// What is assumed about scores before there are marks: a verdict without a lead is right in every second case, one of a
/// unanimous council nearly always. Measured on recorded answers (`docs/eval.md#calibration`).
const PRIOR: Logistic = Logistic {
    base: 0.0,
    slope: 4.0,
};
/// How much that counts: about as much as one undecided mark.
const PRIOR_PRECISION: f64 = 0.25;
/// The parts of the marks from which a probability is learned: each part is scored with weights from the others.
const FOLDS: usize = 4;

/// The evidence of the marks about a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The kind of question.
    pub kind: String,
    /// Marks of similar verdicts that count: both training and test marks.
    pub marks: u64,
    /// The council's certainty of this verdict: the lead in weights, from -1 to 1. See [`super::score`].
    pub score: Option<f64>,
    /// The probability that it is right, from how often verdicts with a similar score were right. `None` with few
    /// marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The promise.
    #[serde(flatten)]
    pub state: State,
    /// How many of [`Standing::marks`] were imported from a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub imported: u64,
    /// The time when an earlier promise was withdrawn: only marks since then count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Timestamp>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The state of the promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Similar verdicts are right at least at the promised rate.
    Promised {
        /// The promised share of right verdicts.
        right: f64,
        /// The probability that the promise is broken although its test passed.
        risk: f64,
        /// Marks whose score reaches the promise's minimum.
        tested: u64,
        /// Number of them that were wrong.
        wrong: u64,
        /// The times of the first and the last of these marks.
        period: (Timestamp, Timestamp),
    },
    /// The weakest promise covers only verdicts with a higher score.
    Unsure {
        /// The share of right verdicts that it promises.
        right: f64,
        /// The minimum score.
        from: f64,
    },
    /// Nothing can be promised.
    None {
        /// Roughly how many more marks the weakest promise needs; `None` if more like these would not suffice.
        more: Option<u64>,
    },
}

impl Standing {
    /// Returns the promised share of right verdicts.
    pub fn right(&self) -> Option<f64> {
        match self.state {
            State::Promised { right, .. } => Some(right),
            _ => None,
        }
    }
}

/// Weights each model's vote by the odds that it is right on this kind; 1 for all if some model has no marks.
fn weights(evidence: &Evidence, kind: &str, models: &[&str]) -> BTreeMap<String, f64> {
    let known: Option<Vec<f64>> = strengths(evidence, kind, models)
        .into_iter()
        .map(|strength| strength.map(Strength::estimate))
        .collect();
    let weights = known.map_or_else(|| vec![1.0; models.len()], |right| odds(&right));
    let names = models.iter().map(|model| (*model).to_owned());
    names.zip(weights).collect()
}

/// Scores verdicts. Reuses its buffers, and caches the weight of the model at each position of a council.
struct Scorer<'a> {
    weights: &'a BTreeMap<String, f64>,
    answers: Vec<Option<usize>>,
    given: Vec<f64>,
    last: Vec<(&'a str, f64)>,
}

impl<'a> Scorer<'a> {
    fn new(weights: &'a BTreeMap<String, f64>) -> Self {
        Self {
            weights,
            answers: Vec::new(),
            given: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Scores a marked or unmarked verdict. `None` if the weights are zero.
    fn score(&mut self, mark: &'a Mark) -> Option<f64> {
        self.answers.clear();
        self.given.clear();
        for (place, member) in mark.members.iter().enumerate() {
            let dissents = |m: &super::Member| !m.backs && m.key == member.key;
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
fn scored(mark: &Mark, weights: &BTreeMap<String, f64>) -> Option<f64> {
    Scorer::new(weights).score(mark)
}

/// Returns whether a mark is of the council of a verdict, whose `models` are sorted.
fn is_of_models(mark: &Mark, verdict: &Mark, models: &[&str]) -> bool {
    if mark.members.len() + mark.unasked.len() != models.len() {
        return false;
    }
    // Mostly the same members were asked, in the same order.
    let same = mark.unasked == verdict.unasked
        && (mark.members.iter().map(|m| &m.model)).eq(verdict.members.iter().map(|m| &m.model));
    same || mark.models() == models
}

/// Returns the promise that marks support for `verdict`, at [`LEVELS`] and at the share that the user requires, if any.
pub fn standing(evidence: &Evidence, verdict: &Mark, required: Option<f64>) -> Standing {
    Basis::of(evidence, verdict, required).standing(verdict)
}

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

    /// Returns how far a verdict's score is from the edge of what is promised: from the score below which no promise
    /// holds, or, without a promise, from the highest score. Verdicts that a promise covers come after all others.
    /// `None` without a score.
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

/// How often verdicts with a similar score were right. Other than a promise it needs no separate test, so all marks teach
/// both the weights and the map.
#[derive(Clone, Debug, PartialEq)]
struct Probability {
    /// The weights learned from all marks.
    weights: BTreeMap<String, f64>,
    /// Maps scores to shares of right verdicts.
    map: Logistic,
    marks: usize,
}

impl Probability {
    /// Learns from `counted` marks and from those of `others`, which include them. A mark is scored with weights that it
    /// did not teach, as a new verdict is.
    fn of(others: &Evidence, counted: &[&Mark], kind: &str, models: &[&str]) -> Self {
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

    fn at(&self, verdict: &Mark) -> Option<f64> {
        let edge = 1.0 / (self.marks as f64 + 2.0);
        let score = scored(verdict, &self.weights)?;
        Some(self.map.at(score).clamp(edge, 1.0 - edge))
    }
}

/// Returns the fold of a mark: without a pattern, as marks may have one.
fn fold_of(at: usize) -> usize {
    ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % FOLDS
}

/// Returns the evidence without these marks, which are of one kind and mostly of the same models.
fn without(evidence: &Evidence, marks: &[&Mark]) -> Evidence {
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

/// The risk of every promise: [`Promise::of`].
pub(super) const RISK: f64 = 0.1;

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

#[cfg(test)]
mod tests {
    use super::super::{By, Member, VERSION};
    use super::*;

    fn standing(marks: &[Mark], verdict: &Mark, required: Option<f64>) -> Standing {
        super::standing(&Evidence::of(marks.to_vec()), verdict, required)
    }

    /// Builds a verdict of three models, `backing` of which support it.
    fn verdict(at: i64, backing: usize, right: bool) -> Mark {
        let member = |model: usize| Member {
            name: format!("m{model}"),
            model: format!("vendor/m{model}"),
            key: Some(if model < backing { "391" } else { "381" }.to_owned()),
            backs: model < backing,
            confidence: None,
        };
        Mark {
            v: VERSION,
            project: "p-1".into(),
            thread: format!("council-{at}"),
            message: 5,
            at: Timestamp::from_second(at * 86_400).expect("a time"),
            by: By::User,
            kind: "number".into(),
            protocol: "council".into(),
            members: (0..3).map(member).collect(),
            unasked: Vec::new(),
            stopping: None,
            winner: Some("391".into()),
            credit: f64::from(u8::from(right)),
            answer: None,
            calls: 3,
            usd: 0.0,
        }
    }

    fn series(groups: &[(usize, usize, usize)]) -> Vec<Mark> {
        let mut at = 0;
        let mut all = Vec::new();
        for (backing, right, wrong) in groups {
            for n in 0..right + wrong {
                at += 1;
                all.push(verdict(at, *backing, n >= *wrong));
            }
        }
        all
    }

    /// Alternates two kinds of verdicts, so that both are in the training quarter.
    fn mixed(n: usize, sure_wrong_every: usize) -> Vec<Mark> {
        (0..n)
            .map(|at| match at % 2 {
                0 => verdict(at as i64, 3, at % sure_wrong_every != 0),
                _ => verdict(at as i64, 2, at % 8 == 1),
            })
            .collect()
    }

    #[test]
    fn sure_verdicts_are_promised_and_unsure_ones_are_not() {
        let marks = mixed(600, 100);
        let sure = standing(&marks, &verdict(9999, 3, true), None);
        assert_eq!(sure.marks, 600);
        assert!(sure.right() >= Some(0.9), "{sure:?}");
        let unsure = standing(&marks, &verdict(9999, 2, true), None);
        assert!(matches!(unsure.state, State::Unsure { .. }), "{unsure:?}");
        assert!(
            sure.words()
                .starts_with("promise: verdicts like this are right at least 9"),
            "{}",
            sure.words()
        );
        assert!(
            unsure
                .words()
                .starts_with("no promise: the council agreed less"),
            "{}",
            unsure.words()
        );
    }

    #[test]
    fn few_marks_promise_nothing_and_say_how_many_are_missing() {
        let none = standing(&[], &verdict(1, 3, true), None);
        assert!(
            matches!(none.state, State::None { more: Some(12..20) }),
            "{none:?}"
        );
        assert_eq!(
            none.words(),
            "no promise: about 16 more marks of number questions by this council would do (0 so far)"
        );
        let stricter = standing(&[], &verdict(1, 3, true), Some(0.95));
        assert!(
            matches!(
                stricter.state,
                State::None {
                    more: Some(90..120)
                }
            ),
            "{stricter:?}"
        );
        // A single mark does not turn a handful into hundreds.
        for right in [1, 5, 10] {
            let few = standing(&series(&[(3, right, 0)]), &verdict(999, 3, true), None);
            let is_near = matches!(few.state, State::None { more: Some(5..35) });
            assert!(is_near, "{right}: {few:?}");
        }
        let wrong = standing(&series(&[(3, 0, 1)]), &verdict(999, 3, true), None);
        assert!(
            matches!(wrong.state, State::None { more: Some(20..50) }),
            "{wrong:?}"
        );
        let hopeless = standing(&series(&[(3, 100, 100)]), &verdict(999, 3, true), None);
        assert!(
            matches!(hopeless.state, State::None { more: None }),
            "{hopeless:?}"
        );
    }

    #[test]
    fn a_probability_is_how_often_verdicts_as_sure_were_right() {
        let marks = mixed(600, 100);
        let sure = standing(&marks, &verdict(9999, 3, true), None);
        let unsure = standing(&marks, &verdict(9999, 2, true), None);
        let near = |told: Option<f64>, share: f64| {
            assert!(told.is_some_and(|p| (p - share).abs() < 0.03), "{told:?}");
        };
        near(sure.probability, 0.98);
        near(unsure.probability, 0.25);
        assert!(
            unsure
                .words()
                .ends_with("; probability of being right: about 25 %"),
            "{}",
            unsure.words()
        );
        let all_right = standing(&series(&[(3, 200, 0)]), &verdict(9999, 3, true), None);
        assert!(all_right.probability < Some(1.0), "{all_right:?}");
        assert!(
            all_right.words().ends_with("about 99 %"),
            "{}",
            all_right.words()
        );
        // 66 marks leave 50 for testing.
        for (marks, told) in [(65, false), (66, true)] {
            let few = standing(&series(&[(3, marks, 0)]), &verdict(9999, 3, true), None);
            assert_eq!(few.probability.is_some(), told, "{few:?}");
        }
    }

    #[test]
    fn only_verdicts_like_it_count() {
        let marks = mixed(600, 100);
        let here = verdict(9999, 3, true);
        let mut other_kind = here.clone();
        other_kind.kind = "choice".into();
        let mut other_protocol = here.clone();
        other_protocol.protocol = "vote".into();
        let mut other_version = here.clone();
        other_version.members[1].model = "vendor/m1-20260101".into();
        let mut smaller = here.clone();
        smaller.members.pop();
        for other in [other_kind, other_protocol, other_version, smaller] {
            let standing = standing(&marks, &other, None);
            assert_eq!((standing.marks, standing.right()), (0, None), "{other:?}");
        }
        // A council of which a member was not asked is the same one.
        let mut early = here.clone();
        let spared = early.members.pop().expect("a member");
        early.unasked.push(spared.model);
        assert_eq!(standing(&marks, &early, None).marks, 600);
        let mut earlier = marks.clone();
        for mark in &mut earlier {
            let spared = mark.members.remove(0);
            mark.unasked.push(spared.model);
        }
        assert_eq!(standing(&earlier, &here, None).marks, 600);
        assert_eq!(standing(&earlier, &early, None).marks, 600);
        // So is one that ends by the same rule, but by no other.
        let by = |rule: Option<&str>, mark: &Mark| Mark {
            stopping: rule.map(str::to_owned),
            ..mark.clone()
        };
        let ruled: Vec<Mark> = marks.iter().map(|m| by(Some("margin"), m)).collect();
        for (marks, rule, like) in [
            (&ruled, Some("margin"), 600),
            (&ruled, Some("certainty 0.5"), 0),
            (&ruled, None, 0),
            (&marks, Some("settled"), 0),
        ] {
            assert_eq!(
                standing(marks, &by(rule, &early), None).marks,
                like,
                "{rule:?}"
            );
        }
        // Its own mark does not count.
        let own = standing(&marks, &marks[10], None);
        assert_eq!(own.marks, 599);
    }

    #[test]
    fn full_councils_promise_nothing_for_one_answer() {
        // All three agree in every mark, and nearly all are right. Single answers are right in 55 % of the cases.
        let full: Vec<Mark> = series(&[(3, 252, 8)])
            .into_iter()
            .map(|mark| Mark {
                stopping: Some("margin".into()),
                ..mark
            })
            .collect();
        let mut one = verdict(9999, 3, true);
        let unasked = one.members.split_off(1);
        one.unasked = unasked.into_iter().map(|member| member.model).collect();
        one.stopping = Some("certainty 0.5".into());
        let found = standing(&full, &one, None);
        assert_eq!(
            (found.right(), found.probability),
            (None, None),
            "{found:?}"
        );
        let unmarked: Vec<Mark> = full
            .into_iter()
            .map(|m| Mark {
                stopping: None,
                ..m
            })
            .collect();
        assert_eq!(standing(&unmarked, &one, None).right(), None);
        // By their own rule they do promise.
        one.stopping = None;
        assert!(standing(&unmarked, &one, None).right() >= Some(0.9));
    }

    #[test]
    fn a_promise_that_no_longer_holds_is_withdrawn_and_can_be_earned_again() {
        // 500 right ones, then every second one is wrong.
        let mut marks = series(&[(3, 500, 0)]);
        let from = marks.len() as i64;
        marks.extend((1..60).map(|n| verdict(from + n, 3, n % 2 == 0)));
        let here = verdict(9999, 3, true);
        let broken = standing(&marks, &here, None);
        assert!(broken.withdrawn.is_some(), "{broken:?}");
        assert_eq!(broken.right(), None, "{broken:?}");
        assert!(
            broken.words().contains("withdrawn on 1971-"),
            "{}",
            broken.words()
        );
        let from = 600;
        marks.extend((1..200).map(|n| verdict(from + n, 3, true)));
        let earned = standing(&marks, &here, None);
        assert!(
            earned.right().is_some() && earned.withdrawn.is_some(),
            "{earned:?}"
        );
    }

    #[test]
    fn the_order_in_which_marks_are_stored_changes_nothing() {
        let marks = mixed(300, 50);
        let mut turned = marks.clone();
        turned.reverse();
        let here = verdict(9999, 3, true);
        assert_eq!(
            standing(&marks, &here, None),
            standing(&turned, &here, None)
        );
    }

    #[test]
    fn what_is_learned_once_says_the_same_of_each_verdict() {
        let marks = mixed(600, 100);
        for required in [None, Some(0.85)] {
            let basis = Basis::of(
                &Evidence::of(marks.clone()),
                &verdict(9999, 3, true),
                required,
            );
            for backing in 0..=3 {
                let one = verdict(9000 + backing as i64, backing, true);
                let alone = standing(&marks, &one, required);
                assert_eq!(basis.standing(&one), alone);
                assert_eq!(basis.right(&one), alone.right());
            }
        }
    }
}
