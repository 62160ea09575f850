//! Split cycle: a victory holds unless it is the weakest of a circle.

use crate::voting::profile::Profile;
use crate::voting::profile::Strength;
use crate::voting::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "split-cycle",
    aliases: &["split_cycle"],
    doc: "in each circle of victories the weakest margin is struck out; whom nobody then beats wins",
    source: "Holliday and Pacuit 2023, Split Cycle",
    misleads: "several winners more often than its cousins",
    reads: Reads::Ranking,
    weighted: false,
    keeps: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
        Axiom::Reversal,
    ],
    method: count,
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
