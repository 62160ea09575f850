//! Always the same order. A baseline for comparison: it creates the hierarchy that the others avoid.

use super::{Promises, Scheduler, as_set};

pub(super) const ROW: Scheduler = Scheduler {
    name: "fixed",
    doc: "the same order each cycle, by name: unfair, for comparison",
    order: |draw| (0..draw.candidates.len()).collect(),
    skip: as_set,
    weighs: false,
    promises: Promises {
        position: false,
        carry_over: false,
        mean_place: false,
    },
};
