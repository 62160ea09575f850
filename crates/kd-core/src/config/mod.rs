//! The settings, typed and checked. The store reads files and the environment.
//!
//! Input: a JSON value. Output: a [`Config`], or all [`Problem`]s at once. [`KEYS`] is the table of all keys.

mod agent;
mod beyond;
mod check;
mod deliberation;
mod docs;
pub mod forum;
mod init;
mod keys;
mod kingdom;
mod known;
mod path;
mod problem;
mod project;
mod provider;
mod schema;
mod seats;
mod settle;
mod shown;
mod text;

pub use agent::{AgentConfig, PhasePrompts, ToolUse};
pub use check::{check, check_links, check_shape};
pub use deliberation::{
    CouncilPlan, DeliberationConfig, IterationConfig, MemberPlan, MemoryConfig, MetaConfig,
    VotingPlan,
};
pub use docs::{docs_table, environment_table};
pub use init::{InitSeat, render_init};
pub use keys::{
    BACKENDS, FromProject, KEYS, KNOWN_AGENTS, Key, Kind, Limit, Reader, default_value,
    find as find_key, is_program, is_service, keeps_budget,
};
pub use kingdom::kingdom_problems;
pub use path::{BadKeyPath, KeyPath};
pub use problem::{Layer, Origin, Problem};
pub use project::{
    Circle, Remainder, Wanted, Why, effect, gated, hold_back, is_limit, is_refused, keep_limits,
    project_texts, refuse, unit_of, unseat, wanted,
};
pub use provider::{Price, ProviderConfig, Wire, own};
pub use schema::schema;
pub use text::{ENV_PREFIX, EnvName, env_name, env_path, nested, parse_text};

use crate::acting::Advice;
use crate::prices::{Prices, Tariff};
use crate::protocols::ProtocolKind;
use crate::roster::Member;
use crate::spending::{Ceiling, micro_usd};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// All settings, with defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The council.
    pub council: CouncilConfig,
    /// The agents, by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Phase prompts for every member.
    pub prompts: PhasePrompts,
    /// HTTP services, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The built-in model.
    pub local: LocalConfig,
    /// The forum.
    pub forum: ForumConfig,
    /// The user's marks of verdicts.
    pub marks: MarksConfig,
    /// The share of questions that tell whether a council pays.
    pub eval: EvalConfig,
    /// The chat screen.
    pub chat: ChatConfig,
    /// The two members of `kd think`.
    pub think: ThinkConfig,
    /// The planning of a council.
    pub deliberation: DeliberationConfig,
    /// The council as a model of other programs.
    pub serve: ServeConfig,
    /// Spending limits.
    pub limits: LimitsConfig,
    /// Backends of installed agent programs used for their vendor's models if there is no key for the vendor's service.
    /// Not a setting.
    #[serde(skip)]
    pub programs_for_models: BTreeSet<&'static str>,
    /// Whether other machines may ask: no agent program answers then. Not a setting.
    #[serde(skip)]
    pub serves_others: bool,
    /// Services that the environment names for agent programs, by variable: see [`crate::seating::service_of`]. Not a
    /// setting.
    #[serde(skip)]
    pub services: BTreeMap<String, String>,
    /// Model prices, overridden by `providers.<name>.prices`. Not a setting.
    #[serde(skip)]
    pub prices: Prices,
}

impl Config {
    /// Copies the fields that are not settings from a configuration of the same run.
    pub fn surroundings_of(&mut self, other: &Config) {
        self.programs_for_models
            .clone_from(&other.programs_for_models);
        self.services.clone_from(&other.services);
        self.prices.clone_from(&other.prices);
        self.serves_others = other.serves_others;
    }

    /// Returns the price of a member's model. `None` if unknown or free.
    pub fn tariff(&self, member: &Member) -> Option<Tariff> {
        let provider = self.providers.get(&member.backend);
        let usual = || provider.and_then(|provider| provider.model.as_ref());
        let model = member.model.as_ref().or_else(usual)?;
        self.prices.tariff(&member.backend, provider, model)
    }
}

