//! Baldwin: eliminates the candidate with the lowest Borda score, repeatedly.

use crate::limits::QUADRATIC;
use crate::poll::least_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "baldwin",
    aliases: &[],
    doc: "drops the remaining candidate with the lowest Borda score, until one is left; candidates that tie for the lowest are dropped together",
    source: "Baldwin 1926, The technique of the Nanson preferential majority system",
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
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    super::eliminate(
        poll,
        |left| profile.borda(left),
        super::nobody,
        |left, borda| least_of(left, |c| &borda[c]),
    )
}
