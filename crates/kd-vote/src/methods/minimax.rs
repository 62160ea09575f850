//! Minimax: the smallest worst defeat.

use crate::limits::QUADRATIC;
use crate::poll::least_of;
use crate::profile::{Profile, Strength};
use crate::{Amount, Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "minimax",
    aliases: &["minimax(winning-votes)", "minimax-winning-votes", "simpson"],
    doc: "the candidate whose greatest defeat is the smallest wins; the size of a defeat is the number of votes against the candidate",
    source: "Simpson 1969; Kramer 1977",
    caveat: "can elect a candidate outside the Smith set",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Monotone,
    ],
    method: winning_votes,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

pub(super) const MARGINS: Rule = Rule {
    name: "minimax-margins",
    aliases: &["minimax(margins)", "simpson-kramer"],
    doc: "the candidate whose greatest defeat is the smallest wins; the size of a defeat is its margin",
    source: "Simpson 1969; Kramer 1977",
    caveat: "can elect the candidate that loses to all others",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Monotone,
    ],
    method: margins,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn winning_votes(poll: &Poll<'_>) -> Count {
    by(poll, Strength::WinningVotes)
}

fn margins(poll: &Poll<'_>) -> Count {
    by(poll, Strength::Margins)
}

fn by(poll: &Poll<'_>, strength: Strength) -> Count {
    let duels = Profile::of(poll).duels();
    let worst = |c: usize| duels.worst_loss(c, &poll.standing, strength);
    // Higher scores are better in every rule, so a defeat counts as negative.
    let amounts = (0..poll.len())
        .map(|c| Amount::of_nanos(-worst(c)))
        .collect();
    Count {
        winners: least_of(&poll.standing, worst),
        scores: super::shown(poll, amounts),
        ..Count::default()
    }
}
