//! Delphi: estimates, then median and quartiles are shown to all, then new estimates. The result is the trimmed mean.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::estimate;

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "delphi",
    doc: "numbers: median and quartiles go back to all for some rounds; the trimmed mean",
    source: "Dalkey and Helmer 1963",
    steps: &[
        Step::Ask(&estimate::STAGE),
        Step::Again {
            to: 0,
            when: |plan, board| board.round < plan.rounds.max(1) && estimate::differ(plan, board),
        },
        Step::Count(Source::Estimates),
    ],
    ending: Ending::Winner,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| h.opining * (h.rounds + 1) + 1,
};
