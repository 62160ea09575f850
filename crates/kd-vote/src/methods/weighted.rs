//! Weighted vote: plurality with voter weights.

use super::support;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "weighted",
    aliases: &["weighted-majority", "weighted-plurality"],
    doc: "plurality, with each vote multiplied by the weight of its voter",
    source: "Shapley and Grofman 1984, Optimizing group judgmental accuracy",
    caveat: "weights are only an opinion unless they were measured; one heavy voter can decide alone",
    reads: Reads::Choice,
    weighted: true,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Monotone],
    method: count,
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
