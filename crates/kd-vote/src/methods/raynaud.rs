//! Raynaud: eliminates the candidate with the greatest defeat, repeatedly.

use crate::Amount;
use crate::limits::CUBIC;
use crate::poll::best_of;
use crate::profile::Profile;
use crate::profile::Strength;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "raynaud",
    aliases: &[],
    doc: "drops the remaining candidate with the greatest defeat by margin, until all remaining candidates tie; candidates that tie for the greatest defeat are dropped together",
    source: "Raynaud; Arrow and Raynaud 1986, Social choice and multicriterion decision-making",
    caveat: "more votes for a winner can make it lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Condorcet],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let duels = Profile::of(poll).duels();
    let worst = |left: &[usize]| -> Vec<Amount> {
        (0..poll.len())
            .map(|c| Amount::of_nanos(duels.worst_loss(c, left, Strength::Margins)))
            .collect()
    };
    super::eliminate(poll, worst, super::nobody, |left, loss| {
        best_of(left, |c| &loss[c])
    })
}
