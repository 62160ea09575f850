//! Shared by majority, super-majority and unanimity: they either decide, or report that nothing is decided.

use super::support;
use crate::{Amount, Count, Electorate, NANOS, Nano, Poll};

/// The candidate with more than a share of the electorate, in billionths, wins.
pub(super) fn share(poll: &Poll<'_>, share: Nano) -> Count {
    let beyond = Amount::of_nanos(share);
    over(poll, |own, all| {
        Amount::of_nanos(own) > &beyond * &Amount::of_nanos(all)
    })
}

/// The candidates for which `enough(votes, electorate)` holds win.
pub(super) fn over(poll: &Poll<'_>, enough: impl Fn(Nano, Nano) -> bool) -> Count {
    let sums = support(poll);
    let silent: i128 = match poll.rules.electorate {
        Electorate::Voting => 0,
        Electorate::Everybody => poll
            .abstained
            .iter()
            .map(|a| i128::from(a.count) * NANOS)
            .sum(),
    };
    let all = poll.weight() + silent;
    let winners: Vec<usize> = poll
        .standing
        .iter()
        .copied()
        .filter(|c| enough(sums[*c], all))
        .collect();
    let mut notes = Vec::new();
    if winners.is_empty() {
        notes.push("undecided: nobody has as many votes as the rule asks for".to_owned());
    }
    Count {
        winners,
        scores: poll.scores(&sums),
        notes,
        ..Count::default()
    }
}
