//! The table of all keys, from which checks, documentation, editor support and environment variables are derived.
//!
//! To add a key: add one row here, and the field of the same name in the typed [`Config`](super::Config).

use super::path::KeyPath;
use crate::deliberation;
use crate::protocols;

/// The type of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// Non-empty text.
    Words,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// True or false.
    Bool,
    /// A whole number in an inclusive range.
    Whole {
        /// Minimum.
        min: i64,
        /// Maximum.
        max: u64,
    },
    /// A number in an inclusive range.
    Number {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// A list of texts.
    Texts,
    /// The name of an agent.
    Agent,
    /// A list of distinct agent names.
    Agents,
    /// A list of members of a deliberation: objects with `model` and `role`.
    Seats,
    /// A backend: one of [`BACKENDS`] or a name under `providers`.
    Backend,
    /// An `http` or `https` address without a key in it.
    Url,
    /// The name of an environment variable.
    Variable,
    /// An absolute path, or one that starts with `~/`.
    File,
}

impl Kind {
    /// Returns the rest of the sentence "it must be …".
    pub fn words(&self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Words => "text that is not empty".into(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Bool => "true or false".into(),
            Self::Whole { min, max } if *max == u64::MAX => {
                format!("a whole number, {min} or more")
            }
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Texts => "a list of strings".into(),
            Self::Agent => "the name of an agent".into(),
            Self::Agents => "a list of names of agents".into(),
            Self::Seats => "a list of members, each with `model` and `role`".into(),
            Self::Backend => "the name of a backend or of a provider".into(),
            Self::Url => "an http or https address".into(),
            Self::Variable => "the name of an environment variable".into(),
            Self::File => "an absolute path, or one that starts with ~/".into(),
        }
    }
}

/// The program that uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// This program.
    Kd,
    /// Only kingdom-cli 1.1.0: accepted, but without effect here.
    KingdomCli,
    /// Only editors and readers of the file: the key has no effect on a command.
    Editor,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Its path; `<name>` and `<model>` are user-defined names.
    pub path: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The default value, as JSON; `null` if absence has a meaning, which [`Key::doc`] explains.
    pub default: &'static str,
    /// A one-sentence description.
    pub doc: &'static str,
    /// The program that uses it.
    pub reader: Reader,
    /// Whether kingdom-cli 1.1.0 knows it; it rejects files with unknown keys.
    pub kingdom: bool,
    /// An additional, shorter variable for it.
    pub short_env: Option<&'static str>,
    /// The rights that a project's files have over this setting. A new row defaults to [`FromProject::Trusted`].
    pub project: FromProject,
}

impl Key {
    /// Returns the parts of the path pattern.
    pub fn pattern(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('.')
    }

    /// Returns whether a path matches this key.
    pub fn matches(&self, segments: &[String]) -> bool {
        self.pattern().count() == segments.len() && self.leads(segments)
    }

    /// Returns whether this key is at the path or below it.
    pub(crate) fn leads(&self, segments: &[String]) -> bool {
        let mut pattern = self.pattern();
        segments.iter().all(|segment| {
            pattern
                .next()
                .is_some_and(|part| is_placeholder(part) || part == segment)
        })
    }

    /// Returns whether its absence has a meaning.
    pub fn is_optional(&self) -> bool {
        self.default == "null"
    }

    const fn also_kingdom(mut self) -> Self {
        self.kingdom = true;
        self
    }

    const fn only_kingdom(mut self) -> Self {
        self.kingdom = true;
        self.reader = Reader::KingdomCli;
        self
    }

    const fn only_editor(mut self) -> Self {
        self.reader = Reader::Editor;
        self
    }

    const fn short_env(mut self, name: &'static str) -> Self {
        self.short_env = Some(name);
        self
    }

    /// A project may set it without consent: no value costs money, or runs, sends or reveals anything.
    const fn free(mut self) -> Self {
        self.project = FromProject::Free;
        self
    }

    /// Text that is sent to models.
    const fn text(mut self) -> Self {
        self.project = FromProject::Text;
        self
    }

    /// A project may only make it stricter.
    const fn limit(mut self, limit: Limit) -> Self {
        self.project = FromProject::Limit(limit);
        self
    }

    /// No project may set it, not even one whose settings are allowed.
    const fn never(mut self) -> Self {
        self.project = FromProject::Never;
        self
    }

    /// Names members.
    const fn members(mut self) -> Self {
        self.project = FromProject::Members;
        self
    }
}

/// Backends that need no entry under `providers`: the built-in model, agent programs, services.
pub const BACKENDS: &[&str] = &[
    "local",
    "claude_code",
    "codex",
    "cursor",
    "gemini",
    "opencode",
    "acp",
    "openai",
    "anthropic",
    "gemini_api",
    "openrouter",
    "ollama",
    "command",
    "scripted",
];

