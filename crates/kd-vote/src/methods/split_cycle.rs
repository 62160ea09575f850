//! Split cycle: a victory holds unless it is the weakest of a cycle.

use crate::limits::CUBIC;
use crate::profile::Profile;
use crate::profile::Strength;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "split-cycle",
    aliases: &["split_cycle"],
    doc: "removes the victory with the weakest margin from each cycle of victories; a candidate that is then unbeaten wins",
    source: "Holliday and Pacuit 2023, Split Cycle",
    caveat: "has several winners more often than similar rules",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let winners = Profile::of(poll)
        .duels()
        .undefeated(&poll.standing, Strength::Margins);
    Count {
        winners,
        ..Count::default()
    }
}
