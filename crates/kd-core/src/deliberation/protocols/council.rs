//! Council: blind opinions, anonymous review, vote, conclusion. The default pipeline.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, opinions, review, sameness, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "council",
    doc: "blind opinions, anonymous review, vote; the chair concludes",
    source: "the seed's pipeline; Karpathy's llm-council with labels dealt for each reader",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&review::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Ask(&vote::STAGE),
        Step::Count(Source::Ballots),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Ballots),
    ],
    ending: Ending::Chair,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| h.opining + h.reviewing + h.judge + h.voting + h.arbiter + 1,
};
