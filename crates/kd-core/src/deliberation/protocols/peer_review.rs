//! Peer review: each member ranks the answers of the others; the rankings are the ballots; the chair writes the
//! conclusion.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{arbitrate, opinions, review, sameness};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "peer-review",
    doc: "every member ranks the others' answers, anonymously and without its own; the rankings decide",
    source: "Karpathy's llm-council, with Borda in place of the mean rank",
    steps: &[
        Step::Ask(&opinions::STAGE),
        Step::Ask(&review::STAGE),
        Step::Ask(&sameness::STAGE),
        Step::Count(Source::Rankings),
        Step::Ask(&arbitrate::STAGE),
        Step::Recount(Source::Rankings),
    ],
    ending: Ending::Chair,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| h.opining + h.reviewing + h.judge + h.arbiter + 1,
};
