//! The table of agent programs: their names, how to start them, and the variables they get.
//!
//! Every row says how to make the program read-only; flags were checked against the real programs by asking each to
//! write a file (Cursor's flags and opencode's inline configuration are taken from their documentation).

use super::persistent::{ACP, CLAUDE, CODEX, Link};
use crate::checkout;
use crate::env::Env;
use crate::transport::process::Gentle;
use kd_core::request::ToolServer;
use serde_json::json;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::OnceLock;

/// Variables passed to every program.
pub(super) const SHARED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Variables passed only to programs that may write: SSH agent keys are for pushing, not for reading.
pub(super) const SHARED_TO_WRITE: &[&str] = &["SSH_AUTH_SOCK"];

/// Variables set for every program: no colors, no telemetry.
pub(super) const TOLD: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DO_NOT_TRACK", "1"),
];

/// Variables passed to a program; docs/agents.md says why.
pub(super) struct Seen {
    /// Passed only if this variable is set: it selects the service that needs them.
    pub(super) with: Option<&'static str>,
    pub(super) names: &'static [&'static str],
}

/// Variables that are always passed.
const fn seen(names: &'static [&'static str]) -> Seen {
    Seen { with: None, names }
}

/// Variables that are passed if another one is set.
const fn seen_with(with: &'static str, names: &'static [&'static str]) -> Seen {
    Seen {
        with: Some(with),
        names,
    }
}

/// A kind of agent program.
pub struct Program {
    /// The name of the backend.
    pub backend: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// Names of the executable; the first that is found is used.
    pub names: &'static [&'static str],
    /// The command that installs it.
    pub install: &'static str,
    /// The command that logs in.
    pub login: &'static str,
    /// The oldest version that supports the flags used; `None` if no version is known that does not.
    pub least: Option<&'static str>,
    /// The oldest version with which the real program was tested (docs/agents.md); `None` if it was not.
    pub tested: Option<&'static str>,
    /// The flag that limits the cost of one question, in US dollars.
    pub(crate) budget: Option<&'static str>,
    /// Its output format, a name of [`crate::dialects::DIALECTS`].
    pub dialect: &'static str,
    /// A variable that may contain the program's path.
    pub(super) path_variable: Option<&'static str>,
    /// Variables that make the program pay with a key instead of its login if one of them is set. `None` if the program
    /// has no login, or if its configuration decides.
    pub(crate) keys: Option<&'static [&'static str]>,
    /// Variables passed through from our environment.
    pub(super) sees: &'static [Seen],
    /// Files and folders of a project from which it runs code at startup, with no flag to prevent it.
    pub(super) runs: &'static [&'static str],
    /// Its own state, the only files it may write in the sandbox: `~/` is the home directory, `$NAME/` a variable. A
    /// folder, which ends in `/`, is created if it is missing.
    pub(super) own: &'static [&'static str],
    /// Whether the program runs its commands in its own sandbox, which mounts file systems; Landlock forbids that.
    pub(super) own_sandbox: bool,
    /// Variables with which it is started.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The signal that ends it gracefully, with its tools if possible.
    pub(super) gentle: Gentle,
    /// Whether the prompt must be its last argument.
    pub(super) prompt_as_argument: bool,
    pub(super) arguments: fn(&Call<'_>) -> Vec<OsString>,
    /// The way to keep it running between questions; `None` if that is not possible.
    pub(super) kept: Option<Kept>,
    /// Variables that depend on the call.
    pub(super) variables: fn(&Call<'_>) -> Vec<(String, String)>,
}

/// The form of a program that answers several questions.
pub(super) struct Kept {
    pub(super) link: &'static Link,
    pub(super) arguments: fn(&Call<'_>) -> Vec<OsString>,
    /// Whether this is the default: it was tested with the real program.
    pub(super) unasked: bool,
    /// The oldest version that was kept running in the tests.
    pub(super) least: Option<&'static str>,
    /// The mode of its ACP sessions for read-only turns, in which the real program was observed to change nothing.
    pub(super) mode: Option<&'static str>,
}

/// The circumstances of a call, on which arguments and variables depend.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) effort: Option<&'a str>,
    pub(super) folder: &'a Path,
    pub(super) writable: bool,
    /// Whether the user trusts the folder. If not, the program asks on its own.
    pub(super) trusted: bool,
    /// A tool server to use.
    pub(super) server: Option<&'a ToolServer>,
    /// The paths that its commands may read, for a program with its own sandbox; `None` allows all.
    pub(super) reads: Option<&'a [String]>,
}

impl Call<'_> {
    /// Returns whether the agent visits a forum: it uses the server's tools, and nothing else.
    fn visits(&self) -> bool {
        self.server.is_some() && !self.writable
    }
}

