//! The two halves of a record: a rule that learns from right answers is trained on one half and decides the other.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

/// Number of parts of a record.
pub(super) const HALVES: usize = 2;

/// The half of each question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves(Vec<usize>);

impl Halves {
    /// Draws the halves at random, independent of the order of the file: in a file whose rows alternate in difficulty,
    /// halves by row would train every rule on questions unlike those it decides.
    pub fn drawn(questions: usize, seed: u64) -> Self {
        let mut halves = Self::by_row(questions);
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        // A separate stream: the same seed is also used for councils and ties.
        chance.set_stream(u64::from_be_bytes(*b"__halves"));
        halves.0.shuffle(&mut chance);
        halves
    }

    /// Alternates rows, as in some published figures.
    pub fn by_row(questions: usize) -> Self {
        Self((0..questions).map(|at| at % HALVES).collect())
    }

    /// Returns the half of a question.
    pub fn of(&self, question: usize) -> usize {
        self.0[question]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_equal_drawn_by_the_seed_and_blind_to_the_order_of_rows() {
        for (questions, seed) in [(0, 0), (1, 0), (7, 1), (1000, 2)] {
            let halves = Halves::drawn(questions, seed);
            assert_eq!(halves, Halves::drawn(questions, seed));
            let first = halves.0.iter().filter(|half| **half == 0).count();
            assert_eq!(first, questions.div_ceil(2));
        }
        let halves = Halves::drawn(1000, 2);
        assert_ne!(halves, Halves::drawn(1000, 3));
        let even = (0..1000)
            .step_by(2)
            .filter(|at| halves.of(*at) == 0)
            .count();
        assert!((200..300).contains(&even), "{even} of 500 even rows");
    }
}
