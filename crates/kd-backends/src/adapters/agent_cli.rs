//! Agent programs, one shot: a program is started for each question, told it on stdin, and its stream is decoded. Comes
//! in: a row of [`PROGRAMS`] and a request. Goes out: deltas. Dropping the stream ends the program with all that it
//! started.
//!
//! Every row says how the program is told to read only; flags were checked against the real programs by asking each to
//! write a file (Cursor's and the inline configuration of opencode are taken from their documentation). Models pick
//! their words as the programs let them: temperatures and the like do not reach them.

use crate::Backend;
use crate::dialects::{self, Dialect, Reading};
use crate::env::Env;
use crate::transport::process::{Gentle, Running, Spec};
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest prompt that goes as an argument: Linux allows 128 KiB for one.
const ARGUMENT_MAX: usize = 120 * 1024;
/// Longest answer. A program that says more has lost its way.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// How long a program may take to end by itself after its last word.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a program may take to obey a signal. Claude Code needs up to 1.6 s to stop its tools.
const GRACE: Duration = Duration::from_millis(2000);

/// Variables that every program may see.
const SHARED: &[&str] = &[
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
const TOLD: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DO_NOT_TRACK", "1"),
];

/// One kind of agent program.
pub struct Program {
    /// The name of the backend.
    pub backend: &'static str,
    /// The names of the program, the first that is found.
    pub names: &'static [&'static str],
    /// How to get it.
    pub install: &'static str,
    /// What it prints, a name of [`dialects::DIALECTS`].
    pub dialect: &'static str,
    /// A variable that holds the path of the program.
    path_variable: Option<&'static str>,
    /// Variables of ours that it may see.
    sees: &'static [&'static str],
    /// Variables that it is given.
    given: &'static [(&'static str, &'static str)],
    /// The signal that it ends well on, its tools with it where it can.
    gentle: Gentle,
    /// Whether the prompt must be its last argument.
    prompt_as_argument: bool,
    arguments: fn(&Call<'_>) -> Vec<OsString>,
    /// Variables that depend on the call.
    variables: fn(&Call<'_>) -> Vec<(String, String)>,
}

/// What the arguments depend on.
struct Call<'a> {
    model: Option<&'a str>,
    effort: Option<&'a str>,
    folder: &'a Path,
    writable: bool,
}

/// Every program we can start.
pub const PROGRAMS: &[Program] = &[
    Program {
        backend: "claude_code",
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
        variables: |_| Vec::new(),
    },
    Program {
        backend: "codex",
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
        variables: |_| Vec::new(),
    },
    Program {
        backend: "gemini",
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
        variables: |_| Vec::new(),
    },
    Program {
        backend: "opencode",
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
        variables: opencode_permissions,
    },
    Program {
        backend: "cursor",
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
        variables: |_| Vec::new(),
    },
];

/// The program behind a backend's name.
pub fn program(backend: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.backend == backend)
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
    if call.writable {
        args.extend(words(&[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,Edit,Write,NotebookEdit,Read,Grep,Glob",
        ]));
    } else {
        args.extend(words(&[
            "--permission-mode",
            "dontAsk",
            "--tools",
            "Read,Grep,Glob",
        ]));
    }
    option(&mut args, "--model", call.model);
    option(&mut args, "--effort", call.effort);
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
    args
}

/// Headless and by default, neither the shell nor writing tools are registered.
fn gemini(call: &Call<'_>) -> Vec<OsString> {
    let mode = if call.writable { "yolo" } else { "default" };
    let mut args = words(&["-o", "stream-json", "--approval-mode", mode]);
    option(&mut args, "-m", call.model);
    args
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

/// What a member may choose of its program.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The model, in the program's words.
    pub model: Option<String>,
    /// How hard it thinks, in the program's words.
    pub effort: Option<String>,
    /// Further arguments.
    pub extra: Vec<String>,
    /// The folder it works in; else ours.
    pub folder: Option<PathBuf>,
    /// Its name in the council, told to it as `KD_AGENT_NAME`.
    pub name: String,
}

/// An agent program that is started for each question.
#[derive(Clone)]
pub struct AgentCli {
    how: How,
    choice: Choice,
    env: Env,
}

#[derive(Clone)]
enum How {
    Known(&'static Program),
    Template {
        argv: Vec<String>,
        dialect: &'static Dialect,
        sees: Vec<String>,
    },
}

impl AgentCli {
    /// A program of the table.
    pub fn new(program: &'static Program, choice: Choice, env: Env) -> Self {
        Self {
            how: How::Known(program),
            choice,
            env,
        }
    }

