//! The settings, typed and checked. Reading files and the environment is the store's business.
//!
//! In: a JSON value. Out: a [`Config`], or all [`Problem`]s at once. [`KEYS`] is the one table of all keys.

mod check;
mod deliberation;
mod docs;
mod init;
mod keys;
mod kingdom;
mod path;
mod problem;
mod project;
mod schema;
mod seats;
mod settle;
mod text;

pub use check::{check, check_links, check_shape};
pub use deliberation::{
    CouncilPlan, DeliberationConfig, IterationConfig, MemberPlan, MemoryConfig, MetaConfig,
    VotingPlan,
};
pub use docs::{docs_table, environment_table};
pub use init::{InitSeat, render_init};
pub use keys::{
    BACKENDS, KEYS, KNOWN_AGENTS, Key, Kind, Reader, default_value, find as find_key, is_program,
    keeps_budget,
};
pub use kingdom::kingdom_problems;
pub use path::{BadKeyPath, KeyPath};
pub use problem::{Layer, Origin, Problem, nearest};
pub use project::{
    Circle, FromProject, Limit, Remainder, Wanted, Why, effect, gated, hold_back, is_limit,
    keep_limits, project_texts, unit_of, unseat, wanted,
};
pub use schema::schema;
pub use text::{ENV_PREFIX, EnvName, env_name, env_path, nested, parse_text};

use crate::prices::{Prices, Tariff};
use crate::roster::Member;
use crate::spending::{Ceiling, micro_usd};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// All settings, every default filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// How the council works.
    pub council: CouncilConfig,
    /// The members that can be seated, by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Phase prompts for every member.
    pub prompts: PhasePrompts,
    /// HTTP services, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The built-in model.
    pub local: LocalConfig,
    /// The forum.
    pub forum: ForumConfig,
    /// The screen of `kd chat`.
    pub chat: ChatConfig,
    /// The two seats of `kd think`.
    pub think: ThinkConfig,
    /// How a council plans itself.
    pub deliberation: DeliberationConfig,
    /// What one run may spend.
    pub limits: LimitsConfig,
    /// Backends of installed agent programs that answer for their vendor's models, where the vendor's service has no key
    /// here. Not a setting.
    #[serde(skip)]
    pub programs_for_models: BTreeSet<&'static str>,
    /// What models cost where `providers.<name>.prices` does not say it. Not a setting.
    #[serde(skip)]
    pub prices: Prices,
}

impl Config {
    /// Takes over what is no setting, from a configuration of the same run.
    pub fn surroundings_of(&mut self, other: &Config) {
        self.programs_for_models
            .clone_from(&other.programs_for_models);
        self.prices.clone_from(&other.prices);
    }

    /// What the service of a member charges for its model. `None` where that is unknown, or nothing is charged.
    pub fn tariff(&self, member: &Member) -> Option<Tariff> {
        let provider = self.providers.get(&member.backend);
        let usual = || provider.and_then(|provider| provider.model.as_ref());
        let model = member.model.as_ref().or_else(usual)?;
        self.prices.tariff(&member.backend, provider, model)
    }
}

/// `limits.*`: what one run of `kd` may spend, and all runs of a day. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsConfig {
    /// US dollars.
    pub usd: Option<f64>,
    /// US dollars that all runs of one day may pay together.
    pub usd_per_day: Option<f64>,
    /// Requests to models.
    pub calls: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
}

impl LimitsConfig {
    /// As an account keeps them.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            calls: self.calls,
            tokens: self.tokens,
            micro_usd: self.usd.map(micro_usd),
        }
    }
}

/// `think.*`: a fast and a rigorous seat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThinkConfig {
    /// Who looks first; none means the first member of the council.
    pub fast: Option<String>,
    /// Who checks; none means the second member of the council.
    pub rigorous: Option<String>,
    /// Who answers when they do not agree; none means the rigorous seat.
    pub arbiter: Option<String>,
    /// The most messages between them.
    pub exchanges_max: u32,
    /// The fewest; none means 1 for the built-in model and 0 for others.
    pub exchanges_min: Option<u32>,
    /// The most tokens of all prompts and replies for one question; none means no limit.
    pub tokens_max: Option<u64>,
    /// Seconds until the answer is asked for; none means no limit.
    pub seconds_max: Option<u64>,
}

