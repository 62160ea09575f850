//! Score: the highest sum of points.

use super::points;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "score",
    aliases: &["range", "utilitarian", "rating"],
    doc: "each voter gives points to each candidate; the greatest sum wins; a blank is 0",
    source: "Smith 2000, Range voting",
    caveat: "voters that use the whole scale outweigh careful ones; judges have different scales",
    reads: Reads::Scores,
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
