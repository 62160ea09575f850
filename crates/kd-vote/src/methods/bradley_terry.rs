//! Bradley–Terry: the strengths that best explain the pairwise results.

use crate::limits::CUBIC;
use crate::profile::Profile;
use crate::{Amount, Axiom, Count, NANOS, Nano, Poll, Reads, Rule, nanos};

pub(super) const RULE: Rule = Rule {
    name: "bradley-terry",
    aliases: &["elo"],
    doc: "fits a strength to each candidate, so that the odds of beating another are the ratio of their strengths; the greatest strength wins; each pair starts with half a victory in each direction",
    source: "Bradley and Terry 1952; Hunter 2004 for the iteration",
    caveat: "a candidate compared in more pairs weighs more; cycles are averaged away",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    candidates_max: CUBIC,
    ignores_scale: false,
    ..Rule::BASE
};

/// Maximum iterations; it converges to within a millionth long before.
const STEPS: usize = 10_000;
/// Strengths are rounded to this before comparison, in billionths: smaller differences are ties.
const GRAIN: Nano = 1_000;

fn count(poll: &Poll<'_>) -> Count {
    let duels = Profile::of(poll).duels();
    let among = &poll.standing;
    let n = among.len();
    let wins: Vec<Vec<f64>> = among
        .iter()
        .map(|a| {
            among
                .iter()
                .map(|b| duels.prefer[*a][*b] as f64 / NANOS as f64 + 0.5)
                .collect()
        })
        .collect();
    let mut strength = vec![1.0; n];
    for _ in 0..STEPS {
        let next: Vec<f64> = (0..n)
            .map(|i| {
                // Summed in ascending order, so that the order of candidates does not matter.
                let others = || (0..n).filter(|j| *j != i);
                let won = sorted_sum(others().map(|j| wins[i][j]).collect());
                let met = |j: usize| (wins[i][j] + wins[j][i]) / (strength[i] + strength[j]);
                let expected = sorted_sum(others().map(met).collect());
                if expected > 0.0 { won / expected } else { 1.0 }
            })
            .collect();
        let all = sorted_sum(next.clone()) / n.max(1) as f64;
        let next: Vec<f64> = next.iter().map(|s| s / all).collect();
        let moved = next
            .iter()
            .zip(&strength)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        strength = next;
        if moved < 1e-12 {
            break;
        }
    }
    let rounded: Vec<Nano> = strength
        .iter()
        .map(|s| (nanos(*s) + GRAIN / 2).div_euclid(GRAIN) * GRAIN)
        .collect();
    let mut scores: Vec<Option<Amount>> = vec![None; poll.len()];
    for (c, r) in among.iter().zip(&rounded) {
        scores[*c] = Some(Amount::of_nanos(*r));
    }
    Count {
        winners: poll.best(|c| scores[c].clone()),
        scores,
        ..Count::default()
    }
}

fn sorted_sum(mut terms: Vec<f64>) -> f64 {
    terms.sort_by(f64::total_cmp);
    terms.iter().sum()
}
