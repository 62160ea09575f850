//! Who goes when in a cycle: one file and one row for each rule. A rule is a plain function of the draw, so that the
//! same seed gives the same order for ever.

mod deficit;
mod energy;
mod fixed;
mod rotate;
mod shuffle;
mod weighted;
pub(super) mod williams;

use super::cycle::{Block, Candidate, Seed};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

/// What a rule may look at.
pub struct Draw<'a> {
    /// The seed.
    pub seed: Seed,
    /// How many cycles were drawn before this one.
    pub index: u64,
    /// The block that the cycle goes on with.
    pub block: Option<&'a Block>,
    /// Who could take part, by name.
    pub candidates: &'a [Candidate],
    /// This cycle's own chance.
    pub chance: &'a mut ChaCha12Rng,
}

impl Draw<'_> {
    /// Everybody, in an order that only chance made.
    fn shuffled(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.shuffle(self.chance);
        order
    }

    /// Randomness that the cycles of one block share, where all of them come from one number.
    fn chance_of_block(&self, block: u64) -> Option<ChaCha12Rng> {
        let Seed::Number(seed) = self.seed else {
            return None;
        };
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        // Streams of single cycles count from 0; those of blocks from the top.
        chance.set_stream(u64::MAX - block);
        Some(chance)
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub struct Scheduler {
    /// Its name.
    pub name: &'static str,
    /// What it does, for people and agents.
    pub doc: &'static str,
    /// The order: places in the list of candidates, each once.
    pub order: fn(&mut Draw<'_>) -> Vec<usize>,
    /// How likely a candidate sits out, 0 to 1, from its own settings and what it did before.
    pub skip: fn(&Candidate, &[Candidate]) -> f64,
    /// Whether the weights of agents move their places.
    pub weighs: bool,
    /// Rows of the fairness table that it must pass in the long run, and those that it must fail.
    pub promises: Promises,
}

/// What the fairness table must say of a rule, all agents being alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// Everybody stands in every place equally often.
    pub position: bool,
    /// Everybody comes right after everybody else equally often.
    pub carry_over: bool,
    /// Nobody's mean place is off, so that nobody has the last word more often than others.
    pub mean_place: bool,
}

const FAIR: Promises = Promises {
    position: true,
    carry_over: true,
    mean_place: true,
};

/// The chance that an agent set for itself, or the forum's.
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

/// The rule of a name.
pub fn find(name: &str) -> Option<&'static Scheduler> {
    SCHEDULERS.iter().find(|scheduler| scheduler.name == name)
}