/// Every program that `kd` can start.
pub const PROGRAMS: &[Program] = &[
    Program {
        backend: "claude_code",
        title: "Claude Code",
        names: &["claude"],
        install: "`npm install -g @anthropic-ai/claude-code`, then `claude` once to log in",
        login: "`claude`, then `/login`",
        least: Some("2.0.65"),
        tested: Some("2.1.330"),
        budget: Some("--max-budget-usd"),
        dialect: "claude",
        path_variable: None,
        keys: Some(&[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ]),
        sees: &[
            seen(&[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "CLAUDE_CODE_OAUTH_TOKEN",
            ]),
            seen(&["ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS"]),
            seen(&[
                "ANTHROPIC_MODEL",
                "ANTHROPIC_SMALL_FAST_MODEL",
                "ANTHROPIC_DEFAULT_OPUS_MODEL",
                "ANTHROPIC_DEFAULT_SONNET_MODEL",
                "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            ]),
            seen(&[
                "CLAUDE_CONFIG_DIR",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLAUDE_CODE_MAX_RETRIES",
                "API_TIMEOUT_MS",
                "IS_SANDBOX",
            ]),
            seen_with(
                "CLAUDE_CODE_USE_BEDROCK",
                &[
                    "AWS_REGION",
                    "AWS_PROFILE",
                    "AWS_ACCESS_KEY_ID",
                    "AWS_SECRET_ACCESS_KEY",
                    "AWS_SESSION_TOKEN",
                    "AWS_BEARER_TOKEN_BEDROCK",
                ],
            ),
            seen_with(
                "CLAUDE_CODE_USE_VERTEX",
                &[
                    "ANTHROPIC_VERTEX_PROJECT_ID",
                    "CLOUD_ML_REGION",
                    "GOOGLE_APPLICATION_CREDENTIALS",
                ],
            ),
        ],
        runs: &[],
        own: &[
            "$CLAUDE_CONFIG_DIR",
            "~/.claude/",
            "~/.claude.json",
            "~/.claude.json.backup",
            "$XDG_CACHE_HOME/claude",
            "$XDG_CACHE_HOME/claude-cli-nodejs/",
            "$XDG_DATA_HOME/claude",
            "$XDG_STATE_HOME/claude",
        ],
        own_sandbox: false,
        given: &[
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
            // The marks in our prompts ask for five minutes, and the service rejects one hour after five minutes.
            ("FORCE_PROMPT_CACHING_5M", "1"),
        ],
        gentle: Gentle::Interrupt,
        prompt_as_argument: false,
        arguments: claude,
        kept: Some(Kept {
            link: &CLAUDE,
            arguments: claude_kept,
            unasked: true,
            least: Some("2.0.65"),
            mode: None,
        }),
        variables: |_| Vec::new(),
    },
    Program {
        backend: "codex",
        title: "Codex",
        names: &["codex"],
        install: "`npm install -g @openai/codex`, then `codex login`",
        login: "`codex login`",
        least: None,
        tested: Some("0.120.0"),
        budget: None,
        dialect: "codex",
        path_variable: Some("CODEX_CLI_PATH"),
        keys: Some(&["CODEX_API_KEY"]),
        sees: &[
            seen(&[
                "CODEX_API_KEY",
                "OPENAI_API_KEY",
                "AZURE_OPENAI_API_KEY",
                "OPENROUTER_API_KEY",
            ]),
            seen(&["OPENAI_BASE_URL"]),
            seen(&["CODEX_HOME"]),
        ],
        runs: &[],
        own: &["$CODEX_HOME", "~/.codex/"],
        own_sandbox: true,
        given: &[],
        gentle: Gentle::Interrupt,
        prompt_as_argument: false,
        arguments: codex,
        kept: Some(Kept {
            link: &CODEX,
            arguments: codex_kept,
            unasked: true,
            least: Some("0.80.0"),
            mode: None,
        }),
        variables: |_| Vec::new(),
    },
    Program {
        backend: "gemini",
        title: "Gemini CLI",
        names: &["gemini"],
        install: "`npm install -g @google/gemini-cli`, then `gemini` once to log in",
        login: "`gemini`, then `/auth`",
        least: None,
        tested: Some("0.61.0"),
        budget: None,
        dialect: "gemini",
        path_variable: None,
        keys: Some(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        sees: &[
            seen(&["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
            seen(&["GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"]),
            seen(&["GEMINI_MODEL"]),
            seen(&[
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_GENAI_USE_GCA",
                "GEMINI_CLI_TRUST_WORKSPACE",
            ]),
            seen_with(
                "GOOGLE_GENAI_USE_VERTEXAI",
                &["GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"],
            ),
        ],
        runs: &[],
        own: &["~/.gemini/"],
        own_sandbox: false,
        // Without this variable it restarts itself as a child, which does not get our signals.
        given: &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        gentle: Gentle::Terminate,
        prompt_as_argument: false,
        arguments: gemini,
        kept: Some(Kept {
            link: &ACP,
            arguments: gemini_kept,
            unasked: true,
            least: None,
            // Each tool that writes asks first and is rejected; `plan` may write plans.
            mode: Some("default"),
        }),
        variables: gemini_trust,
    },
    Program {
        backend: "opencode",
        title: "opencode",
        names: &["opencode"],
        install: "`npm install -g opencode-ai`, then `opencode auth login`",
        login: "`opencode auth login`",
        least: None,
        tested: Some("1.18.33"),
        budget: None,
        dialect: "opencode",
        path_variable: None,
        keys: None,
        sees: &[
            seen(&[
                "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY",
                "OPENROUTER_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_GENERATIVE_AI_API_KEY",
                "GROQ_API_KEY",
                "MISTRAL_API_KEY",
                "DEEPSEEK_API_KEY",
                "XAI_API_KEY",
            ]),
            seen(&["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"]),
        ],
        runs: &[".opencode", "opencode.json", "opencode.jsonc"],
        own: &[
            "$OPENCODE_CONFIG",
            "$OPENCODE_CONFIG_DIR",
            "$XDG_CONFIG_HOME/opencode/",
            "$XDG_DATA_HOME/opencode/",
            "$XDG_STATE_HOME/opencode/",
            "$XDG_CACHE_HOME/opencode/",
        ],
        own_sandbox: false,
        given: &[
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ],
        gentle: Gentle::Terminate,
        prompt_as_argument: false,
        arguments: opencode,
        kept: Some(Kept {
            link: &ACP,
            arguments: acp_word,
            unasked: true,
            least: None,
            // Its permissions deny every tool that writes; its `plan` mode does not block the shell.
            mode: Some("build"),
        }),
        variables: opencode_permissions,
    },
    Program {
        backend: "cursor",
        title: "Cursor",
        names: &["agent", "cursor-agent"],
        install: "`curl https://cursor.com/install -fsS | bash`, then `agent login`",
        login: "`agent login`",
        least: None,
        tested: None,
        budget: None,
        dialect: "cursor",
        path_variable: None,
        keys: Some(&[]),
        sees: &[seen(&["CURSOR_API_KEY"])],
        runs: &[],
        own: &[
            "~/.cursor/",
            "$XDG_CONFIG_HOME/cursor/",
            "$XDG_DATA_HOME/cursor-agent/",
            "$XDG_CACHE_HOME/cursor-agent/",
        ],
        own_sandbox: false,
        given: &[],
        gentle: Gentle::Terminate,
        // Its documentation shows no other way.
        prompt_as_argument: true,
        arguments: cursor,
        kept: Some(Kept {
            link: &ACP,
            arguments: acp_word,
            unasked: false,
            least: None,
            mode: None,
        }),
        variables: |_| Vec::new(),
    },
];

/// Backends whose program is set in the configuration.
pub const CONFIGURED: [&str; 2] = ["acp", "command"];

/// Programs set in the configuration (`acp`, `command`) whose state folder is known, by name. It is the folder of a
/// row of [`PROGRAMS`], or their own.
pub(super) const OTHERS: &[(&str, State)] = &[
    ("codex-acp", State::Of("codex")),
    ("claude-agent-acp", State::Of("claude_code")),
    ("claude-code-acp", State::Of("claude_code")),
    ("qwen", State::Own(&["~/.qwen/"])),
];

/// The place where a program stores its state.
pub(super) enum State {
    /// The state folders of the known program of this backend.
    Of(&'static str),
    /// In these places, as in [`Program::own`].
    Own(&'static [&'static str]),
}

/// Returns the program of a backend.
pub fn program(backend: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.backend == backend)
}

impl Program {
    /// Describes how the program is paid for if not by its login: by a variable that is set, or by its own key.
    pub fn bills(&self, env: &Env) -> Option<String> {
        match self.keys {
            None => Some(format!("a key of {}", self.title)),
            Some(keys) => {
                let set = keys.iter().find(|name| env.on(name));
                set.map(|name| (*name).to_owned())
            }
        }
    }

    /// Returns the names of all variables to pass through, given which are set.
    pub(super) fn sees(&self, is_on: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let there = |seen: &&Seen| seen.with.is_none_or(&is_on);
        let seen = self.sees.iter().filter(there);
        seen.flat_map(|seen| seen.names).copied().collect()
    }
}

/// Returns whether this backend is an agent program, from the table or from the configuration. Only such a member can
/// use tools on files.
pub fn is_agent(backend: &str) -> bool {
    CONFIGURED.contains(&backend) || program(backend).is_some()
}

/// `--tools` hides all other tools from the model; plan mode is not enough (it asks a model to judge).
fn claude(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
    ]);
    args.extend(words(&["--strict-mcp-config", "--setting-sources", "user"]));
    let mut allowed: Vec<String> = Vec::new();
    if let Some(server) = call.server {
        let name = server.name.as_str();
        let config =
            json!({"mcpServers": {name: {"command": server.program, "args": server.args}}});
        args.extend(words(&["--mcp-config", &config.to_string()]));
        let tools = server.tools.iter();
        allowed.extend(tools.map(|tool| format!("mcp__{name}__{tool}")));
    }
    if call.writable {
        args.extend(words(&["--permission-mode", "acceptEdits"]));
        allowed.push("Bash,Edit,Write,NotebookEdit,Read,Grep,Glob".to_owned());
    } else {
        // `--tools` names built-in tools: a visit has none of them.
        let own = if call.visits() { "" } else { "Read,Grep,Glob" };
        args.extend(words(&["--permission-mode", "dontAsk", "--tools", own]));
    }
    if !allowed.is_empty() {
        args.extend(words(&["--allowedTools", &allowed.join(",")]));
    }
    option(&mut args, "--model", call.model);
    option(&mut args, "--effort", call.effort);
    args
}

fn claude_kept(call: &Call<'_>) -> Vec<OsString> {
    let mut args = claude(call);
    args.extend(words(&["--input-format", "stream-json"]));
    args
}

fn codex(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["exec", "--json"]);
    args.extend(match (call.writable, call.reads) {
        (true, _) => words(&["-s", "workspace-write"]),
        (false, None) => words(&["-s", "read-only"]),
        (false, Some(reads)) => codex_reads(reads),
    });
    args.extend(codex_trust(call));
    if call.visits() {
        args.extend(
            CODEX_NO_TOOLS
                .iter()
                .flat_map(|setting| words(&["-c", setting])),
        );
    }
    args.extend(words(&[
        "--skip-git-repo-check",
        "-c",
        "analytics.enabled=false",
        "-C",
    ]));
    args.push(call.folder.as_os_str().to_owned());
    option(&mut args, "-m", call.model);
    if let Some(effort) = call.effort {
        args.extend(words(&["-c", &format!("model_reasoning_effort={effort}")]));
    }
    if let Some(server) = call.server {
        // Values are TOML; strings and lists of strings look the same in JSON.
        let key = format!("mcp_servers.{}", server.name);
        let (program, own) = (json!(server.program), json!(server.args));
        args.extend(words(&["-c", &format!("{key}.command={program}")]));
        args.extend(words(&["-c", &format!("{key}.args={own}")]));
        // Nobody is there to answer.
        args.extend(words(&[
            "-c",
            &format!("{key}.default_tools_approval_mode=\"approve\""),
        ]));
    }
    args
}

/// Settings that disable Codex's own tools: shell, patches, images, web, plans, goals and other agents. Older versions
/// know some of them by another name, and ignore unknown ones.
const CODEX_NO_TOOLS: [&str; 13] = [
    "features.shell_tool=false",
    "features.unified_exec=false",
    "features.apply_patch_freeform=false",
    "features.view_image=false",
    "features.image_generation=false",
    "features.goals=false",
    "features.sleep_tool=false",
    "features.multi_agent=false",
    "include_apply_patch_tool=false",
    "include_plan_tool=false",
    "tools.view_image=false",
    "tools.web_search=false",
    "web_search=\"disabled\"",
];

/// Folder and model are set for each thread; so is the sandbox, unless it is set here.
fn codex_kept(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["-c", "analytics.enabled=false"]);
    args.extend(codex_trust(call));
    args.extend(call.reads.map(codex_reads).into_iter().flatten());
    args.extend(words(&["app-server"]));
    args
}

