//! Trajectory: scores how members changed their answers over the rounds, so that late conformity counts little.

use crate::{Amount, Axiom, Count, Poll, Reads, Rule, Sees};

pub(super) const RULE: Rule = Rule {
    name: "trajectory",
    aliases: &["free-mad"],
    doc: "+20 for a first answer; in round k a kept answer gets 20/(k+1), an adopted one 30/(k+1), an abandoned one loses 25/(k+1)",
    source: "FREE-MAD 2025, arXiv 2509.11035",
    caveat: "its weights were tuned on one paper's debates; on recorded ones it gained .3 points",
    reads: Reads::Rounds,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let mut scores: Vec<Amount> = vec![Amount::zero(); poll.len()];
    for vote in &poll.votes {
        let Sees::Trail(trail) = &vote.sees else {
            continue;
        };
        let weight = Amount::of_nanos(vote.weight);
        let points = |n: i128, k: usize| &weight * &Amount::fraction(n, k as i128 + 1);
        let mut held: Option<usize> = None;
        for (k, choice) in trail.iter().enumerate() {
            // A missing answer changes nothing: the last one is neither kept nor abandoned.
            let Some(c) = choice else { continue };
            match held {
                None => scores[*c] += points(20, 0),
                Some(h) if h == *c => scores[*c] += points(20, k),
                Some(h) => {
                    scores[*c] += points(30, k);
                    scores[h] -= points(25, k);
                }
            }
            held = Some(*c);
        }
    }
    super::scored(poll, scores, Vec::new())
}
