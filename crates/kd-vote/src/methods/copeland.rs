//! Copeland and Llull: count pairwise victories.

use crate::limits::QUADRATIC;
use crate::profile::Profile;
use crate::{Amount, Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "copeland",
    aliases: &[],
    doc: "1 for each pairwise victory, 1/2 for each tie; the greatest sum wins",
    source: "Copeland 1951",
    caveat: "ties are common; a twin of a loser brings its victims more points",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: copeland,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

pub(super) const LLULL: Rule = Rule {
    name: "llull",
    aliases: &[],
    doc: "1 for each pairwise victory and for each tie; the greatest sum wins",
    source: "Llull 1299, De arte eleccionis",
    caveat: "a candidate that ties with all can win alongside one that beats many",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Monotone,
    ],
    method: llull,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn copeland(poll: &Poll<'_>) -> Count {
    halves(poll, 2, 1)
}

fn llull(poll: &Poll<'_>) -> Count {
    halves(poll, 2, 2)
}

/// Counts half points: `victory` for a victory and `tie` for a tie.
fn halves(poll: &Poll<'_>, victory: i128, tie: i128) -> Count {
    let duels = Profile::of(poll).duels();
    let points = |a: usize| -> i128 {
        let others = poll.standing.iter().filter(|b| **b != a);
        others
            .map(|b| match duels.margin(a, *b) {
                0 => tie,
                m if m > 0 => victory,
                _ => 0,
            })
            .sum()
    };
    let amounts = (0..poll.len())
        .map(|c| Amount::fraction(points(c), 2))
        .collect();
    super::scored(poll, amounts, Vec::new())
}
