//! Stable voting: a candidate wins if it wins after removing the opponent that it beats by the most.

use crate::limits::CUBIC;
use crate::profile::Profile;
use crate::profile::{Duels, Strength};
use crate::{Axiom, Count, Poll, Reads, Rule};
use std::collections::BTreeMap;

pub(super) const RULE: Rule = Rule {
    name: "stable-voting",
    aliases: &["stable_voting"],
    doc: "among the winners of split cycle, the candidate wins that has the greatest margin over some candidate without which it would win too",
    source: "Holliday and Pacuit 2023, Stable Voting",
    caveat: "checks every subset: exact up to 14 candidates, split cycle beyond",
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

/// All subsets may have to be evaluated: with more candidates the result is the split-cycle set.
const CANDIDATES_MAX: usize = 14;

fn count(poll: &Poll<'_>) -> Count {
    let duels = Profile::of(poll).duels();
    if poll.standing.len() > CANDIDATES_MAX {
        let notes = vec![format!(
            "more than {CANDIDATES_MAX} candidates: this is split cycle"
        )];
        return Count {
            winners: duels.undefeated(&poll.standing, Strength::Margins),
            notes,
            ..Count::default()
        };
    }
    Count {
        winners: winners(&duels, &poll.standing, &mut BTreeMap::new()),
        ..Count::default()
    }
}

fn winners(
    duels: &Duels,
    among: &[usize],
    known: &mut BTreeMap<Vec<usize>, Vec<usize>>,
) -> Vec<usize> {
    let undefeated = duels.undefeated(among, Strength::Margins);
    if undefeated.len() <= 1 {
        return undefeated;
    }
    if let Some(found) = known.get(among) {
        return found.clone();
    }
    let mut matches: Vec<(i128, usize, usize)> = undefeated
        .iter()
        .flat_map(|a| {
            among
                .iter()
                .filter(move |b| *b != a)
                .map(|b| (-duels.margin(*a, *b), *a, *b))
        })
        .collect();
    matches.sort_unstable();
    let mut found: Vec<usize> = Vec::new();
    let mut witness = None;
    for (strength, a, b) in matches {
        if witness.is_some_and(|w| strength > w) {
            break;
        }
        let without: Vec<usize> = among.iter().copied().filter(|c| *c != b).collect();
        if !found.contains(&a) && winners(duels, &without, known).contains(&a) {
            found.push(a);
            witness = Some(strength);
        }
    }
    found.sort_unstable();
    known.insert(among.to_vec(), found.clone());
    found
}
