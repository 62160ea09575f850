//! Unanimity: all votes, or nothing is decided.

use super::consensus::over;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "unanimity",
    aliases: &["consensus", "unanimous"],
    doc: "a candidate that all voters name wins; otherwise nothing is decided",
    source: "Wicksell 1896; as a consensus level of language model debates: MALLM 2025",
    caveat: "members that make the same error are unanimous too; one stubborn voter blocks everything",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    over(poll, |own, all| own > 0 && own == all)
}
