//! Benham: instant-runoff until a candidate beats all remaining ones.

use crate::limits::CUBIC;
use crate::poll::least_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "benham",
    aliases: &[],
    doc: "while no candidate beats all other remaining candidates, drops the candidate with the fewest first places; candidates that tie for the fewest are dropped together",
    source: "Benham; Green-Armytage 2011, Four Condorcet-Hare hybrid methods",
    caveat: "more votes for a winner can make it lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
    ],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let duels = profile.duels();
    let won = |left: &[usize], _: &[crate::Amount]| duels.condorcet(left).into_iter().collect();
    super::eliminate(
        poll,
        |left| profile.firsts(left),
        won,
        |left, firsts| least_of(left, |c| &firsts[c]),
    )
}
