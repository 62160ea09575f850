//! Approval with a maximum: every acceptable candidate, but not all of them.

use crate::{Axiom, Count, Poll, Reads, Rule, Sees};

pub(super) const RULE: Rule = Rule {
    name: "approval",
    aliases: &["approval-capped"],
    doc: "each voter approves at most half of the candidates (rounded up, or the agreed cap); the most approvals win",
    source: "Brams and Fishburn 1978; the cap because uncapped councils of language models ended undecided in 59 %, Kaesberg et al. 2025",
    caveat: "does not show how much better the winner is; with a cap of one it is plurality",
    reads: Reads::Approvals,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let sums = poll.add_up(|vote| match &vote.sees {
        Sees::Set(set) => set.iter().map(|c| (*c, vote.weight)).collect(),
        _ => Vec::new(),
    });
    Count {
        winners: poll.best(|c| sums[c]),
        scores: poll.scores(&sums),
        ..Count::default()
    }
}
