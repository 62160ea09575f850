//! When enough members of a council have answered.
//!
//! Input: answers of all members to questions with known right answers. Output: an [`Enough`]: the order in which to ask
//! members, the weight of each vote, and for each lead of the leading answer the observed chance that it is right.
//! Members are asked in that order until the chance reaches a threshold, or no answer that is still missing can change
//! the leader. The threshold is the cheapest one that loses at most a stated share of right answers compared with asking
//! everybody; it is chosen on questions that did not teach the chances.
//!
//! All decisions use whole numbers, so that a record is decided again exactly.

use super::deciders::Halves;
use super::intervals::{Z95, Z95_ONE_SIDED};
use super::weights::{Labelled, PRIOR, learned_from, odds, outvotable};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest chance, in millionths.
pub const SURE: u32 = 1_000_000;
/// A threshold that no chance reaches: only what cannot change ends early.
const NEVER: u32 = SURE + 1;
/// Minimum number of questions to learn from.
pub const QUESTIONS_MIN: usize = 40;
/// The share of right answers that may be lost compared with asking everybody: half a point.
pub const MARGIN: f64 = 0.005;
/// Standard errors added to the measured loss before it is compared with the margin.
const CAUTION: f64 = 1.0;
/// Thresholds that are tried, in millionths.
const THRESHOLDS: [u32; 20] = [
    500_000, 600_000, 650_000, 700_000, 750_000, 800_000, 830_000, 860_000, 880_000, 900_000,
    910_000, 920_000, 930_000, 940_000, 950_000, 960_000, 970_000, 980_000, 990_000, 995_000,
];
/// One, in billionths: the mean weight of a vote.
const ONE: f64 = 1e9;

/// When enough members have answered. Members are indexes in the council.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enough {
    /// The members, in the order in which they are asked.
    pub order: Vec<usize>,
    /// The weight of each member's vote, in billionths, by member. Never 0.
    pub weights: Vec<u64>,
    /// For one answer, for two, …: the observed chance that the leader is right, from each lead on. Both in millionths
    /// and ascending. Empty if nothing was learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chances: Vec<Vec<(u32, u32)>>,
    /// The chance that is enough, in millionths. Above [`SURE`]: none is.
    pub threshold: u32,
    /// The chance that the user required; `None` leaves it to a margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<f64>,
    /// The forecast, if anything was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

/// The expected result, measured on questions that were not used to estimate the probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// Number of questions.
    pub questions: usize,
    /// The mean number of members asked.
    pub calls: f64,
    /// The mean cost, as a share of asking everybody.
    pub cost: f64,
    /// The 95 % interval of [`Forecast::calls`].
    pub calls_interval: (f64, f64),
    /// The share of right answers lost compared with asking everybody; negative if more were right.
    pub loss: f64,
    /// The loss that is compared with the margin: one standard error above [`Forecast::loss`].
    pub loss_likely: f64,
    /// The upper end of the one-sided 95 % interval of [`Forecast::loss`].
    pub loss_most: f64,
}

/// The user's requirement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// To lose at most this share of right answers compared with asking everybody.
    Margin(f64),
    /// A chance of at least this that the leader is right.
    Chance(f64),
}

/// The state after some members have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The answer with the most weight; `None` if there is none, or several have the same.
    pub leader: Option<usize>,
    /// Its lead over the next answer, as a share of the weight of all members, in millionths.
    pub lead: u32,
    /// The observed chance that it is right, in millionths; 0 if nothing was learned.
    pub chance: u32,
    /// Whether no missing answer can change the leader.
    pub is_settled: bool,
}

