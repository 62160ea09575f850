//! `deliberation.*`: the planning of a council.

use crate::deliberation::plan::{Complexity, PlanningMode, Strategy};
use crate::spending::{Ceiling, micro_usd};
use serde::{Deserialize, Serialize};

/// `deliberation.*`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeliberationConfig {
    /// Settings of the planner.
    pub meta: MetaConfig,
    /// Members and voting.
    pub council: CouncilPlan,
    /// Iteration.
    pub iteration: IterationConfig,
    /// Memory.
    pub memory: MemoryConfig,
    /// The protocol.
    pub protocol: String,
    /// The preset; `None` leaves it to the rules.
    pub preset: Option<String>,
    /// The kind of answer that is expected; `None` derives it from the form of the question.
    pub answer: Option<String>,
    /// Rounds after the first in protocols with rounds.
    pub rounds: u32,
    /// Answers per member in `sample-vote`.
    pub samples: u32,
    /// The chance of being right at which `certain-enough` stops asking; `None`: as high as it needs to be to lose at
    /// most half a point of right answers.
    pub certainty: Option<f64>,
    /// Whether a council whose members disagree asks the user one question.
    pub ask_back: bool,
    /// Maximum calls.
    pub max_calls: u64,
    /// Maximum money, in US dollars.
    pub max_usd: Option<f64>,
    /// Maximum tokens per answer.
    pub answer_tokens: Option<u32>,
}

impl DeliberationConfig {
    /// Returns the spending limit of a deliberation, including its planning.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            calls: Some(self.max_calls),
            tokens: Some(self.iteration.max_tokens),
            micro_usd: self.max_usd.map(micro_usd),
        }
    }
}

/// `deliberation.meta.*`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MetaConfig {
    /// The planning mode.
    pub planning_mode: PlanningMode,
    /// Difficulty of the question; `None` leaves it to the planner.
    pub complexity: Option<Complexity>,
    /// Subject area; `None` leaves it to the planner.
    pub domain: Option<String>,
    /// A note by the author of the plan.
    pub reasoning: Option<String>,
    /// The agent that plans in the modes `llm` and `hybrid`; `None` means the first member.
    pub planner: Option<String>,
}

/// `deliberation.council.*`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CouncilPlan {
    /// Number of members; `None` means as many as the preset has.
    pub size: Option<u32>,
    /// Exactly these members.
    pub members: Option<Vec<MemberPlan>>,
    /// The voting settings.
    pub voting: VotingPlan,
}

/// `deliberation.council.voting.*`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VotingPlan {
    /// The rule; `None` means the preset's.
    pub method: Option<String>,
    /// The share needed to win.
    pub threshold: Option<f64>,
}

/// One of `deliberation.council.members`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberPlan {
    /// The name of an agent, or `local`.
    pub model: String,
    /// The role.
    pub role: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Its own prompt, replacing the role's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// `deliberation.iteration.*`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IterationConfig {
    /// Off by default.
    pub enabled: bool,
    /// Maximum passes.
    pub max_iterations: u32,
    /// Maximum total tokens.
    pub max_tokens: u64,
    /// Maximum total milliseconds, if iteration is on.
    pub max_duration_ms: u64,
    /// Maximum depth of nested sub-councils.
    pub max_depth: u32,
    /// Stops at this agreement.
    pub convergence_threshold: f64,
    /// Stops if agreement rises by less than this.
    pub improvement_threshold: f64,
    /// The strategy of the next pass.
    pub strategy: Strategy,
}

/// `deliberation.memory.*`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryConfig {
    /// Whether passes know the results of earlier ones.
    pub enabled: bool,
    /// Whether a member summarizes.
    pub compression: bool,
    /// Maximum tokens of memory in a prompt.
    pub max_context_tokens: u32,
    /// Whether anything is kept across questions.
    pub long_term: bool,
}

impl Default for DeliberationConfig {
    fn default() -> Self {
        Self {
            meta: MetaConfig::default(),
            council: CouncilPlan::default(),
            iteration: IterationConfig::default(),
            memory: MemoryConfig::default(),
            protocol: "council".into(),
            preset: None,
            answer: None,
            rounds: 2,
            samples: 5,
            certainty: None,
            ask_back: false,
            max_calls: 64,
            max_usd: None,
            answer_tokens: None,
        }
    }
}

impl Default for IterationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            max_iterations: 3,
            max_tokens: 100_000,
            max_duration_ms: 120_000,
            max_depth: 2,
            convergence_threshold: 0.85,
            improvement_threshold: 0.05,
            strategy: Strategy::Refine,
        }
    }
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            compression: true,
            max_context_tokens: 8000,
            long_term: false,
        }
    }
}
