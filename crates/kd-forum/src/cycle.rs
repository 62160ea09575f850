//! One cycle, drawn before any agent runs: who could take part, who sits out and why, the order of the others, and the
//! delays between them. Everything follows from the seed and the recorded candidates, so that any cycle can be redrawn
//! and compared ([`draw`] is the audit). For the source of the seed, see [`super::chain`].

use super::cards::{Cards, Seed, rounded};
use super::schedulers::{self, Draw, williams};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// The random generator of every draw. Named, because its output is the same in every release.
pub const GENERATOR: &str = "ChaCha12";
/// Maximum number of new draws when all agents sat out. After that, one agent is picked at random.
const REDRAWS_MAX: u32 = 32;
impl Cards {
    /// Sets the block that a cycle after `last` continues: none if the last cycle ended its block, had other agents or
    /// another scheduler, or was drawn from a number.
    pub fn after(mut self, last: Option<(&Cards, &Plan)>) -> Self {
        self.block = last.and_then(|(cards, plan)| {
            let names = |cards: &Cards| -> Vec<String> {
                cards.candidates.iter().map(|c| c.name.clone()).collect()
            };
            let alike = cards.scheduler == self.scheduler
                && names(cards) == names(&self)
                && !matches!(cards.seed, Seed::Number(_));
            (alike && self.scheduler == williams::NAME)
                .then(|| williams::next_block(cards.block.as_ref(), &plan.order))?
        });
        self
    }
}

/// The result of a draw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All candidates in the drawn order, including those who sit out.
    pub order: Vec<String>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// The agents that sit out, in the drawn order.
    pub sitting_out: Vec<SittingOut>,
    /// Number of new draws because all agents sat out.
    pub redrawn: u32,
}

/// One turn of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The agent.
    pub agent: String,
    /// The delay before it, in milliseconds; 0 before the first.
    pub delay_ms: u64,
    /// Whether it was due: it had reached the maximum number of skips.
    pub due: bool,
}

/// An agent that sits a cycle out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SittingOut {
    /// The agent.
    pub agent: String,
    /// The probability with which it sits out.
    pub chance: f64,
}

/// Draws a cycle. The same inputs always give the same plan; a hidden seed gives an empty one.
pub fn draw(cards: &Cards) -> Plan {
    let Some(mut chance) = random_numbers(cards) else {
        return Plan::default();
    };
    let candidates = &cards.candidates;
    let scheduler = schedulers::find(&cards.scheduler).unwrap_or(&schedulers::SCHEDULERS[0]);
    let order = (scheduler.order)(&mut Draw {
        seed: cards.seed,
        index: cards.index,
        block: cards.block.as_ref(),
        candidates,
        chance: &mut chance,
    });
    let chances: Vec<f64> = candidates
        .iter()
        .map(|c| (scheduler.skip)(c, candidates).clamp(0.0, 1.0))
        .collect();
    let due: Vec<bool> = candidates
        .iter()
        .map(|c| c.skipped >= cards.skips_max)
        .collect();
    let (out, redrawn) = sitting_out(&order, &chances, &due, &mut chance);
    let mut plan = Plan {
        redrawn,
        ..Plan::default()
    };
    for (place, at) in order.iter().enumerate() {
        let candidate = &candidates[*at];
        plan.order.push(candidate.name.clone());
        if out[place] {
            plan.sitting_out.push(SittingOut {
                agent: candidate.name.clone(),
                chance: rounded(chances[*at]),
            });
            continue;
        }
        let (least, most) = candidate.delays.unwrap_or(cards.delays);
        let delay = if most > least {
            chance.random_range(least..=most)
        } else {
            least
        };
        let delay_ms = if plan.turns.is_empty() {
            0
        } else {
            (delay.max(0.0) * 1000.0).round() as u64
        };
        plan.turns.push(Turn {
            agent: candidate.name.clone(),
            delay_ms,
            due: due[*at],
        });
    }
    plan
}

/// Returns the random numbers of a cycle; `None` if its seed is hidden.
fn random_numbers(cards: &Cards) -> Option<ChaCha12Rng> {
    match cards.seed {
        Seed::Number(seed) => {
            let mut chance = ChaCha12Rng::seed_from_u64(seed);
            chance.set_stream(cards.index);
            Some(chance)
        }
        Seed::Mixed(bytes) => Some(ChaCha12Rng::from_seed(bytes)),
        Seed::Hidden => None,
    }
}

/// Draws who sits out, in the order of the cycle, and how often that was drawn again because nobody was left.
fn sitting_out(
    order: &[usize],
    chances: &[f64],
    due: &[bool],
    chance: &mut ChaCha12Rng,
) -> (Vec<bool>, u32) {
    let mut redrawn = 0;
    let mut out: Vec<bool> = loop {
        // Numbers are drawn for all, due or not, so that one agent's state does not affect another's randomness.
        let drawn: Vec<bool> = order
            .iter()
            .map(|at| {
                let sits_out = chance.random_bool(chances[*at]);
                sits_out && !due[*at]
            })
            .collect();
        if drawn.iter().any(|sits_out| !sits_out) || drawn.is_empty() || redrawn == REDRAWS_MAX {
            break drawn;
        }
        redrawn += 1;
    };
    if !out.is_empty() && out.iter().all(|sits_out| *sits_out) {
        let lot = chance.random_range(0..out.len());
        out[lot] = false;
    }
    (out, redrawn)
}

#[cfg(test)]
mod laws;