impl Enough {
    /// Learns from questions that all `members` were asked. `costs` are the costs of asking each member, in any unit.
    /// `None` with fewer than [`QUESTIONS_MIN`] questions.
    ///
    /// Members are asked either the strongest first or the cheapest first, whichever costs less within the aim.
    pub fn learn(rows: &[Labelled<'_>], costs: &[f64], aim: Aim, seed: u64) -> Option<Self> {
        if rows.len() < QUESTIONS_MIN || costs.is_empty() {
            return None;
        }
        let halves = Halves::drawn(rows.len(), seed);
        let cases = Case::of(rows, &halves, costs.len());
        let part = |half: usize| -> Vec<Case> {
            let of = |case: &Case| Case {
                times: case.in_half[half],
                ..case.clone()
            };
            cases.iter().map(of).filter(|case| case.times > 0).collect()
        };
        let parts = [part(0), part(1)];
        let mut best: Option<(f64, bool, u32, Forecast)> = None;
        for cheap_first in [false, true] {
            // Each half is walked with what the other half teaches.
            let mut walks = Vec::new();
            for (taught, walked) in [(0, 1), (1, 0)] {
                let rule =
                    Self::taught(&parts[taught], ordered(&parts[taught], costs, cheap_first));
                walks.extend(
                    parts[walked]
                        .iter()
                        .map(|case| (rule.walk(case), case.times)),
                );
            }
            let (threshold, forecast) = chosen(&walks, costs, aim);
            let cost = forecast.cost;
            if best.as_ref().is_none_or(|(least, ..)| cost < *least - 1e-9) {
                best = Some((cost, cheap_first, threshold, forecast));
            }
        }
        let (_, cheap_first, threshold, forecast) = best?;
        Some(Self {
            threshold,
            required: match aim {
                Aim::Margin(_) => None,
                Aim::Chance(chance) => Some(chance),
            },
            forecast: Some(forecast),
            ..Self::taught(&cases, ordered(&cases, costs, cheap_first))
        })
    }

    /// Without answers to learn from: asks in this order until nothing can change. `weights` are of any unit.
    pub fn unlearned(order: Vec<usize>, weights: &[f64]) -> Self {
        Self {
            order,
            weights: whole(weights),
            chances: Vec::new(),
            threshold: NEVER,
            required: None,
            forecast: None,
        }
    }

    /// Without common marks: asks the strongest first, until nothing can change. `right` are shares of right answers;
    /// `measured` tells whether they are from questions of this kind. If not, one of three members is never enough.
    pub fn by_strength(right: &[f64], measured: bool) -> Self {
        let mut order: Vec<usize> = (0..right.len()).collect();
        order.sort_by(|a, b| right[*b].total_cmp(&right[*a]));
        let mut weights = odds(right);
        if !measured {
            outvotable(&mut weights);
        }
        Self::unlearned(order, &weights)
    }

    /// Returns the state after these members were asked: each with its answer, `None` if it gave none.
    pub fn look(&self, asked: &[(usize, Option<usize>)]) -> Look {
        let all = total(self.weights.iter().copied());
        let weight = |member: &usize| self.weights.get(*member).copied().unwrap_or(0);
        let heard = total(asked.iter().map(|(member, _)| weight(member)));
        let mut sums: Vec<(usize, u64)> = Vec::new();
        for (member, answer) in asked {
            let Some(answer) = *answer else { continue };
            match sums.iter_mut().find(|(known, _)| *known == answer) {
                Some((_, sum)) => *sum = sum.saturating_add(weight(member)),
                None => sums.push((answer, weight(member))),
            }
        }
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let sum = |place: usize| sums.get(place).map_or(0, |(_, sum)| *sum);
        let ahead = sum(0) - sum(1);
        let lead = part(ahead, all);
        let leader = (ahead > 0).then(|| sums[0].0);
        Look {
            leader,
            lead,
            chance: leader.map_or(0, |_| self.chance(asked.len(), lead)),
            is_settled: asked.len() >= self.order.len() || ahead > all.saturating_sub(heard),
        }
    }

    /// Returns whether nobody else has to be asked.
    pub fn is_enough(&self, look: Look) -> bool {
        look.is_settled || look.chance >= self.threshold
    }

    /// Returns the observed chance after `asked` answers with this lead.
    fn chance(&self, asked: usize, lead: u32) -> u32 {
        let steps = asked.checked_sub(1).and_then(|at| self.chances.get(at));
        let steps = steps.map_or(&[][..], Vec::as_slice);
        let at = steps.partition_point(|(from, _)| *from <= lead);
        // A lead below all that were seen is no better than the least of them.
        steps.get(at.saturating_sub(1)).map_or(0, |step| step.1)
    }

    /// Learns weights and chances for an order.
    fn taught(cases: &[Case], order: Vec<usize>) -> Self {
        let labelled = cases
            .iter()
            .map(|case| (case.labelled(), case.times as f64));
        let weights = learned_from(labelled, &vec![0.0; order.len()], PRIOR);
        let mut rule = Self::unlearned(order, &weights);
        let walks: Vec<(Walk, u64)> = (cases.iter())
            .map(|case| (rule.walk(case), case.times))
            .collect();
        rule.chances = (0..rule.order.len())
            .map(|at| steps(walks.iter().map(|(walk, times)| (walk[at], *times))))
            .collect();
        rule
    }

    /// Asks everybody about a question, one after another.
    fn walk(&self, row: &Case) -> Walk {
        let mut asked = Vec::new();
        let stop = |member: &usize| {
            asked.push((*member, row.answers.get(*member).copied().flatten()));
            let look = self.look(&asked);
            let right = |key| row.right.get(key) == Some(&true);
            Stop {
                member: *member,
                is_right: look.leader.is_some_and(right),
                look,
            }
        };
        self.order.iter().map(stop).collect()
    }
}

/// Questions on which members agreed and erred alike. A thousand questions of five members are a few dozen cases.
#[derive(Clone)]
struct Case {
    /// Each member's answer, numbered in the order in which they occur.
    answers: Vec<Option<usize>>,
    right: Vec<bool>,
    /// Number of such questions.
    times: u64,
    /// Number of them in each half.
    in_half: [u64; 2],
}

impl Case {
    /// Groups questions.
    fn of(rows: &[Labelled<'_>], halves: &Halves, members: usize) -> Vec<Self> {
        type Key = (Vec<Option<usize>>, Vec<bool>);
        let mut found: BTreeMap<Key, [u64; 2]> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let (mut seen, mut right) = (Vec::new(), Vec::new());
            let mut number = |key: usize| match seen.iter().position(|known| *known == key) {
                Some(number) => number,
                None => {
                    seen.push(key);
                    right.push(row.right.get(key) == Some(&true));
                    seen.len() - 1
                }
            };
            let given = (0..members).map(|member| row.answers.get(member).copied().flatten());
            let answers: Vec<Option<usize>> = given.map(|key| key.map(&mut number)).collect();
            found.entry((answers, right)).or_default()[halves.of(at)] += 1;
        }
        let case = |((answers, right), in_half): ((_, _), [u64; 2])| Self {
            answers,
            right,
            times: in_half[0] + in_half[1],
            in_half,
        };
        found.into_iter().map(case).collect()
    }

