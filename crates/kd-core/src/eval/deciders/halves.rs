//! The two halves of a record: a rule that learns from right answers learns on one and decides the other.

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;

/// How many parts a record has.
pub(super) const HALVES: usize = 2;

/// Which half each question is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halves(Vec<usize>);

impl Halves {
    /// Draws the halves. The order of a file shows nowhere in them: in a file whose rows alternate in difficulty, halves
    /// by row would teach every rule on questions unlike those that it decides.
    pub fn drawn(questions: usize, seed: u64) -> Self {
        let mut halves = Self::by_row(questions);
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        // A separate stream: with the same seed, councils and ties are drawn elsewhere.
        chance.set_stream(u64::from_be_bytes(*b"__halves"));
        halves.0.shuffle(&mut chance);
        halves
    }

    /// Every second row, as in some published figures.
    pub fn by_row(questions: usize) -> Self {
        Self((0..questions).map(|at| at % HALVES).collect())
    }

    /// The half of a question.
    pub(in crate::eval) fn of(&self, question: usize) -> usize {
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
