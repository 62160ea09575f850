//! Estimates how reliable members are without knowing the right answers: from their agreement.

use super::correlation::pairs;
use std::collections::BTreeMap;

/// Answers by question, then by member. Equal numbers are equal answers; `None` abstains.
pub type Answers = Vec<Vec<Option<usize>>>;

const START: f64 = 0.6;
const ROUNDS: usize = 50;
const CLIP: (f64, f64) = (0.01, 0.99);

/// Estimates of the reliability of members and of the right answers, from agreement alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DawidSkene {
    /// The estimated probability that each member's answer is right; no answer counts as wrong.
    pub right: Vec<f64>,
    /// The most likely answers to each question: several if tied, none without answers.
    pub winners: Vec<Vec<usize>>,
    /// The probability of the first winner of each question.
    pub probability: Vec<f64>,
}

/// Fits the one-coin model of Dawid and Skene (1979): a member is right with one probability, wrong answers are equally
/// likely among `options`. Fifty iterations of expectation-maximization from .6 for every member, clamped to .01 and
/// .99.
///
/// Members of one family that make the same mistakes raise each other's estimates: see [`peer_scores`] for a second
/// opinion.
pub fn dawid_skene(answers: &[Vec<Option<usize>>], members: usize, options: u64) -> DawidSkene {
    let wrong = (options.max(2) - 1) as f64;
    let mut p = vec![START; members];
    for _ in 0..ROUNDS {
        let odds = log_odds(&p, wrong);
        let mut sum = vec![0.0; members];
        for given in answers {
            let (keys, posterior) = posterior(given, &odds);
            for (m, key) in given.iter().enumerate().take(members) {
                if let Some(at) = key.and_then(|k| keys.iter().position(|x| *x == k)) {
                    sum[m] += posterior[at];
                }
            }
        }
        let n = answers.len().max(1) as f64;
        p = sum.iter().map(|s| (s / n).clamp(CLIP.0, CLIP.1)).collect();
    }
    let odds = log_odds(&p, wrong);
    let (mut winners, mut probability) = (Vec::new(), Vec::new());
    for given in answers {
        let (keys, posterior) = posterior(given, &odds);
        let top = posterior.iter().copied().fold(0.0, f64::max);
        winners.push(
            keys.iter()
                .zip(&posterior)
                .filter(|(_, q)| top - **q < 1e-12)
                .map(|(k, _)| *k)
                .collect(),
        );
        probability.push(top);
    }
    DawidSkene {
        right: p,
        winners,
        probability,
    }
}

fn log_odds(p: &[f64], wrong: f64) -> Vec<f64> {
    p.iter().map(|p| (p * wrong / (1.0 - p)).ln()).collect()
}

/// Returns the given answers and the probability of each: the log-odds of the members who gave it, normalized to a
/// sum of one.
fn posterior(given: &[Option<usize>], odds: &[f64]) -> (Vec<usize>, Vec<f64>) {
    let (mut keys, mut logs): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
    for (key, odds) in given.iter().zip(odds) {
        let Some(key) = *key else { continue };
        match keys.iter().position(|k| *k == key) {
            Some(at) => logs[at] += odds,
            None => {
                keys.push(key);
                logs.push(*odds);
            }
        }
    }
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut q: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
    let sum: f64 = q.iter().sum();
    q.iter_mut().for_each(|x| *x /= sum);
    (keys, q)
}

/// Scores members by peer prediction (Dasgupta and Ghosh 2013). For each pair of members, the score is the difference
/// between two rates: how often they agree on the same question, and how often they agree on different questions. A
/// member's score is the mean over its peers. Higher is better; only the order is meaningful.
///
/// Numbers must mean the same answer on every question (the letter of an option, the text of a number).
pub fn peer_scores(answers: &[Vec<Option<usize>>], members: usize) -> Vec<f64> {
    let n = answers.len().max(1) as f64;
    let mut often: Vec<BTreeMap<usize, f64>> = vec![BTreeMap::new(); members];
    for given in answers {
        for (m, key) in given.iter().enumerate().take(members) {
            if let Some(key) = key {
                *often[m].entry(*key).or_default() += 1.0 / n;
            }
        }
    }
    let mut score = vec![0.0; members];
    for (i, j) in pairs(members) {
        let same = answers
            .iter()
            .filter(|g| g[i].is_some() && g[i] == g[j])
            .count() as f64
            / n;
        let chance: f64 = often[i]
            .iter()
            .filter_map(|(k, a)| often[j].get(k).map(|b| a * b))
            .sum();
        score[i] += same - chance;
        score[j] += same - chance;
    }
    let peers = members.saturating_sub(1).max(1) as f64;
    score.iter().map(|s| s / peers).collect()
}

/// Returns Spearman's rank correlation; equal values share a rank. `None` if either is constant.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let n = a.len().min(b.len()) as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let dot = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    let spread = dot(&a, ma, &a, ma) * dot(&b, mb, &b, mb);
    (spread > 0.0).then(|| dot(&a, ma, &b, mb) / spread.sqrt())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut at = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = at as f64 + (group.len() as f64 - 1.0) / 2.0;
        group.iter().for_each(|i| ranks[*i] = rank);
        at += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    /// Generates members of known strength on questions with four options; the right answer is `q % 4`.
    fn council(right: &[f64], questions: usize) -> Answers {
        let mut chance = ChaCha12Rng::seed_from_u64(11);
        (0..questions)
            .map(|q| {
                right
                    .iter()
                    .map(|p| {
                        let wrong = chance.random_range(1..4);
                        Some(if chance.random::<f64>() < *p {
                            q % 4
                        } else {
                            (q + wrong) % 4
                        })
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn strength_is_found_without_labels() {
        let truth = [0.9, 0.6, 0.75, 0.4, 0.8];
        let answers = council(&truth, 4000);
        let found = dawid_skene(&answers, 5, 4);
        for (p, t) in found.right.iter().zip(truth) {
            assert!((p - t).abs() < 0.03, "{:?}", found.right);
        }
        let right = found
            .winners
            .iter()
            .enumerate()
            .filter(|(q, w)| w.as_slice() == [q % 4])
            .count();
        assert!(right > 3700, "{right}");
        assert_eq!(spearman(&peer_scores(&answers, 5), &truth), Some(1.0));
    }

    #[test]
    fn silence_is_no_answer_and_costs_reliability() {
        let mut answers = council(&[0.8, 0.7, 0.8, 0.75, 0.8], 600);
        for given in answers.iter_mut().step_by(2) {
            given[2] = None;
        }
        answers.push(vec![None; 5]);
        let found = dawid_skene(&answers, 5, 4);
        assert!(
            found.right[2] < 0.5 && found.right[0] > 0.7,
            "{:?}",
            found.right
        );
        assert_eq!(found.winners.last(), Some(&Vec::new()));
        assert_eq!(
            dawid_skene(&[vec![Some(1), Some(2)]], 2, 4).winners,
            [vec![1, 2]],
            "a tie is a tie"
        );
    }

    #[test]
    fn ranks_correlate() {
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 90.0]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(spearman(&[1.0, 1.0], &[3.0, 2.0]), None);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [1.5, 0.0, 1.5]);
    }
}
