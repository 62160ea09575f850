//! Detects when a promise no longer holds: a sequential test over the marks of answers that it covered.
//!
//! Input: right or wrong, in the order of the marks. Output: whether the share of wrong answers has risen above the
//! promise. It is a Shiryaev–Roberts e-detector (Shin, Ramdas and Rinaldo 2023, arXiv 2203.03532): while the promise
//! holds, a false alarm comes after [`PEACE`] marks or more on average, however often the result is checked.

/// Minimum average number of marks before a false alarm.
pub const PEACE: f64 = 1000.0;
/// The bets, as fractions of the largest bet that cannot lose everything in one step.
const BETS: [f64; 4] = [0.05, 0.15, 0.35, 0.7];

/// The state of the test.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The factors by which a right answer and a wrong answer multiply the wealth of each bet.
    factors: [[f64; BETS.len()]; 2],
    wealth: [f64; BETS.len()],
    seen: u64,
    alarm: Option<u64>,
}

impl Watch {
    /// Watches a promise that at most this share of answers is wrong.
    pub fn new(wrong: f64) -> Self {
        let wrong = wrong.clamp(1e-6, 1.0 - 1e-6);
        let factors = [-wrong, 1.0 - wrong].map(|gain| BETS.map(|bet| 1.0 + bet / wrong * gain));
        Self {
            factors,
            wealth: [0.0; BETS.len()],
            seen: 0,
            alarm: None,
        }
    }

    /// Adds the next mark.
    pub fn see(&mut self, right: bool) {
        self.seen += 1;
        let factors = &self.factors[usize::from(!right)];
        for (wealth, factor) in self.wealth.iter_mut().zip(factors) {
            // Far above the alarm level the exact value no longer matters.
            *wealth = ((*wealth + 1.0) * factor).min(1e300);
        }
        let mean = self.wealth.iter().sum::<f64>() / BETS.len() as f64;
        if mean >= PEACE && self.alarm.is_none() {
            self.alarm = Some(self.seen);
        }
    }

    /// Returns the number of marks after which the promise was found broken; `None` if it may still hold.
    pub fn alarm(&self) -> Option<u64> {
        self.alarm
    }

    /// Returns the number of marks added.
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    /// Simulates the number of marks until the alarm, up to `most`.
    fn delay(promise: f64, before: u64, shares: (f64, f64), most: u64, seed: u64) -> u64 {
        let mut chance = ChaCha12Rng::seed_from_u64(seed);
        let mut watch = Watch::new(promise);
        for at in 0..before + most {
            let share = if at < before { shares.0 } else { shares.1 };
            watch.see(chance.random::<f64>() >= share);
            if let Some(alarm) = watch.alarm() {
                return alarm;
            }
        }
        before + most
    }

    #[test]
    fn a_promise_that_just_holds_is_left_alone_for_long() {
        const RUNS: u64 = 200;
        let sum: u64 = (0..RUNS)
            .map(|seed| delay(0.1, 0, (0.1, 0.1), 20_000, seed))
            .sum();
        assert!(
            sum / RUNS >= PEACE as u64,
            "{} marks on average",
            sum / RUNS
        );
    }

    #[test]
    fn members_that_became_worse_are_noticed_soon_whatever_came_before() {
        for (promise, after, most) in [
            (0.1, 0.3, 60),
            (0.05, 0.25, 50),
            (0.05, 0.15, 120),
            (0.2, 0.6, 25),
        ] {
            const RUNS: u64 = 200;
            let before = 300;
            let delays: Vec<u64> = (0..RUNS)
                .map(|seed| delay(promise, before, (promise / 2.0, after), 5000, seed))
                .collect();
            let early = delays.iter().filter(|d| **d <= before).count();
            let mean = delays
                .iter()
                .filter(|d| **d > before)
                .map(|d| d - before)
                .sum::<u64>()
                / (RUNS - early as u64);
            assert!(
                early <= 6,
                "{early} false alarms in {RUNS} × {before} marks"
            );
            assert!(mean <= most, "{promise} to {after}: {mean} marks");
        }
    }
}
