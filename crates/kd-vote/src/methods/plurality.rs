//! Plurality: most first choices.

use super::support;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "plurality",
    aliases: &["simple", "first-past-the-post"],
    doc: "each voter names one candidate; the candidate with the most votes wins",
    source: "as old as voting; for samples of one model: self-consistency, Wang et al. 2022",
    caveat: "similar answers split their votes, and weaker members outvote the best one",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Monotone],
    method: count,
    certain_stop: true,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let sums = support(poll);
    Count {
        winners: poll.best(|c| sums[c]),
        scores: poll.scores(&sums),
        ..Count::default()
    }
}
