//! The facts of a deliberation, as the thread's log keeps them. They suffice to decide everything anew without a model
//! ([`replay`](super::replay)) and to say why ([`why`](super::why)).

use super::answer::AnswerKind;
use super::iteration::Decision;
use super::ledger::{Cut, Spent};
use super::plan::Plan;
use super::reader::Reading;
use super::verdict::Verdict;
use crate::failure::Failure;
use crate::ids::{SeatName, TurnId};
use crate::memory::Line;
#[cfg(doc)]
use crate::prompt::PREAMBLE;
use crate::request::{Finish, Prompt, Usage};
use crate::voting::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fact. What came from outside (a reply, a failure, a bell) stands in the log before what was decided from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A plan was made, or given.
    PlanMade {
        /// The plan.
        plan: Box<Plan>,
        /// What the king should know about it.
        notices: Vec<String>,
    },
    /// The deliberation runs by this plan.
    Opened {
        /// The plan.
        plan: Box<Plan>,
        /// What the king should know about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
        /// What stands before every prompt, where it is not the usual [`PREAMBLE`]: a limit may cut before anybody is
        /// asked, and is decided by it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preamble: Option<String>,
    },
    /// A stage began.
    StageBegan {
        /// The pass, from 1.
        pass: u32,
        /// The round of the pass, from 0.
        round: u32,
        /// How deep in sub-councils; 0 is the council itself.
        depth: u32,
        /// The issue of the sub-council.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issue: Option<String>,
        /// The name of the stage.
        stage: String,
        /// Who is asked.
        seats: Vec<SeatName>,
    },
    /// A seat was asked.
    SeatAsked {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// The name of the stage.
        stage: String,
        /// What stood behind each label for this reader: A first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<Labelled>,
        /// The whole prompt.
        prompt: Prompt,
        /// What the answer had to satisfy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// The most that the call can use up: it was reserved.
        reserved: Spent,
    },
    /// A seat answered.
    SeatReplied {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// The whole answer.
        text: String,
        /// Why it ended.
        finish: Finish,
        /// What it used, as the provider counted.
        usage: Option<Usage>,
    },
    /// A seat brought no answer.
    SeatFailed {
        /// The turn.
        turn: TurnId,
        /// The seat.
        seat: SeatName,
        /// Why.
        failure: Failure,
        /// What came of an answer before it broke off; it is kept as a message and counts for nothing.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// A limit did not allow calls.
    Cut {
        /// Which.
        limit: Cut,
        /// The stage in which it did not.
        stage: String,
        /// Who was not asked.
        seats: Vec<SeatName>,
    },
    /// What was read in the words of members. A replay takes it from here, so that a record is decided as it was by
    /// later readers too.
    Readings {
        /// Each text that was read for the first time.
        readings: Vec<Reading>,
    },
    /// What an answer says.
    AnswerRead {
        /// Whose.
        seat: SeatName,
        /// The round.
        round: u32,
        /// The key by which it is compared; none for open text, and where none was found.
        key: Option<String>,
        /// How sure it says it is.
        confidence: Option<f64>,
        /// Its message.
        message: Option<u32>,
        /// What was odd about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// What a review says.
    ReviewRead {
        /// Whose review.
        seat: SeatName,
        /// Ratings from 1 to 10, by the author of what was rated.
        ratings: Vec<Rated>,
        /// Authors from best to worst.
        ranking: Vec<SeatName>,
        /// What was odd about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// What a ballot says.
    BallotRead {
        /// Whose.
        seat: SeatName,
        /// What it marks, in the names of candidates; empty for an abstention.
        marks: Vec<String>,
        /// How sure it says it is.
        confidence: Option<f64>,
        /// Its reason.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// What was odd about it; why it is an abstention.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// Something was said in a stage that neither answers nor votes: defects, a verdict on them, a feedback.
    Noted {
        /// Who.
        seat: Option<SeatName>,
        /// The stage.
        stage: String,
        /// What.
        text: String,
    },
    /// The first answers are of another kind than was planned. They were read again; from here on this kind holds.
    KindSettled {
        /// The kind.
        answers: AnswerKind,
        /// Why.
        why: String,
    },
    /// Open answers were compared by meaning.
    Grouped(Grouping),
    /// Ballots were counted.
    Counted(Counted),
    /// Whether the council begins anew.
    IterationDecided(Decision),
    /// What is remembered from here on.
    Remembered {
        /// The lines, each with the messages it came from.
        lines: Vec<Line>,
        /// Who summed it up; none if sentences were taken out of what was said.
        by: Option<SeatName>,
    },
    /// Somebody else concludes.
    ChairReplaced {
        /// In whose place.
        from: SeatName,
        /// Who; nobody if the answer is taken from what was said.
        by: Option<SeatName>,
        /// Why.
        why: String,
    },
    /// The king stopped it.
    Stopped,
    /// The limit of time is near (first) or reached (second).
    BellRang {
        /// Whether it is reached.
        over: bool,
    },
    /// The council is done.
    Concluded(Box<Verdict>),
}

/// What stood behind a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    /// The label.
    pub label: String,
    /// Whose answer, or which candidate.
    pub item: String,
}

/// A rating from 1 to 10.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rated {
    /// Whose answer.
    pub seat: SeatName,
    /// How good.
    pub rating: u8,
    /// Its weakness, in the reviewer's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weakness: String,
}

/// Which open answers mean the same, and what they claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grouping {
    /// The pass.
    pub pass: u32,
    /// Who compared them.
    pub by: Vec<SeatName>,
    /// What stands for election from here on.
    pub groups: Vec<Group>,
    /// What the answers claim. It decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claimed>,
    /// What no answer covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Why answers stay apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Grouping {
    /// The groups in one line: `ann = cyd, bob`.
    pub fn words(&self) -> String {
        let groups = self.groups.iter().map(|group| {
            let names: Vec<&str> = group.seats.iter().map(SeatName::as_str).collect();
            names.join(" = ")
        });
        groups.collect::<Vec<_>>().join(", ")
    }
}

