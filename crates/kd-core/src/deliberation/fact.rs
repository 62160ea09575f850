//! The facts of a deliberation, as logged in the thread. They suffice to decide everything again without a model
//! ([`replay`](super::replay)) and to explain the result ([`why`](super::why)).

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
use crate::request::{Finish, Prompt};
use crate::usage::Usage;
use kd_vote::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A logged fact. External input (a reply, a failure, a deadline) is logged before the decisions that follow from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    /// A plan was made, or given.
    PlanMade {
        /// The plan.
        plan: Box<Plan>,
        /// Notices about it for the user.
        notices: Vec<String>,
    },
    /// The deliberation starts with this plan.
    Opened {
        /// The plan.
        plan: Box<Plan>,
        /// Notices about it for the user.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<String>,
        /// The beginning of every prompt if it is not the usual [`PREAMBLE`]: its length affects a limit that cuts
        /// before the first question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preamble: Option<String>,
    },
    /// A stage began.
    StageBegan {
        /// The pass, from 1.
        pass: u32,
        /// The round of the pass, from 0.
        round: u32,
        /// Depth of nested sub-councils; 0 is the council itself.
        depth: u32,
        /// The issue of the sub-council.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        issue: Option<String>,
        /// The name of the stage.
        stage: String,
        /// The members asked.
        seats: Vec<SeatName>,
    },
    /// A member was asked.
    SeatAsked {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The name of the stage.
        stage: String,
        /// The items that this reader saw as A, B, …, in this order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<Labelled>,
        /// The whole prompt.
        prompt: Prompt,
        /// The required schema of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// The maximum cost of the call, which was reserved.
        reserved: Spent,
    },
    /// A member answered.
    SeatReplied {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The whole answer.
        text: String,
        /// The reason why it ended.
        finish: Finish,
        /// Its usage, as reported by the provider.
        usage: Option<Usage>,
    },
    /// A member gave no answer.
    SeatFailed {
        /// The turn.
        turn: TurnId,
        /// The member.
        seat: SeatName,
        /// The reason.
        failure: Failure,
        /// The partial answer; kept as a message, but it does not count.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// A limit prevented calls.
    Cut {
        /// The limit.
        limit: Cut,
        /// The stage.
        stage: String,
        /// The members not asked.
        seats: Vec<SeatName>,
    },
    /// The results of parsing members' texts. A replay uses these results, so that later versions decide a record in
    /// the same way.
    Readings {
        /// Each text read for the first time.
        readings: Vec<Reading>,
    },
    /// An answer was read.
    AnswerRead {
        /// The member.
        seat: SeatName,
        /// The round.
        round: u32,
        /// The key used for comparison; `None` for open text or if none was found.
        key: Option<String>,
        /// Its stated confidence.
        confidence: Option<f64>,
        /// Its message.
        message: Option<u32>,
        /// Notice about an irregularity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// A review was read.
    ReviewRead {
        /// The reviewer.
        seat: SeatName,
        /// Ratings from 1 to 10, by author of the rated answer.
        ratings: Vec<Rated>,
        /// Authors from best to worst.
        ranking: Vec<SeatName>,
        /// Notice about an irregularity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// A ballot was read.
    BallotRead {
        /// The voter.
        seat: SeatName,
        /// The vote, in names of candidates; empty for an abstention.
        marks: Vec<String>,
        /// Its stated confidence.
        confidence: Option<f64>,
        /// Its reason.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Notice about an irregularity, or why it is an abstention.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
    },
    /// A statement in a stage without answers or votes: defects, a verdict on them, feedback.
    Noted {
        /// The member.
        seat: Option<SeatName>,
        /// The stage.
        stage: String,
        /// The text.
        text: String,
    },
    /// The first answers are of another kind than planned. They were read again as this kind, which holds from here on.
    KindSettled {
        /// The kind.
        answers: AnswerKind,
        /// The reason.
        why: String,
    },
    /// Open answers were compared by meaning.
    Grouped(Grouping),
    /// Nobody else is asked: the answers are certain enough.
    AskedEnough {
        /// The members that were asked.
        asked: Vec<SeatName>,
        /// The members that were not.
        spared: Vec<SeatName>,
        /// How often a leader with this lead was right in the user's marks, 0 to 1; `None` without marks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chance: Option<f64>,
        /// Whether no missing answer can change the leader.
        settled: bool,
    },
    /// The council asks the user the question whose answer would decide.
    AskedBack {
        /// The question, in one line.
        question: String,
        /// The member that worded it.
        by: SeatName,
    },
    /// Ballots were counted.
    Counted(Counted),
    /// The decision on whether another pass follows.
    IterationDecided(Decision),
    /// The memory from here on.
    Remembered {
        /// The lines, each with its source messages.
        lines: Vec<Line>,
        /// The member that summarized; `None` if sentences were extracted instead.
        by: Option<SeatName>,
    },
    /// Another member concludes.
    ChairReplaced {
        /// The replaced chair.
        from: SeatName,
        /// The new chair; `None` if the answer is composed from the messages.
        by: Option<SeatName>,
        /// The reason.
        why: String,
    },
    /// The user stopped it.
    Stopped,
    /// The time limit is near (first) or reached (second).
    BellRang {
        /// Whether it is reached.
        over: bool,
    },
    /// The deliberation is finished.
    Concluded(Box<Verdict>),
}

/// The meaning of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    /// The label.
    pub label: String,
    /// The author or candidate behind it.
    pub item: String,
}

/// A rating from 1 to 10.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rated {
    /// The author of the rated answer.
    pub seat: SeatName,
    /// The rating.
    pub rating: u8,
    /// Its weakness, in the reviewer's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weakness: String,
}

