//! One cycle, drawn before any agent runs: who could take part, who sits out and why, the order of the others, and the
//! delays between them. Everything follows from the seed and the recorded candidates, so that any cycle can be redrawn
//! and compared ([`draw`] is the audit). For the source of the seed, see [`super::chain`].

use super::schedulers::{self, Draw, williams};
use kd_core::config::forum::Settings;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// The random generator of every draw. Named, because its output is the same in every release.
pub const GENERATOR: &str = "ChaCha12";
/// How often a draw in which everyone sat out is repeated. After that, one agent is picked at random.
const REDRAWS_MAX: u32 = 32;
/// Numbers in a record are rounded to this many decimals, because its seal covers no more.
const DECIMALS: f64 = 1e9;
/// The energy that one turn costs an agent, and that one cycle of rest restores.
const TURN_ENERGY: f64 = 0.25;
const REST_ENERGY: f64 = 0.15;

/// An agent that could take part, with the inputs of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// The probability of sitting out: its own setting, else the forum's.
    pub skip_probability: f64,
    /// Its activity relative to others; 1 is normal.
    pub weight: f64,
    /// Its energy, 0 to 1.
    pub energy: f64,
    /// Tokens used so far.
    pub tokens: u64,
    /// Turns taken so far.
    pub turns: u64,
    /// Consecutive cycles without a turn so far.
    pub skipped: u32,
    /// Its own delays in seconds, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<(f64, f64)>,
}

impl Candidate {
    /// Creates a candidate without history and with the default skip probability.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            skip_probability: Settings::default().skip_probability,
            weight: 1.0,
            energy: 1.0,
            tokens: 0,
            turns: 0,
            skipped: 0,
            delays: None,
        }
    }

    /// Records a cycle: whether it took a turn, and the tokens used.
    pub fn lived(&mut self, took_turn: bool, tokens: u64) {
        if took_turn {
            self.turns += 1;
            self.tokens += tokens;
            self.skipped = 0;
            self.energy = (self.energy - TURN_ENERGY).max(0.0);
        } else {
            self.skipped += 1;
        }
        self.energy = (self.energy + REST_ENERGY).min(1.0);
    }
}

/// The seed of a draw. In JSON: a number, 64 hexadecimal digits, or `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seed {
    /// Chosen by the user, or recorded by an older version. Anyone who knows it can predict every cycle.
    Number(u64),
    /// For one cycle only, mixed from its secret.
    Mixed([u8; 32]),
    /// Not revealed yet: [`draw`] returns an empty plan.
    #[default]
    Hidden,
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Mixed(bytes) => f.write_str(&hex(bytes)),
            Self::Hidden => f.write_str("hidden"),
        }
    }
}

impl Serialize for Seed {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_u64(*number),
            Self::Mixed(bytes) => to.serialize_str(&hex(bytes)),
            Self::Hidden => to.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(u64),
            Text(String),
        }
        Ok(match Option::<Form>::deserialize(from)? {
            None => Self::Hidden,
            Some(Form::Number(number)) => Self::Number(number),
            Some(Form::Text(text)) => Self::Mixed(
                unhex(&text)
                    .ok_or_else(|| serde::de::Error::custom("a seed is 64 hexadecimal digits"))?,
            ),
        })
    }
}

/// All inputs of a draw. Recorded with the cycle; the seed once it is revealed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cards {
    /// The seed.
    #[serde(default)]
    pub seed: Seed,
    /// The number of cycles drawn before this one.
    pub index: u64,
    /// The scheduler.
    pub scheduler: String,
    /// Maximum consecutive cycles without a turn.
    pub skips_max: u32,
    /// The minimum and the maximum delay between two agents, in seconds.
    pub delays: (f64, f64),
    /// The agents that could take part, by name.
    pub candidates: Vec<Candidate>,
    /// The block that this cycle continues, if the scheduler draws in blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
}

/// The state of a block of cycles of the scheduler `williams`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The order of its first cycle.
    pub first: Vec<String>,
    /// The rows of the square used since.
    pub used: Vec<u32>,
}

impl Cards {
    /// Creates the inputs of the next cycle. Candidates are sorted by name, so that the draw does not depend on the
    /// order in which a list was read.
    pub fn new(
        settings: &Settings,
        seed: impl Into<Seed>,
        index: u64,
        mut candidates: Vec<Candidate>,
    ) -> Self {
        candidates.sort_by(|a, b| a.name.cmp(&b.name));
        candidates.dedup_by(|a, b| a.name == b.name);
        let cards = Self {
            seed: seed.into(),
            index,
            scheduler: settings.scheduler.clone(),
            skips_max: settings.skips_max,
            delays: (settings.delay_secs_min, settings.delay_secs_max),
            candidates,
            block: None,
        };
        cards.rounded()
    }

    /// Rounds all numbers to the decimals that the seal covers.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        self.delays = rounded_both(self.delays);
        for one in &mut self.candidates {
            one.skip_probability = rounded(one.skip_probability);
            one.weight = rounded(one.weight);
            one.energy = rounded(one.energy);
            one.delays = one.delays.map(rounded_both);
        }
        self
    }

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

/// Rounds a number to [`DECIMALS`]; a large one has no decimals to round.
fn rounded(number: f64) -> f64 {
    match (number * DECIMALS).abs() < 2f64.powi(52) {
        true => (number * DECIMALS).round() / DECIMALS,
        false => number,
    }
}

fn rounded_both((low, high): (f64, f64)) -> (f64, f64) {
    (rounded(low), rounded(high))
}

/// Encodes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes 64 hexadecimal digits to 32 bytes.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
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
    /// How often the draw was repeated because everyone sat out.
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
    /// The probability of that.
    pub chance: f64,
}

/// Draws a cycle. The same inputs always give the same plan; a hidden seed gives an empty one.
pub fn draw(cards: &Cards) -> Plan {
    let mut chance = match cards.seed {
        Seed::Number(seed) => {
            let mut chance = ChaCha12Rng::seed_from_u64(seed);
            chance.set_stream(cards.index);
            chance
        }
        Seed::Mixed(bytes) => ChaCha12Rng::from_seed(bytes),
        Seed::Hidden => return Plan::default(),
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

#[cfg(test)]
mod laws;
