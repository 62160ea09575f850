//! Red team: one member answers, the others list defects, the author fixes or rebuts them, and all vote on old and new.

use super::{Asks, Ending, Protocol, Step};
use crate::deliberation::count::Source;
use crate::deliberation::stages::{attack, opinions, rebut, vote};

pub(super) static PROTOCOL: Protocol = Protocol {
    name: "red-team",
    doc: "one answer; the others list defects that can be checked; its author fixes or rebuts; a vote between old and new",
    source: "the facts' `red-team`: answer, attack, fix or rebut with evidence, verify",
    steps: &[
        Step::Ask(&opinions::FIRST),
        Step::Ask(&attack::STAGE),
        Step::Ask(&rebut::STAGE),
        Step::Ask(&vote::STAGE),
        Step::Count(Source::Ballots),
    ],
    ending: Ending::Winner,
    asks: Asks::All,
    certain: false,
    learns: false,
    calls: |h| 1 + h.attacking + 1 + h.voting + 1,
};
