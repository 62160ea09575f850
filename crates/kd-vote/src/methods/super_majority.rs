//! Super-majority: wins with more than two thirds of the votes, or the configured share; otherwise nothing is decided.

use super::consensus::share;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "super-majority",
    aliases: &["supermajority", "two-thirds", "qualified-majority"],
    doc: "a candidate with more than two thirds of the votes, or the agreed share, wins; otherwise nothing is decided",
    source: "Black 1948; as a consensus level of language model debates: MALLM 2025",
    caveat: "the higher the threshold, the longer members talk until they conform",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    share(poll, poll.rules.super_majority)
}
