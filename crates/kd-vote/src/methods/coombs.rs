//! Coombs: eliminates the candidate with the most last places.

use crate::limits::CUBIC;
use crate::poll::best_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "coombs",
    aliases: &[],
    doc: "while no candidate has more than half of the first places, drops the candidate with the most last places; candidates that tie for the most are dropped together",
    source: "Coombs 1964, A theory of data",
    caveat: "last places are guesses if rankings are short; strategic voting is easy",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let last = |left: &[usize], _: &[crate::Amount]| {
        let lasts = profile.lasts(left);
        best_of(left, |c| &lasts[c])
    };
    super::eliminate(
        poll,
        |left| profile.firsts(left),
        super::majority_of(&profile),
        last,
    )
}
