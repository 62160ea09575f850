//! The verdict of a deliberation: the outcome, the answer, and its basis.

use super::ledger::Spent;
use crate::ids::SeatName;
use kd_vote::Outcome;
use serde::{Deserialize, Serialize};

/// The result of a deliberation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcome, which determines heading and exit code.
    pub outcome: Outcome,
    /// The outcome of the count alone.
    pub form: Outcome,
    /// The heading of the answer.
    pub heading: String,
    /// The winning answer, as its key or text; `None` without a decision.
    pub winner: Option<String>,
    /// The agreement of the best pass, 0 to 1.
    pub confidence: f64,
    /// The members that support the winner.
    pub support: Vec<SeatName>,
    /// The members that do not.
    pub dissent: Vec<Dissenter>,
    /// The whole answer as written to the thread.
    pub answer: String,
    /// Its author; `None` if it is composed from the messages.
    pub by: Option<SeatName>,
    /// Its message.
    pub message: Option<u32>,
    /// The question to the user whose answer would decide; `None` if the council does not ask back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_back: Option<String>,
    /// The messages it rests on.
    pub cites: Vec<u32>,
    /// Number of passes.
    pub passes: u32,
    /// The pass whose result this is, from 1.
    pub best_pass: u32,
    /// The reason why no further pass was made.
    pub stopped: String,
    /// Total usage.
    pub spent: Spent,
    /// Problems on the way.
    pub troubles: Vec<String>,
}

/// A member that supports something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dissenter {
    /// The member.
    pub seat: SeatName,
    /// The statement that it supports.
    pub stands_for: String,
    /// The reason, in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Returns the outcome. A limit that cut takes precedence over too few ballots, then failed members, then the form of
/// the count.
pub(super) fn outcome(form: Outcome, cut: bool, failed: bool) -> Outcome {
    match form {
        _ if cut => Outcome::CutByBudget,
        Outcome::NoQuorum => Outcome::NoQuorum,
        _ if failed => Outcome::Degraded,
        form => form,
    }
}

/// Returns the first line above an answer. `abstained` is the number of members that were asked for a vote and cast
/// none.
pub(super) fn heading(
    outcome: Outcome,
    form: Outcome,
    backers: u64,
    voters: u64,
    abstained: u64,
) -> String {
    let of = match (voters, abstained) {
        (0, _) => String::new(),
        (_, 0) => format!(" ({backers} of {voters})"),
        (_, n) => format!(" ({backers} of {voters}, {n} abstained)"),
    };
    let whose = match abstained {
        0 => "of the council",
        _ => "of the votes",
    };
    match outcome {
        // A council of one always agrees, which says nothing.
        Outcome::Unanimous if voters == 1 => "One answer, without a council".to_owned(),
        Outcome::Unanimous if abstained > 0 => format!("All votes agree{of}"),
        Outcome::Unanimous => format!("The council is unanimous{of}"),
        Outcome::Majority => format!("A majority {whose}{of}"),
        Outcome::Plurality => format!("A plurality, no majority{of}"),
        Outcome::Split => format!("The council is split{of}"),
        Outcome::NoQuorum => "No quorum: too few readable votes to decide".to_owned(),
        Outcome::Degraded => format!(
            "Degraded: seats failed on the way; of those who voted: {}{of}",
            form.word()
        ),
        Outcome::CutByBudget => format!(
            "Cut by a limit: the best so far; of those who voted: {}{of}",
            form.word()
        ),
    }
}