/// Tells Codex whether the user trusts the folder, for this run only. If unset, Codex records the folder as trusted in
/// its own settings at the first turn that may write, and from then on runs what `.codex` there names.
fn codex_trust(call: &Call<'_>) -> Vec<OsString> {
    let level = if call.trusted { "trusted" } else { "untrusted" };
    let real = call.folder.canonicalize().ok();
    let top = checkout::top(call.folder).map(Path::to_path_buf);
    let mut folders = vec![call.folder.to_path_buf()];
    folders.extend(real.iter().cloned().chain(top));
    folders.extend(
        real.as_deref()
            .and_then(checkout::top)
            .map(Path::to_path_buf),
    );
    folders.sort();
    folders.dedup();
    let rows: Vec<String> = folders
        .iter()
        .map(|folder| {
            format!(
                "{}={{trust_level=\"{level}\"}}",
                json!(folder.to_string_lossy())
            )
        })
        .collect();
    words(&["-c", &format!("projects={{{}}}", rows.join(","))])
}

/// The first version of Codex known to obey [`codex_reads`].
pub(crate) const CODEX_READS_SINCE: &str = "0.120";

/// Tells Codex that its commands may read these paths and the system, write nothing, and use no network. A version that
/// knows no such profile uses the mode beside it, which allows reading everything. The flag `-s`, or the thread's
/// parameter, would override the profile.
fn codex_reads(reads: &[String]) -> Vec<OsString> {
    let paths = std::iter::once(":minimal").chain(reads.iter().map(String::as_str));
    let paths: Vec<String> = paths
        .map(|path| format!("{}=\"read\"", json!(path)))
        .collect();
    let (profile, paths) = (codex_profile(), paths.join(","));
    let settings = [
        "sandbox_mode=\"read-only\"".to_owned(),
        format!("permissions.{profile}.filesystem={{{paths}}}"),
        format!("default_permissions=\"{profile}\""),
    ];
    let flags = settings
        .into_iter()
        .flat_map(|setting| ["-c".to_owned(), setting]);
    flags.map(OsString::from).collect()
}

