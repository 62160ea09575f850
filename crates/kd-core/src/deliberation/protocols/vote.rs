//! Vote: members answer blind, and the answers are the ballots; open answers are put to a vote.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, judge, opinions, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "vote",
    doc: "every member answers blind; answers that can be compared are the ballots, open ones are voted on",
    source: "Debate or Vote, 2508.17536: voting gives most of what councils gain",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&judge::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Ballots),
    ],
    ending: Ending::Chair,
    asks: Asks::All,
    certain: true,
    learns: false,
    calls: |h| h.opining + h.judge + h.open_voting + h.arbiter + 1,
};

/// A sub-council on one issue: opinions and a vote.
pub(in crate::deliberation) static ISSUE: &[Step] = &[
    Step::Ask(&opinions::STAGE),
    Step::Ask(&vote::STAGE),
    Step::Count(Source::Ballots),
];
