//! Gated debate: a vote first, and one round of criticism only if its agreement is below the threshold.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::board::Board;
use crate::deliberation::count::Source;
use crate::deliberation::plan::Plan;
use crate::deliberation::stages::{arbitrate, judge, opinions, revise, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "gated-debate",
    doc: "a vote; if its agreement is below the threshold, one anonymous round of criticism and a second vote",
    source: "iMAD, 2511.11306; Debate or Vote, 2508.17536",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&judge::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
        Step::StopIf(gate_is_shut),
        Step::Ask(&revise::STAGE),
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
    calls: |h| 2 * h.opining + 2 * h.judge + 2 * h.open_voting + h.arbiter + 1,
};

/// Returns whether there is nothing to debate: only one answer, or enough agreement for the plan.
fn gate_is_shut(plan: &Plan, board: &Board) -> bool {
    let agreement = board.counted.as_ref().map_or(0.0, |c| c.agreement);
    board.candidates.len() < 2 || agreement >= plan.iteration.convergence_threshold
}
