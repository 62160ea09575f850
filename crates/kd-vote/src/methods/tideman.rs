//! Tideman's alternative: Smith and instant-runoff in alternation.

use crate::Round;
use crate::limits::QUARTIC;
use crate::poll::least_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "tideman-alternative",
    aliases: &["tideman_alternative_smith"],
    doc: "drops all candidates outside the Smith set, then the candidate in the set with the fewest first places, and so on, until all remaining candidates tie",
    source: "Tideman 2006, Collective decisions and voting",
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
    candidates_max: QUARTIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let duels = profile.duels();
    let mut left = poll.standing.clone();
    let mut rounds = Vec::new();
    loop {
        let smith = duels.smith(&left);
        let firsts = profile.firsts(&smith);
        let lowest = least_of(&smith, |c| &firsts[c]);
        let tally = smith.iter().map(|c| (*c, firsts[*c].clone())).collect();
        if lowest.len() == smith.len() {
            rounds.push(Round {
                tally,
                elected: smith.clone(),
                ..Round::default()
            });
            return Count {
                winners: smith,
                rounds,
                ..Count::default()
            };
        }
        left.retain(|c| !lowest.contains(c));
        rounds.push(Round {
            tally,
            eliminated: lowest,
            ..Round::default()
        });
    }
}
