//! Majority: wins with more than half of the votes; otherwise nothing is decided.

use super::consensus::share;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "majority",
    aliases: &["absolute-majority"],
    doc: "a candidate with more than half of the votes wins; otherwise nothing is decided",
    source: "May 1952, A set of independent necessary and sufficient conditions for simple majority decision",
    caveat: "decides nothing whenever three or more answers share the votes",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Monotone, Axiom::Majority],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    share(poll, crate::NANOS / 2)
}
