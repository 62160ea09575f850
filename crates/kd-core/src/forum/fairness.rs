//! Whether the turns were fair, measured. Comes in: the orders that were drawn and the turns that were taken. Goes out: a
//! table of metrics, each with its formula's source, its value and its pass line.
//!
//! Places and neighbours are judged on the orders drawn (everybody, those who sat out included), because those are what
//! the rule decides; turns, tokens and last words on what really happened.

mod chi_square;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use serde::Serialize;
use std::collections::BTreeMap;

/// Shuffles from which the distribution of the carry-over is taken.
const SHUFFLES: usize = 2_000;
/// Cycles of each of them at most: from there on the distribution no longer moves.
const SHUFFLED_CYCLES: usize = 200;
/// The smallest probability that passes for chance.
const P_LINE: f64 = 0.01;

/// One cycle, agents as places in the list of names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Everybody, in the order drawn.
    pub order: Vec<usize>,
    /// Who took a turn, in order, and the tokens of it.
    pub turns: Vec<(usize, u64)>,
    /// How long each turn's agent had waited since its last one, in seconds, where that is known.
    pub waits: Vec<f64>,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name in JSON.
    pub key: &'static str,
    /// What it measures.
    pub name: &'static str,
    /// The value; none where there is too little to measure.
    pub value: Option<f64>,
    /// What passes, in words; none where the value is only reported.
    pub line: Option<String>,
    /// Whether it passes; none where there is no line or too little to judge.
    pub pass: Option<bool>,
}

/// What happened to one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Its name.
    pub agent: String,
    /// Turns taken.
    pub turns: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Cycles in which it had the first word.
    pub first_words: u64,
    /// Cycles in which it had the last word.
    pub last_words: u64,
    /// Most cycles in a row without a turn.
    pub longest_silence: u64,
    /// How often it was drawn for each place.
    pub places: Vec<u64>,
    /// How often others answered it.
    pub answered: u64,
}

/// The whole table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Cycles that were judged.
    pub cycles: usize,
    /// Cycles that were left out, because other agents took part in them.
    pub left_out: usize,
    /// The metrics.
    pub rows: Vec<Row>,
    /// The agents, by name.
    pub agents: Vec<Share>,
}

impl Table {
    /// Whether no row fails.
    pub fn passes(&self) -> bool {
        self.rows.iter().all(|row| row.pass != Some(false))
    }

    /// The row of a name.
    pub fn row(&self, key: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == key)
    }
}

/// How neighbours are distributed when orders are shuffled: made once for so many agents and cycles.
#[derive(Clone, Debug)]
pub struct Shuffles {
    agents: usize,
    cycles: usize,
    /// Rising.
    values: Vec<f64>,
}

impl Shuffles {
    /// Shuffles so many cycles of so many agents, again and again. The seed makes the table reproducible.
    pub fn new(agents: usize, cycles: usize, seed: u64) -> Self {
        let cycles = cycles.min(SHUFFLED_CYCLES);
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..agents).collect();
        let mut values: Vec<f64> = Vec::with_capacity(SHUFFLES);
        let mut counts = vec![0_u64; agents * agents];
        for _ in 0..SHUFFLES {
            counts.fill(0);
            for _ in 0..cycles {
                order.shuffle(&mut chance);
                count_pairs(&order, agents, &mut counts);
            }
            values.push(carry_over(&counts, agents, cycles));
        }
        values.sort_by(f64::total_cmp);
        Self {
            agents,
            cycles,
            values,
        }
    }

    /// How likely chance alone makes neighbours at least as uneven.
    fn p(&self, value: f64) -> f64 {
        let below = self.values.partition_point(|v| *v < value - 1e-9);
        (1 + self.values.len() - below) as f64 / (1 + self.values.len()) as f64
    }
}

fn count_pairs(order: &[usize], agents: usize, counts: &mut [u64]) {
    for pair in order.windows(2) {
        counts[pair[0] * agents + pair[1]] += 1;
    }
}

/// `Σ (C_ij − T/N)² / (T/N)` over ordered pairs.
fn carry_over(counts: &[u64], agents: usize, cycles: usize) -> f64 {
    let expected = cycles as f64 / agents as f64;
    let pairs = (0..agents).flat_map(|i| {
        (0..agents)
            .filter(move |j| *j != i)
            .map(move |j| i * agents + j)
    });
    pairs
        .map(|at| (counts[at] as f64 - expected).powi(2) / expected)
        .sum()
}

