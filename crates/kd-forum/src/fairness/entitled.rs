//! The entitlement of each agent in a cycle, from the inputs of the draw: its mean position, and the probabilities of
//! taking a turn, the first turn and the last one. Preferences, weights and due turns are all part of the inputs.

use super::super::cards::Cards;
use super::super::schedulers;
use std::collections::BTreeMap;

/// Number of draws before an agent is picked at random (`cycle.rs`): the first and 32 more.
const DRAWS: i32 = 33;

/// The entitlement of one agent in one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Due {
    /// The mean position, from 1.
    pub(super) place: f64,
    /// The variance of the position.
    pub(super) variance: f64,
    /// The probability of the first position.
    pub(super) first_place: f64,
    /// The probability of a turn.
    pub(super) turn: f64,
    /// The probability of speaking first.
    pub(super) first: f64,
    /// The probability of speaking last.
    pub(super) last: f64,
}

/// Maximum cached entitlements for cycles with the same agents.
const KEPT: usize = 1_000;

/// Computes entitlements, with a cache for inputs that cycles share.
#[derive(Default)]
pub(super) struct Entitlements {
    known: BTreeMap<Vec<u64>, Vec<Due>>,
    places: BTreeMap<Vec<u64>, Vec<(f64, f64)>>,
    nodes: BTreeMap<usize, Vec<(f64, f64)>>,
}

impl Entitlements {
    /// Returns the entitlement of each candidate of a cycle, and whether all have equal weight in the order.
    pub(super) fn of(&mut self, cards: &Cards) -> (Vec<Due>, bool) {
        let all = &cards.candidates;
        let scheduler = schedulers::find(&cards.scheduler).unwrap_or(&schedulers::SCHEDULERS[0]);
        let weights: Vec<f64> = all
            .iter()
            .map(|c| {
                if scheduler.weighs {
                    c.weight.max(1e-9)
                } else {
                    1.0
                }
            })
            .collect();
        let alike = weights.windows(2).all(|pair| pair[0] == pair[1]);
        let takes: Vec<f64> = all
            .iter()
            .map(|c| match c.skipped >= cards.skips_max {
                true => 1.0,
                false => 1.0 - (scheduler.skip)(c, all).clamp(0.0, 1.0),
            })
            .collect();
        let key: Vec<u64> = weights.iter().chain(&takes).map(|v| v.to_bits()).collect();
        if let Some(due) = self.known.get(&key) {
            return (due.clone(), alike);
        }
        let places = self.places(&weights);
        let (firsts, lasts) = self.ends(&weights, &takes, alike);
        let nobody: f64 = takes.iter().map(|take| 1.0 - take).product();
        let lot = nobody.powi(DRAWS);
        let n = all.len() as f64;
        let given = |value: f64| match nobody < 1.0 {
            true => (1.0 - lot) * value / (1.0 - nobody) + lot / n,
            false => 1.0 / n,
        };
        let total: f64 = weights.iter().sum();
        let due = (0..all.len()).map(|i| Due {
            place: places[i].0,
            variance: places[i].1,
            first_place: weights[i] / total,
            turn: given(takes[i]).min(1.0),
            first: given(firsts[i]).min(1.0),
            last: given(lasts[i]).min(1.0),
        });
        let due: Vec<Due> = due.collect();
        if self.known.len() == KEPT {
            self.known.clear();
        }
        self.known.insert(key, due.clone());
        (due, alike)
    }

    /// Returns mean and variance of each position when positions are drawn one after another, in proportion to weights
    /// (Plackett and Luce): agent j is before i with probability w_j / (w_i + w_j).
    fn places(&mut self, weights: &[f64]) -> Vec<(f64, f64)> {
        let n = weights.len();
        if weights.windows(2).all(|pair| pair[0] == pair[1]) {
            let n = n as f64;
            return vec![((n + 1.0) / 2.0, (n * n - 1.0) / 12.0); weights.len()];
        }
        let key = weights.iter().map(|w| w.to_bits()).collect();
        let made = self.places.entry(key).or_insert_with(|| {
            let before = |i: usize, j: usize| weights[j] / (weights[i] + weights[j]);
            let of = |i: usize| {
                let others: Vec<usize> = (0..n).filter(|j| *j != i).collect();
                let mean: f64 = others.iter().map(|j| before(i, *j)).sum();
                let mut square = mean;
                for j in &others {
                    for k in others.iter().filter(|k| *k != j) {
                        let first_of_three = weights[i] / (weights[i] + weights[*j] + weights[*k]);
                        // Both are before i.
                        square += before(i, *j) + before(i, *k) - 1.0 + first_of_three;
                    }
                }
                (1.0 + mean, (square - mean * mean).max(0.0))
            };
            (0..n).map(of).collect()
        });
        made.clone()
    }