    /// Any program that speaks a known dialect. In its arguments `{model}`, `{folder}` and `{prompt}` are replaced; the
    /// prompt goes to stdin unless `{prompt}` stands among them. It sees the shared variables and those named here.
    /// Whether it can write is its template's affair.
    ///
    /// # Errors
    /// When the dialect is unknown or the template is empty.
    pub fn command(
        argv: Vec<String>,
        dialect: &str,
        sees: Vec<String>,
        choice: Choice,
        env: Env,
    ) -> Result<Self, Failure> {
        let Some(dialect) = dialects::named(dialect) else {
            let known: Vec<&str> = dialects::DIALECTS
                .iter()
                .map(|dialect| dialect.name)
                .collect();
            return Err(Failure::new(
                FailureKind::Invalid,
                format!("there is no dialect `{dialect}`"),
            )
            .advise(format!("it can be one of {}", known.join(", "))));
        };
        if argv.first().is_none_or(String::is_empty) {
            return Err(
                Failure::new(FailureKind::Invalid, "the command of an agent is empty")
                    .advise("the first of its words names the program"),
            );
        }
        Ok(Self {
            how: How::Template {
                argv,
                dialect,
                sees,
            },
            choice,
            env,
        })
    }

    fn dialect(&self) -> Option<&'static Dialect> {
        match &self.how {
            How::Known(program) => dialects::named(program.dialect),
            How::Template { dialect, .. } => Some(dialect),
        }
    }

    /// What to start for this request.
    fn spec(&self, request: &Request) -> Result<Spec, Failure> {
        let folder = match &self.choice.folder {
            Some(folder) => folder.clone(),
            None => std::env::current_dir().map_err(|error| {
                Failure::new(
                    FailureKind::Missing,
                    format!("the working folder cannot be found: {error}"),
                )
            })?,
        };
        let prompt = prompt(request);
        let call = Call {
            model: self.choice.model.as_deref(),
            effort: self
                .choice
                .effort
                .as_deref()
                .filter(|effort| !effort.is_empty()),
            folder: &folder,
            writable: request.writable,
        };
        let (program, mut args, mut env, gentle, as_argument) = match &self.how {
            How::Known(program) => {
                let mut env = self.seen(program.sees.iter().copied());
                for (name, value) in program.given {
                    // What the person set stands.
                    if !env.iter().any(|(seen, _)| seen == name) {
                        env.push(((*name).into(), (*value).into()));
                    }
                }
                env.extend((program.variables)(&call));
                (
                    self.find(program)?,
                    (program.arguments)(&call),
                    env,
                    program.gentle,
                    program.prompt_as_argument,
                )
            }
            How::Template { argv, sees, .. } => {
                let as_argument = argv.iter().any(|word| word.contains("{prompt}"));
                let fill = |word: &String| -> OsString {
                    let word = word.replace("{model}", call.model.unwrap_or_default());
                    let word = word.replace("{folder}", &folder.to_string_lossy());
                    word.into()
                };
                let mut filled = argv.iter().map(fill);
                let name = filled.next().unwrap_or_default();
                let program = self.locate(&name.to_string_lossy()).ok_or_else(|| {
                    missing(&name.to_string_lossy(), "install it, or correct its path")
                })?;
                (
                    program,
                    filled.collect(),
                    self.seen(sees.iter().map(String::as_str)),
                    Gentle::Terminate,
                    as_argument,
                )
            }
        };
        args.extend(self.choice.extra.iter().map(OsString::from));
        env.push((
            "KD_ROLE".into(),
            if request.writable {
                "council-writable"
            } else {
                "council"
            }
            .into(),
        ));
        env.push(("KD_AGENT_NAME".into(), self.choice.name.clone()));
        let input = if as_argument {
            if prompt.len() > ARGUMENT_MAX {
                return Err(Failure::new(
                    FailureKind::Invalid,
                    format!("the prompt has {} KB, and this program takes at most {} KB", prompt.len() / 1024, ARGUMENT_MAX / 1024),
                )
                .advise("start a new thread, or give the member a program that reads its prompt from stdin"));
            }
            match &self.how {
                How::Known(_) => args.extend([OsString::from("--"), OsString::from(prompt)]),
                How::Template { .. } => {
                    for word in &mut args {
                        *word = word.to_string_lossy().replace("{prompt}", &prompt).into();
                    }
                }
            }
            None
        } else {
            if matches!(&self.how, How::Known(program) if program.backend == "codex") {
                // "Read the prompt from stdin"; after everything that the person added.
                args.push("-".into());
            }
            Some(prompt.into_bytes())
        };
        Ok(Spec {
            program,
            args,
            env,
            folder,
            input,
            gentle,
            grace: GRACE,
        })
    }