/// The groups of open answers with the same meaning, and the claims of the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grouping {
    /// The pass.
    pub pass: u32,
    /// The members that compared them.
    pub by: Vec<SeatName>,
    /// The candidates from here on.
    pub groups: Vec<Group>,
    /// The claims in the answers. They decide nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claimed>,
    /// Points that no answer covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The reason why answers stay separate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Grouping {
    /// Formats the groups in one line: `ann = cyd, bob`.
    pub fn words(&self) -> String {
        in_groups(self.groups.iter().map(|group| group.seats.as_slice()))
    }

    /// Formats the groups for users: `same answers: ann = cyd, bob`, or that no two answers are the same.
    pub fn told(&self) -> String {
        same_answers(self.groups.iter().map(|group| group.seats.as_slice()))
    }
}

/// Formats groups of authors in one line: `same answers: ann = cyd, bob`, or that no two answers are the same.
pub fn same_answers<'a>(groups: impl Iterator<Item = &'a [SeatName]> + Clone) -> String {
    if groups.clone().all(|seats| seats.len() < 2) {
        return "no two answers are the same".to_owned();
    }
    format!("same answers: {}", in_groups(groups))
}

fn in_groups<'a>(groups: impl Iterator<Item = &'a [SeatName]>) -> String {
    let words = groups.map(|seats| {
        let names: Vec<&str> = seats.iter().map(SeatName::as_str).collect();
        names.join(" = ")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Answers that mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Its name in the count.
    pub name: String,
    /// The authors.
    pub seats: Vec<SeatName>,
}

/// A claim, and who states or contradicts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The claim.
    pub claim: String,
    /// Members whose answers state it.
    pub says: Vec<SeatName>,
    /// Members whose answers contradict it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denies: Vec<SeatName>,
}

/// The source of a count of estimates, and of one of answers.
pub(super) const ESTIMATES: &str = "estimates";
pub(super) const ANSWERS: &str = "answers";

/// A count, in words and exact numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The pass.
    pub pass: u32,
    /// Depth of nested sub-councils.
    pub depth: u32,
    /// The rule.
    pub rule: String,
    /// The source of the votes: `answers`, `ballots`, `rankings`, `estimates`.
    pub source: String,
    /// The candidates' names.
    pub candidates: Vec<String>,
    /// The final score of each candidate, if the rule has one.
    pub scores: Vec<Option<String>>,
    /// All candidates that win or tie.
    pub winners: Vec<usize>,
    /// The winner after tie-breaking.
    pub winner: Option<usize>,
    /// The kind of result.
    pub form: Outcome,
    /// Number of members asked.
    pub electorate: u64,
    /// Number of countable ballots.
    pub voters: u64,
    /// Number of these that rank the winner, or the leader, first.
    pub backers: u64,
    /// Agreement, 0 to 1: `(backers + 1/2) / (voters + 1)`. Not a probability of being right.
    pub agreement: f64,
    /// Each voter's first choice.
    pub firsts: Vec<First>,
    /// Each round of the count in words.
    pub rounds: Vec<String>,
    /// Each step of breaking a tie in words.
    pub tie_path: Vec<String>,
    /// The members that did not count, and why.
    pub abstained: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The seed of the lot.
    pub seed: u64,
}

