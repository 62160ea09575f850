//! The inputs of a draw, as recorded with a cycle: the seed, the agents that could take part, the limits.

use kd_core::config::forum::Settings;
use kd_core::hex::{hex, unhex};
use serde::{Deserialize, Serialize};

/// Factor that rounds numbers in a record to nine decimals, because its seal covers no more.
const DECIMALS: f64 = 1e9;
/// The energy that one turn costs an agent, and that one cycle of rest restores.
const TURN_ENERGY: f64 = 0.25;
const REST_ENERGY: f64 = 0.15;

/// An agent that could take part, with the inputs of the rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub name: String,
    /// The probability that the agent sits out: its own setting, or the forum's if it has none.
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
    /// A seed for one cycle only, mixed from its secret.
    Mixed([u8; 32]),
    /// Not revealed yet: [`draw`](super::cycle::draw) returns an empty plan.
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

/// All inputs of a draw. They are recorded with the cycle, except the seed, which is added when it is revealed.
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
    /// The minimum and maximum delay between two agents, in seconds.
    pub delays: (f64, f64),
    /// The agents that could take part, by name.
    pub candidates: Vec<Candidate>,
    /// The block that this cycle continues, if the scheduler draws in blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
}

/// The state of a block of cycles, for the scheduler `williams`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The order of its first cycle.
    pub first: Vec<String>,
    /// The rows of the Latin square used since then.
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
}

/// Rounds a number to [`DECIMALS`]; a large one has no decimals to round.
pub(super) fn rounded(number: f64) -> f64 {
    match (number * DECIMALS).abs() < 2f64.powi(52) {
        true => (number * DECIMALS).round() / DECIMALS,
        false => number,
    }
}

fn rounded_both((low, high): (f64, f64)) -> (f64, f64) {
    (rounded(low), rounded(high))
}
