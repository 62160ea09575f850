//! Cumulative vote: a budget of points, distributed freely by the voter.

use super::points;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "cumulative",
    aliases: &["points"],
    doc: "each voter spreads a number of points (10 by default) over the candidates; the greatest sum wins",
    source: "Dodgson 1884; for language model councils Kaesberg et al. 2025",
    caveat: "giving all points to one candidate is the best strategy, and then it is plurality; models overspend",
    reads: Reads::Points,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let sums = poll.add_up(|vote| {
        points(vote)
            .iter()
            .enumerate()
            .map(|(c, p)| (c, p * vote.weight))
            .collect()
    });
    super::scored_nanos_squared(poll, &sums)
}
