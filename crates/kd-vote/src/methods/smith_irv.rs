//! Smith, then instant-runoff.

use crate::limits::CUBIC;
use crate::poll::least_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "smith-irv",
    aliases: &["smith//irv"],
    doc: "drops all candidates outside the Smith set, then runs instant-runoff among the rest; candidates that tie for the fewest ballots are dropped together",
    source: "Green-Armytage 2011, Four Condorcet-Hare hybrid methods",
    caveat: "more votes for a winner can make it lose",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
    ],
    method: count,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let smith = profile.duels().smith(&poll.standing);
    let within = Poll {
        standing: smith,
        ..poll.clone()
    };
    let won = |left: &[usize], firsts: &[crate::Amount]| {
        let all: crate::Amount = left.iter().map(|c| firsts[*c].clone()).sum();
        left.iter()
            .copied()
            .filter(|c| &firsts[*c] * &crate::Amount::whole(2) > all)
            .collect()
    };
    let mut count = super::eliminate(
        &within,
        |left| profile.firsts(left),
        won,
        |left, firsts| least_of(left, |c| &firsts[c]),
    );
    let out: Vec<usize> = poll
        .standing
        .iter()
        .copied()
        .filter(|c| !within.standing.contains(c))
        .collect();
    if !out.is_empty() {
        count
            .notes
            .push(format!("{} stood outside the Smith set", out.len()));
    }
    count
}
