//! Bucklin: lower ranks are added until a candidate has a majority.

use crate::limits::QUADRATIC;
use crate::profile::Profile;
use crate::{Amount, Nano, Round};
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "bucklin",
    aliases: &["grand-junction"],
    doc: "counts first places; while no candidate is on more than half of the ballots, adds the votes of the next place; then the greatest count wins",
    source: "Bucklin 1909 in Grand Junction, after Condorcet 1793",
    caveat: "a second place counts as much as a first one",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Monotone],
    method: count,
    candidates_max: QUADRATIC,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let mut at: Vec<Vec<Nano>> = vec![vec![0; poll.len()]; poll.len()];
    profile.each_tier(|tier, above, weight| {
        for c in tier {
            at[above][*c] += weight;
        }
    });
    let all: Nano = poll.weight();
    let mut sums: Vec<Nano> = vec![0; poll.len()];
    let mut rounds = Vec::new();
    for place in &at {
        for (sum, more) in sums.iter_mut().zip(place) {
            *sum += more;
        }
        let tally = poll
            .standing
            .iter()
            .map(|c| (*c, Amount::of_nanos(sums[*c])))
            .collect();
        rounds.push(Round {
            tally,
            ..Round::default()
        });
        if sums.iter().any(|s| s * 2 > all) {
            break;
        }
    }
    let winners = poll.best(|c| sums[c]);
    if let Some(last) = rounds.last_mut() {
        last.elected.clone_from(&winners);
    }
    Count {
        winners,
        scores: poll.scores(&sums),
        rounds,
        ..Count::default()
    }
}