/// Those [`BACKENDS`] that are not services: a provider cannot have their names.
pub(crate) const NOT_PROVIDERS: &[&str] = &[
    "local",
    "claude_code",
    "codex",
    "cursor",
    "gemini",
    "opencode",
    "acp",
    "command",
    "scripted",
];

/// Returns whether a backend is an agent program.
pub fn is_program(backend: &str) -> bool {
    NOT_PROVIDERS.contains(&backend) && !matches!(backend, "local" | "scripted")
}

/// Returns whether a backend is a service, or has a name that only a service can have.
pub fn is_service(backend: &str) -> bool {
    !NOT_PROVIDERS.contains(&backend)
}

/// Returns whether a backend is an agent program that enforces a money budget.
pub fn keeps_budget(backend: &str) -> bool {
    backend == "claude_code"
}

/// Members that need no definition under `agents`, and their backends.
pub const KNOWN_AGENTS: &[(&str, &str)] = &[
    ("claude", "claude_code"),
    ("codex", "codex"),
    ("cursor", "cursor"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
];

/// Former keys, and their messages.
pub(crate) const RETIRED: &[(&str, &str)] = &[
    ("council.auto_rounds", "council.auto_messages"),
    ("council.chat_auto_rounds", "council.auto_messages"),
    ("council.chat_mode", "council.mode"),
];

/// Maximum for all waiting times: a week, in seconds.
const WEEK: u64 = 604_800;
const TIMEOUT: Kind = Kind::Whole { min: 1, max: WEEK };
const WAIT: Kind = Kind::Whole { min: 0, max: WEEK };
const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PRICE: Kind = Kind::Number {
    min: 0.0,
    max: 1_000_000.0,
};
const SECS: Kind = Kind::Number {
    min: 0.0,
    max: 604_800.0,
};
const COUNT: Kind = Kind::Whole {
    min: 1,
    max: 1_000_000,
};

const fn key(path: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key {
        path,
        kind,
        default,
        doc,
        reader: Reader::Kd,
        kingdom: false,
        short_env: None,
        project: FromProject::Trusted,
    }
}

/// All keys, in the order of the manual.
#[rustfmt::skip] // one row, one line where it fits: it is a table
pub const KEYS: &[Key] = &[
    key("$schema", Kind::Text, "null", "The schema of this file, for editors (`kd config schema` prints it).").only_editor().free(),

    key("version", Kind::Whole { min: 1, max: u64::MAX }, "null", "The version of this file's format; unset means 1. A newer version is refused (docs/formats.md).").only_editor().free(),

    key("council.members", Kind::Agents, "[]", "The members, in this order; empty means all agents, or three built-in members if there are none.").also_kingdom().short_env("KD_MEMBERS").members(),
    key("council.timeout", TIMEOUT, "600", "Seconds for one member's turn.").also_kingdom().short_env("KD_TIMEOUT").limit(Limit::Default),
    key("council.auto_messages", Kind::Whole { min: -1, max: 1000 }, "null", "Turns that members take after the first answers; unset or -1 means one for each unmuted member.").limit(Limit::As(0.0)),
    key("council.mode", Kind::OneOf(protocols::NAMES), "\"broadcast\"", "Turn order: all at once and then in turn, one by one, at once and then in shuffled order, or only mentioned members.").short_env("KD_MODE"),
    key("council.preamble", Kind::Words, "null", "The start of every prompt; unset means the built-in text.").also_kingdom().text(),
    key("council.conclude", Kind::Bool, "true", "Whether the chair writes a conclusion after `kd ask`.").limit(Limit::Off),
    key("council.chair", Kind::Agent, "null", "The agent that chairs; unset means the first member, or the first one that answered if that one is muted or failed.").members(),
    key("council.writable", Kind::Bool, "false", "Whether agent programs may change files.").also_kingdom().limit(Limit::Off),
    key("council.sandbox", Kind::Bool, "true", "Whether agents that may not write run in the Linux sandbox, where available (docs/agents.md#sandbox).").limit(Limit::On),
    key("council.private", Kind::Bool, "false", "Whether only members that answer on this machine may be asked (docs/record.md#private-threads).").limit(Limit::On),
    key("council.first_secs", WAIT, "120", "Maximum seconds until a member's first output; 0 means no separate limit.").limit(Limit::ZeroIsNone),
    key("council.idle_secs", WAIT, "120", "Maximum seconds between two outputs of a member; 0 means no separate limit.").limit(Limit::ZeroIsNone),
    key("council.warm_secs", WAIT, "300", "Seconds that a member's program keeps running without a question; 0 starts one for each question.").limit(Limit::Default),
    key("council.review_members", Kind::Texts, "[]", "The members of `kd review` and `kd council review`; empty means those of `council.members`.").also_kingdom().members(),
    key("council.thinking_visibility", Kind::OneOf(&["auto", "show", "hide"]), "\"auto\"", "Whether thinking is shown.").only_kingdom().free(),
    key("council.ask.mode", Kind::OneOf(&["broadcast", "sequential"]), "\"broadcast\"", "Loaded but not used by kingdom-cli; kd uses `council.mode`.").only_kingdom().free(),
    key("council.ask.auto_messages", Kind::Whole { min: -1, max: 1_000_000 }, "-1", "Loaded but not used by kingdom-cli; kd uses `council.auto_messages`.").only_kingdom().free(),
    key("council.chat.mode", Kind::OneOf(&["natural", "round_robin", "manual", "broadcast"]), "\"natural\"", "Turn order in the chat of kingdom-cli; kd uses `council.mode`.").only_kingdom().free(),
    key("council.chat.auto_rounds", Kind::Whole { min: 0, max: 1_000_000 }, "1", "Rounds without the user in the chat of kingdom-cli; kd uses `council.auto_messages`.").only_kingdom().free(),

    key("deliberation.meta.planningMode", Kind::OneOf(&["static", "llm", "hybrid"]), "\"static\"", "How a deliberation is planned: by rules, by a model, or by rules with a model for complex questions."),
    key("deliberation.meta.complexity", Kind::OneOf(&["simple", "moderate", "complex", "expert"]), "null", "How hard the question is; unset lets the planner decide."),
    key("deliberation.meta.domain", Kind::Text, "null", "What the question is about; unset lets the planner decide.").text(),
    key("deliberation.meta.reasoning", Kind::Text, "null", "A note that explains the plan.").text(),
    key("deliberation.meta.planner", Kind::Agent, "null", "The agent that plans in the modes `llm` and `hybrid`; unset means the first member.").members(),
    key("deliberation.council.size", Kind::Whole { min: 3, max: 9 }, "null", "The number of members; unset means that of the preset.").limit(Limit::As(3.0)),
    key("deliberation.council.members", Kind::Seats, "null", "The exact members: model (an agent, or local), role, persona, systemPrompt, temperature, weight; unset means those of the preset.").members(),
    key("deliberation.council.voting.method", Kind::Words, "null", "The voting rule (`kd vote rules`); unset means that of the preset."),
    key("deliberation.council.voting.threshold", SHARE, "null", "The share of the votes that the winner needs; unset means the voting rule's own."),
    key("deliberation.iteration.enabled", Kind::Bool, "false", "Whether a council that does not agree makes another pass.").limit(Limit::Off),
    key("deliberation.iteration.maxIterations", Kind::Whole { min: 1, max: 5 }, "3", "Maximum passes, including the first.").limit(Limit::Default),
    key("deliberation.iteration.maxTokens", Kind::Whole { min: 1, max: 1_000_000_000 }, "100000", "Maximum tokens of a deliberation, prompts and answers of all passes together.").limit(Limit::Default),
    key("deliberation.iteration.maxDurationMs", Kind::Whole { min: 1, max: WEEK * 1000 }, "120000", "Maximum milliseconds of a deliberation with iteration.").limit(Limit::Default),
    key("deliberation.iteration.maxDepth", Kind::Whole { min: 0, max: 4 }, "2", "Maximum nesting of sub-councils.").limit(Limit::Default),
    key("deliberation.iteration.convergenceThreshold", SHARE, "0.85", "The council stops once its agreement reaches this; a heuristic.").limit(Limit::Default),
    key("deliberation.iteration.improvementThreshold", SHARE, "0.05", "The council stops when a pass adds less than this to its agreement; a heuristic.").limit(Limit::AtLeast),
    key("deliberation.iteration.strategy", Kind::OneOf(&["refine", "escalate", "specialize", "debate"]), "\"refine\"", "What the next pass does: the same members improve, more members join, sub-councils settle open issues, or members argue for the leading answers."),
    key("deliberation.memory.enabled", Kind::Bool, "true", "Whether a pass sees the memory of earlier passes.").limit(Limit::Off),
    key("deliberation.memory.compression", Kind::Bool, "true", "Whether a member summarizes a pass for the next; otherwise sentences are extracted.").limit(Limit::Off),
    key("deliberation.memory.maxContextTokens", Kind::Whole { min: 100, max: 1_000_000 }, "8000", "Maximum tokens of memory in a prompt.").limit(Limit::Default),
    key("deliberation.memory.longTerm", Kind::Bool, "false", "Whether questions and verdicts are stored across deliberations (`kd memory`).").limit(Limit::Off),
    key("deliberation.protocol", Kind::OneOf(deliberation::protocols::CHOICES), "\"council\"", "How the council proceeds; `auto` chooses by the task and the known reliability of the members."),
    key("deliberation.preset", Kind::OneOf(&["small", "standard", "reasoning", "diverse"]), "null", "The members and how they decide; unset lets the planner decide."),
    key("deliberation.answer", Kind::Words, "null", "How answers are compared: choice:a,b, yes-no, number, date, exact, json, set, ranking, code, judged or text; unset means by the form of the question, with open answers compared by meaning; `text` turns that comparison off."),
    key("deliberation.rounds", Kind::Whole { min: 1, max: 5 }, "2", "Maximum rounds of protocols with rounds.").limit(Limit::Default),
    key("deliberation.certainty", Kind::Number { min: 0.5, max: 1.0 }, "null", "The chance of being right at which `certain-enough` stops asking members; unset means that asking all would gain at most half a point."),
    key("deliberation.askBack", Kind::Bool, "false", "Whether a council whose members disagree, and whose verdict no promise covers, asks you the one question whose answer would decide.").limit(Limit::Off),
    key("deliberation.samples", Kind::Whole { min: 1, max: 40 }, "5", "The number of answers in `sample-vote`.").limit(Limit::Default),
    key("deliberation.maxCalls", Kind::Whole { min: 1, max: 10_000 }, "64", "Maximum model calls of a deliberation.").limit(Limit::Default),
    key("deliberation.maxUsd", Kind::Number { min: 0.0, max: 1_000_000.0 }, "null", "Maximum cost of a deliberation in US dollars; unset means no limit.").limit(Limit::NoLimit),
    key("deliberation.answerTokens", Kind::Whole { min: 16, max: 1_000_000 }, "null", "Maximum tokens per answer; unset means 192 for the built-in model and 2048 for others.").limit(Limit::As(192.0)),

    key("agents.<name>.backend", Kind::Backend, "\"\"", "The backend of this agent (required): a built-in backend or the name of a provider.").also_kingdom().members(),
    key("agents.<name>.model", Kind::Text, "null", "The model; unset means the backend's default.").also_kingdom(),
    key("agents.<name>.role", Kind::Text, "null", "Its role, in a word or two, shown next to its name.").text(),
    key("agents.<name>.prompt", Kind::Text, "\"\"", "Its own prompt: who it is and how it thinks.").also_kingdom().text(),
    key("agents.<name>.prompts.council", Kind::Text, "\"\"", "Its own prompt for councils, replaces `prompts.council`.").also_kingdom().text(),
    key("agents.<name>.prompts.design", Kind::Text, "\"\"", "Its own prompt for design, replaces `prompts.design`.").also_kingdom().text(),
    key("agents.<name>.prompts.review", Kind::Text, "\"\"", "Its own prompt for reviews, replaces `prompts.review`.").also_kingdom().text(),
    key("agents.<name>.prompts.peasant", Kind::Text, "\"\"", "Its own prompt for tickets, replaces `prompts.peasant`.").also_kingdom().text(),
    key("agents.<name>.command", Kind::Texts, "[]", "The program and its arguments: for the backends `command` and `acp`, or to replace a known program."),
    key("agents.<name>.dialect", Kind::OneOf(&["claude", "codex", "gemini", "opencode", "cursor", "acp", "text"]), "null", "The output format of the program in `command`."),
    key("agents.<name>.env", Kind::Texts, "[]", "Names of additional environment variables that the program may see."),
    key("agents.<name>.state", Kind::Texts, "[]", "Additional files and folders that its program may read and write in the sandbox: absolute, or starting with `~/` or `$NAME/` (docs/agents.md#sandbox)."),
    key("agents.<name>.warm", Kind::Bool, "null", "Whether its program keeps running between questions; unset means where that is known to work.").limit(Limit::Off),
    key("agents.<name>.writable", Kind::Bool, "null", "Whether it may change files, overrides `council.writable`.").limit(Limit::Off),
    key("agents.<name>.tools", Kind::OneOf(&["none", "read"]), "\"none\"", "Whether it may list, read and search files below the working folder, if a service answers for it; what it reads is sent to that service (docs/agents.md#members-at-a-service)."),
    key("agents.<name>.extra_flags", Kind::Texts, "[]", "Additional arguments for an agent program.").also_kingdom(),
    key("agents.<name>.effort", Kind::Text, "\"\"", "How hard it thinks, in the backend's terms, for example low, medium, high.").also_kingdom(),
    key("agents.<name>.temperature", Kind::Number { min: 0.0, max: 2.0 }, "null", "Sampling temperature: 0 always takes the most likely token; unset means the backend's default.").free(),
    key("agents.<name>.top_p", SHARE, "null", "Samples only from the most likely tokens that together reach this share; unset means the backend's default.").free(),
    key("agents.<name>.min_p", SHARE, "null", "Drops tokens less likely than this share of the most likely one (built-in model, and servers that support it).").free(),
    key("agents.<name>.max_tokens", Kind::Whole { min: 1, max: 10_000_000 }, "null", "Maximum tokens per answer; unset means the backend's own limit.").limit(Limit::As(192.0)),
    key("agents.<name>.seed", Kind::Whole { min: 0, max: u64::MAX }, "null", "Random seed, where the backend supports one.").free(),
    key("agents.<name>.weight", Kind::Number { min: 0.0, max: 1000.0 }, "null", "The weight of its vote; unset means 1."),
    key("agents.<name>.reliability", SHARE, "null", "How often it is right, if measured (`kd eval`): breaks ties, and weighs votes by `log-odds`."),
    key("agents.<name>.timeout", TIMEOUT, "null", "Seconds for its turn, overrides `council.timeout`.").limit(Limit::Like("council.timeout")),

    key("prompts.council", Kind::Text, "\"\"", "Prompt for every member in councils.").also_kingdom().text(),
    key("prompts.design", Kind::Text, "\"\"", "Prompt for every member in design.").also_kingdom().text(),
    key("prompts.review", Kind::Text, "\"\"", "Prompt for every member in reviews.").also_kingdom().text(),
    key("prompts.peasant", Kind::Text, "\"\"", "Prompt for every member at work on tickets.").also_kingdom().text(),

    key("providers.<name>.wire", Kind::OneOf(&["openai", "anthropic", "gemini"]), "\"openai\"", "The wire format of the service; most speak `openai`."),
    key("providers.<name>.base_url", Kind::Url, "null", "Address of the service, for example http://localhost:8000/v1; unset means the vendor's own address."),
    key("providers.<name>.key_env", Kind::Variable, "null", "The environment variable that holds the key."),
    key("providers.<name>.key_file", Kind::File, "null", "A file outside the repository that holds the key."),
    key("providers.<name>.key_command", Kind::Texts, "[]", "A command and its arguments that print the key."),
    key("providers.<name>.prompt_cache", Kind::Bool, "null", "Whether to ask the service to cache prompts (`cache_control`, `prompt_cache_key`); unset means yes for api.anthropic.com and api.openai.com, no for others."),
    key("providers.<name>.batches", Kind::Bool, "false", "Whether the service at `base_url` has the batch endpoints of its wire format, for `kd batch run --provider-batch`; openai, anthropic and gemini_api have them at their own addresses."),
    key("providers.<name>.batch_price", SHARE, "null", "The price of a request in a provider batch, as a part of the normal price: 0.5 is half; unset means half at the addresses of openai, anthropic and gemini_api, the normal price elsewhere."),
    key("providers.<name>.batch_pause", Kind::Number { min: 0.01, max: 3600.0 }, "null", "Seconds before the service is first asked whether a provider batch is over; later pauses grow by half, up to a minute; unset means 1."),
    key("providers.<name>.requests_per_minute", COUNT, "null", "Maximum requests per minute; unset means no limit.").limit(Limit::NoLimit),
    key("providers.<name>.attempts", Kind::Whole { min: 1, max: 20 }, "null", "Maximum attempts for one turn, including the first; unset means the built-in number.").limit(Limit::As(1.0)),
    key("providers.<name>.model", Kind::Words, "null", "The model for members that name none."),
    key("providers.<name>.prices.<model>.input", PRICE, "0.0", "US dollars per million prompt tokens."),
    key("providers.<name>.prices.<model>.output", PRICE, "0.0", "US dollars per million answer tokens."),
    key("providers.<name>.prices.<model>.cached", PRICE, "null", "US dollars per million prompt tokens that the service had cached; unset means the price of `input`."),
    key("providers.<name>.prices.<model>.cache_write", PRICE, "null", "US dollars per million prompt tokens that the service writes to its cache; unset means 1.25 times `input`."),

    key("local.model", Kind::Words, "null", "The built-in model: a path to a GGUF file or a key of `kd model list`; unset means the default one.").short_env("KD_MODEL"),
    key("local.threads", Kind::Whole { min: 1, max: 1024 }, "null", "Threads of the built-in model; unset means one per core, at most 8.").short_env("KD_THREADS").limit(Limit::As(1.0)),
    key("local.context", Kind::Whole { min: 64, max: 16_777_216 }, "null", "Maximum tokens of prompt and answer together; unset means the model's limit.").short_env("KD_CONTEXT").limit(Limit::NoLimit),
    key("local.offline", Kind::Bool, "false", "Never download a model; report what is missing instead.").short_env("KD_OFFLINE").limit(Limit::On),

    key("think.fast", Kind::Agent, "null", "The member that answers first in `kd think`; unset means the first member of the council.").members(),
    key("think.rigorous", Kind::Agent, "null", "The member that checks in `kd think`; unset means the second member of the council.").members(),
    key("think.arbiter", Kind::Agent, "null", "The member that answers when the two members of `kd think` do not agree; unset means the rigorous one.").members(),
    key("think.exchanges_max", Kind::Whole { min: 1, max: 100 }, "6", "Maximum messages between the two members of `kd think`.").limit(Limit::Default),
    key("think.exchanges_min", Kind::Whole { min: 0, max: 100 }, "null", "Minimum messages: earlier replies are checked by the other member; unset means 1 for the built-in model and 0 for others.").limit(Limit::As(0.0)),
    key("think.tokens_max", Kind::Whole { min: 256, max: 1_000_000_000 }, "null", "Maximum tokens of all prompts and replies for one question of `kd think`; unset means no limit.").limit(Limit::NoLimit),
    key("think.seconds_max", TIMEOUT, "null", "Seconds until `kd think` asks for the answer; unset means no limit.").limit(Limit::NoLimit),

    key("serve.acting", Kind::Agent, "null", "The member that calls the tools of programs that use `kd serve` as a model; unset means the first member asked over HTTP.").members(),
    key("serve.advice.first", Kind::Bool, "true", "Whether the other members advise it when the user says something.").limit(Limit::Off),
    key("serve.advice.failed", Kind::Bool, "true", "Whether they advise it after a call failed.").limit(Limit::Off),
    key("serve.advice.write", Kind::Bool, "false", "Whether they advise it before a call that writes.").limit(Limit::Off),
    key("serve.advice.always", Kind::Bool, "false", "Whether they advise it on every request.").limit(Limit::Off),
    key("serve.models.<name>.method", Kind::OneOf(&["ask", "think", "deliberate"]), "\"ask\"", "How the council answers requests for the model `kd/<name>` of `kd serve`."),
    key("serve.models.<name>.members", Kind::Agents, "[]", "The members that answer; empty means as configured. For `think`, the fast and the rigorous one.").members(),
    key("serve.models.<name>.preset", Kind::OneOf(&["small", "standard", "reasoning", "diverse"]), "null", "For `deliberate`: the members and how they decide; unset means `deliberation.preset`."),
    key("serve.models.<name>.protocol", Kind::OneOf(deliberation::protocols::CHOICES), "null", "For `deliberate`: how the council proceeds; unset means `deliberation.protocol`."),

    key("limits.usd", Kind::Number { min: 0.0, max: 1_000_000.0 }, "null", "Maximum US dollars that one run of kd may spend: a question, a chat, a server; unset means no limit.").limit(Limit::NoLimit),
    key("limits.usd_per_day", Kind::Number { min: 0.0, max: 1_000_000.0 }, "null", "Maximum US dollars that all runs of one day may spend, as `kd cost` counts them, without usage that logins of agent programs cover; unset means no limit.").limit(Limit::NoLimit),
    key("limits.calls", Kind::Whole { min: 1, max: 1_000_000_000 }, "null", "Maximum requests to models in one run, including retries; unset means no limit.").limit(Limit::NoLimit),
    key("limits.tokens", Kind::Whole { min: 1, max: 1_000_000_000_000 }, "null", "Maximum tokens of prompts and answers in one run; unset means no limit.").limit(Limit::NoLimit),

    key("marks.hint", Kind::Bool, "true", "Whether kd names, at most once in seven days and only on a terminal, the unmarked verdicts whose marks would teach most.").limit(Limit::Off),

    key("eval.share", Kind::Number { min: 0.0, max: 1.0 }, "0.0", "The share of the questions of `kd deliberate` that are also asked of the best member alone and of samples of it, after the verdict (docs/eval.md#a-share-of-your-questions). Counts from your own file; others can only lower it.").limit(Limit::Default),
    key("eval.maxUsd", Kind::Number { min: 0.0, max: 1_000_000.0 }, "0.5", "Maximum US dollars that `eval.share` may spend in a day (UTC), in all projects together. Counts from your own file; others can only lower it.").limit(Limit::Default),

    key("chat.theme", Kind::OneOf(&["auto", "dark", "light", "terminal", "plain"]), "\"auto\"", "Colors of the `kd chat` screen: from the terminal's background, for a dark or a light one, only its 16-color palette, or none.").short_env("KD_THEME").free(),
    key("chat.notify", Kind::OneOf(&["auto", "native", "osc", "bell", "off"]), "\"auto\"", "How the `kd chat` screen notifies you that members are done while its window has no focus. `native` asks the desktop (`notify-send`, `osascript`).").short_env("KD_NOTIFY").free(),

    key("chat.frame", Kind::OneOf(&["box", "bar"]), "\"box\"", "How messages are framed on the `kd chat` screen: a box, or only a bar at their left.").short_env("KD_FRAME").free(),
    key("chat.screen", Kind::OneOf(&["auto", "always", "never"]), "\"auto\"", "Whether the `kd chat` screen uses the terminal's alternate screen. With `never` the messages are in the scrollback after the end; `auto` means always, except in Zellij.").short_env("KD_SCREEN").free(),
    key("chat.shell", Kind::Bool, "false", "Whether an input of the `kd chat` screen that begins with `!` is a shell line: it is shown, runs after a `y`, and its output becomes a part of your draft. Only from your own file.").never(),
    key("chat.keys.<name>", Kind::Text, "\"\"", "The keys of an action of the `kd chat` screen, for example `\"search\": \"ctrl+r\"`; several with spaces between, none if empty. `/keys` in the chat lists the actions. Only from your own file.").never(),

    key("forum.store", Kind::Words, "null", "Where posts are stored: a path, or postgresql://user@host/name; unset means .kd/forum.db."),
    key("forum.remotes.<name>.url", Kind::Url, "null", "Address of the MCP server of a forum on another machine, for `kd forum visit <name>`: https, or http on this machine."),
    key("forum.remotes.<name>.key_env", Kind::Variable, "null", "The environment variable that holds your token there."),
    key("forum.remotes.<name>.key_file", Kind::File, "null", "A file outside the repository that holds your token there."),
    key("forum.remotes.<name>.key_command", Kind::Texts, "[]", "A command and its arguments that print your token there."),
    key("forum.servers.<name>.command", Kind::Texts, "[]", "One more MCP server for agents of the forum: a program and its arguments, started for each visit that may use it."),
    key("forum.servers.<name>.url", Kind::Url, "null", "The server's address, in place of a program: https, or http on this machine."),
    key("forum.servers.<name>.env", Kind::Texts, "[]", "Names of further variables that the program may see."),
    key("forum.servers.<name>.key_env", Kind::Variable, "null", "The environment variable that holds the token for the address."),
    key("forum.servers.<name>.tools", Kind::Texts, "[]", "The tools that may be called; empty means none."),
    key("forum.servers.<name>.agents", Kind::Texts, "[]", "The agents of the forum that may call them; empty means none."),
    key("forum.cycle_interval_secs", SECS, "300.0", "Seconds from the start of a cycle to the start of the next (also CYCLE_INTERVAL).").limit(Limit::AtLeast),
    key("forum.skip_probability", SHARE, "0.2", "The probability that an agent skips a cycle (also SKIP_PROBABILITY).").limit(Limit::AtLeast),
    key("forum.delay_secs_min", SECS, "30.0", "Minimum delay between two agents, in seconds (also MIN_DELAY).").limit(Limit::AtLeast),
    key("forum.delay_secs_max", SECS, "120.0", "Maximum delay between two agents, in seconds (also MAX_DELAY).").limit(Limit::AtLeast),
    key("forum.max_tool_calls", Kind::Whole { min: 1, max: 1000 }, "10", "Maximum tool calls per visit (also MAX_TOOL_CALLS).").limit(Limit::Default),
    key("forum.skips_max", Kind::Whole { min: 0, max: 1000 }, "3", "Maximum cycles in a row that an agent skips.").limit(Limit::AtLeast),
    key("forum.scheduler", Kind::OneOf(super::forum::SCHEDULER_NAMES), "\"shuffle\"", "How the order of agents in a cycle is drawn.").free(),
    key("forum.interval", Kind::OneOf(&["fixed", "adaptive"]), "\"fixed\"", "Whether the time between cycles follows the activity."),
    key("forum.voting_cycles", Kind::Whole { min: 1, max: 1000 }, "3", "Cycles during which a motion is open for votes."),
    key("forum.quorum", SHARE, "0.5", "The share of agents that must vote on a motion."),
    key("forum.rule", Kind::Words, "\"majority\"", "The voting rule that decides motions (`kd vote rules`)."),
    key("forum.unconfirmed", Kind::Text, "\"\"", "Kinds of motions that take effect without a person's confirmation, separated by commas: keep, set, scheduler, undo, text. A change that could raise the cost of the forum always waits for a person."),
    key("forum.guests", Kind::OneOf(&["post", "read"]), "\"post\"", "What callers without a registered name may do over MCP."),
    key("forum.posts_per_minute", Kind::Whole { min: 1, max: 100_000 }, "20", "Maximum posts, edits, motions and votes of an account per minute outside its visits; all guests together are one account.").limit(Limit::Default),
    key("forum.posts_per_day", Kind::Whole { min: 1, max: 10_000_000 }, "1000", "Maximum posts, edits, motions and votes of an account per day outside its visits; all guests together are one account.").limit(Limit::Default),

    key("peasant.agent", Kind::Text, "\"claude\"", "The agent that works on tickets.").only_kingdom().free(),
    key("peasant.max_iterations", COUNT, "50", "Maximum steps of a worker.").only_kingdom().free(),
    key("lord.agent", Kind::Text, "null", "The agent that watches the workers.").only_kingdom().free(),
    key("lord.max_cycles", COUNT, "200", "Maximum rounds of the watcher.").only_kingdom().free(),
];

/// Finds the row of a path.
pub fn find(path: &KeyPath) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.matches(path.segments()))
}

