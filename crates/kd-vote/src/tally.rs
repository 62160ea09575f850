//! The result of a count: winners, rounds, how ties were broken, who abstained and who disagreed.

use super::amount::Amount;
use serde::{Deserialize, Serialize};

/// The result of a rule, before ties are broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All winners, ascending, including tied ones; empty if the rule decides nothing.
    pub winners: Vec<usize>,
    /// The final score of each candidate, if the rule has scores.
    pub scores: Vec<Option<Amount>>,
    /// The rounds, if the rule has them.
    pub rounds: Vec<Round>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One round of a count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Round {
    /// The votes of each remaining candidate.
    pub tally: Vec<(usize, Amount)>,
    /// Candidates eliminated after it.
    pub eliminated: Vec<usize>,
    /// Candidates elected in it.
    pub elected: Vec<usize>,
    /// Exhausted votes, if the rule tracks them.
    pub exhausted: Option<Amount>,
    /// Decisions made on the way, in words.
    pub notes: Vec<String>,
}

/// A finished count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The rule's name.
    pub rule: &'static str,
    /// All winners, ascending, including tied ones; empty if nothing is decided.
    pub winners: Vec<usize>,
    /// The winner after breaking ties; `None` if the rule decided nothing.
    pub winner: Option<usize>,
    /// The kind of result.
    pub outcome: Outcome,
    /// The lead of the winner over the best non-winner, in the units of `scores`.
    pub margin: Option<Amount>,
    /// The final score of each candidate, if the rule has scores.
    pub scores: Vec<Option<Amount>>,
    /// The rounds, if the rule has them.
    pub rounds: Vec<Round>,
    /// The steps that broke a tie; empty without a tie.
    pub tie_path: Vec<TieStep>,
    /// Number of voters asked, including abstentions.
    pub electorate: u64,
    /// The ballots that did not count, and why.
    pub abstained: Vec<Abstention>,
    /// The voters that ranked another candidate first.
    pub dissent: Vec<Dissent>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The kind of result. Headings and exit codes may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All voters ranked the winner first.
    Unanimous,
    /// More than half ranked the winner first.
    Majority,
    /// The rule names one winner, ranked first by at most half.
    Plurality,
    /// Several candidates tie, or none wins.
    Split,
    /// Too few readable ballots.
    NoQuorum,
    /// Members failed. Set by the council, never by a count.
    Degraded,
    /// A limit ended the deliberation. Set by the council, never by a count.
    CutByBudget,
}

impl Outcome {
    /// Returns its words.
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
    /// The name: `weights`, `pairwise`, `best member`, `arbiter`, `lot`.
    pub step: &'static str,
    /// The candidates still tied after it.
    pub left: Vec<usize>,
    /// The comparison, or the reason why it was not possible.
    pub why: String,
}

impl TieStep {
    /// The name of the random draw, the last step of all.
    pub(crate) const LOT: &str = "lot";

    /// Returns whether chance chose, because nothing else broke the tie.
    pub fn is_lot(&self) -> bool {
        self.step == Self::LOT
    }
}

/// A ballot that did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Abstention {
    /// The ballot's index.
    pub ballot: usize,
    /// The voter; empty if unnamed.
    pub voter: String,
    /// The number of identical ballots.
    pub count: u64,
    /// The reason.
    pub why: String,
}

/// A voter that ranked another candidate first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dissent {
    /// The voter; empty if unnamed.
    pub voter: String,
    /// The number of identical ballots.
    pub count: u64,
    /// The candidates it ranked first.
    pub first: Vec<usize>,
}
