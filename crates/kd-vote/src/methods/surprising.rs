//! Surprisingly popular: the answer that exceeds its predicted share of votes wins.

use crate::Detail;
use crate::{Amount, Axiom, Count, NANOS, Poll, Reads, Rule, Sees};
use std::cmp::Ordering;

pub(super) const RULE: Rule = Rule {
    name: "surprising",
    aliases: &["surprisingly-popular"],
    doc: "the candidate whose share of the votes most exceeds its predicted share wins",
    source: "Prelec, Seung and McCoy 2017, A solution to the single-question crowd wisdom problem",
    caveat: "one vote for an answer that no voter predicted beats everything; voters must be able to guess each other",
    reads: Reads::Choice,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    details: &[Detail::Predictions],
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let shares = super::support(poll);
    let (mut foretold, mut prophets) = (vec![0i128; poll.len()], 0i128);
    for vote in &poll.votes {
        if vote.ballot.predicted.len() == poll.len() && matches!(vote.sees, Sees::One(_)) {
            prophets += vote.weight;
            for (sum, share) in foretold.iter_mut().zip(&vote.ballot.predicted) {
                *sum += vote.weight * (*share).clamp(0, NANOS);
            }
        }
    }
    if prophets == 0 {
        let notes = vec!["nobody foretold how the others would vote: this is plurality".to_owned()];
        return Count {
            winners: poll.best(|c| shares[c]),
            scores: poll.scores(&shares),
            notes,
            ..Count::default()
        };
    }
    let all = Amount::of_nanos(poll.weight());
    let ratio = |c: usize| {
        let share = Amount::of_nanos(shares[c])
            .over(&all)
            .unwrap_or_else(Amount::zero);
        let guess = Amount::of_nanos(foretold[c])
            .over(&Amount::whole(prophets))
            .unwrap_or_else(Amount::zero);
        Surprise {
            ratio: share.over(&guess),
            share,
        }
    };
    let winners = poll.best(ratio);
    let scores = (0..poll.len()).map(|c| {
        if poll.standing.contains(&c) {
            ratio(c).ratio
        } else {
            None
        }
    });
    Count {
        winners,
        scores: scores.collect(),
        ..Count::default()
    }
}

/// The surprise of an answer: unbounded if it was chosen but no voter predicted it, zero if it was neither chosen nor
/// predicted.
#[derive(PartialEq, Eq)]
struct Surprise {
    ratio: Option<Amount>,
    share: Amount,
}

impl Ord for Surprise {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |s: &Self| match (&s.ratio, s.share.is_zero()) {
            (None, false) => 1,
            (_, _) => 0,
        };
        let zero = Amount::zero();
        rank(self)
            .cmp(&rank(other))
            .then_with(|| match (rank(self), rank(other)) {
                (1, 1) => self.share.cmp(&other.share),
                _ => self
                    .ratio
                    .as_ref()
                    .unwrap_or(&zero)
                    .cmp(other.ratio.as_ref().unwrap_or(&zero)),
            })
    }
}

impl PartialOrd for Surprise {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
