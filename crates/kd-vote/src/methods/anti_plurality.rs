//! Anti-plurality: the fewest last places.

use crate::Amount;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "anti-plurality",
    aliases: &["anti_plurality", "veto"],
    doc: "the fewest last places win; unranked candidates share the last place",
    source: "studied by Saari 1989",
    caveat: "no voter needs to like the winner; bland answers win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let lasts = Profile::of(poll).lasts(&poll.standing);
    // Fewer is better, so this counts how often a candidate is not last.
    let all = Profile::of(poll).weight();
    let amounts: Vec<Amount> = lasts.iter().map(|l| &all - l).collect();
    super::scored(poll, amounts, Vec::new())
}
