//! Collective improvement: members see the current solutions without authors or reasons, and improve one.

use super::{Asks, Ending, Protocol, Step, another_round};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, judge, opinions, revise, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "collective-improvement",
    doc: "members see only the set of current solutions and improve one, for some rounds; then a vote",
    source: "Voting or Consensus?, 2502.19130: 65.7 against 58.3 on StrategyQA",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&revise::IMPROVE),
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
