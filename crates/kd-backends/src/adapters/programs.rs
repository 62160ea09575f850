//! The agent programs: what they are called, how they are started, what they may see. Comes in: a model, a folder, and
//! whether files may be changed. Goes out: arguments and environments.
//!
//! Every row says how the program is told to read only; flags were checked against the real programs by asking each to
//! write a file (Cursor's and the inline configuration of opencode are taken from their documentation).

use super::roads::{ACP, CLAUDE, CODEX, Road};
use crate::transport::process::Gentle;
use kd_core::request::ToolServer;
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;

/// Variables that every program may see.
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
    "SSH_AUTH_SOCK",
];

/// What every program is told by its environment: no colours, no telemetry.
pub(super) const TOLD: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DO_NOT_TRACK", "1"),
];

/// One kind of agent program.
pub struct Program {
    /// The name of the backend.
    pub backend: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The names of the program, the first that is found.
    pub names: &'static [&'static str],
    /// How to get it.
    pub install: &'static str,
    /// What it prints, a name of [`dialects::DIALECTS`].
    pub dialect: &'static str,
    /// A variable that holds the path of the program.
    pub(super) path_variable: Option<&'static str>,
    /// Variables of ours that it may see.
    pub(super) sees: &'static [&'static str],
    /// Variables that it is given.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The signal that it ends well on, its tools with it where it can.
    pub(super) gentle: Gentle,
    /// Whether the prompt must be its last argument.
    pub(super) prompt_as_argument: bool,
    pub(super) arguments: fn(&Call<'_>) -> Vec<OsString>,
    /// How it is kept running between questions, if it can.
    pub(super) kept: Option<Kept>,
    /// Variables that depend on the call.
    pub(super) variables: fn(&Call<'_>) -> Vec<(String, String)>,
}

/// The form of a program that can be asked many times.
pub(super) struct Kept {
    pub(super) road: &'static Road,
    pub(super) arguments: fn(&Call<'_>) -> Vec<OsString>,
    /// Whether it is taken unless the person says otherwise: it was tried with the real program.
    pub(super) unasked: bool,
}

/// What arguments and variables depend on.
pub(super) struct Call<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) effort: Option<&'a str>,
    pub(super) folder: &'a Path,
    pub(super) writable: bool,
    /// A server of tools that it is to use.
    pub(super) server: Option<&'a ToolServer>,
}

/// Every program we can start.
pub const PROGRAMS: &[Program] = &[
    Program {
        backend: "claude_code",
        title: "Claude Code",
        names: &["claude"],
        install: "`npm install -g @anthropic-ai/claude-code`, then `claude` once to log in",
        dialect: "claude",
        path_variable: None,
        sees: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_MODEL",
            "ANTHROPIC_SMALL_FAST_MODEL",
            "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "ANTHROPIC_DEFAULT_SONNET_MODEL",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_MAX_RETRIES",
            "API_TIMEOUT_MS",
            "AWS_REGION",
            "AWS_PROFILE",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
            "CLOUD_ML_REGION",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "IS_SANDBOX",
        ],
        given: &[
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
        ],
        gentle: Gentle::Interrupt,
        prompt_as_argument: false,
        arguments: claude,
        kept: Some(Kept {
            road: &CLAUDE,
            arguments: claude_kept,
            unasked: true,
        }),
        variables: |_| Vec::new(),
    },
    Program {
        backend: "codex",
        title: "Codex",
        names: &["codex"],
        install: "`npm install -g @openai/codex`, then `codex login`",
        dialect: "codex",
        path_variable: Some("CODEX_CLI_PATH"),
        sees: &[
            "CODEX_API_KEY",
            "CODEX_HOME",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "AZURE_OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        given: &[],
        gentle: Gentle::Interrupt,
        prompt_as_argument: false,
        arguments: codex,
        kept: Some(Kept {
            road: &CODEX,
            arguments: codex_kept,
            unasked: true,
        }),
        variables: |_| Vec::new(),
    },
    Program {
        backend: "gemini",
        title: "Gemini CLI",
        names: &["gemini"],
        install: "`npm install -g @google/gemini-cli`, then `gemini` once to log in",
        dialect: "gemini",
        path_variable: None,
        sees: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_GENAI_USE_GCA",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GEMINI_MODEL",
        ],
        // Without the first it starts itself again as a child, which does not hear our signals.
        given: &[
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ],
        gentle: Gentle::Terminate,
        prompt_as_argument: false,
        arguments: gemini,
        kept: Some(Kept {
            road: &ACP,
            arguments: gemini_kept,
            unasked: true,
        }),
        variables: |_| Vec::new(),
    },
    Program {
        backend: "opencode",
        title: "opencode",
        names: &["opencode"],
        install: "`npm install -g opencode-ai`, then `opencode auth login`",
        dialect: "opencode",
        path_variable: None,
        sees: &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "GROQ_API_KEY",
            "MISTRAL_API_KEY",
            "DEEPSEEK_API_KEY",
            "XAI_API_KEY",
        ],
        given: &[
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ],
        gentle: Gentle::Terminate,
        prompt_as_argument: false,
        arguments: opencode,
        kept: Some(Kept {
            road: &ACP,
            arguments: acp_word,
            unasked: true,
        }),
        variables: opencode_permissions,
    },
    Program {
        backend: "cursor",
        title: "Cursor",
        names: &["agent", "cursor-agent"],
        install: "`curl https://cursor.com/install -fsS | bash`, then `agent login`",
        dialect: "cursor",
        path_variable: None,
        sees: &["CURSOR_API_KEY"],
        given: &[],
        gentle: Gentle::Terminate,
        // Its documentation knows no other way.
        prompt_as_argument: true,
        arguments: cursor,
        kept: Some(Kept {
            road: &ACP,
            arguments: acp_word,
            unasked: false,
        }),
        variables: |_| Vec::new(),
    },
];

