//! The usage of a turn, and the precision of its amounts.

use serde::{Deserialize, Serialize};

/// The precision of an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// As reported by the provider.
    #[default]
    Exact,
    /// An upper bound: a request ended without a count, and its whole reservation was booked. Shown as `≤`.
    AtMost,
    /// A lower bound: a request ended without a count, and nothing bounded it. Shown as `≥`.
    AtLeast,
    /// An estimate: a sum of upper and lower bounds. Shown as `≈`.
    About,
}

impl Certainty {
    /// Returns whether the provider reported all of it.
    pub fn is_exact(&self) -> bool {
        *self == Certainty::Exact
    }

    /// Returns the precision of the sum of two amounts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (one, Certainty::Exact) => one,
            (Certainty::Exact, other) => other,
            (one, other) if one == other => one,
            _ => Certainty::About,
        }
    }

    /// Returns the sign before a number.
    pub fn sign(self) -> &'static str {
        match self {
            Certainty::Exact => "",
            Certainty::AtMost => "≤ ",
            Certainty::AtLeast => "≥ ",
            Certainty::About => "≈ ",
        }
    }
}

/// The usage of a turn, as reported by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, including thinking.
    pub output_tokens: u64,
    /// Prompt tokens that the provider had cached.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Prompt tokens that the provider wrote to its cache, if it charges for that.
    #[serde(skip_serializing_if = "is_zero")]
    pub written_tokens: u64,
    /// Answer tokens spent on thinking.
    #[serde(skip_serializing_if = "is_zero")]
    pub thinking_tokens: u64,
    /// Price in US dollars, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Requests beyond the first of each turn: retries, and answer formats that the service rejected.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeats: u64,
    /// The precision of the tokens and the price.
    #[serde(skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Adds another call's usage. The sum of a known and an unknown price is the known one.
    pub fn add(&mut self, other: &Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.written_tokens += other.written_tokens;
        self.thinking_tokens += other.thinking_tokens;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        self.repeats += other.repeats;
        self.certainty = self.certainty.and(other.certainty);
    }

    /// Marks the total as a lower bound if some call did not report its usage. A total without tokens stays unchanged.
    pub fn with_uncounted(mut self, uncounted: bool) -> Self {
        if uncounted && self.counts_tokens() {
            self.certainty = self.certainty.and(Certainty::AtLeast);
        }
        self
    }

    /// Returns whether any token was counted: no request uses none.
    pub fn counts_tokens(&self) -> bool {
        self.input_tokens > 0 || self.output_tokens > 0
    }
}
