//! Judge: one judge, asked in both orders of presentation.

use super::verdicts;
use crate::Voters;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "judge",
    aliases: &["single-judge"],
    doc: "one judge asked in both orders; a choice that changes with the order decides nothing",
    source: "Zheng et al. 2023, Judging LLM-as-a-judge",
    caveat: "measured judges change their choice with the order in 31 to 50 % of pairs",
    reads: Reads::Orders,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    voters: Voters::One,
    ignores_scale: false,
    decides_motions: false,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let judges = poll.voters();
    if judges == 1 {
        return verdicts(poll);
    }
    let notes = vec![format!(
        "undecided: {judges} judges answered; more than one is a jury"
    )];
    Count {
        winners: Vec::new(),
        notes,
        ..verdicts(poll)
    }
}