/// Answers that mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in the count.
    pub name: String,
    /// Who gave them.
    pub seats: Vec<SeatName>,
}

/// A claim and who stands where on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The claim.
    pub claim: String,
    /// Whose answers state it.
    pub says: Vec<SeatName>,
    /// Whose answers contradict it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denies: Vec<SeatName>,
}

/// A count, in words and exact numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The pass.
    pub pass: u32,
    /// How deep in sub-councils.
    pub depth: u32,
    /// The rule.
    pub rule: String,
    /// What was counted: `answers`, `ballots`, `rankings`, `estimates`.
    pub source: String,
    /// The candidates' names.
    pub candidates: Vec<String>,
    /// The final standing of each, where the rule has one.
    pub scores: Vec<Option<String>>,
    /// Everybody who wins or ties for it.
    pub winners: Vec<usize>,
    /// The one who wins after the tie chain.
    pub winner: Option<usize>,
    /// What kind of result it is.
    pub form: Outcome,
    /// How many were asked.
    pub electorate: u64,
    /// How many could be counted.
    pub voters: u64,
    /// How many of them put the winner, or the leader, first.
    pub backers: u64,
    /// Agreement, 0 to 1: `(backers + 1/2) / (voters + 1)`. No probability of being right.
    pub agreement: f64,
    /// Who put whom first.
    pub firsts: Vec<First>,
    /// Each round of the count in words.
    pub rounds: Vec<String>,
    /// Each step of breaking a tie in words.
    pub tie_path: Vec<String>,
    /// Who did not count, and why.
    pub abstained: Vec<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The seed of the lot.
    pub seed: u64,
}

/// Who put whom first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct First {
    /// Who.
    pub seat: SeatName,
    /// Which candidate; none for an abstention.
    pub candidate: Option<usize>,
    /// How sure it said it was.
    pub confidence: Option<f64>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
