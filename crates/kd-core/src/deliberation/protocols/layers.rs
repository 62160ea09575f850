//! Layers: each layer reads the entire previous layer; the chair aggregates.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{opinions, revise, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "layers",
    doc: "each layer of members reads the whole layer before and answers; a vote, and the chair aggregates",
    source: "Mixture-of-Agents, 2406.04692",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&revise::LAYER),
        Step::Again {
            to: 1,
            when: |plan, board| board.round + 1 < plan.rounds,
        },
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::OPEN),
        Step::Count(Source::Ballots),
    ],
    ending: Ending::Chair,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| h.opining * (h.rounds + 1) + h.judge + h.open_voting + 1,
};
