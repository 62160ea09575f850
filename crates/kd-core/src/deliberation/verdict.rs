//! How a deliberation ended: the outcome type, the answer, and what it rests on.

use super::ledger::Spent;
use crate::ids::SeatName;
use crate::voting::Outcome;
use serde::{Deserialize, Serialize};

/// How a deliberation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The type: heading and exit code follow it.
    pub outcome: Outcome,
    /// What the count alone would say.
    pub form: Outcome,
    /// The heading of the answer.
    pub heading: String,
    /// The winning answer, as its key or its words; none where nothing was decided.
    pub winner: Option<String>,
    /// The agreement of the best pass, 0 to 1.
    pub confidence: f64,
    /// Who stands behind the winner.
    pub support: Vec<SeatName>,
    /// Who does not.
    pub dissent: Vec<Dissenter>,
    /// The whole answer as it stands in the thread.
    pub answer: String,
    /// Who wrote it; none if it is taken from what was said.
    pub by: Option<SeatName>,
    /// Its message.
    pub message: Option<u32>,
    /// The messages it rests on.
    pub cites: Vec<u32>,
    /// Passes made, and the one whose result this is, from 1.
    pub passes: u32,
    /// The best pass.
    pub best_pass: u32,
    /// Why no further pass was made.
    pub stopped: String,
    /// What it used up.
    pub spent: Spent,
    /// What went wrong on the way.
    pub troubles: Vec<String>,
}

/// Somebody who stands for something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dissenter {
    /// Who.
    pub seat: SeatName,
    /// For what.
    pub stands_for: String,
    /// Why, in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The type of a result: a limit that cut is before too few ballots, and these before failed seats, and all before the
/// form of the count.
pub(super) fn outcome(form: Outcome, cut: bool, failed: bool) -> Outcome {
    match form {
        _ if cut => Outcome::CutByBudget,
        Outcome::NoQuorum => Outcome::NoQuorum,
        _ if failed => Outcome::Degraded,
        form => form,
    }
}

/// The first line above an answer. `abstained` is how many seats were asked for a vote and cast none.
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
        // A council of one agrees with itself: that says nothing.
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
