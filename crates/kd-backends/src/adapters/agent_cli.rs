//! Agent programs, one shot: a program is started for each question, told it on stdin, and its stream is decoded. Comes
//! in: a row of [`PROGRAMS`] and a request. Goes out: deltas. Dropping the stream ends the program with all that it
//! started.
//!
//! Models pick their words as the programs let them: temperatures and the like do not reach them.

use super::programs::{Call, SHARED, TOLD};
use crate::Backend;
use crate::dialects::{self, Dialect, Reading};
use crate::env::Env;
use crate::transport::process::{Gentle, Running, Spec};
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, FailureKind, Request};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use super::programs::{PROGRAMS, Program, program};

/// Longest prompt that goes as an argument: Linux allows 128 KiB for one.
const ARGUMENT_MAX: usize = 120 * 1024;
/// Longest answer. A program that says more has lost its way.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// How long a program may take to end by itself after its last word.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a program may take to obey a signal. Claude Code needs up to 1.6 s to stop its tools.
const GRACE: Duration = Duration::from_millis(2000);

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
            label: self.choice.name.clone(),
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