    fn labelled(&self) -> Labelled<'_> {
        Labelled {
            answers: &self.answers,
            right: &self.right,
        }
    }
}

/// A question as members were asked one after another: the state after each.
type Walk = Vec<Stop>;

/// The state after a member was asked.
#[derive(Clone, Copy)]
struct Stop {
    member: usize,
    look: Look,
    /// Whether the leader is right.
    is_right: bool,
}

/// Returns the members, most reliable first; or cheapest first, and among equal prices the most reliable first.
fn ordered(cases: &[Case], costs: &[f64], cheap_first: bool) -> Vec<usize> {
    let right = |member: usize| {
        let hit = |case: &&Case| {
            let answer = case.answers.get(member).copied().flatten();
            answer.is_some_and(|key| case.right.get(key) == Some(&true))
        };
        cases.iter().filter(hit).map(|case| case.times).sum()
    };
    let hits: Vec<u64> = (0..costs.len()).map(right).collect();
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|member| std::cmp::Reverse(hits[*member]));
    if cheap_first {
        order.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
    }
    order
}

/// Converts weights to billionths with a mean of one. Weights that are not positive become tiny positive ones, so that
/// an answer that only such members gave still leads.
fn whole(weights: &[f64]) -> Vec<u64> {
    const LEAST: f64 = 1e-6;
    let positive = |weight: &f64| match weight.is_finite() {
        true => weight.max(LEAST),
        false => LEAST,
    };
    let weights: Vec<f64> = weights.iter().map(positive).collect();
    let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    let billionths = |weight: &f64| (weight / mean * ONE).round() as u64;
    weights
        .iter()
        .map(|weight| billionths(weight).max(1))
        .collect()
}