    /// The shared variables, these, and what every program is told.
    fn seen<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
        let mut env: Vec<(String, String)> = SHARED
            .iter()
            .copied()
            .chain(names)
            .filter_map(|name| Some((name.to_owned(), self.env.get(name)?)))
            .collect();
        env.extend(
            TOLD.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        env
    }

    fn find(&self, program: &Program) -> Result<PathBuf, Failure> {
        let set = program.path_variable.and_then(|name| self.env.get(name));
        let found = match &set {
            Some(path) => self.locate(path),
            None => program.names.iter().find_map(|name| self.locate(name)),
        };
        found.ok_or_else(|| {
            let name = set.as_deref().unwrap_or(program.names[0]);
            missing(
                name,
                &format!(
                    "install it with {}, or take the member out of `council.members`",
                    program.install
                ),
            )
        })
    }

    /// A program by name, on the path of the environment that was given; or by its own path.
    fn locate(&self, name: &str) -> Option<PathBuf> {
        let folders = self.env.get("PATH").unwrap_or_default();
        let here = self
            .choice
            .folder
            .clone()
            .or_else(|| std::env::current_dir().ok())?;
        which::which_in(self.env.expand(name), Some(folders), here).ok()
    }
}

fn missing(name: &str, advice: &str) -> Failure {
    Failure::new(
        FailureKind::Missing,
        format!("the program `{name}` is not there"),
    )
    .advise(advice)
}

/// The prompt as one text. Programs have no way to be held to a schema that all share, so it is said in words.
fn prompt(request: &Request) -> String {
    let mut prompt = request.prompt.as_text();
    if let Some(schema) = &request.schema {
        prompt
            .push_str("\n\nAnswer with nothing but one JSON value that this JSON schema allows:\n");
        prompt.push_str(&schema.to_string());
    }
    prompt
}

impl Backend for AgentCli {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let state = State::Asked(Box::new((self.clone(), request)));
        stream::unfold(state, |state| async move {
            match state {
                State::Asked(asked) => {
                    let (agent, request) = *asked;
                    match Turn::start(&agent, &request) {
                        Ok(turn) => turn.next().await,
                        Err(failure) => Some((Err(failure), State::Done)),
                    }
                }
                State::Running(turn) => turn.next().await,
                State::Done => None,
            }
        })
        .boxed()
    }
}

/// Where a stream stands.
enum State {
    Asked(Box<(AgentCli, Request)>),
    Running(Box<Turn>),
    Done,
}

/// One question to one program.
struct Turn {
    running: Running,
    reading: Reading,
    ready: VecDeque<Delta>,
    length: usize,
}

impl Turn {
    fn start(agent: &AgentCli, request: &Request) -> Result<Box<Self>, Failure> {
        let spec = agent.spec(request)?;
        let Some(dialect) = agent.dialect() else {
            return Err(Failure::new(
                FailureKind::Missing,
                "the program speaks a dialect that we do not",
            ));
        };
        let program = spec.program.clone();
        let running = Running::start(spec).map_err(|error| {
            Failure::new(
                FailureKind::Missing,
                format!("`{}` cannot be started: {error}", program.display()),
            )
        })?;
        Ok(Box::new(Self {
            running,
            reading: Reading::new(dialect),
            ready: VecDeque::new(),
            length: 0,
        }))
    }

    /// The next delta, and where the stream stands then.
    async fn next(mut self: Box<Self>) -> Option<(Result<Delta, Failure>, State)> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                match &delta {
                    Delta::Text { text } | Delta::Thinking { text } => self.length += text.len(),
                    Delta::Retrying { .. } => self.length = 0,
                    _ => {}
                }
                if self.length > ANSWER_MAX {
                    let said = format!(
                        "the answer grew beyond {} MB and was stopped",
                        ANSWER_MAX / 1024 / 1024
                    );
                    return Some((Err(Failure::new(FailureKind::Invalid, said)), State::Done));
                }
                return Some((Ok(delta), State::Running(self)));
            }
            if self.reading.over() {
                let end = self.reading.end(&Default::default());
                // It may still want to write its session down.
                self.running.retire(PATIENCE);
                return Some((end, State::Done));
            }
            let bytes = match self.running.read().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    let said = format!("the program's output cannot be read: {error}");
                    return Some((Err(Failure::new(FailureKind::Crashed, said)), State::Done));
                }
            };
            if bytes.is_empty() {
                self.ready.extend(self.reading.finish());
                if self.ready.is_empty() {
                    let exit = self.running.exit().await;
                    return Some((self.reading.end(&exit), State::Done));
                }
                continue;
            }
            self.ready.extend(self.reading.feed(bytes));
            if self.ready.is_empty() && !self.reading.over() {
                // Something came that says nothing to people: a sign of life without words.
                self.ready.push_back(Delta::Text {
                    text: String::new(),
                });
            }
        }
    }
}