/// Returns the default value of a path; `None` if it is not a key.
pub fn default_value(path: &KeyPath) -> Option<serde_json::Value> {
    serde_json::from_str(find(path)?.default).ok()
}

/// Returns whether a part of a pattern stands for a user-defined name.
pub(crate) fn is_placeholder(part: &str) -> bool {
    part.starts_with('<')
}

/// The rights that a project's files have over a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FromProject {
    /// Effective as written: it cannot cost money, run, send, reveal or unlock anything.
    Free,
    /// Effective; the text reaches models, so `kd trust` lists it and `kd why` marks it.
    Text,
    /// Effective if at least as strict as the layers below.
    Limit(Limit),
    /// Effective if it names members of the built-in model or of the user's own council.
    Members,
    /// Effective only once the user has allowed it.
    Trusted,
    /// Never effective: only the user's own file, variables and flags set it.
    Never,
}

/// The order that tells which of two values is stricter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The lower number; unset means the key's default.
    Default,
    /// The lower number; unset means no limit.
    NoLimit,
    /// The lower number is stricter. An unset value counts as this number, since its meaning depends on the member.
    As(f64),
    /// The lower number, except that 0 means no limit.
    ZeroIsNone,
    /// The higher number, for delays and skip probabilities.
    AtLeast,
    /// `false`.
    Off,
    /// `true`.
    On,
    /// The lower number; unset means the value of another key.
    Like(&'static str),
}

