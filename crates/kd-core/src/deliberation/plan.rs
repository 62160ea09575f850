//! The plan of a deliberation: everything settled before the first request. With the plan and the replies, every later
//! decision can be repeated.

use super::answer::AnswerKind;
use super::ledger::Price;
use crate::formats::{self, Newer};
use crate::ids::SeatName;
use crate::roles::{Duty, duties};
use crate::roster::Member;
use crate::spending::{Ceiling, Spent};
use kd_eval::enough::Enough;
use serde::{Deserialize, Serialize};

/// A note on a plan with one pass, for a question that may need more.
pub const ITERATE: &str = "the rules suggest another pass if the members do not agree: --iterate";

/// Members, protocol, voting rule and limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The user's question.
    pub question: String,
    /// The origin of the plan.
    pub meta: Meta,
    /// The name of a row of [`PROTOCOLS`](super::protocols::PROTOCOLS).
    pub protocol: String,
    /// All members that may be asked, in order.
    pub seats: Vec<Seat>,
    /// The kind of answer, which decides how answers are compared.
    pub answers: AnswerKind,
    /// The voting rule and its parameters.
    pub voting: Voting,
    /// Rounds after the first in protocols that have rounds.
    pub rounds: u32,
    /// Answers per member in protocols that sample.
    pub samples: u32,
    /// The number of passes and the conditions that stop them.
    pub iteration: Iteration,
    /// The memory between passes.
    pub memory: MemoryPlan,
    /// Limits on total usage.
    pub limits: Limits,
    /// Background on the user and on earlier questions; empty unless the user opted in.
    pub background: String,
    /// Seed for all randomness: labels, orders, nonces, lots.
    pub seed: u64,
    /// Version of the rules that read replies and compare answers (currently [`READING`]). 0 in records made before
    /// versioning; they are decided again by their original rules.
    #[serde(default, skip_serializing_if = "is_first")]
    pub reading: u32,
    /// The kind suggested by the form of the question; the first answers may show another kind ([`settling`]). `None`
    /// if the user named the kind, and in records made before this existed.
    ///
    /// [`settling`]: super::settling
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<AnswerKind>,
    /// Whether open answers with different wording are compared by meaning before the count. `false` in records made
    /// before this existed, and if each answer was requested to count separately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// The order in which members are asked, and the condition for stopping, in protocols that learn these. `None` in
    /// other protocols, and in plans written by hand: members are then asked in plan order until the result can no
    /// longer change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<Enough>,
    /// Whether the weights of votes were fitted on marked answers of all members together. If so, a member's silence
    /// already counts as a wrong answer, and any number of votes decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
    /// When the council asks the user a question. `None` if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_back: Option<AskBack>,
    /// Version of the rules that reserve and book spending (currently [`SPENDING`]). 0 in records made before turns
    /// reported retries.
    #[serde(default, skip_serializing_if = "is_first")]
    pub spending: u32,
    /// Version of the rules that write the conclusion (currently [`WRITING`]). 0 in records made before versioning.
    #[serde(default, skip_serializing_if = "is_first")]
    pub writing: u32,
    /// The JSON schema into which the answer is put too, once it is decided. `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
}

/// When a council asks back: its members disagree, and no promise covers the verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AskBack {
    /// The weight of each member's vote in the score of a verdict, in the order of the members; 1 if it is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
    /// The lowest score that a promise covers; `None` without a promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
}

