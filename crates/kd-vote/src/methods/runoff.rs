//! Plurality with a runoff between the top two.

use crate::Round;
use crate::poll::best_of;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "runoff",
    aliases: &["plurality_with_runoff_put", "two-round"],
    doc: "the two candidates with the most first places meet; if a tie leaves open which two, every possible pair meets, and the winners of all pairs tie",
    source: "France since 1852",
    caveat: "a third candidate that would beat both may not reach the runoff",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let profile = Profile::of(poll);
    let firsts = profile.firsts(&poll.standing);
    let first_round = Round {
        tally: poll
            .standing
            .iter()
            .map(|c| (*c, firsts[*c].clone()))
            .collect(),
        ..Round::default()
    };
    let leaders = poll.best(|c| &firsts[c]);
    let pairs: Vec<(usize, usize)> = match leaders.as_slice() {
        [one] => {
            let rest: Vec<usize> = poll.standing.iter().copied().filter(|c| c != one).collect();
            best_of(&rest, |c| &firsts[c])
                .into_iter()
                .map(|second| (*one, second))
                .collect()
        }
        several => several
            .iter()
            .flat_map(|a| several.iter().filter(move |b| a < b).map(|b| (*a, *b)))
            .collect(),
    };
    let mut winners = if pairs.is_empty() {
        leaders
    } else {
        Vec::new()
    };
    let mut rounds = vec![first_round];
    let duels = profile.duels();
    for (a, b) in pairs {
        let both = profile.firsts(&[a.min(b), a.max(b)]);
        let won: Vec<usize> = [a, b]
            .into_iter()
            .filter(|c| !duels.beats(a + b - c, *c))
            .collect();
        rounds.push(Round {
            tally: [a, b].into_iter().map(|c| (c, both[c].clone())).collect(),
            elected: won.clone(),
            ..Round::default()
        });
        winners.extend(won);
    }
    Count {
        winners,
        rounds,
        ..Count::default()
    }
}