impl Default for ThinkConfig {
    fn default() -> Self {
        Self {
            fast: None,
            rigorous: None,
            arbiter: None,
            exchanges_max: 6,
            exchanges_min: None,
            tokens_max: None,
            seconds_max: None,
        }
    }
}

/// `chat.*`: how the screen of `kd chat` looks, and how it calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatConfig {
    /// Its colours.
    pub theme: ChatTheme,
    /// How it tells that the members are done.
    pub notify: ChatNotify,
}

/// `chat.theme`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatTheme {
    /// As the ground of the terminal is.
    #[default]
    Auto,
    /// For a dark ground.
    Dark,
    /// For a light ground.
    Light,
    /// Only the sixteen colours of the terminal's own palette.
    Terminal,
    /// No colours.
    Plain,
}

/// `chat.notify`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatNotify {
    /// By a sequence where the terminal is known to show it, else by the bell.
    #[default]
    Auto,
    /// By a sequence.
    Osc,
    /// By the bell.
    Bell,
    /// Not at all.
    Off,
}

/// `forum.*`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForumConfig {
    /// A path or a PostgreSQL address; none means `.kd/forum.db`.
    pub store: Option<String>,
    /// Forums on other machines, by name.
    pub remotes: BTreeMap<String, RemoteConfig>,
    /// Further MCP servers that agents may call on their visits, by name.
    pub servers: BTreeMap<String, ServerConfig>,
    /// The rules, before motions change them.
    #[serde(flatten)]
    pub settings: crate::forum::settings::Settings,
}

/// `forum.remotes.<name>.*`: a forum on another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteConfig {
    /// The address of its MCP server.
    pub url: Option<String>,
    /// The variable that holds the token.
    pub key_env: Option<String>,
    /// The file that holds the token.
    pub key_file: Option<String>,
    /// The command that prints the token.
    pub key_command: Vec<String>,
}

/// `forum.servers.<name>.*`: one more MCP server for agents of the forum. Nothing is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    /// A program and its arguments, spoken to on stdin and stdout.
    pub command: Vec<String>,
    /// An address, in place of a program.
    pub url: Option<String>,
    /// Names of further variables that the program may see.
    pub env: Vec<String>,
    /// The variable that holds the token for the address.
    pub key_env: Option<String>,
    /// The tools that may be called.
    pub tools: Vec<String>,
    /// The agents that may call them.
    pub agents: Vec<String>,
}

/// `council.*`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CouncilConfig {
    /// Who sits, in order; empty means all agents, or the built-in three when there are none.
    pub members: Vec<String>,
    /// Who sits when a change is reviewed; empty means the same.
    pub review_members: Vec<String>,
    /// Seconds for one member's turn.
    pub timeout: u64,
    /// Sequential turns after the broadcast; none means one for each unmuted member.
    pub auto_messages: Option<u32>,
    /// Who speaks when.
    pub mode: Mode,
    /// The first words of every prompt; none means the built-in text.
    pub preamble: Option<String>,
    /// Whether the chair concludes after `kd ask`.
    pub conclude: bool,
    /// The agent that chairs; none means the first member that answered lends its backend.
    pub chair: Option<String>,
    /// Whether agents may change files.
    pub writable: bool,
    /// Whether the system keeps agents that may not write from other files.
    pub sandbox: bool,
    /// Whether only members that answer on this machine may be asked.
    pub private: bool,
    /// Seconds to the first sign of life of a member; 0 means no limit of its own.
    pub first_secs: u64,
    /// Seconds between two signs of life; 0 means no limit of its own.
    pub idle_secs: u64,
    /// Seconds that a member's program is kept running without a question; 0 starts one for each.
    pub warm_secs: u64,
}

impl Default for CouncilConfig {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            review_members: Vec::new(),
            timeout: 600,
            auto_messages: None,
            mode: Mode::Broadcast,
            preamble: None,
            conclude: true,
            chair: None,
            writable: false,
            sandbox: true,
            private: false,
            first_secs: 120,
            idle_secs: 120,
            warm_secs: 300,
        }
    }
}

/// `council.mode`: who speaks when in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everybody at once, then bounded sequential turns.
    #[default]
    Broadcast,
    /// One by one from the start.
    Sequential,
    /// First message at once; later ones one by one in shuffled order.
    Natural,
    /// Only who is mentioned.
    Manual,
}

