//! The Condorcet winner; if there is none, the winner by instant-runoff.

use crate::limits::CUBIC;
use crate::poll::least_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "condorcet-irv",
    aliases: &["condorcet_irv", "condorcet-hare"],
    doc: "the candidate that beats all others in pairs wins; if there is none, runs instant-runoff among all; candidates that tie for the fewest ballots are dropped together",
    source: "Green-Armytage 2011, Four Condorcet-Hare hybrid methods",
    caveat: "may elect outside the Smith set; more votes for a winner can make it lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Condorcet],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    if let Some(winner) = profile.duels().condorcet(&poll.standing) {
        return Count {
            winners: vec![winner],
            ..Count::default()
        };
    }
    let won = |left: &[usize], firsts: &[crate::Amount]| {
        let all: crate::Amount = left.iter().map(|c| firsts[*c].clone()).sum();
        left.iter()
            .copied()
            .filter(|c| &firsts[*c] * &crate::Amount::whole(2) > all)
            .collect()
    };
    super::eliminate(
        poll,
        |left| profile.firsts(left),
        won,
        |left, firsts| least_of(left, |c| &firsts[c]),
    )
}
