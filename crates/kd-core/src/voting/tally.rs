//! What a count says: winners, rounds, how ties were broken, who abstained and who disagreed.

use super::amount::Amount;
use serde::{Deserialize, Serialize};

/// What a rule finds, before ties are broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Everybody who wins or ties for it, rising; empty where the rule decides nothing.
    pub winners: Vec<usize>,
    /// The final standing of each candidate, where the rule has one.
    pub scores: Vec<Option<Amount>>,
    /// Round by round, where the rule has rounds.
    pub rounds: Vec<Round>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// One round of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// What each candidate still standing has.
    pub tally: Vec<(usize, Amount)>,
    /// Who is dropped after it.
    pub eliminated: Vec<usize>,
    /// Who wins in it.
    pub elected: Vec<usize>,
    /// What no longer counts for anybody, where the rule knows it.
    pub exhausted: Option<Amount>,
    /// What was decided on the way, in words.
    pub notes: Vec<String>,
}

/// A finished count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// By which rule.
    pub rule: &'static str,
    /// Everybody who wins or ties for it, rising; empty where nothing is decided.
    pub winners: Vec<usize>,
    /// The one who wins after the tie chain; `None` where the rule decided nothing.
    pub winner: Option<usize>,
    /// How sure the form of the result is.
    pub outcome: Outcome,
    /// The lead of the winner over the next who is not a winner, in the units of `scores`.
    pub margin: Option<Amount>,
    /// The final standing of each candidate, where the rule has one.
    pub scores: Vec<Option<Amount>>,
    /// Round by round, where the rule has rounds.
    pub rounds: Vec<Round>,
    /// How a tie was broken, step by step; empty where there was none.
    pub tie_path: Vec<TieStep>,
    /// How many were asked, abstentions included.
    pub electorate: u64,
    /// Who did not count, and why.
    pub abstained: Vec<Abstention>,
    /// Who put somebody else first.
    pub dissent: Vec<Dissent>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What kind of result it is. A heading and an exit code may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everybody who voted put the winner first.
    Unanimous,
    /// More than half put the winner first.
    Majority,
    /// The rule names one winner, whom at most half put first.
    Plurality,
    /// Several win alike, or nobody does.
    Split,
    /// Too few cast a readable ballot.
    NoQuorum,
    /// Seats failed on the way. The council says so, a count never does.
    Degraded,
    /// A limit cut the deliberation. The council says so, a count never does.
    CutByBudget,
}

impl Outcome {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Unanimous => "unanimous",
            Outcome::Majority => "majority",
            Outcome::Plurality => "plurality",
            Outcome::Split => "split",
            Outcome::NoQuorum => "no quorum",
            Outcome::Degraded => "degraded",
            Outcome::CutByBudget => "cut by budget",
        }
    }
}

/// One step of breaking a tie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TieStep {
    /// Which: `weights`, `pairwise`, `best member`, `arbiter`, `lot`.
    pub step: &'static str,
    /// Who is still tied after it.
    pub left: Vec<usize>,
    /// What it compared, or why it could not.
    pub why: String,
}

/// A ballot that did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Abstention {
    /// Its place among the ballots, from 0.
    pub ballot: usize,
    /// Who; empty where nobody is named.
    pub voter: String,
    /// How many alike.
    pub count: u64,
    /// Why.
    pub why: String,
}

/// Somebody who put another candidate first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dissent {
    /// Who; empty where nobody is named.
    pub voter: String,
    /// How many alike.
    pub count: u64,
    /// Whom they put first.
    pub first: Vec<usize>,
}
