//! Moves every agent one position per cycle. All are in each position equally often, but always after the same
//! neighbor.

use super::{Promises, Scheduler, as_set};

pub(super) const ROW: Scheduler = Scheduler {
    name: "rotate",
    doc: "the same order, one place further each cycle: places are fair, neighbours are not",
    order: |draw| {
        let n = draw.candidates.len();
        let first = if n == 0 {
            0
        } else {
            (draw.index % n as u64) as usize
        };
        (0..n).map(|place| (first + place) % n).collect()
    },
    skip: as_set,
    weighs: false,
    promises: Promises {
        position: true,
        carry_over: false,
        mean_place: true,
    },
};