/// Backends whose program the configuration describes.
pub const CONFIGURED: [&str; 2] = ["acp", "command"];

/// The program behind a backend's name.
pub fn program(backend: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.backend == backend)
}

/// Whether an agent program answers for members of this backend: one of the rows, or one that configuration describes.
/// Only such a member has hands: it can use tools on files.
pub fn is_agent(backend: &str) -> bool {
    CONFIGURED.contains(&backend) || program(backend).is_some()
}

/// `--tools` removes all other tools from the model's sight; the plan mode would not do (it asks a model to judge).
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
        args.extend(words(&[
            "--permission-mode",
            "dontAsk",
            "--tools",
            "Read,Grep,Glob",
        ]));
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
    let sandbox = if call.writable {
        "workspace-write"
    } else {
        "read-only"
    };
    let mut args = words(&[
        "exec",
        "--json",
        "-s",
        sandbox,
        "--skip-git-repo-check",
        "-c",
        "analytics.enabled=false",
        "-C",
    ]);
    args.push(call.folder.as_os_str().to_owned());
    option(&mut args, "-m", call.model);
    if let Some(effort) = call.effort {
        args.extend(words(&["-c", &format!("model_reasoning_effort={effort}")]));
    }
    if let Some(server) = call.server {
        // Values are TOML; strings and lists of them are written there as in JSON.
        let key = format!("mcp_servers.{}", server.name);
        let (program, own) = (json!(server.program), json!(server.args));
        args.extend(words(&["-c", &format!("{key}.command={program}")]));
        args.extend(words(&["-c", &format!("{key}.args={own}")]));
        // Nobody is there to be asked.
        args.extend(words(&[
            "-c",
            &format!("{key}.default_tools_approval_mode=\"approve\""),
        ]));
    }
    args
}

/// Sandbox, folder and model are said for each thread.
fn codex_kept(_: &Call<'_>) -> Vec<OsString> {
    words(&["-c", "analytics.enabled=false", "app-server"])
}

/// Headless and by default, neither the shell nor writing tools are registered.
fn gemini(call: &Call<'_>) -> Vec<OsString> {
    let mode = if call.writable { "yolo" } else { "default" };
    let mut args = words(&["-o", "stream-json", "--approval-mode", mode]);
    option(&mut args, "-m", call.model);
    args
}

/// Every tool that writes asks us first.
fn gemini_kept(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["--acp", "--approval-mode", "default"]);
    option(&mut args, "-m", call.model);
    args
}

/// Models are said for each session.
fn acp_word(_: &Call<'_>) -> Vec<OsString> {
    words(&["acp"])
}

fn opencode(call: &Call<'_>) -> Vec<OsString> {
    let mut args = words(&["run", "--format", "json", "--thinking"]);
    option(&mut args, "-m", call.model);
    args
}

/// By default it runs shells and writes without asking, and its plan agent does, too. Inline configuration overrides
/// the project's own.
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
        "--trust",
    ]);
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
            server,
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