/// `limits.*`: spending limits of one run of `kd`, and of all runs of a day. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsConfig {
    /// US dollars.
    pub usd: Option<f64>,
    /// US dollars of all runs of one day together.
    pub usd_per_day: Option<f64>,
    /// Requests to models.
    pub calls: Option<u64>,
    /// Tokens of prompts and answers.
    pub tokens: Option<u64>,
}

impl LimitsConfig {
    /// Converts to the limits of a spending account.
    pub fn ceiling(&self) -> Ceiling {
        Ceiling {
            calls: self.calls,
            tokens: self.tokens,
            micro_usd: self.usd.map(micro_usd),
        }
    }
}

/// `think.*`: a fast and a rigorous member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThinkConfig {
    /// The member that replies first; `None` means the first member of the council.
    pub fast: Option<String>,
    /// The member that checks; `None` means the second member of the council.
    pub rigorous: Option<String>,
    /// The member that answers if they disagree; `None` means the rigorous one.
    pub arbiter: Option<String>,
    /// Maximum messages between them.
    pub exchanges_max: u32,
    /// Minimum messages; `None` means 1 for the built-in model and 0 for others.
    pub exchanges_min: Option<u32>,
    /// Maximum tokens of all prompts and replies per question; `None` means no limit.
    pub tokens_max: Option<u64>,
    /// Seconds until the answer is requested; `None` means no limit.
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

/// `serve.*`: the council as a model, for programs that offer tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServeConfig {
    /// The member that acts with a program's tools; `None` means the first member that is asked over HTTP.
    pub acting: Option<String>,
    /// When the others advise it.
    pub advice: Advice,
    /// Models of the user's own, by name: `kd/<name>`.
    pub models: BTreeMap<String, ModelConfig>,
}

/// `serve.models.<name>.*`: a model of `kd serve`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelConfig {
    /// How the council answers.
    pub method: ModelMethod,
    /// The members; empty means as configured.
    pub members: Vec<String>,
    /// The preset of a deliberation; `None` means as configured.
    pub preset: Option<String>,
    /// The protocol of a deliberation; `None` means as configured.
    pub protocol: Option<String>,
}

/// `serve.models.<name>.method`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelMethod {
    /// All members answer, the chair concludes.
    #[default]
    Ask,
    /// A fast and a rigorous member answer together.
    Think,
    /// A deliberation.
    Deliberate,
}

/// `marks.*`: the user's marks of verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MarksConfig {
    /// Whether the verdicts whose marks would teach most are named once a week.
    pub hint: bool,
}

impl Default for MarksConfig {
    fn default() -> Self {
        Self { hint: true }
    }
}

/// `eval.*`: ordinary questions that are also asked of the best member alone, and of samples of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EvalConfig {
    /// The share of questions, 0 to 1.
    pub share: f64,
    /// Maximum US dollars for them in a day.
    pub max_usd: f64,
}

impl Default for EvalConfig {
    fn default() -> Self {
        Self {
            share: 0.0,
            max_usd: 0.5,
        }
    }
}

/// `chat.*`: colors, notifications, frames and keys of the chat screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatConfig {
    /// Its colors.
    pub theme: ChatTheme,
    /// The signal that the members are done.
    pub notify: ChatNotify,
    /// Where it is drawn.
    pub screen: ChatScreen,
    /// Whether an input that begins with `!` is a shell line.
    pub shell: bool,
    /// The frames of messages.
    pub frame: ChatFrame,
    /// The keys of actions, by the action's name.
    pub keys: BTreeMap<String, String>,
}