/// Returns a profile name that no settings of the user or the project use: Codex would merge theirs into it.
fn codex_profile() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("kd-{:016x}", RandomState::new().build_hasher().finish()))
}

/// In headless mode, the shell and the writing tools are not registered by default.
fn gemini(call: &Call<'_>) -> Vec<OsString> {
    let mode = if call.writable { "yolo" } else { "default" };
    let mut args = words(&["-o", "stream-json", "--approval-mode", mode]);
    option(&mut args, "-m", call.model);
    args
}

/// Every tool that writes asks for permission first.
fn gemini_kept(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["--acp", "--approval-mode", "default"]);
    option(&mut args, "-m", call.model);
    args
}

/// Gemini CLI asks at its first start in a folder whether it is trusted, and does not run there before.
fn gemini_trust(call: &Call<'_>) -> Vec<(String, String)> {
    let trust = ("GEMINI_CLI_TRUST_WORKSPACE".to_owned(), "true".to_owned());
    call.trusted.then_some(trust).into_iter().collect()
}

/// The model is set for each session.
fn acp_word(_: &Call<'_>) -> Vec<OsString> {
    words(&["acp"])
}

fn opencode(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["run", "--format", "json", "--thinking"]);
    option(&mut args, "-m", call.model);
    args
}

/// By default opencode runs shells and writes without asking, and so does its plan agent. Inline configuration
/// overrides the project's own.
fn opencode_permissions(call: &Call<'_>) -> Vec<(String, String)> {
    let word = if call.writable { "allow" } else { "deny" };
    let config =
        serde_json::json!({ "permission": { "edit": word, "bash": word, "webfetch": word } });
    vec![("OPENCODE_CONFIG_CONTENT".into(), config.to_string())]
}

