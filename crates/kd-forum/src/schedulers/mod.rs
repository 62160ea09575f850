//! The order of agents in a cycle: one file and one row per rule. A rule is a pure function of the draw, so the same
//! seed always gives the same order.

mod deficit;
mod energy;
mod fixed;
mod rotate;
mod shuffle;
mod weighted;
pub(super) mod williams;

use super::cards::{Block, Candidate, Seed};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

/// The inputs of a rule.
pub struct Draw<'a> {
    /// The seed.
    pub seed: Seed,
    /// The number of cycles drawn before this one.
    pub index: u64,
    /// The block that the cycle continues.
    pub block: Option<&'a Block>,
    /// The agents that could take part, by name.
    pub candidates: &'a [Candidate],
    /// This cycle's random generator.
    pub chance: &'a mut ChaCha12Rng,
}

impl Draw<'_> {
    /// Returns all candidates in uniformly random order.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.shuffle(self.chance);
        order
    }

    /// Returns a random generator shared by the cycles of one block, if all are drawn from one number.
    fn chance_of_block(&self, block: u64) -> Option<ChaCha12Rng> {
        let Seed::Number(seed) = self.seed else {
            return None;
        };
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        // Streams of single cycles count up from 0; those of blocks count down from the maximum.
        chance.set_stream(u64::MAX - block);
        Some(chance)
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Scheduler {
    /// Its name.
    pub name: &'static str,
    /// The description, for people and agents.
    pub doc: &'static str,
    /// Returns the order: indices into the list of candidates, each once.
    pub order: fn(&mut Draw<'_>) -> Vec<usize>,
    /// Returns the probability that a candidate sits out, 0 to 1, from its own settings and its history.
    pub skip: fn(&Candidate, &[Candidate]) -> f64,
    /// Whether the weights of agents affect their positions.
    pub weighs: bool,
    /// Rows of the fairness table that the scheduler must pass in the long run, and rows that it must fail.
    pub promises: Promises,
}

/// The required results in the fairness table for agents with equal settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Every agent is in each position equally often.
    pub position: bool,
    /// Every agent comes right after each other equally often.
    pub carry_over: bool,
    /// No agent's mean position deviates, so none speaks last more often than others.
    pub mean_place: bool,
}

const FAIR: Promises = Promises {
    position: true,
    carry_over: true,
    mean_place: true,
};

/// Returns the skip probability set by the agent or the forum.
fn as_set(candidate: &Candidate, _: &[Candidate]) -> f64 {
    candidate.skip_probability
}

/// Every rule.
pub const SCHEDULERS: &[Scheduler] = &[
    shuffle::ROW,
    williams::ROW,
    weighted::ROW,
    deficit::ROW,
    energy::ROW,
    fixed::ROW,
    rotate::ROW,
];

/// Returns the rule with this name.
pub fn find(name: &str) -> Option<&'static Scheduler> {
    SCHEDULERS.iter().find(|scheduler| scheduler.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::config::forum::SCHEDULER_NAMES;

    #[test]
    fn the_configuration_knows_every_scheduler() {
        let names: Vec<&str> = SCHEDULERS.iter().map(|row| row.name).collect();
        assert_eq!(
            names, SCHEDULER_NAMES,
            "name it in kd-core/src/config/forum.rs"
        );
    }
}