impl Counted {
    /// Returns whether estimates were counted: no vote decides between them.
    pub fn is_of_estimates(&self) -> bool {
        self.source == ESTIMATES
    }

    /// Returns whether answers were counted.
    pub fn is_of_answers(&self) -> bool {
        self.source == ANSWERS
    }

    /// Names the counted things and the rule: `ballots counted by irv`. No rule counts estimates.
    pub fn source_words(&self) -> String {
        match self.is_of_estimates() {
            true => self.source.clone(),
            false => format!("{} counted by {}", self.source, self.rule),
        }
    }

    /// Returns the title of a table of the votes, with the form of the result: `Vote by irv: majority`.
    pub fn title(&self) -> String {
        match self.is_of_estimates() {
            true => "Estimates".to_owned(),
            false => format!("Vote by {}: {}", self.rule, self.form.word()),
        }
    }

    /// Returns the number of ballots that put a candidate first, perhaps with others.
    pub fn backers_of(&self, candidate: usize) -> usize {
        let backs = |first: &&First| first.backs(candidate);
        self.firsts.iter().filter(backs).count()
    }

    /// Returns whether only one voter was asked, so that there was no vote.
    pub fn is_one_voice(&self) -> bool {
        self.electorate < 2
    }

    /// Returns whether the winner was drawn by lot: the vote itself decided nothing.
    pub fn is_drawn(&self) -> bool {
        let last = self.tie_path.last();
        self.winner.is_some() && last.is_some_and(|step| step.starts_with("lot:"))
    }

    /// Returns the 95 % interval of the share of voters that put the winner first, 0 to 1, as if the members were a
    /// sample of all that could be asked (Wilson 1927). `None` without voters, for estimates, of which about half are in the
    /// middle half in any case, and for several answers of one member. It is not a probability of being right.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let share = kd_eval::intervals::wilson(self.backers as f64, self.voters);
        let seats: BTreeSet<&SeatName> = self.firsts.iter().map(|first| &first.seat).collect();
        let is_sample =
            self.voters > 0 && !self.is_of_estimates() && seats.len() == self.firsts.len();
        is_sample.then_some((share.low, share.high))
    }

    /// Returns what its rule does, in a sentence; `None` if this version has no such rule.
    pub fn rule_doc(&self) -> Option<&'static str> {
        rule_doc(&self.rule)
    }
}

/// Returns what a counting rule does, in a sentence; `None` if this version has no rule of that name.
pub fn rule_doc(rule: &str) -> Option<&'static str> {
    kd_vote::find(rule).map(|rule| rule.doc)
}

/// A voter's first choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct First {
    /// The voter.
    pub seat: SeatName,
    /// The candidate; `None` for an abstention, or if there are several.
    pub candidate: Option<usize>,
    /// The candidates, if there are several: approvals, equal scores. Empty in records made before they counted as backing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tied: Vec<usize>,
    /// Its stated confidence.
    pub confidence: Option<f64>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl First {
    /// Returns the candidates that it puts first; none for an abstention.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        self.candidate.into_iter().chain(self.tied.iter().copied())
    }

    /// Returns whether it puts no candidate first: an abstention.
    pub fn is_silent(&self) -> bool {
        self.candidate.is_none() && self.tied.is_empty()
    }

    /// Returns whether it puts a candidate first, perhaps with others.
    pub fn backs(&self, candidate: usize) -> bool {
        self.all().any(|own| own == candidate)
    }

    /// Returns the names of the candidates that it puts first: `A`, `A = B`; `None` for an abstention.
    pub fn names(&self, candidates: &[String]) -> Option<String> {
        let names: Vec<&str> = self
            .all()
            .filter_map(|c| Some(candidates.get(c)?.as_str()))
            .collect();
        (!names.is_empty()).then(|| names.join(" = "))
    }
}