fn cursor(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&[
        "-p",
        "--output-format",
        "stream-json",
        "--stream-partial-output",
    ]);
    if call.trusted {
        args.extend(words(&["--trust"]));
    }
    args.extend(words(if call.writable {
        &["--force"]
    } else {
        &["--mode", "ask"]
    }));
    option(&mut args, "--model", call.model);
    args
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn option(args: &mut Vec<OsString>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        args.extend(words(&[name, value]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_another_service_are_seen_only_where_it_is_selected() {
        let claude = program("claude_code").unwrap();
        for (switch, name) in [
            ("CLAUDE_CODE_USE_BEDROCK", "AWS_SECRET_ACCESS_KEY"),
            ("CLAUDE_CODE_USE_VERTEX", "GOOGLE_APPLICATION_CREDENTIALS"),
        ] {
            assert!(!claude.sees(|_| false).contains(&name), "{name}");
            assert!(claude.sees(|on| on == switch).contains(&name), "{name}");
        }
        for program in PROGRAMS {
            let switches = program.sees.iter().filter_map(|seen| seen.with);
            let always = program.sees(|_| false);
            for switch in switches {
                assert!(always.contains(&switch), "{switch} must be seen itself");
            }
            let foreign = always.iter().filter(|name| name.starts_with("AWS_"));
            assert_eq!(foreign.count(), 0, "{}", program.backend);
        }
    }

    #[test]
    fn the_documentation_lists_what_every_program_sees() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
        let page = std::fs::read_to_string(path).unwrap();
        let list = |names: &[&str]| -> String {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        let mut rows = vec![
            format!("| every program | {} | ", list(SHARED)),
            format!(
                "| every program that may write | {} | ",
                list(SHARED_TO_WRITE)
            ),
        ];
        for program in PROGRAMS {
            for seen in program.sees {
                let name = program.backend;
                let only = seen.with.map(|with| format!("only with `{with}`"));
                let only = only.unwrap_or_default();
                rows.push(format!("| `{name}` | {} | {only}", list(seen.names)));
            }
        }
        let missing: Vec<&String> = rows.iter().filter(|row| !page.contains(*row)).collect();
        assert!(
            missing.is_empty(),
            "docs/agents.md lacks these rows:\n{missing:#?}"
        );
    }

    #[test]
    fn the_trust_step_of_a_program_is_switched_off_only_in_trusted_folders() {
        for trusted in [false, true] {
            let call = Call {
                model: None,
                effort: None,
                folder: Path::new("/w"),
                writable: true,
                trusted,
                server: None,
                reads: None,
            };
            let switches = |program: &Program| -> bool {
                let mut words: Vec<String> = (program.arguments)(&call)
                    .into_iter()
                    .map(|word| word.into_string().unwrap())
                    .collect();
                let variables = (program.variables)(&call);
                words.extend(variables.into_iter().map(|(name, _)| name));
                words.extend(program.given.iter().map(|(name, _)| (*name).to_owned()));
                words
                    .iter()
                    .map(|word| word.to_lowercase().replace("trust_level=\"untrusted\"", ""))
                    .any(|word| word.contains("trust"))
            };
            let found: Vec<&str> = PROGRAMS
                .iter()
                .filter(|program| switches(program))
                .map(|program| program.backend)
                .collect();
            let wanted: &[&str] = match trusted {
                true => &["codex", "gemini", "cursor"],
                false => &[],
            };
            assert_eq!(found, wanted, "trusted: {trusted}");
        }
    }

    #[test]
    fn codex_is_told_what_its_commands_may_read() {
        let reads = ["/w/a \"b\"".to_owned()];
        let call = |reads, writable| Call {
            model: None,
            effort: None,
            folder: Path::new("/w"),
            writable,
            trusted: false,
            server: None,
            reads,
        };
        for arguments in [codex, codex_kept] {
            let told = |reads, writable| -> Vec<String> {
                let args = arguments(&call(reads, writable)).into_iter();
                args.map(|arg| arg.into_string().unwrap()).collect()
            };
            let args = told(Some(&reads[..]), false);
            let profile = codex_profile();
            let paths = r#"{":minimal"="read","/w/a \"b\""="read"}"#;
            for setting in [
                "sandbox_mode=\"read-only\"",
                &format!("permissions.{profile}.filesystem={paths}"),
                &format!("default_permissions=\"{profile}\""),
            ] {
                assert!(args.iter().any(|arg| arg == setting), "{setting}: {args:?}");
            }
            assert!(!args.iter().any(|arg| arg == "-s"), "{args:?}");
            let has = |args: &[String], word| args.iter().any(|arg| arg.contains(word));
            assert!(!has(&told(None, false), "permissions"));
        }
        let words = |writable| format!("{:?}", codex(&call(None, writable)));
        assert!(words(false).contains(r#""-s", "read-only""#));
        assert!(words(true).contains(r#""-s", "workspace-write""#));
    }

    #[test]
    fn codex_is_told_whom_to_trust_so_that_it_notes_nothing() {
        for (trusted, level) in [(false, "untrusted"), (true, "trusted")] {
            for writable in [false, true] {
                let call = Call {
                    model: None,
                    effort: None,
                    folder: Path::new("/w/a \"b\""),
                    writable,
                    trusted,
                    server: None,
                    reads: None,
                };
                for arguments in [codex, codex_kept] {
                    let want = format!(r#"projects={{"/w/a \"b\""={{trust_level="{level}"}}}}"#);
                    assert!(arguments(&call).contains(&want.clone().into()), "{want}");
                }
            }
        }
    }

    #[test]
    fn a_server_of_tools_is_named_in_the_words_of_each_program() {
        let server = ToolServer {
            name: "kd".into(),
            program: "/opt/a \"b\"/kd".into(),
            args: vec!["mcp".into(), "--as".into(), "ada".into()],
            tools: vec!["vote".into(), "skip".into()],
        };
        let call = |server| Call {
            model: None,
            effort: None,
            folder: Path::new("/w"),
            writable: false,
            trusted: false,
            server,
            reads: None,
        };
        let told = |args: fn(&Call<'_>) -> Vec<OsString>, server| -> Vec<String> {
            args(&call(server))
                .into_iter()
                .map(|arg| arg.into_string().unwrap())
                .collect()
        };
        let with = told(codex, Some(&server));
        for (key, value) in [
            ("command", r#""/opt/a \"b\"/kd""#),
            ("args", r#"["mcp","--as","ada"]"#),
            ("default_tools_approval_mode", "\"approve\""),
        ] {
            assert!(
                with.contains(&format!("mcp_servers.kd.{key}={value}")),
                "{with:?}"
            );
        }
        let with = told(claude, Some(&server));
        let at = |name: &str| {
            with.iter()
                .position(|arg| arg == name)
                .map(|at| &with[at + 1])
        };
        let config: serde_json::Value = serde_json::from_str(at("--mcp-config").unwrap()).unwrap();
        assert_eq!(config["mcpServers"]["kd"]["command"], server.program);
        assert_eq!(at("--allowedTools").unwrap(), "mcp__kd__vote,mcp__kd__skip");
        // A visit has only the server's tools.
        assert_eq!(at("--tools").unwrap(), "");
        let of_codex = told(codex, Some(&server));
        for setting in CODEX_NO_TOOLS {
            assert!(of_codex.iter().any(|arg| arg == setting), "{setting}");
        }
        assert!(!told(codex, None).iter().any(|arg| arg == CODEX_NO_TOOLS[0]));
        assert!(told(claude, None).iter().any(|arg| arg == "Read,Grep,Glob"));
        for program in [claude, codex] {
            let without = told(program, None);
            assert!(
                !without
                    .iter()
                    .any(|arg| arg.contains("mcp_servers") || arg == "--mcp-config")
            );
        }
    }
}

impl Program {
    /// Returns why a version of this program is too old, with the oldest that works and the command that updates it.
    /// `None` if it is not, or that is not known.
    pub fn too_old(&self, version: &str) -> Option<String> {
        let least = self.least.filter(|least| is_older(version, least))?;
        let (title, install) = (self.title, self.install);
        Some(format!(
            "update {title} to version {least} or later: {install}"
        ))
    }

    /// Returns advice for a version that fails and is older than the tested one.
    pub fn untested(&self, version: &str) -> Option<String> {
        let tested = self.tested.filter(|tested| is_older(version, tested))?;
        let (title, install) = (self.title, self.install);
        Some(format!(
            "kd is tested with {title} {tested} and later: update it with {install}"
        ))
    }

    /// Returns advice for a version that answers, but cannot be kept running between questions.
    pub fn better(&self, version: &str) -> Option<String> {
        let least = self.kept.as_ref()?.least?;
        is_older(version, least).then(|| {
            let (title, install) = (self.title, self.install);
            format!("{title} {least} or later is kept running between questions: {install}")
        })
    }
}

/// Returns whether a version, as a program prints it, is older than another; false if it cannot be read.
fn is_older(version: &str, least: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let word = text
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
        let core = word.split(['-', '+']).next()?;
        core.split('.').map(|part| part.parse().ok()).collect()
    };
    match (numbers(version), numbers(least)) {
        (Some(version), Some(least)) => version < least,
        _ => false,
    }
}

#[cfg(test)]
mod version_tests {
    use super::*;

    #[test]
    fn the_oldest_versions_are_compared_as_numbers() {
        let claude = program("claude_code").unwrap();
        for (version, old) in [
            ("2.0.32 (Claude Code)", true),
            ("1.0.128 (Claude Code)", true),
            ("2.0.65 (Claude Code)", false),
            ("2.1.9 (Claude Code)", false),
            ("2.0.100", false),
            ("unknown", false),
            ("", false),
        ] {
            assert_eq!(claude.too_old(version).is_some(), old, "{version}");
        }
        let codex = program("codex").unwrap();
        for (backend, version) in [
            ("codex", "codex-cli 0.30.0"),
            ("gemini", "0.1.0"),
            ("opencode", "0.1.0"),
        ] {
            let program = program(backend).unwrap();
            let advice = program.untested(version).unwrap();
            assert!(advice.contains(program.tested.unwrap()), "{advice}");
            assert_eq!(program.untested("9999.0.0"), None);
        }
        assert!(codex.too_old("codex-cli 0.50.0").is_none(), "it answers");
        let better = codex.better("codex-cli 0.50.0").unwrap();
        assert!(
            better.contains("0.80.0") && better.contains("npm install"),
            "{better}"
        );
        for version in [
            "codex-cli 0.80.0",
            "codex-cli 0.169.0-alpha.1",
            "codex-cli 1.0",
        ] {
            assert_eq!(codex.better(version), None, "{version}");
        }
    }

    #[test]
    fn variables_that_name_a_service_are_passed_to_its_program() {
        for (backend, variables) in kd_core::seating::SERVICES {
            let program = program(backend).expect("a row");
            for variable in *variables {
                let mut seen = program.sees.iter().flat_map(|seen| seen.names);
                assert!(seen.any(|name| name == variable), "{backend}: {variable}");
            }
        }
        // Each row that passes an address is in that table.
        let addresses = PROGRAMS.iter().flat_map(|program| {
            let names = program.sees.iter().flat_map(|seen| seen.names);
            names.map(|name| (program.backend, *name))
        });
        for (backend, name) in addresses.filter(|(_, name)| name.ends_with("_BASE_URL")) {
            let listed = kd_core::seating::SERVICES.iter();
            let mut listed = listed.filter(|(of, _)| *of == backend);
            assert!(
                listed.any(|(_, variables)| variables.contains(&name)),
                "{backend}: {name}"
            );
        }
    }
}
