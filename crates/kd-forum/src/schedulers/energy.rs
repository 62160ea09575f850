//! An agent that spoke often is tired and more likely to sit out; rest restores it.

use super::{FAIR, Scheduler};

pub(super) const ROW: Scheduler = Scheduler {
    name: "energy",
    doc: "a random order; an agent with little energy left is more likely to sit out, and recovers by doing so",
    order: |draw| draw.shuffled(),
    skip: |candidate, _| {
        let base = candidate.skip_probability;
        base + (1.0 - base) * (1.0 - candidate.energy.clamp(0.0, 1.0))
    },
    weighs: false,
    promises: FAIR,
};

#[cfg(test)]
mod tests {
    use super::super::super::cards::Candidate;
    use super::*;

    #[test]
    fn the_tired_sit_out_and_the_rested_do_as_they_set() {
        let with = |energy| Candidate {
            energy,
            skip_probability: 0.2,
            ..Candidate::named("a")
        };
        assert_eq!((ROW.skip)(&with(1.0), &[]), 0.2);
        assert!((ROW.skip)(&with(0.5), &[]) > 0.59);
        assert_eq!((ROW.skip)(&with(0.0), &[]), 1.0);
    }
}
