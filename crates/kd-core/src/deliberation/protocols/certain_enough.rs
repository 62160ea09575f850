//! Certain enough: members are asked one after another, until the leader is likely enough to be right.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::board::Board;
use crate::deliberation::count::Source;
use crate::deliberation::plan::Plan;
use crate::deliberation::stages::{arbitrate, opinions, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "certain-enough",
    doc: "one member after another is asked, until your marks say that the leader is likely enough to be right, or nobody can change it",
    source: "curtailed sampling, Wald 1945; our replay: 1.5 to 2.0 of 5 members, 0.04 to 0.17 points behind all of them (docs/eval.md)",
    steps: &[
        Step::Ask(&opinions::UNTIL_ENOUGH),
        Step::Again { to: 0, when: go_on },
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Ballots),
    ],
    ending: Ending::Winner,
    asks: Asks::UntilCertain,
    certain: false,
    learns: true,
    calls: |h| h.opining + h.judge + h.open_voting + h.arbiter + 1,
};

fn go_on(plan: &Plan, board: &Board) -> bool {
    opinions::next_of_enough(plan, board).is_some()
}
