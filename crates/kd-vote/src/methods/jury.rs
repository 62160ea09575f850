//! Jury: several judges, each in both orders of presentation.

use super::verdicts;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "jury",
    aliases: &["poll-of-judges"],
    doc: "an odd number of judges, three or more, each asked in both orders; a choice that changes with the order is an abstention; the greatest count wins",
    source: "Verga et al. 2024, Replacing judges with juries",
    caveat: "judges of one family, or of a contestant's, share their taste: the jury is then one judge",
    reads: Reads::Orders,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let mut count = verdicts(poll);
    let asked = poll.electorate;
    if asked < 3 || asked.is_multiple_of(2) {
        count.notes.push(format!(
            "a jury is an odd number of at least three judges, and this one had {asked}"
        ));
    }
    count
}
