//! Debate: rounds in which each member reads all others and may change its answer, then a vote. At most two rounds by
//! default: further rounds change answers without improving them.

use super::{Asks, Ending, Protocol, Step, another_round};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, debate, judge, opinions, revise, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "debate",
    doc: "every member answers, then reads all others for some rounds and may change; then a vote",
    source: "Du et al., 2305.14325, with anonymous peers and justified changes only",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&revise::STAGE),
        Step::Again {
            to: 1,
            when: |plan, board| board.round + 1 < plan.rounds && another_round(plan, board),
        },
        Step::Ask(&judge::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Ballots),
    ],
    ending: Ending::Chair,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| h.opining * (h.rounds + 1) + h.judge + h.open_voting + h.arbiter + 1,
};

/// Opinions, at most two rounds of argument, a vote: used by the strategy `debate` and by nested sub-councils.
pub(in crate::deliberation) static FOR_AND_AGAINST: &[Step] = &[
    Step::Ask(&opinions::STAGE),
    Step::Ask(&debate::STAGE),
    Step::Again {
        to: 1,
        when: |plan, board| board.round + 1 < plan.rounds.min(2) && another_round(plan, board),
    },
    Step::Ask(&sameness::STAGE),
    Step::Ask(&vote::STAGE),
    Step::Count(Source::Ballots),
    Step::Ask(&arbitrate::STAGE),
    Step::Recount(Source::Ballots),
];
