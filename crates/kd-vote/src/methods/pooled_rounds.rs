//! Pooled rounds: every round's votes count, not only the last one's.

use crate::{Amount, Axiom, Count, NANOS, Poll, Reads, Round, Rule, Sees};

pub(super) const RULE: Rule = Rule {
    name: "pooled-rounds",
    aliases: &["pooled"],
    doc: "the choices of all rounds count together; earlier rounds may count less by an agreed factor",
    source: "measured in this project's notes on recorded debates: pooled 37.1 %, last round 36.5 %",
    caveat: "counts a member that never moved as often as it spoke",
    reads: Reads::Rounds,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let rounds = poll
        .votes
        .iter()
        .map(|v| trail(&v.sees).len())
        .max()
        .unwrap_or(0);
    let decay = Amount::of_nanos(poll.rules.round_decay.clamp(0, NANOS));
    let mut scores: Vec<Amount> = vec![Amount::zero(); poll.len()];
    let mut factor = Amount::whole(1);
    let mut told = Vec::new();
    // Goes from the last round, which counts in full, backwards.
    for r in (0..rounds).rev() {
        let mut sums = vec![0; poll.len()];
        for vote in &poll.votes {
            if let Some(Some(c)) = trail(&vote.sees).get(r) {
                sums[*c] += vote.weight;
            }
        }
        let tally = poll
            .standing
            .iter()
            .map(|c| (*c, Amount::of_nanos(sums[*c])))
            .collect();
        told.push(Round {
            tally,
            ..Round::default()
        });
        for (score, sum) in scores.iter_mut().zip(&sums) {
            *score += &factor * &Amount::of_nanos(*sum);
        }
        factor = &factor * &decay;
    }
    told.reverse();
    super::scored(poll, scores, told)
}

fn trail<'a>(sees: &'a Sees<'_>) -> &'a [Option<usize>] {
    match sees {
        Sees::Trail(trail) => trail,
        _ => &[],
    }
}