/// Adds weights. A record may be written by others, so the sum has a bound.
fn total(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

/// Returns a part of a whole, in millionths.
fn part(of: u64, whole: u64) -> u32 {
    let millionths = u128::from(of) * u128::from(SURE) / u128::from(whole.max(1));
    u32::try_from(millionths).unwrap_or(SURE)
}

/// Returns the observed chance from each lead on: a monotonic fit with one right and one wrong answer's worth of doubt,
/// half of each.
fn steps(stops: impl Iterator<Item = (Stop, u64)>) -> Vec<(u32, u32)> {
    let mut stops: Vec<(Stop, u64)> = stops
        .filter(|(stop, _)| stop.look.leader.is_some())
        .collect();
    stops.sort_by_key(|(stop, _)| stop.look.lead);
    // Blocks of (least lead, stops, right ones); a block that is no better than the one before is merged with it.
    let mut blocks: Vec<(u32, u64, u64)> = Vec::new();
    for same in stops.chunk_by(|(a, _), (b, _)| a.look.lead == b.look.lead) {
        let all = same.iter().map(|(_, times)| times).sum();
        let right = same.iter().filter(|(stop, _)| stop.is_right);
        let right = right.map(|(_, times)| times).sum();
        blocks.push((same[0].0.look.lead, all, right));
        while let [.., before, last] = blocks.as_slice()
            && before.2 * last.1 >= last.2 * before.1
        {
            let merged = (before.0, before.1 + last.1, before.2 + last.2);
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    let chance = |n: u64, right: u64| part(2 * right + 1, 2 * n + 2);
    let mut steps: Vec<(u32, u32)> = Vec::new();
    for (from, n, right) in blocks {
        // Doubt may turn the order of two neighbors around.
        let least = steps.last().map_or(0, |(_, chance)| *chance);
        steps.push((from, chance(n, right).max(least)));
    }
    steps
}

/// Chooses the threshold that costs least within the aim.
fn chosen(walks: &[(Walk, u64)], costs: &[f64], aim: Aim) -> (u32, Forecast) {
    let limit = |forecast: &Forecast| match aim {
        Aim::Margin(margin) => forecast.loss_likely <= margin,
        Aim::Chance(_) => true,
    };
    let thresholds: Vec<u32> = match aim {
        Aim::Margin(_) => THRESHOLDS.into_iter().chain([NEVER]).collect(),
        Aim::Chance(chance) => vec![(chance.clamp(0.0, 1.0) * f64::from(SURE)).round() as u32],
    };
    let tried = thresholds
        .iter()
        .map(|threshold| (*threshold, played(walks, costs, *threshold)));
    let within = tried.filter(|(threshold, forecast)| *threshold == NEVER || limit(forecast));
    let least = within.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost));
    least.unwrap_or_else(|| (NEVER, played(walks, costs, NEVER)))
}

/// Plays all questions with a threshold.
fn played(walks: &[(Walk, u64)], costs: &[f64], threshold: u32) -> Forecast {
    let (mut calls, mut losses, mut cost) = (Vec::new(), Vec::new(), 0.0);
    for (walk, times) in walks {
        let end = walk
            .iter()
            .position(|stop| stop.look.is_settled || stop.look.chance >= threshold);
        let end = end.unwrap_or(walk.len().saturating_sub(1));
        let (Some(stopped), Some(last)) = (walk.get(end), walk.last()) else {
            continue;
        };
        calls.push(((end + 1) as f64, *times));
        let asked = walk[..=end].iter().map(|stop| costs[stop.member]);
        cost += asked.sum::<f64>() * *times as f64;
        let loss = f64::from(u8::from(last.is_right)) - f64::from(u8::from(stopped.is_right));
        losses.push((loss, *times));
    }
    let questions: u64 = walks.iter().map(|(_, times)| times).sum();
    let (calls, calls_error) = mean(&calls);
    let (loss, loss_error) = mean(&losses);
    let all = costs.iter().sum::<f64>() * questions as f64;
    Forecast {
        questions: questions as usize,
        calls,
        calls_interval: (calls - Z95 * calls_error, calls + Z95 * calls_error),
        cost: if all > 0.0 { cost / all } else { 1.0 },
        loss,
        loss_likely: loss + CAUTION * loss_error,
        loss_most: loss + Z95_ONE_SIDED * loss_error,
    }
}

/// Returns the mean of values that each occurred a number of times, and its standard error. Outcomes without any variation
/// still have the error of one exception, so that few questions prove little.
fn mean(values: &[(f64, u64)]) -> (f64, f64) {
    let n = values.iter().map(|(_, times)| times).sum::<u64>().max(1) as f64;
    let over = |of: &dyn Fn(f64) -> f64| {
        let each = values
            .iter()
            .map(|(value, times)| of(*value) * *times as f64);
        each.sum::<f64>() / n
    };
    let mean = over(&|value| value);
    let spread = over(&|value| (value - mean).powi(2));
    (mean, (spread.max(1.0 / n) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of three members: the first is right in `first` of 100 questions, the others in 60, on their own.
    fn rows(first: usize) -> Vec<(Vec<Option<usize>>, Vec<bool>)> {
        (0..400)
            .map(|at| {
                let gives = |right: bool| Some(usize::from(!right));
                let answers = vec![
                    gives(at % 100 < first),
                    gives((at * 7) % 100 < 60),
                    gives((at * 13 + 5) % 100 < 60),
                ];
                (answers, vec![true, false])
            })
            .collect()
    }

    fn labelled(rows: &[(Vec<Option<usize>>, Vec<bool>)]) -> Vec<Labelled<'_>> {
        rows.iter()
            .map(|(answers, right)| Labelled { answers, right })
            .collect()
    }

    #[test]
    fn strengths_that_were_not_measured_here_end_nothing_after_one_answer() {
        for (measured, is_enough) in [(true, true), (false, false)] {
            let rule = Enough::by_strength(&[0.5, 0.9, 0.6], measured);
            assert_eq!(rule.order, [1, 2, 0]);
            let look = |asked: &[(usize, Option<usize>)]| rule.look(asked);
            assert_eq!(look(&[(1, Some(0))]).is_settled, is_enough);
            assert!(look(&[(1, Some(0)), (2, Some(0))]).is_settled);
            let outvoted = look(&[(1, Some(0)), (2, Some(1)), (0, Some(1))]);
            assert_eq!(outvoted.leader == Some(1), !measured);
        }
    }

    #[test]
    fn a_member_that_is_always_right_is_asked_alone() {
        let rows = rows(100);
        let rule = Enough::learn(&labelled(&rows), &[1.0; 3], Aim::Margin(MARGIN), 1).unwrap();
        assert_eq!(rule.order[0], 0);
        let look = rule.look(&[(0, Some(1))]);
        assert!(rule.is_enough(look), "{look:?}");
        let forecast = rule.forecast.unwrap();
        assert!(forecast.calls < 1.1, "{forecast:?}");
        assert!(
            forecast.loss.abs() < 1e-9 && forecast.loss_most < MARGIN,
            "{forecast:?}"
        );
    }

    #[test]
    fn the_chance_is_the_share_that_was_right_and_rises_with_the_lead() {
        let rows = rows(80);
        let rule = Enough::learn(&labelled(&rows), &[1.0; 3], Aim::Chance(0.99), 1).unwrap();
        assert_eq!(rule.threshold, 990_000);
        let alone = rule.look(&[(0, Some(0))]);
        assert!((700_000..900_000).contains(&alone.chance), "{alone:?}");
        for steps in &rule.chances {
            assert!(steps.is_sorted(), "{steps:?}");
        }
        assert_eq!(rule.look(&[(0, None)]).leader, None);
        assert_eq!(rule.look(&[(0, None)]).chance, 0);
    }

    #[test]
    fn without_marks_only_what_cannot_change_ends_early() {
        let rule = Enough::unlearned(vec![2, 0, 1], &[1.0, 1.0, 1.0]);
        let look = |asked: &[(usize, Option<usize>)]| rule.is_enough(rule.look(asked));
        assert!(!look(&[(2, Some(4))]));
        assert!(look(&[(2, Some(4)), (0, Some(4))]), "two of three");
        assert!(!look(&[(2, Some(4)), (0, Some(5))]));
        assert!(!look(&[(2, None), (0, Some(5))]), "the third could tie");
        assert!(
            look(&[(2, None), (0, Some(5)), (1, None)]),
            "nobody is left"
        );
        // Weights of a foreign record may be anything.
        let mut foreign = rule.clone();
        foreign.weights = vec![u64::MAX; 3];
        assert!(!foreign.is_enough(foreign.look(&[(2, Some(4)), (0, Some(5))])));
        // A weight above all others together decides alone; a broken weight decides nothing.
        let rule = Enough::unlearned(vec![0, 1, 2], &[5.0, 1.0, f64::NAN]);
        assert!(rule.is_enough(rule.look(&[(0, Some(1))])));
    }

    #[test]
    fn few_questions_teach_nothing() {
        let rows = rows(80);
        let few = &labelled(&rows)[..QUESTIONS_MIN - 1];
        assert_eq!(Enough::learn(few, &[1.0; 3], Aim::Margin(MARGIN), 1), None);
    }

    #[test]
    fn a_cheap_member_goes_first_where_that_costs_less() {
        // The second member is as good as the first, and costs a hundredth.
        let rows: Vec<(Vec<Option<usize>>, Vec<bool>)> = (0..400)
            .map(|at| {
                let gives = |right: bool| Some(usize::from(!right));
                let answers = vec![gives(at % 50 > 0), gives(at % 50 > 1), gives(at % 50 > 2)];
                (answers, vec![true, false])
            })
            .collect();
        let learn = |costs: [f64; 3]| {
            let rule = Enough::learn(&labelled(&rows), &costs, Aim::Margin(0.03), 1).unwrap();
            rule.order[0]
        };
        assert_eq!(learn([1.0, 1.0, 1.0]), 0);
        assert_eq!(learn([1.0, 0.01, 1.0]), 1);
    }

    #[test]
    fn a_rule_survives_being_written() {
        let rows = rows(80);
        let rule = Enough::learn(&labelled(&rows), &[1.0; 3], Aim::Margin(MARGIN), 1).unwrap();
        let text = serde_json::to_string(&rule).unwrap();
        let again: Enough = serde_json::from_str(&text).unwrap();
        assert_eq!((&again.order, &again.weights), (&rule.order, &rule.weights));
        assert_eq!(
            (&again.chances, again.threshold),
            (&rule.chances, rule.threshold)
        );
    }
}