/// The version of the rules for reading replies in new plans.
pub const READING: u32 = crate::formats::READING.version;
/// The first version whose records contain the readings of replies.
pub(super) const NOTED: u32 = 2;
/// The first version by which a trimmed mean decides, and reviews and defects are read like ballots.
pub(super) const LENIENT: u32 = 3;
/// The first version by which private parts of replies are left out, and names have stand-ins in prompts.
pub(super) const PRIVATE: u32 = 3;
/// The first version that knows all tags of thinking and keeps unclosed ones as text, and that hides short names and names
/// beside scripts without spaces.
pub(super) const TAGGED: u32 = 4;
/// The first version by which a ballot backs every candidate that it puts first, and two thirds are no super-majority.
pub(super) const SHARED: u32 = 5;
/// The first version of spending by which a request waits until a running one has left room for it.
pub(super) const WAITS: u32 = 3;
/// The version of the rules for writing conclusions in new plans.
pub const WRITING: u32 = crate::formats::WRITING.version;
/// The first version whose conclusions state the decision between open answers, and whose labels are replaced.
pub(super) const STATED: u32 = 3;
/// The first version whose headings name the counted things, and which records the members that were not needed.
pub(super) const VOICED: u32 = 4;
/// The first version by which a chair's text that is a bare number, or a copy of the members' form, is not a conclusion.
pub(super) const MEANT: u32 = 4;
/// The first version whose conclusions tell a chair that differs from a lot from one that differs from a count.
pub(super) const DRAWN: u32 = 5;
/// The version of the rules by which new plans reserve and book spending.
pub const SPENDING: u32 = crate::formats::SPENDING.version;

fn is_first(version: &u32) -> bool {
    *version == 0
}

/// The origin of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The planner: rules, a model, or rules with a model for complex questions.
    pub planning_mode: PlanningMode,
    /// Estimated difficulty of the question.
    pub complexity: Complexity,
    /// Subject area.
    pub domain: String,
    /// Type of task.
    pub task: Task,
    /// Reason for this plan.
    pub reasoning: String,
}

/// The planner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanningMode {
    /// Rules: fast and deterministic.
    #[default]
    Static,
    /// A fast member.
    Llm,
    /// Rules first; a member for questions that they call complex.
    Hybrid,
}

/// Estimated difficulty of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Complexity {
    /// A fact, a definition.
    Simple,
    /// Most questions.
    #[default]
    Moderate,
    /// Several aspects.
    Complex,
    /// Several aspects, in depth.
    Expert,
}

/// The type of task, which tells which protocol performs best in measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Knowledge: consensus gains a little.
    Knowledge,
    /// Reasoning: voting gains most.
    Reasoning,
    /// Open text: review and synthesis.
    #[default]
    Open,
    /// Machine-checkable: check first, then vote.
    Checkable,
    /// Dependent steps with tools: a single member does better than any council.
    Sequential,
    /// A number to be estimated: rounds of estimates.
    Estimate,
}

/// The voting rule of a plan and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voting {
    /// The name of a row of [`RULES`](kd_vote::RULES).
    pub method: String,
    /// The share of votes needed to win; `None` means the default of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// A member and its part in the deliberation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seat {
    /// The member and its settings.
    pub member: Member,
    /// The agent that provides backend and model; `local` for the built-in model.
    pub agent: String,
    /// The name of the role.
    pub role: String,
    /// Its display name, if one was chosen: "Deep Reasoner".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Whether it has no vote although its role votes, because its agent votes in another seat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_vote: bool,
    /// The price; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Measured accuracy, 0 to 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<f64>,
}

impl Seat {
    /// Returns its name.
    pub fn name(&self) -> &SeatName {
        &self.member.name
    }

    /// Returns whether its role has this duty. A seat without a vote does not have the duty to vote.
    pub fn has(&self, duty: Duty) -> bool {
        let votes = duty != Duty::Vote || !self.no_vote;
        votes && duties(&self.role).contains(&duty)
    }
}

/// Iteration settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Off by default.
    pub enabled: bool,
    /// Maximum passes, including the first.
    pub max_iterations: u32,
    /// Maximum depth of nested sub-councils.
    pub max_depth: u32,
    /// Stops once agreement reaches this.
    pub convergence_threshold: f64,
    /// Stops when a pass raises agreement by less than this.
    pub improvement_threshold: f64,
    /// The strategy of the next pass.
    pub strategy: Strategy,
}

/// A way in which the next pass differs from the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The same members improve the existing answers.
    #[default]
    Refine,
    /// More members join.
    Escalate,
    /// A sub-council for each open issue.
    Specialize,
    /// Members argue for and against the two leading answers.
    Debate,
}

