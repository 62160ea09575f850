//! Solo: one member answers. For dependent steps, no council does better.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::opinions;

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "solo",
    doc: "the strongest member answers alone",
    source: "Towards a science of scaling agent systems, 2512.08296",
    steps: &[Step::Ask(&opinions::FIRST), Step::Count(Source::Answers)],
    ending: Ending::Winner,
    asks: Asks::One,
    certain: false,
    learns: false,
    calls: |_| 1,
};
