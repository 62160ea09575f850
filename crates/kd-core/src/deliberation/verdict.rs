//! The verdict of a deliberation: the outcome, the answer, and its basis.

use super::iteration;
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

impl Verdict {
    /// Returns the reason why no further pass was made, as shown to users.
    pub fn stopped_words(&self) -> &str {
        iteration::words(&self.stopped)
    }
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

/// The name of the counted things, for headings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Voices {
    /// The votes of the council.
    Council,
    /// The answers of the members that were asked until the result was certain; the other members were not asked.
    Asked,
    /// One answer that other members were asked to find defects in.
    Checked,
    /// Several answers of one member.
    Samples(SeatName),
    /// Estimates: the name of the figure that decides between them.
    Estimates(&'static str),
}

/// The numbers of a heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tallied {
    /// Votes for the winner, or for the leader.
    pub(super) backers: u64,
    /// Readable votes.
    pub(super) voters: u64,
    /// The members that were asked for a vote and cast none.
    pub(super) abstained: u64,
    /// The members that were stopped because the result was certain without them.
    pub(super) needless: u64,
}

impl Tallied {
    /// Returns the members that did not vote: `, 1 abstained, 2 not needed`.
    fn silent(self) -> String {
        let mut out = String::new();
        for (count, what) in [(self.abstained, "abstained"), (self.needless, "not needed")] {
            if count > 0 {
                out.push_str(&format!(", {count} {what}"));
            }
        }
        out
    }
}

/// Returns the first line above an answer.
pub(super) fn heading(
    outcome: Outcome,
    form: Outcome,
    tallied: Tallied,
    voices: &Voices,
) -> String {
    let Some(own) = own_words(form, tallied, voices) else {
        return of_council(outcome, form, tallied);
    };
    match outcome {
        Outcome::Degraded => format!("Degraded: seats failed on the way; {own}"),
        Outcome::CutByBudget => format!("Cut by a limit: the best so far; {own}"),
        _ => {
            let mut letters = own.chars();
            let first = letters.next().map(|c| c.to_uppercase().to_string());
            first.unwrap_or_default() + letters.as_str()
        }
    }
}

/// Returns the result of a count that is not a vote of the council; `None` if it is a vote.
fn own_words(form: Outcome, tallied: Tallied, voices: &Voices) -> Option<String> {
    let Tallied {
        backers, voters, ..
    } = tallied;
    let silent = tallied.silent();
    let of = format!("({backers} of {voters}{silent})");
    let own = match (voices, form) {
        (Voices::Council, Outcome::Unanimous) if voters == 1 => {
            "one answer, without a council".to_owned()
        }
        (Voices::Checked, Outcome::Unanimous) if voters == 1 => {
            "one answer, which other members checked".to_owned()
        }
        (Voices::Council | Voices::Checked, _) => return None,
        (Voices::Estimates(_), Outcome::NoQuorum) => {
            "no quorum: too few readable estimates to decide".to_owned()
        }
        (_, Outcome::NoQuorum) => "no quorum: too few readable answers to decide".to_owned(),
        (Voices::Estimates(_), _) if voters == 1 => "one estimate, without a council".to_owned(),
        (_, Outcome::Unanimous) if voters == 1 => "one answer, without a council".to_owned(),
        (Voices::Estimates(_), Outcome::Unanimous) => format!("all estimates are equal {of}"),
        (Voices::Estimates(_), Outcome::Split) => format!("the estimates are split {of}"),
        // None of two different estimates is in the middle half, whatever decides.
        (Voices::Estimates(middle), _) if backers == 0 => {
            let silent = match silent.strip_prefix(", ") {
                Some(silent) => format!(" ({silent})"),
                None => String::new(),
            };
            format!("{middle} of {voters} estimates{silent}")
        }
        (Voices::Estimates(middle), _) => {
            format!("{middle} of {voters} estimates ({backers} in the middle half{silent})")
        }
        (Voices::Samples(seat), form) => {
            let answers = format!("answers of {seat}");
            match form {
                Outcome::Unanimous => format!("all {answers} agree {of}"),
                Outcome::Majority => format!("a majority of the {answers} {of}"),
                Outcome::Split => format!("the {answers} are split {of}"),
                _ => format!("a plurality of the {answers}, no majority {of}"),
            }
        }
        (Voices::Asked, Outcome::Unanimous) => format!("all members that were asked agree {of}"),
        (Voices::Asked, Outcome::Majority) => {
            format!("a majority of the members that were asked {of}")
        }
        (Voices::Asked, Outcome::Split) => format!("the members that were asked are split {of}"),
        (Voices::Asked, _) => {
            format!("a plurality of the members that were asked, no majority {of}")
        }
    };
    Some(own)
}

/// Returns the heading of a vote of the council.
fn of_council(outcome: Outcome, form: Outcome, tallied: Tallied) -> String {
    let Tallied {
        backers, voters, ..
    } = tallied;
    let silent = tallied.silent();
    let of = match voters {
        0 => String::new(),
        _ => format!(" ({backers} of {voters}{silent})"),
    };
    let whose = match silent.as_str() {
        "" => "of the council",
        _ => "of the votes",
    };
    match outcome {
        // A council of one always agrees, which says nothing.
        Outcome::Unanimous if voters == 1 => "One answer, without a council".to_owned(),
        Outcome::Unanimous if !silent.is_empty() => format!("All votes agree{of}"),
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
