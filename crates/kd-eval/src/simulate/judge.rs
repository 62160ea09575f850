//! A judge biased towards what it reads first, asked in one order and in both.

use kd_vote::{Ballot, Mark, Rules};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

/// A judge of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Probability that it recognizes the better of the two, regardless of their order.
    pub accuracy: f64,
    /// Probability that it names the first one without looking.
    pub first_bias: f64,
}

/// Decisions on pairs whose first contender was truly better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Pairs decided for the first contender.
    pub won: u64,
    /// Pairs decided at all.
    pub decided: u64,
}

impl Judge {
    /// Returns its choice for a pair whose better one is `better`, presented with `first` first.
    fn says(self, chance: &mut ChaCha12Rng, better: usize, first: usize) -> usize {
        let (blind, sees) = (chance.random::<f64>(), chance.random::<f64>());
        if blind < self.first_bias {
            first
        } else if sees < self.accuracy {
            better
        } else {
            1 - better
        }
    }
}

/// Judges `pairs` pairs, in half of which each contender is better. The first contender is always shown first; with
/// `both` it is shown second as well, and a choice that changes with the order is discarded (the rule `judge` of `kd
/// vote`).
pub fn judge(judge: Judge, pairs: u32, both: bool, seed: u64) -> Verdicts {
    let mut chance = ChaCha12Rng::seed_from_u64(seed);
    let rule = kd_vote::find("judge");
    let rules = Rules::of(["first", "second"]);
    let mut verdicts = Verdicts::default();
    for pair in 0..pairs {
        let better = pair as usize % 2;
        let one = judge.says(&mut chance, better, 0);
        let winners = match rule {
            Some(rule) if both => {
                let two = judge.says(&mut chance, better, 1);
                kd_vote::winners(
                    rule,
                    &[Ballot::new(Mark::Trail(vec![Some(one), Some(two)]))],
                    &rules,
                )
            }
            _ => vec![one],
        };
        if let [winner] = winners.as_slice() {
            verdicts.decided += 1;
            verdicts.won += u64::from(*winner == 0);
        }
    }
    verdicts
}
