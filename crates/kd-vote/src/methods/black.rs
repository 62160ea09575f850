//! Black's rule: the Condorcet winner; if there is none, the Borda winner.

use crate::limits::QUADRATIC;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "black",
    aliases: &["blacks", "condorcet-else-borda"],
    doc: "the candidate that beats all others in pairs wins; if there is none, the Borda winner wins",
    source: "Black 1958, The theory of committees and elections",
    caveat: "in a cycle it has Borda's weakness for clones",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: count,
    candidates_max: QUADRATIC,
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
    super::scored(poll, profile.borda(&poll.standing), Vec::new())
}
