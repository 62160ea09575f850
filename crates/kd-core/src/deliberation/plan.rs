//! The plan of a deliberation: all that is settled before anybody is asked. It is complete: with it and the replies
//! everything that followed can be decided anew.

use super::answer::AnswerKind;
use super::ledger::Price;
use crate::formats::{self, Newer};
use crate::ids::SeatName;
use crate::roles::{Duty, duties};
use crate::roster::Member;
use crate::spending::{Ceiling, Spent};
use serde::{Deserialize, Serialize};

/// Who sits, in which protocol, by which rule, within which limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the king asks.
    pub question: String,
    /// How the plan came about.
    pub meta: Meta,
    /// The name of a row of [`PROTOCOLS`](super::protocols::PROTOCOLS).
    pub protocol: String,
    /// Everybody who may be asked, in order.
    pub seats: Vec<Seat>,
    /// How answers are compared.
    pub answers: AnswerKind,
    /// How the council decides.
    pub voting: Voting,
    /// Rounds after the first in protocols that have rounds.
    pub rounds: u32,
    /// Answers of one seat in protocols that sample.
    pub samples: u32,
    /// How often the council begins anew, and when it stops.
    pub iteration: Iteration,
    /// What is carried from one pass to the next.
    pub memory: MemoryPlan,
    /// What may be used up in all.
    pub limits: Limits,
    /// What the council knows of the king and of earlier questions; empty unless he opted in.
    pub background: String,
    /// Fixes every chance: labels, orders, nonces, lots.
    pub seed: u64,
    /// Which rules read replies and compare answers ([`READING`] today). 0 in records made before there were versions;
    /// they are decided again by the rules of their time.
    #[serde(default, skip_serializing_if = "is_first")]
    pub reading: u32,
    /// What the form of the question suggests, where the first answers may tell another kind ([`settling`]). None where
    /// the user named the kind, and in records made before answers could.
    ///
    /// [`settling`]: super::settling
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guess: Option<AnswerKind>,
    /// Whether open answers that differ in words are compared by meaning before they are counted. False in records made
    /// before that was possible, and where each answer was asked to stand for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged: bool,
    /// Which rules reserve and book what is spent ([`SPENDING`] today). 0 in records made before turns told their repeats.
    #[serde(default, skip_serializing_if = "is_first")]
    pub spending: u32,
    /// Which rules write the conclusion ([`WRITING`] today). 0 in records made before there were versions.
    #[serde(default, skip_serializing_if = "is_first")]
    pub writing: u32,
}

/// The rules for replies that new plans use.
pub const READING: u32 = crate::formats::READING.version;
/// From these rules on a record holds what was read in replies.
pub(super) const NOTED: u32 = 2;
/// The rules for conclusions that new plans use.
pub const WRITING: u32 = crate::formats::WRITING.version;
/// The rules for spending that new plans use.
pub const SPENDING: u32 = crate::formats::SPENDING.version;

fn is_first(version: &u32) -> bool {
    *version == 0
}

/// How a plan came about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Who planned: rules, a model, or rules with a model for what is complex.
    pub planning_mode: PlanningMode,
    /// How hard the question seems.
    pub complexity: Complexity,
    /// What it is about.
    pub domain: String,
    /// What sort of task it is.
    pub task: Task,
    /// Why this plan.
    pub reasoning: String,
}

/// Who plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanningMode {
    /// Rules: fast, and the same every time.
    #[default]
    Static,
    /// A fast seat.
    Llm,
    /// Rules first; a seat where they call the question complex.
    Hybrid,
}

/// How hard a question seems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Complexity {
    /// A fact, a definition.
    Simple,
    /// Most questions.
    #[default]
    Moderate,
    /// Several sides.
    Complex,
    /// Several sides, and deep.
    Expert,
}

/// What sort of task a question is: it tells which protocol the measurements favour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// To be known: consensus gains a little.
    Knowledge,
    /// To be worked out: voting gains most.
    Reasoning,
    /// Open text: review and synthesis.
    #[default]
    Open,
    /// Something a machine can check: check first, then vote.
    Checkable,
    /// Steps that build on each other with tools: one member alone does better than any council.
    Sequential,
    /// A number to be estimated: rounds of estimates.
    Estimate,
}

