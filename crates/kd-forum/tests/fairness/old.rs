//! The verdict of the first version: fixed thresholds, whatever the number of agents and cycles. Kept for comparison.

use kd_forum::fairness::Sample;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// The distribution of the neighbor statistic for shuffled orders.
pub(crate) struct Shuffles(Vec<f64>);

impl Shuffles {
    pub(crate) fn new(agents: usize, cycles: usize) -> Self {
        let cycles = cycles.min(200);
        let mut luck = ChaCha12Rng::seed_from_u64(0);
        let mut order: Vec<usize> = (0..agents).collect();
        let values = (0..500).map(|_| {
            let mut pairs = vec![0; agents * agents];
            for _ in 0..cycles {
                order.shuffle(&mut luck);
                order
                    .windows(2)
                    .for_each(|pair| pairs[pair[0] * agents + pair[1]] += 1);
            }
            carry_over(&pairs, agents, cycles)
        });
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    fn p(&self, value: f64) -> f64 {
        let below = self.0.partition_point(|v| *v < value - 1e-9);
        (1 + self.0.len() - below) as f64 / (1 + self.0.len()) as f64
    }
}

/// Its counts.
pub(crate) struct Counts {
    agents: usize,
    cycles: usize,
    names: BTreeMap<String, usize>,
    places: Vec<u64>,
    pairs: Vec<u64>,
    turns: Vec<f64>,
    last: Vec<f64>,
}

impl Counts {
    pub(crate) fn new(agents: usize) -> Self {
        Self {
            agents,
            cycles: 0,
            names: BTreeMap::new(),
            places: vec![0; agents * agents],
            pairs: vec![0; agents * agents],
            turns: vec![0.0; agents],
            last: vec![0.0; agents],
        }
    }

    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        self.cycles += 1;
        let mut who = |name: &str| {
            let next = self.names.len();
            *self.names.entry(name.to_owned()).or_insert(next)
        };
        let order: Vec<usize> = sample.order.iter().map(|name| who(name)).collect();
        let turns: Vec<usize> = sample.turns.iter().map(|turn| who(turn.agent)).collect();
        for (place, who) in order.iter().enumerate() {
            self.places[who * self.agents + place] += 1;
        }
        for pair in order.windows(2) {
            self.pairs[pair[0] * self.agents + pair[1]] += 1;
        }
        turns.iter().for_each(|who| self.turns[*who] += 1.0);
        if let Some(last) = turns.last() {
            self.last[*last] += 1.0;
        }
    }

    /// Returns whether every threshold was met.
    pub(crate) fn passes(&self, shuffles: &Shuffles) -> bool {
        let (n, t) = (self.agents as f64, self.cycles as f64);
        let enough = self.cycles >= 2 * self.agents;
        let expected = t / n;
        let x2: f64 = self
            .places
            .iter()
            .map(|o| (*o as f64 - expected).powi(2) / expected)
            .sum();
        let df = (n - 1.0) * (n - 1.0);
        let places = !enough || x2 * (n - 1.0) / n <= upper_one_percent(df);
        let neighbors =
            !enough || shuffles.p(carry_over(&self.pairs, self.agents, self.cycles)) >= 0.01;
        let entropy = self.places.chunks(self.agents).map(|row| {
            let shares = row.iter().map(|o| *o as f64 / t).filter(|q| *q > 0.0);
            -shares.map(|q| q * q.ln()).sum::<f64>() / n.ln()
        });
        let entropy = self.cycles < 40 * self.agents || entropy.fold(1.0, f64::min) >= 0.98;
        let judged = self.cycles >= 60;
        let turns = !judged || (jain(&self.turns) >= 0.98 && gini(&self.turns) <= 0.06);
        let last = !judged || jain(&self.last) >= 0.95;
        let share = self.last.iter().copied().fold(0.0, f64::max) / t;
        let most = 1.0 / n + 3.0 * ((1.0 / n) * (1.0 - 1.0 / n) / t).sqrt();
        places && neighbors && entropy && turns && last && (!enough || share <= most)
    }
}

fn carry_over(pairs: &[u64], agents: usize, cycles: usize) -> f64 {
    let expected = cycles as f64 / agents as f64;
    let of = |(at, count): (usize, &u64)| match at / agents == at % agents {
        true => 0.0,
        false => (*count as f64 - expected).powi(2) / expected,
    };
    pairs.iter().enumerate().map(of).sum()
}

/// Returns the value that a χ² variable exceeds with probability 1 % (Wilson and Hilferty, 1931).
fn upper_one_percent(df: f64) -> f64 {
    let part = 2.0 / (9.0 * df);
    df * (1.0 - part + 2.326_347_874 * part.sqrt()).powi(3)
}

fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    sum * sum / (values.len() as f64 * squares)
}

fn gini(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (n, sum) = (sorted.len() as f64, sorted.iter().sum::<f64>());
    let ranked: f64 = sorted.iter().zip(1..).map(|(x, i)| x * f64::from(i)).sum();
    2.0 * ranked / (n * sum) - (n + 1.0) / n
}