/// Settings of the memory between passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Whether anything is carried over.
    pub enabled: bool,
    /// Whether a member summarizes; otherwise, or if that fails, sentences are extracted.
    pub compression: bool,
    /// Maximum tokens of memory in a prompt.
    pub max_context_tokens: u32,
}

/// Limits on total usage. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Model calls.
    pub calls: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
    /// Time, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Maximum tokens per answer.
    pub answer_tokens: u32,
    /// Maximum bytes of one answer in the prompts of other members, if a limit is low. `None` means the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_bytes: Option<u32>,
}

impl Default for Iteration {
    fn default() -> Self {
        Self {
            enabled: false,
            max_iterations: 3,
            max_depth: 2,
            convergence_threshold: 0.85,
            improvement_threshold: 0.05,
            strategy: Strategy::Refine,
        }
    }
}

impl Default for MemoryPlan {
    fn default() -> Self {
        Self {
            enabled: true,
            compression: true,
            max_context_tokens: 8000,
        }
    }
}

impl Default for Limits {
    /// 100,000 tokens and 64 calls, which is more than any protocol needs for one pass.
    fn default() -> Self {
        Self {
            calls: Some(64),
            tokens: Some(100_000),
            micro_usd: None,
            duration_ms: None,
            answer_tokens: 1024,
            peer_bytes: None,
        }
    }
}

impl Limits {
    /// Converts to the limits of a spending account.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            calls: self.calls,
            tokens: self.tokens,
            micro_usd: self.micro_usd,
        }
    }

    /// Subtracts the usage before the deliberation.
    pub fn take(&mut self, spent: Spent) {
        let micro = spent.pico_usd.div_ceil(1_000_000);
        for (limit, spent) in [
            (&mut self.calls, spent.calls),
            (&mut self.tokens, spent.tokens),
            (&mut self.micro_usd, micro),
        ] {
            *limit = limit.map(|most| most.saturating_sub(spent));
        }
    }
}

impl Plan {
    /// Checks that this version knows the rules of the plan.
    ///
    /// # Errors
    /// If a newer kd made the plan: other rules would give a wrong replay.
    pub fn check(&self) -> Result<(), Newer> {
        formats::READING.check(Some(self.reading.into()))?;
        formats::SPENDING.check(Some(self.spending.into()))?;
        formats::WRITING.check(Some(self.writing.into()))
    }

    /// Returns the indexes of all members whose role has a duty.
    pub fn with(&self, duty: Duty) -> Vec<usize> {
        (0..self.seats.len())
            .filter(|s| self.seats[*s].has(duty))
            .collect()
    }

    /// Returns the index of a member.
    pub fn place(&self, name: &SeatName) -> Option<usize> {
        self.seats.iter().position(|s| s.name() == name)
    }

    /// Returns all members except services and reserves.
    pub fn at_the_table(&self) -> Vec<usize> {
        let works = |s: &usize| {
            [Duty::Opine, Duty::Review, Duty::Vote]
                .iter()
                .any(|d| self.seats[*s].has(*d))
        };
        (0..self.seats.len()).filter(works).collect()
    }

    /// Returns the chair: the first member whose role concludes, otherwise the first that answers.
    pub fn chair(&self) -> Option<usize> {
        self.with(Duty::Conclude)
            .first()
            .or(self.with(Duty::Opine).first())
            .copied()
    }
}

/// The number of members in each part of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberCounts {
    /// Members that give opinions.
    pub opining: u64,
    /// Members that review.
    pub reviewing: u64,
    /// Ballots asked for; a judge is asked for two.
    pub voting: u64,
    /// Ballots asked for if answers are not ballots; zero if they are.
    pub open_voting: u64,
    /// Members that attack one answer: all except its owner.
    pub attacking: u64,
    /// 1 if an arbiter can break a tie.
    pub arbiter: u64,
    /// Readings that compare answers by meaning.
    pub judge: u64,
    /// Rounds after the first, in protocols that have rounds.
    pub rounds: u64,
    /// Answers per member, in protocols that sample.
    pub samples: u64,
}
