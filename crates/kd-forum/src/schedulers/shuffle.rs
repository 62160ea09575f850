//! A new random order for each cycle, as in the original forum.

use super::{FAIR, Scheduler, as_set};

pub(super) const ROW: Scheduler = Scheduler {
    name: "shuffle",
    doc: "a new random order each cycle: no agent can predict or exploit its place",
    order: |draw| draw.shuffled(),
    skip: as_set,
    weighs: false,
    promises: FAIR,
};
