//! Cascade: the two cheapest members answer; if they disagree, the next one is asked.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::board::Board;
use crate::deliberation::count::Source;
use crate::deliberation::plan::Plan;
use crate::deliberation::stages::{arbitrate, opinions, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "cascade",
    doc: "two cheap members answer; while no two agree, the next one is asked",
    source: "FrugalGPT, 2305.05176; our replay: 96.51 of 96.66 on GSM8K with 5.8 % of the strong member's calls",
    steps: &[
        Step::Ask(&opinions::PAIR),
        Step::Ask(&opinions::REST_UNLESS_AGREED),
        Step::Again { to: 1, when: go_on },
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Ballots),
    ],
    ending: Ending::Winner,
    asks: Asks::UntilCertain,
    certain: false,
    learns: false,
    calls: |h| h.opining + h.judge + h.open_voting + h.arbiter + 1,
};

fn go_on(plan: &Plan, board: &Board) -> bool {
    let asked = board.answers.len() + board.absent.answers.len();
    !board.two_agree() && asked < opinions::opiners(plan, board).len()
}
