//! Condorcet: the candidate that beats every other one in pairwise comparison.

use crate::limits::QUADRATIC;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "condorcet",
    aliases: &[],
    doc: "the candidate that beats all others in pairs wins; if there is none, all tie",
    source: "Condorcet 1785, Essai sur l'application de l'analyse",
    caveat: "three voters in a cycle are enough for no answer at all",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Reversal,
        Axiom::Monotone,
    ],
    method: strict,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

pub(super) const WEAK: Rule = Rule {
    name: "weak-condorcet",
    aliases: &["weak_condorcet"],
    doc: "a candidate that no other beats in a pair wins; if all are beaten, all tie",
    source: "Condorcet 1785; the name in Fishburn 1977",
    caveat: "a tie counts as a defense; often none or several win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: weak,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn strict(poll: &Poll<'_>) -> Count {
    let duels = Profile::of(poll).duels();
    let winner = duels.condorcet(&poll.standing);
    or_all(
        poll,
        winner.into_iter().collect(),
        "nobody beats everybody else",
    )
}

fn weak(poll: &Poll<'_>) -> Count {
    let duels = Profile::of(poll).duels();
    or_all(
        poll,
        duels.unbeaten(&poll.standing),
        "everybody is beaten by somebody",
    )
}

fn or_all(poll: &Poll<'_>, winners: Vec<usize>, why: &str) -> Count {
    if winners.is_empty() {
        return Count {
            winners: poll.standing.clone(),
            notes: vec![why.to_owned()],
            ..Count::default()
        };
    }
    Count {
        winners,
        ..Count::default()
    }
}
