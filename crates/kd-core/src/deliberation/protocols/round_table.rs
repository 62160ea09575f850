//! Round table: all members read the grouped answers with the size of each group, then answer again.

use super::{Asks, Ending, Protocol, Step, another_round};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, judge, opinions, revise, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "round-table",
    doc: "grouped answers with their counts are read by all, for some rounds; then a vote",
    source: "ReConcile, 2309.13007",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&judge::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Ask(&revise::GROUPED),
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
    calls: |h| (h.opining + h.judge) * (h.rounds + 1) + h.open_voting + h.arbiter + 1,
};
