//! Borda: points by rank.

use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "borda",
    aliases: &["borda_for_profile_with_ties", "borda-count"],
    doc: "one point for each candidate ranked below; tied and unranked ones share the average of their places",
    source: "Borda 1781, Mémoire sur les élections au scrutin",
    caveat: "clones of a candidate lift it; a majority favorite can lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone, Axiom::Reversal],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    super::scored(poll, Profile::of(poll).borda(&poll.standing), Vec::new())
}