/// `prompts.*` and `agents.<name>.prompts.*`: words added in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhasePrompts {
    /// While the council talks.
    pub council: String,
    /// While designing.
    pub design: String,
    /// While reviewing a change.
    pub review: String,
    /// While working on a ticket (kingdom-cli).
    pub peasant: String,
}

/// `agents.<name>.*`: one member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentConfig {
    /// What answers: `local`, the name of a provider, `claude_code`, `codex`, `cursor`, …
    pub backend: String,
    /// The model.
    pub model: Option<String>,
    /// The part it plays, in a word or two.
    pub role: Option<String>,
    /// Its own prompt.
    pub prompt: String,
    /// Its own phase prompts; they take the place of the shared ones.
    pub prompts: PhasePrompts,
    /// The program and its arguments (`command`, `acp`), or in place of a known program.
    pub command: Vec<String>,
    /// What the program of `command` prints.
    pub dialect: Option<String>,
    /// Names of further variables that the program may see.
    pub env: Vec<String>,
    /// Further files and folders that its program may read and write in the sandbox.
    pub state: Vec<String>,
    /// Whether its program is kept running between questions.
    pub warm: Option<bool>,
    /// Whether it may change files, in place of `council.writable`.
    pub writable: Option<bool>,
    /// Further arguments for an agent program.
    pub extra_flags: Vec<String>,
    /// Reasoning effort, in the backend's words.
    pub effort: String,
    /// 0 to 2.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// 0 to 1 (built-in model and servers that know it).
    pub min_p: Option<f32>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// Fixes the chance, where the backend can.
    pub seed: Option<u64>,
    /// What its vote counts.
    pub weight: Option<f64>,
    /// How often it is right, where that was measured.
    pub reliability: Option<f64>,
    /// Seconds for its turn, in place of `council.timeout`.
    pub timeout: Option<u64>,
}

/// The wire that a provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and many more.
    #[default]
    OpenAi,
    /// Anthropic messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

/// `providers.<name>.*`: one HTTP service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderConfig {
    /// What it speaks.
    pub wire: Wire,
    /// Where it is; none means the service's own address.
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// A file outside the repository that holds the key.
    pub key_file: Option<String>,
    /// A command that prints the key.
    pub key_command: Vec<String>,
    /// The most requests a minute; none means no limit of ours.
    pub requests_per_minute: Option<u32>,
    /// The most attempts for one turn, the first included.
    pub attempts: Option<u32>,
    /// The model where a member names none.
    pub model: Option<String>,
    /// Whether the service is told what of a prompt to keep for the next one; none leaves it to the address.
    pub prompt_cache: Option<bool>,
    /// Prices in US dollars for a million tokens, by model name.
    pub prices: BTreeMap<String, Price>,
}

/// `providers.<name>.prices.<model>.*`, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    /// Of the prompt.
    pub input: f64,
    /// Of the answer.
    pub output: f64,
    /// Of cached prompt tokens; none means as `input`.
    pub cached: Option<f64>,
    /// Of prompt tokens that the service writes to its cache; none means a quarter more than `input`.
    pub cache_write: Option<f64>,
}

impl Price {
    /// The most that a token can cost.
    pub fn worst(&self) -> crate::spending::Price {
        let input = self.cached.map_or(self.input, |c| c.max(self.input));
        crate::spending::Price::per_million(input, self.output)
    }

    /// The same of a service that is told what of a prompt to keep, and charges for writing it.
    pub fn worst_written(&self) -> crate::spending::Price {
        let worst = self.worst();
        let written = crate::spending::Price::per_million(self.written(), self.output);
        crate::spending::Price {
            input: worst.input.max(written.input),
            ..worst
        }
    }

    /// Of prompt tokens that the service writes to its cache.
    pub fn written(&self) -> f64 {
        self.cache_write.unwrap_or(self.input * 1.25)
    }
}

/// `local.*`: the built-in model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalConfig {
    /// A path to a GGUF file, or a key of `kd model list`; none means the default model.
    pub model: Option<String>,
    /// Threads; none means one for each core, at most 8.
    pub threads: Option<usize>,
    /// The most tokens of prompt and answer together; none means what the model allows.
    pub context: Option<usize>,
    /// Never fetch a model; say what is missing instead.
    pub offline: bool,
}