/// `(Σx)² / (N Σx²)`: 1 when all have the same, 1/N when one has everything (Jain, 1984).
fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values
        .iter()
        .fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Half the mean difference between two, over the mean: 0 when all have the same.
fn gini(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let ranked: f64 = sorted
        .iter()
        .zip(1_u32..)
        .map(|(x, rank)| x * f64::from(rank))
        .sum();
    (sum > 0.0).then(|| (2.0 * ranked / (n * sum) - (n + 1.0) / n).max(0.0))
}

/// Judges cycles. `answers` are pairs of who answered whom. `skips_max` is the bound on being left out, where all cycles
/// had the same. `shuffles` may be made beforehand for many tables of one size.
pub fn table(
    names: &[String],
    samples: &[Sample],
    answers: &[(usize, usize)],
    skips_max: Option<u32>,
    shuffles: Option<&Shuffles>,
) -> Table {
    let n = names.len();
    let cycles: Vec<&Sample> = samples
        .iter()
        .filter(|s| s.order.len() == n && n > 0)
        .collect();
    let t = cycles.len();
    let mut shares: Vec<Share> = names
        .iter()
        .map(|name| Share {
            agent: name.clone(),
            places: vec![0; n],
            ..Share::default()
        })
        .collect();
    let mut pairs = vec![0_u64; n * n];
    let mut silence = vec![0_u64; n];
    let mut waits = Vec::new();
    for sample in &cycles {
        for (place, who) in sample.order.iter().enumerate() {
            shares[*who].places[place] += 1;
        }
        count_pairs(&sample.order, n, &mut pairs);
        silence.iter_mut().for_each(|s| *s += 1);
        for (who, tokens) in &sample.turns {
            shares[*who].turns += 1;
            shares[*who].tokens += tokens;
            silence[*who] = 0;
        }
        for (share, silence) in shares.iter_mut().zip(&silence) {
            share.longest_silence = share.longest_silence.max(*silence);
        }
        if let (Some(first), Some(last)) = (sample.turns.first(), sample.turns.last()) {
            shares[first.0].first_words += 1;
            shares[last.0].last_words += 1;
        }
        waits.extend_from_slice(&sample.waits);
    }
    let mut given: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (from, to) in answers
        .iter()
        .filter(|(from, to)| from != to && *from < n && *to < n)
    {
        shares[*to].answered += 1;
        *given.entry((*from, *to)).or_default() += 1;
    }
    let made;
    let shuffles = match shuffles {
        Some(ready) if ready.agents == n && ready.cycles == t.min(SHUFFLED_CYCLES) => Some(ready),
        _ if n > 1 && t > 0 => {
            made = Shuffles::new(n, t, 0);
            Some(&made)
        }
        _ => None,
    };
    let rows = rows(
        n, t, &shares, &pairs, &mut waits, &given, skips_max, shuffles,
    );
    Table {
        cycles: t,
        left_out: samples.len() - t,
        rows,
        agents: shares,
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "the counts of one table, used here alone"
)]
fn rows(
    n: usize,
    t: usize,
    shares: &[Share],
    pairs: &[u64],
    waits: &mut [f64],
    given: &BTreeMap<(usize, usize), u64>,
    skips_max: Option<u32>,
    shuffles: Option<&Shuffles>,
) -> Vec<Row> {
    let several = n > 1 && t > 0;
    let (nf, tf) = (n as f64, t as f64);
    let of = |pick: fn(&Share) -> u64| shares.iter().map(|s| pick(s) as f64).collect::<Vec<_>>();
    // Below two cycles for each agent nothing can be told of places.
    let enough = several && t >= 2 * n;
    let mut rows = Vec::new();
    let mut row = |key, name, value: Option<f64>, line: Option<(String, bool)>| {
        let (line, pass) = line.map_or((None, None), |(line, pass)| (Some(line), Some(pass)));
        rows.push(Row {
            key,
            name,
            value,
            line,
            pass: pass.filter(|_| value.is_some()),
        });
    };
    let at_least = |value: Option<f64>, least: f64, judged: bool| {
        value
            .filter(|_| judged)
            .map(|v| (format!("≥ {least}"), v >= least))
    };

    let expected = tf / nf;
    let x2 = several.then(|| {
        let all = shares.iter().flat_map(|s| &s.places);
        // The factor makes the null distribution right: the places of one cycle are not independent.
        (nf - 1.0) / nf
            * all
                .map(|o| (*o as f64 - expected).powi(2) / expected)
                .sum::<f64>()
    });
    let position_p = x2.map(|x2| chi_square::upper_tail(x2, ((n - 1) * (n - 1)) as f64));
    row("position_x2", "places: X²", x2, None);
    row(
        "position_p",
        "places: probability",
        position_p,
        at_least(position_p, P_LINE, enough),
    );

    // Each simulated distribution is of at most so many cycles; the statistic does not grow with their number.
    let xc = several.then(|| carry_over(pairs, n, t));
    let carry_p = xc.zip(shuffles).map(|(xc, shuffles)| shuffles.p(xc));
    row("carry_over_x2", "neighbours: X²", xc, None);
    row(
        "carry_over_p",
        "neighbours: probability",
        carry_p,
        at_least(carry_p, P_LINE, enough),
    );

    let entropy = several.then(|| {
        let of_one = |share: &Share| -> f64 {
            let q = share
                .places
                .iter()
                .map(|o| *o as f64 / tf)
                .filter(|q| *q > 0.0);
            -q.map(|q| q * q.ln()).sum::<f64>() / nf.ln()
        };
        shares.iter().map(of_one).fold(f64::INFINITY, f64::min)
    });
    row(
        "entropy_min",
        "places: least entropy",
        entropy,
        at_least(entropy, 0.98, t >= 40 * n),
    );

    let turns = jain(&of(|s| s.turns));
    row(
        "jain_turns",
        "turns: Jain",
        turns,
        at_least(turns, 0.98, t >= 60),
    );
    let tokens = jain(&of(|s| s.tokens));
    row("jain_tokens", "tokens: Jain", tokens, None);
    let first = jain(&of(|s| s.first_words));
    row("jain_first", "first words: Jain", first, None);
    let last = jain(&of(|s| s.last_words));
    row(
        "jain_last",
        "last words: Jain",
        last,
        at_least(last, 0.95, several && t >= 60),
    );
    let gini = gini(&of(|s| s.turns));
    row(
        "gini_turns",
        "turns: Gini",
        gini,
        gini.filter(|_| t >= 60)
            .map(|g| ("≤ 0.06".into(), g <= 0.06)),
    );
    let share = several.then(|| of(|s| s.last_words).into_iter().fold(0.0, f64::max) / tf);
    let most = 1.0 / nf + 3.0 * ((1.0 / nf) * (1.0 - 1.0 / nf) / tf).sqrt();
    row(
        "last_word_share",
        "last words: greatest share",
        share,
        share
            .filter(|_| enough)
            .map(|s| (format!("≤ {most:.3}"), s <= most)),
    );
    let silence =
        several.then(|| shares.iter().map(|s| s.longest_silence).max().unwrap_or(0) as f64);
    let bound = skips_max
        .zip(silence)
        .map(|(most, s)| (format!("≤ {most}"), s <= f64::from(most)));
    row(
        "longest_silence",
        "longest silence, in cycles",
        silence,
        bound,
    );
    waits.sort_by(f64::total_cmp);
    let p95 =
        (!waits.is_empty()).then(|| waits[((waits.len() - 1) as f64 * 0.95).round() as usize]);
    row(
        "wait_p95_secs",
        "wait for a turn, 95 of 100, in s",
        p95,
        None,
    );
    let total: u64 = given.values().sum();
    let both: u64 = given
        .iter()
        .map(|((a, b), n)| (*n).min(given.get(&(*b, *a)).copied().unwrap_or(0)))
        .sum();
    row(
        "reciprocity",
        "answers that were returned",
        (total > 0).then(|| both as f64 / total as f64),
        None,
    );
    let heard = shares.iter().map(|s| s.answered).max().unwrap_or(0);
    row(
        "influence_max",
        "answers to the most answered",
        (total > 0).then(|| heard as f64 / total as f64),
        None,
    );
    rows
}

#[cfg(test)]
mod laws;