/// How the council decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voting {
    /// The name of a row of [`RULES`](crate::voting::RULES).
    pub method: String,
    /// The share of the votes that the winner needs; none means what the rule itself asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// A member with its part in the deliberation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seat {
    /// Who answers, and how.
    pub member: Member,
    /// The agent that lends it its backend and model; `local` for the built-in model.
    pub agent: String,
    /// The name of its role.
    pub role: String,
    /// What it calls itself, where that was chosen: "Deep Reasoner".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// What its words cost; none where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How often it is right, 0 to 1, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<f64>,
}

impl Seat {
    /// Its handle.
    pub fn name(&self) -> &SeatName {
        &self.member.name
    }

    /// Whether its role has this duty.
    pub fn has(&self, duty: Duty) -> bool {
        duties(&self.role).contains(&duty)
    }
}

/// How often the council begins anew. The names and defaults are those of the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Off by default.
    pub enabled: bool,
    /// The most passes, the first included.
    pub max_iterations: u32,
    /// How deep sub-councils may nest.
    pub max_depth: u32,
    /// Stops once the agreement reaches this.
    pub convergence_threshold: f64,
    /// Stops when a pass adds less than this to the agreement.
    pub improvement_threshold: f64,
    /// What the next pass does differently.
    pub strategy: Strategy,
}

/// What the next pass does differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The same seats improve on what there is.
    #[default]
    Refine,
    /// More seats join.
    Escalate,
    /// A sub-council for each open issue.
    Specialize,
    /// The two leading answers are argued for and against.
    Debate,
}

/// What is carried from one pass to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Whether anything is.
    pub enabled: bool,
    /// Whether a seat sums it up; else, and where it fails, sentences are taken out of what was said.
    pub compression: bool,
    /// The most tokens of it in a prompt.
    pub max_context_tokens: u32,
}

/// What may be used up in all. None means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Calls of models.
    pub calls: Option<u64>,
    /// Tokens, of prompts and answers together.
    pub tokens: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub micro_usd: Option<u64>,
    /// Time, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The most tokens of one answer.
    pub answer_tokens: u32,
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
    /// The seed's hundred thousand tokens; sixty-four calls, more than any protocol here makes in a pass.
    fn default() -> Self {
        Self {
            calls: Some(64),
            tokens: Some(100_000),
            micro_usd: None,
            duration_ms: None,
            answer_tokens: 1024,
        }
    }
}

impl Limits {
    /// As an account keeps them.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            calls: self.calls,
            tokens: self.tokens,
            micro_usd: self.micro_usd,
        }
    }

    /// Takes what was spent before the deliberation from them.
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
    /// Whether its rules are known here.
    ///
    /// # Errors
    /// If a newer kd made it: decided by other rules, it would only seem to be decided again.
    pub fn check(&self) -> Result<(), Newer> {
        formats::READING.check(Some(self.reading.into()))?;
        formats::SPENDING.check(Some(self.spending.into()))?;
        formats::WRITING.check(Some(self.writing.into()))
    }

    /// The places of all seats whose role has a duty.
    pub fn with(&self, duty: Duty) -> Vec<usize> {
        (0..self.seats.len())
            .filter(|s| self.seats[*s].has(duty))
            .collect()
    }

    /// The place of a seat.
    pub fn place(&self, name: &SeatName) -> Option<usize> {
        self.seats.iter().position(|s| s.name() == name)
    }

    /// Everybody but services and those in reserve.
    pub fn at_the_table(&self) -> Vec<usize> {
        let works = |s: &usize| {
            [Duty::Opine, Duty::Review, Duty::Vote]
                .iter()
                .any(|d| self.seats[*s].has(*d))
        };
        (0..self.seats.len()).filter(works).collect()
    }

    /// Who concludes: the first seat whose role does, else the first that answers.
    pub fn chair(&self) -> Option<usize> {
        self.with(Duty::Conclude)
            .first()
            .or(self.with(Duty::Opine).first())
            .copied()
    }
}