    /// Returns the probability of each agent to speak first and last, if each decides independently whether to take a
    /// turn. With exponential clocks of rate w, i is first if every other one is later or takes no turn.
    fn ends(&mut self, weights: &[f64], takes: &[f64], alike: bool) -> (Vec<f64>, Vec<f64>) {
        let n = weights.len();
        let (mut firsts, mut lasts) = (vec![0.0; n], vec![0.0; n]);
        // A polynomial for equal weights; otherwise smoothed at its end.
        let (count, power) = match alike {
            true => (n.div_ceil(2) + 1, 1.0),
            false => (64, 8.0),
        };
        let nodes = self.nodes.entry(count).or_insert_with(|| gauss(count));
        let mean = weights.iter().sum::<f64>() / n.max(1) as f64;
        for (x, weight) in nodes.iter() {
            let factors: Vec<(f64, f64, f64)> = (0..n)
                .map(|i| {
                    let ratio = weights[i] / mean;
                    // The probability that the clock of i has not run out yet.
                    let left = if alike { *x } else { x.powf(power * ratio) };
                    let density = ratio * power * left / x;
                    (
                        density,
                        1.0 - takes[i] * (1.0 - left),
                        1.0 - takes[i] * left,
                    )
                })
                .collect();
            let product = |pick: fn(&(f64, f64, f64)) -> f64| -> (f64, usize, f64) {
                let zeros = factors.iter().filter(|f| pick(f) < 1e-12).count();
                let rest = factors.iter().map(pick).filter(|f| *f >= 1e-12).product();
                let all = if zeros == 0 { rest } else { 0.0 };
                (all, zeros, rest)
            };
            // The product over all others: the product over all, divided by one's own factor.
            let without =
                |own: f64, (all, zeros, rest): (f64, usize, f64)| match (own < 1e-12, zeros) {
                    (false, _) => all / own,
                    (true, 1) => rest,
                    (true, _) => 0.0,
                };
            let (first, last) = (product(|f| f.1), product(|f| f.2));
            for i in 0..n {
                let scale = weight * factors[i].0 * takes[i];
                firsts[i] += scale * without(factors[i].1, first);
                lasts[i] += scale * without(factors[i].2, last);
            }
        }
        // Rounding losses are distributed among all.
        let somebody = 1.0 - takes.iter().map(|take| 1.0 - take).product::<f64>();
        for ends in [&mut firsts, &mut lasts] {
            let sum: f64 = ends.iter().sum();
            if sum > 0.0 {
                ends.iter_mut().for_each(|end| *end *= somebody / sum);
            }
        }
        (firsts, lasts)
    }
}

/// Returns Gauss–Legendre nodes and weights on 0 to 1.
fn gauss(count: usize) -> Vec<(f64, f64)> {
    let n = count as f64;
    let node = |i: usize| {
        let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (mut before, mut now) = (1.0, x);
            for k in 2..=count {
                let k = k as f64;
                (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
            }
            slope = n * (x * now - before) / (x * x - 1.0);
            let step = now / slope;
            x -= step;
            if step.abs() < 1e-15 {
                break;
            }
        }
        ((1.0 - x) / 2.0, 1.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..count).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::cards::Candidate;
    use super::super::super::cycle::draw;
    use super::*;
    use kd_core::config::forum::Settings;

    /// Returns means over many draws of the same inputs.
    fn drawn(cards: &Cards, draws: u64) -> Vec<Due> {
        let mut seen = vec![Due::default(); cards.candidates.len()];
        let share = 1.0 / draws as f64;
        for index in 0..draws {
            let plan = draw(&Cards {
                index,
                ..cards.clone()
            });
            for (one, candidate) in seen.iter_mut().zip(&cards.candidates) {
                let at = plan.order.iter().position(|n| *n == candidate.name);
                let place = at.unwrap_or(0) as f64 + 1.0;
                one.place += share * place;
                one.variance += share * place * place;
                let is = |turn: Option<&super::super::super::cycle::Turn>| {
                    share * f64::from(u8::from(turn.is_some_and(|t| t.agent == candidate.name)))
                };
                one.first_place += share * f64::from(u8::from(place == 1.0));
                one.turn += is(plan.turns.iter().find(|t| t.agent == candidate.name));
                one.first += is(plan.turns.first());
                one.last += is(plan.turns.last());
            }
        }
        for one in &mut seen {
            one.variance -= one.place * one.place;
        }
        seen
    }

    #[test]
    fn what_is_due_is_what_many_draws_give() {
        let with = |name: &str, skip: f64, weight: f64, skipped: u32| Candidate {
            skip_probability: skip,
            weight,
            skipped,
            ..Candidate::named(name)
        };
        let mixed = vec![
            with("a", 0.2, 1.0, 0),
            with("b", 0.7, 4.0, 0),
            with("c", 0.5, 0.5, 3),
            with("d", 0.9, 1.0, 0),
        ];
        let rare = vec![with("a", 0.9, 1.0, 0), with("b", 0.8, 1.0, 0)];
        for scheduler in ["shuffle", "weighted", "deficit", "energy", "williams"] {
            for candidates in [&mixed, &rare] {
                let settings = Settings {
                    scheduler: scheduler.into(),
                    ..Settings::default()
                };
                let cards = Cards::new(&settings, 5, 0, candidates.clone());
                let (due, _) = Entitlements::default().of(&cards);
                for (due, seen) in due.iter().zip(drawn(&cards, 20_000)) {
                    for (due, seen, bound) in [
                        (due.place, seen.place, 0.04),
                        (due.variance, seen.variance, 0.06),
                        (due.first_place, seen.first_place, 0.016),
                        (due.turn, seen.turn, 0.016),
                        (due.first, seen.first, 0.016),
                        (due.last, seen.last, 0.016),
                    ] {
                        assert!((due - seen).abs() < bound, "{scheduler}: {due} {seen}");
                    }
                }
            }
        }
    }
}
