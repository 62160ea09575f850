//! The promise that the user's marks support for a verdict.
//!
//! Input: marks, and the verdict. Output: the highest share of right verdicts that can be promised for verdicts
//! like it, or what is missing. "Like it" means the same kind of question, the same models, the same protocol
//! and the same rule by which members are not asked. The first quarter of these marks, and all other marks, train the weights of the score; the rest test the promise, so
//! that no mark does both. Promises are tested from the weakest to the strongest, up to the first failure, so the
//! total risk is the risk of one test. Marks are monitored in order of time: if verdicts covered by a promise are
//! wrong too often, the promise is withdrawn, and only later marks count.

mod basis;
mod probability;
mod scorer;

use super::{Evidence, Mark};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use basis::Basis;
pub use probability::PROBABILITY_MARKS;

/// The shares of right verdicts that can be promised, weakest first.
pub const LEVELS: [f64; 5] = [0.7, 0.8, 0.9, 0.95, 0.99];

/// The risk of every promise: [`Promise::of`].
pub(super) const RISK: f64 = 0.1;

/// The evidence of the marks about a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The kind of question.
    pub kind: String,
    /// Marks of similar verdicts that count: both training and test marks.
    pub marks: u64,
    /// The council's certainty of this verdict: the lead in weights, from -1 to 1. See [`super::score`].
    pub score: Option<f64>,
    /// The probability that it is right, from how often verdicts with a similar score were right. `None` with few
    /// marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The promise.
    #[serde(flatten)]
    pub state: State,
    /// How many of [`Standing::marks`] were imported from a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub imported: u64,
    /// The time when an earlier promise was withdrawn: only marks since then count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<Timestamp>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The state of the promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Similar verdicts are right at least at the promised rate.
    Promised {
        /// The promised share of right verdicts.
        right: f64,
        /// The probability that the promise is broken although its test passed.
        risk: f64,
        /// Marks whose score reaches the promise's minimum.
        tested: u64,
        /// Number of them that were wrong.
        wrong: u64,
        /// The times of the first and the last of these marks.
        period: (Timestamp, Timestamp),
    },
    /// The weakest promise covers only verdicts with a higher score.
    Unsure {
        /// The share of right verdicts that it promises.
        right: f64,
        /// The minimum score.
        from: f64,
    },
    /// Nothing can be promised.
    None {
        /// Roughly how many more marks the weakest promise needs; `None` if more like these would not suffice.
        more: Option<u64>,
    },
}

impl Standing {
    /// Returns the promised share of right verdicts.
    pub fn right(&self) -> Option<f64> {
        match self.state {
            State::Promised { right, .. } => Some(right),
            _ => None,
        }
    }
}

/// Returns the promise that marks support for `verdict`, at [`LEVELS`] and at the share that the user requires, if any.
pub fn standing(evidence: &Evidence, verdict: &Mark, required: Option<f64>) -> Standing {
    Basis::of(evidence, verdict, required).standing(verdict)
}

#[cfg(test)]
mod tests;
