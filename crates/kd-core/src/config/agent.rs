//! `agents.*`: members, and the text that prompts add for them.

use serde::{Deserialize, Serialize};

/// `prompts.*` and `agents.<name>.prompts.*`: text added in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhasePrompts {
    /// The prompt for conversations of the council.
    pub council: String,
    /// The prompt for designing.
    pub design: String,
    /// The prompt for code reviews.
    pub review: String,
    /// The prompt for work on a ticket (kingdom-cli).
    pub peasant: String,
}

/// `agents.<name>.tools`: the tools of `kd` that a member at a service may call. Agent programs have tools of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolUse {
    /// None.
    #[default]
    None,
    /// Those that list, read and search files below the working folder.
    Read,
}

/// `agents.<name>.*`: one member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    /// The backend: `local`, the name of a provider, `claude_code`, `codex`, `cursor`, …
    pub backend: String,
    /// The model.
    pub model: Option<String>,
    /// Its role in a word or two.
    pub role: Option<String>,
    /// Its own prompt.
    pub prompt: String,
    /// Its own phase prompts, which replace the shared ones.
    pub prompts: PhasePrompts,
    /// The program and its arguments: required for `command` and `acp`, an override for known programs.
    pub command: Vec<String>,
    /// The output format of the program of `command`.
    pub dialect: Option<String>,
    /// Names of additional environment variables passed to the program.
    pub env: Vec<String>,
    /// Additional files and folders that its program may read and write in the sandbox.
    pub state: Vec<String>,
    /// Whether its program is kept running between questions.
    pub warm: Option<bool>,
    /// Whether it may change files; overrides `council.writable`.
    pub writable: Option<bool>,
    /// What it may do with tools of `kd`, if a service answers for it.
    pub tools: ToolUse,
    /// Additional arguments for an agent program.
    pub extra_flags: Vec<String>,
    /// Reasoning effort, in the backend's terms.
    pub effort: String,
    /// 0 to 2.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// 0 to 1 (built-in model and servers that support it).
    pub min_p: Option<f32>,
    /// Maximum tokens per answer.
    pub max_tokens: Option<u32>,
    /// Random seed, if the backend supports one.
    pub seed: Option<u64>,
    /// The weight of its vote.
    pub weight: Option<f64>,
    /// Measured accuracy, if known.
    pub reliability: Option<f64>,
    /// Seconds per turn; overrides `council.timeout`.
    pub timeout: Option<u64>,
}