impl FromProject {
    /// Returns the cell of the table in the manual.
    pub fn words(self) -> &'static str {
        match self {
            Self::Free => "yes",
            Self::Text => "yes; listed by `kd trust`",
            Self::Limit(Limit::AtLeast) => "raise only",
            Self::Limit(Limit::Off) => "turn off only",
            Self::Limit(Limit::On) => "turn on only",
            Self::Limit(_) => "lower only",
            Self::Members => "built-in model and members of your own council only",
            Self::Trusted => "once allowed",
            Self::Never => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        AgentConfig, Config, ModelConfig, Price, ProviderConfig, RemoteConfig, ServerConfig,
    };
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn full() -> Value {
        let mut provider = ProviderConfig::default();
        provider.prices.insert("m".into(), Price::default());
        let mut forum = super::super::ForumConfig::default();
        forum.remotes.insert("r".into(), RemoteConfig::default());
        forum.servers.insert("s".into(), ServerConfig::default());
        let mut serve = super::super::ServeConfig::default();
        serve.models.insert("m".into(), ModelConfig::default());
        let mut chat = super::super::ChatConfig::default();
        chat.keys.insert("k".into(), String::new());
        let config = Config {
            chat,
            forum,
            serve,
            agents: [("a".into(), AgentConfig::default())].into(),
            providers: [("p".into(), provider)].into(),
            ..Config::default()
        };
        serde_json::to_value(config).unwrap()
    }

    fn leaves(path: &KeyPath, value: &Value, out: &mut Vec<(KeyPath, Value)>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    leaves(&path.join(name), value, out);
                }
            }
            leaf => out.push((path.clone(), leaf.clone())),
        }
    }

    #[test]
    fn the_table_and_the_typed_configuration_are_the_same() {
        let mut fields = Vec::new();
        leaves(&KeyPath::default(), &full(), &mut fields);
        let mut seen = BTreeSet::new();
        for (path, value) in &fields {
            let key = find(path).unwrap_or_else(|| panic!("no row for {path}"));
            assert_eq!(default_value(path).as_ref(), Some(value), "{path}");
            assert_eq!(key.reader, Reader::Kd, "{path}");
            seen.insert(key.path);
        }
        for key in KEYS.iter().filter(|key| key.reader == Reader::Kd) {
            assert!(seen.contains(key.path), "{} has no typed field", key.path);
        }
    }

    #[test]
    fn rows_are_unique_sentences_with_defaults_that_parse() {
        let mut seen = BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.path), "{} twice", key.path);
            assert!(key.doc.ends_with('.'), "{}", key.path);
            assert!(
                serde_json::from_str::<Value>(key.default).is_ok(),
                "{}",
                key.path
            );
        }
    }
}
