//! Smith and Schwartz: the smallest sets that dominate the rest.

use crate::limits::CUBIC;
use crate::profile::Profile;
use crate::{Axiom, Count, Poll, Reads, Rule};

pub(super) const RULE: Rule = Rule {
    name: "smith",
    aliases: &["smith_set(getcha)", "top-cycle"],
    doc: "the smallest set of candidates that all beat every candidate outside the set; all candidates in it tie",
    source: "Good 1971; Smith 1973",
    caveat: "in a large cycle all candidates win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
        Axiom::Monotone,
    ],
    method: smith,
    candidates_max: CUBIC,
    ..Rule::BASE
};

pub(super) const SCHWARTZ: Rule = Rule {
    name: "schwartz",
    aliases: &["schwartz_set(gocha)"],
    doc: "the union of the smallest sets of which no candidate is beaten from outside; all candidates in it tie",
    source: "Schwartz 1972",
    caveat: "in a large cycle all candidates win",
    reads: Reads::Ranking,
    weighted: false,
    satisfies: &[
        Axiom::Anonymous,
        Axiom::Majority,
        Axiom::Condorcet,
        Axiom::Smith,
    ],
    method: schwartz,
    candidates_max: CUBIC,
    ..Rule::BASE
};

fn smith(poll: &Poll<'_>) -> Count {
    Count {
        winners: Profile::of(poll).duels().smith(&poll.standing),
        ..Count::default()
    }
}

fn schwartz(poll: &Poll<'_>) -> Count {
    Count {
        winners: Profile::of(poll).duels().schwartz(&poll.standing),
        ..Count::default()
    }
}
