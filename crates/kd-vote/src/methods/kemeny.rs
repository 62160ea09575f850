//! Kemeny–Young: the ranking that disagrees least with the voters.

use crate::Nano;
use crate::limits::CUBIC;
use crate::poll::best_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "kemeny",
    aliases: &["kemeny_young", "kemeny-young"],
    doc: "finds the orders of the candidates that contradict the fewest preferences; a candidate that is first in one of these orders wins",
    source: "Kemeny 1959, Mathematics without numbers; Young and Levenglick 1978",
    caveat: "exact up to 12 candidates, undecided beyond: the work doubles with each",
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

/// All subsets are evaluated: more candidates would take too long.
const CANDIDATES_MAX: usize = 12;

fn count(poll: &Poll<'_>) -> Count {
    let among = &poll.standing;
    let n = among.len();
    if n > CANDIDATES_MAX {
        let notes = vec![format!(
            "undecided: {n} candidates, and the rule is exact up to {CANDIDATES_MAX}"
        )];
        return Count {
            notes,
            ..Count::default()
        };
    }
    let duels = Profile::of(poll).duels();
    let all = (1usize << n) - 1;
    // Returns the gain from ranking a member of a set above the rest of the set.
    let lead = |first: usize, set: usize| -> Nano {
        (0..n)
            .filter(|j| set >> j & 1 == 1 && *j != first)
            .map(|j| duels.margin(among[first], among[j]))
            .sum()
    };
    let mut best: Vec<Nano> = vec![0; all + 1];
    for set in 1..=all {
        let members = (0..n).filter(|i| set >> i & 1 == 1);
        best[set] = members
            .map(|i| lead(i, set) + best[set & !(1 << i)])
            .max()
            .unwrap_or(0);
    }
    let places: Vec<usize> = (0..n).collect();
    let firsts = best_of(&places, |i| lead(i, all) + best[all & !(1 << i)]);
    Count {
        winners: firsts.into_iter().map(|i| among[i]).collect(),
        ..Count::default()
    }
}
