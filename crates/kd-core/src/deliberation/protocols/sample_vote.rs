//! Sample and vote: the strongest member answers several times. The baseline that a council must beat at equal cost.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{judge, opinions, sameness};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "sample-vote",
    doc: "the strongest member answers several times; its answers are the ballots",
    source: "Self-consistency, 2203.11171",
    steps: &[
        Step::Ask(&opinions::SAMPLES),
        Step::Ask(&judge::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Count(Source::Answers),
    ],
    ending: Ending::Chair,
    asks: Asks::One,
    certain: true,
    learns: false,
    calls: |h| h.samples + h.judge + 1,
};