/// `chat.theme`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatTheme {
    /// Matches the terminal's background.
    #[default]
    Auto,
    /// Colors for a dark background.
    Dark,
    /// Colors for a light background.
    Light,
    /// Only the 16 colors of the terminal's palette.
    Terminal,
    /// No colors.
    Plain,
}

/// `chat.notify`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatNotify {
    /// An escape sequence if the terminal supports it, otherwise the terminal bell.
    #[default]
    Auto,
    /// An escape sequence.
    Osc,
    /// A notification of the desktop, by the system's own program.
    Native,
    /// The terminal bell.
    Bell,
    /// No notification.
    Off,
}

/// `chat.screen`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatScreen {
    /// On the alternate screen, except in Zellij.
    #[default]
    Auto,
    /// On the alternate screen.
    Always,
    /// In the terminal's scrollback, which has the messages after the end.
    Never,
}

/// `chat.frame`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatFrame {
    /// A box around every message.
    #[default]
    Box,
    /// A bar in the member's color at the left.
    Bar,
}

/// `forum.*`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForumConfig {
    /// A path or a PostgreSQL address; `None` means `.kd/forum.db`.
    pub store: Option<String>,
    /// Forums on other machines, by name.
    pub remotes: BTreeMap<String, RemoteConfig>,
    /// Additional MCP servers that agents may call during visits, by name.
    pub servers: BTreeMap<String, ServerConfig>,
    /// The initial rules, which motions can change.
    #[serde(flatten)]
    pub settings: forum::Settings,
}

/// `forum.remotes.<name>.*`: a forum on another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteConfig {
    /// The address of its MCP server.
    pub url: Option<String>,
    /// The variable with the token.
    pub key_env: Option<String>,
    /// The file with the token.
    pub key_file: Option<String>,
    /// The command that prints the token.
    pub key_command: Vec<String>,
}

/// `forum.servers.<name>.*`: an additional MCP server for agents of the forum. Nothing is allowed by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    /// A program and its arguments, using stdin and stdout.
    pub command: Vec<String>,
    /// An address, instead of a program.
    pub url: Option<String>,
    /// Names of additional environment variables passed to the program.
    pub env: Vec<String>,
    /// The variable with the token for the address.
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
    /// The members, in order; empty means all agents, or the built-in three if there are none.
    pub members: Vec<String>,
    /// The members of a code review; empty means the same.
    pub review_members: Vec<String>,
    /// Seconds per turn.
    pub timeout: u64,
    /// Sequential turns after the broadcast; `None` means one for each unmuted member.
    pub auto_messages: Option<u32>,
    /// The turn order.
    pub mode: ProtocolKind,
    /// The beginning of every prompt; `None` means the built-in text.
    pub preamble: Option<String>,
    /// Whether the chair concludes after `kd ask`.
    pub conclude: bool,
    /// The agent that chairs; `None` means the backend of the first member.
    pub chair: Option<String>,
    /// Whether agents may change files.
    pub writable: bool,
    /// Whether the system sandboxes agents without write permission.
    pub sandbox: bool,
    /// Whether only members that run on this machine may be asked.
    pub private: bool,
    /// Seconds until a member's first response; 0 means no separate limit.
    pub first_secs: u64,
    /// Seconds between two responses; 0 means no separate limit.
    pub idle_secs: u64,
    /// Seconds that an idle agent program is kept running; 0 starts one for each question.
    pub warm_secs: u64,
}

impl Default for CouncilConfig {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            review_members: Vec::new(),
            timeout: 600,
            auto_messages: None,
            mode: ProtocolKind::default(),
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

/// `local.*`: the built-in model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalConfig {
    /// A path to a GGUF file, or a key of `kd model list`; `None` means the default model.
    pub model: Option<String>,
    /// Threads; `None` means one per core, at most 8.
    pub threads: Option<usize>,
    /// Maximum tokens of prompt and answer together; `None` means the model's maximum.
    pub context: Option<usize>,
    /// Never download a model; report what is missing instead.
    pub offline: bool,
}
