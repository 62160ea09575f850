//! One-shot agent programs: a program is started for each question, reads it from stdin, and its stream is decoded.
//!
//! Input: a row of [`PROGRAMS`] and a request. Output: deltas. Dropping the stream stops the program and everything it
//! started.
//!
//! The programs control sampling: temperature and similar settings do not reach the model.

use super::persistent::{ACP, Link, Question};
use super::programs::{Call, SHARED, SHARED_TO_WRITE, TOLD};
use super::reach::{self, Reads};
use crate::Backend;
use crate::attachments;
use crate::checkout::{self, GitData};
use crate::depth;
use crate::dialects::{self, Dialect, Reading};
use crate::env::Env;
use crate::transport::process::{Gentle, Running, Spec};
use crate::transport::rights::{self, Rights};
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::media::Attachment;
use kd_core::request::{Block, ToolServer};
use kd_core::{Delta, Failure, FailureKind, Request};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use super::programs::{PROGRAMS, Program, program};

/// Longest prompt passed as an argument: Linux allows 128 KiB per argument.
const ARGUMENT_MAX: usize = 120 * 1024;
/// Maximum length of an answer. A program that prints more is out of control.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
/// Time limit for a program to exit on its own after its last output.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// Time limit for a program to exit after a signal. Claude Code needs up to 1.6 s to stop its tools.
const GRACE: Duration = Duration::from_millis(2000);
/// The smallest budget that can be passed to a program, in pico-dollars: its flag has four decimals of a dollar.
const BUDGET_STEP_PICO_USD: u64 = 100_000_000;

/// The settings of a member's program.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The model, as the program names it.
    pub model: Option<String>,
    /// The thinking effort, as the program names it.
    pub effort: Option<String>,
    /// Additional arguments.
    pub extra: Vec<String>,
    /// The program and its first arguments; empty means find the program.
    pub command: Vec<String>,
    /// Names of additional variables to pass through.
    pub sees: Vec<String>,
    /// Additional files and folders that it may read and write in the sandbox.
    pub state: Vec<String>,
    /// The folder it works in; `None` is the current one.
    pub folder: Option<PathBuf>,
    /// The folder from which a relative path of a program is read; `None` is the current one.
    pub start: Option<PathBuf>,
    /// Whether the user trusts that folder, so that the program does not ask again.
    pub trusted: bool,
    /// The name under `agents`.
    pub agent: String,
    /// Its name in the council, passed as `KD_AGENT_NAME`.
    pub name: String,
    /// Whether the system blocks access to other files during read-only turns.
    pub sandbox: bool,
    /// Finds a checkout's git data outside of it.
    pub git_data: Option<GitData>,
}

/// The mechanism that prevents an agent from writing in a read-only turn, in addition to its own flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBy {
    /// The system, for the program and everything it starts.
    Landlock,
    /// The program's own sandbox for its commands, which cannot run inside Landlock.
    OwnSandbox,
    /// Nothing.
    Flags,
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
    },
}

impl AgentCli {
    /// Creates the backend for a program of the table.
    pub fn new(program: &'static Program, choice: Choice, env: Env) -> Self {
        Self {
            how: How::Known(program),
            choice,
            env,
        }
    }

    /// Creates a backend for any program that uses a known dialect. `{model}`, `{folder}` and `{prompt}` in its
    /// arguments are replaced; the prompt goes to stdin unless `{prompt}` is among them. The program gets the shared
    /// variables and those named in `choice`. Its template decides whether it can write.
    ///
    /// # Errors
    /// The dialect is unknown or the template is empty.
    pub fn command(
        argv: Vec<String>,
        dialect: &str,
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
            .advise(format!("use one of {}", known.join(", "))));
        };
        if argv.first().is_none_or(String::is_empty) {
            return Err(
                Failure::new(FailureKind::Invalid, "the command of an agent is empty")
                    .advise("its first word must be the program"),
            );
        }
        Ok(Self {
            how: How::Template { argv, dialect },
            choice,
            env,
        })
    }

    /// Limits what one question may cost, if the program has a flag for that. Returns the limit passed to it, in
    /// pico-dollars.
    ///
    /// # Errors
    /// [`FailureKind::Limit`] if the limit is less than the smallest sum that the flag can express.
    pub(crate) fn within(mut self, pico_usd: Option<u64>) -> Result<(Self, Option<u64>), Failure> {
        let flag = match &self.how {
            How::Known(program) => program.budget,
            How::Template { .. } => None,
        };
        let (Some(flag), Some(pico)) = (flag, pico_usd) else {
            return Ok((self, None));
        };
        // Rounded down, so that the program keeps within its share.
        let told = pico / BUDGET_STEP_PICO_USD;
        if told == 0 {
            return Err(Failure::new(
                FailureKind::Limit,
                format!(
                    "not sent: the cost limit leaves less than $0.0001 for {}",
                    self.choice.agent
                ),
            )
            .advise("raise the limit (`limits.usd`), or ask fewer members"));
        }
        let usd = format!("{:.4}", told as f64 / 1e4);
        self.choice.extra.extend([flag.to_owned(), usd]);
        Ok((self, Some(told * BUDGET_STEP_PICO_USD)))
    }

    fn dialect(&self) -> Option<&'static Dialect> {
        match &self.how {
            How::Known(program) => dialects::named(program.dialect),
            How::Template { dialect, .. } => Some(dialect),
        }
    }

    /// Returns the protocol that keeps this program running, and whether it is tested enough to be the default.
    pub(crate) fn link(&self) -> Option<(&'static Link, bool)> {
        match &self.how {
            How::Known(program) => program.kept.as_ref().map(|kept| (kept.link, kept.unasked)),
            How::Template { dialect, .. } => (dialect.name == ACP.dialect).then_some((&ACP, true)),
        }
    }

    /// Returns whether it has a one-shot form.
    pub(crate) fn answers_once(&self) -> bool {
        matches!(self.how, How::Known(_))
    }

    /// Returns the name of the agent in the settings.
    pub(super) fn key(&self) -> &str {
        &self.choice.agent
    }

    /// Returns which version can be kept running between questions, as advice; empty if that is not known.
    pub(super) fn needs_to_be_kept(&self) -> String {
        let How::Known(program) = &self.how else {
            return String::new();
        };
        let least = program.kept.as_ref().and_then(|kept| kept.least);
        least.map_or_else(String::new, |least| {
            let (title, install) = (program.title, program.install);
            format!("; {title} {least} or later can: {install}")
        })
    }

    /// Finds the program.
    ///
    /// # Errors
    /// The program is not installed.
    pub(crate) fn program(&self) -> Result<PathBuf, Failure> {
        match &self.how {
            How::Known(program) => Ok(self.find(program)?.0),
            How::Template { argv, .. } => {
                let name = argv.first().map(String::as_str).unwrap_or_default();
                self.locate(name)
                    .ok_or_else(|| missing(name, "install it, or correct its path"))
            }
        }
    }

    /// Adds a hint to a failure that names the sandbox, or this program's own commands.
    pub(super) fn advised(&self, failure: Failure, writable: bool) -> Failure {
        if self.held_by() == HeldBy::Landlock && !writable && dialects::denied(&failure) {
            let name = &self.choice.agent;
            return failure.advise(format!(
                "the sandbox may be the cause: name the files it needs in `agents.{name}.state`, or turn the sandbox off with \
                 `kd config set --layer user council.sandbox false`"
            ));
        }
        let How::Known(program) = &self.how else {
            return failure;
        };
        if dialects::too_old(&failure) {
            let known = program.least.or(program.tested);
            let version = known.map_or_else(
                || "the newest version".to_owned(),
                |known| format!("version {known} or later"),
            );
            let (title, install) = (program.title, program.install);
            return failure.advise(format!("update {title} to {version}: {install}"));
        }
        match failure.kind {
            FailureKind::Auth => {
                failure.advise(format!("log in: {}; or set its key", program.login))
            }
            _ => failure,
        }
    }

    /// Returns the advice for a turn in which the program printed nothing: without its settings or without a network,
    /// some wait instead of failing.
    pub(crate) fn advice_unheard(&self) -> String {
        let once = match &self.how {
            How::Known(program) => {
                let (title, login) = (program.title, program.login);
                format!(
                    "start {title} once in a terminal to see whether it is set up and online (log in: {login})"
                )
            }
            How::Template { argv, .. } => {
                let name = argv.first().map_or("", String::as_str);
                format!("start `{name}` once in a terminal to see what it waits for")
            }
        };
        format!("{once}; or raise `council.timeout`")
    }

    fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.choice.folder {
            Some(folder) => Ok(folder.clone()),
            None => std::env::current_dir().map_err(|error| {
                Failure::new(
                    FailureKind::Missing,
                    format!("the working folder cannot be found: {error}"),
                )
            }),
        }
    }

    fn call<'a>(
        &'a self,
        writable: bool,
        server: Option<&'a ToolServer>,
        folder: &'a Path,
    ) -> Call<'a> {
        Call {
            model: self.choice.model.as_deref(),
            effort: self.effort(),
            folder,
            writable,
            trusted: self.choice.trusted,
            server,
            reads: None,
        }
    }

    /// Builds the launch of a process that answers several questions.
    pub(super) fn kept(
        &self,
        writable: bool,
        server: Option<&ToolServer>,
    ) -> Result<Spec, Failure> {
        let folder = self.folder()?;
        let (server, tools) = self.tools(writable, server)?;
        let call = self.call(writable, server.as_ref(), &folder);
        let arguments = match &self.how {
            How::Known(Program {
                kept: Some(kept), ..
            }) => kept.arguments,
            _ => |_: &Call<'_>| Vec::new(),
        };
        let mut launch = self.launch(&call, arguments)?;
        launch
            .args
            .extend(self.choice.extra.iter().map(OsString::from));
        let rights = self.rights(&call, &launch)?;
        Ok(self.spec_of(launch, folder, None, (rights, tools)))
    }

    /// Builds the launch of a process that answers several questions, and its first question.
    pub(super) fn warm(&self, request: &Request) -> Result<(Spec, Question), Failure> {
        let spec = self.kept(request.writable, request.server())?;
        let question = Question {
            prompt: blocks(request),
            files: request.attachments.clone(),
            marks: true,
            model: self.choice.model.clone(),
            effort: self.effort().map(str::to_owned),
            folder: spec.folder.clone(),
            writable: request.writable,
            mode: match &self.how {
                How::Known(program) => program.kept.as_ref().and_then(|kept| kept.mode),
                How::Template { .. } => None,
            },
            server: self.tools(request.writable, request.server())?.0,
            is_told_reads: self.is_told_reads(),
        };
        Ok((spec, question))
    }

    /// Returns whether the one-shot form takes pictures as arguments. Only Codex does.
    fn shows_pictures(&self) -> bool {
        matches!(&self.how, How::Known(program) if program.backend == "codex")
    }

    fn effort(&self) -> Option<&str> {
        let effort = self.choice.effort.as_deref();
        effort.filter(|effort| !effort.is_empty())
    }

    /// Builds the launch of a process for this request alone.
    fn spec(&self, request: &Request) -> Result<Spec, Failure> {
        let folder = self.folder()?;
        let is_shown = |file: &&Attachment| {
            // A comma separates paths.
            let is_one = !file.path.to_string_lossy().contains(',');
            self.shows_pictures() && file.kind.is_picture() && is_one
        };
        let (shown, told): (Vec<_>, Vec<_>) = request.attachments.iter().partition(is_shown);
        let mut prompt = prompt(request);
        if let Some(paths) = attachments::paths(told) {
            prompt.push_str("\n\n");
            prompt.push_str(&paths);
        }
        let (server, tools) = self.tools(request.writable, request.server())?;
        let call = self.call(request.writable, server.as_ref(), &folder);
        let arguments = match &self.how {
            How::Known(program) => program.arguments,
            How::Template { .. } => |_: &Call<'_>| Vec::new(),
        };
        let mut launch = self.launch(&call, arguments)?;
        launch
            .env
            .push(("KD_AGENT_NAME".into(), self.choice.name.clone()));
        let as_argument = match &self.how {
            How::Known(program) => program.prompt_as_argument,
            How::Template { argv, .. } => argv.iter().any(|word| word.contains("{prompt}")),
        };
        launch
            .args
            .extend(self.choice.extra.iter().map(OsString::from));
        for file in shown {
            launch
                .args
                .push(format!("--image={}", file.path.display()).into());
        }
        let input = if as_argument {
            if prompt.len() > ARGUMENT_MAX {
                return Err(Failure::new(
                    FailureKind::Invalid,
                    format!("the prompt has {} KiB, and this program takes at most {} KiB", prompt.len() / 1024, ARGUMENT_MAX / 1024),
                )
                .advise("start a new thread, or give the member a program that reads its prompt from stdin"));
            }
            match &self.how {
                How::Known(_) => launch
                    .args
                    .extend([OsString::from("--"), OsString::from(prompt)]),
                How::Template { .. } => {
                    for word in &mut launch.args {
                        *word = word.to_string_lossy().replace("{prompt}", &prompt).into();
                    }
                }
            }
            None
        } else {
            if matches!(&self.how, How::Known(program) if program.backend == "codex") {
                // "Read the prompt from stdin"; comes after everything the user added.
                launch.args.push("-".into());
            }
            Some(prompt.into_bytes())
        };
        let call = self.call(request.writable, server.as_ref(), &folder);
        let rights = self.rights(&call, &launch)?;
        Ok(self.spec_of(launch, folder, input, (rights, tools)))
    }

    /// Returns the name of its program; `None` if the program belongs to the folder in which `kd` was started.
    fn name(&self) -> Option<String> {
        let argv = match &self.how {
            How::Known(program) if self.choice.command.is_empty() => {
                return Some(program.names[0].to_owned());
            }
            How::Known(_) => &self.choice.command,
            How::Template { argv, .. } => argv,
        };
        let at = argv.first().and_then(|first| self.locate(first));
        // Programs are searched relative to where `kd` was started, wherever the agent works.
        reach::name(argv, at.as_deref(), &self.start()?, &self.env)
    }

    /// Returns the mechanism that prevents it from writing in read-only turns.
    pub(crate) fn held_by(&self) -> HeldBy {
        let own = match &self.how {
            How::Known(program) => program.own_sandbox && self.name().is_some(),
            How::Template { .. } => self.name().is_some_and(|name| reach::own_sandbox(&name)),
        };
        match (own, self.choice.sandbox, rights::held()) {
            (true, ..) => HeldBy::OwnSandbox,
            (_, true, Some(_)) => HeldBy::Landlock,
            _ => HeldBy::Flags,
        }
    }

    /// Returns the file access that the system grants; `None` (everything) if it may write.
    ///
    /// # Errors
    /// A path in the configuration is invalid.
    fn rights(&self, call: &Call<'_>, launch: &Launch) -> Result<Option<Rights>, Failure> {
        if self.held_by() != HeldBy::Landlock || call.writable {
            return Ok(None);
        }
        self.check_state()?;
        let name = self.name();
        let (own, words): (Vec<String>, &[String]) = match (&self.how, &name) {
            (How::Known(program), Some(_)) => {
                let own = program.own.iter().map(|at| (*at).to_owned());
                (own.collect(), &self.choice.command)
            }
            (How::Known(_), None) => (Vec::new(), &self.choice.command),
            (How::Template { argv, .. }, name) => {
                (name.as_deref().map(reach::state).unwrap_or_default(), argv)
            }
        };
        let own: Vec<String> = own.into_iter().chain(self.choice.state.clone()).collect();
        let agent = reach::Agent {
            program: &launch.program,
            words,
            own: &own,
            // The needs of a user-defined command are unknown.
            reads: match words {
                [] => Reads::Copy,
                _ => Reads::Wide,
            },
            folder: call.folder,
            of_folder: name.is_none(),
            git_data: self.choice.git_data,
        };
        let mut rights = reach::rights(&agent, &self.env);
        // The bridge to its tools.
        rights
            .read
            .extend(call.server.map(|server| server.program.clone().into()));
        Ok(Some(rights))
    }

    /// Returns whether the program's own sandbox gets a list of paths that commands may read. True for the program of
    /// the table, but not for adapters.
    pub(crate) fn is_told_reads(&self) -> bool {
        let own = matches!(&self.how, How::Known(program) if program.own_sandbox);
        own && self.choice.sandbox && cfg!(target_os = "linux")
    }

    /// Returns the paths that commands in its own sandbox may read.
    ///
    /// # Errors
    /// A path in the configuration is invalid.
    fn reads(&self, program: &Path, folder: &Path) -> Result<Vec<String>, Failure> {
        self.check_state()?;
        let words = &self.choice.command;
        let agent = reach::Agent {
            program,
            words,
            own: &self.choice.state,
            reads: if words.is_empty() {
                Reads::Copy
            } else {
                Reads::Wide
            },
            folder,
            of_folder: self.name().is_none(),
            git_data: self.choice.git_data,
        };
        Ok(reach::readable(&agent, &self.env))
    }

    fn check_state(&self) -> Result<(), Failure> {
        let Some(path) = self.choice.state.iter().find(|path| !reach::is_place(path)) else {
            return Ok(());
        };
        let said = format!("`agents.{}.state` holds `{path}`", self.choice.agent);
        Err(Failure::new(FailureKind::Invalid, said)
            .advise("write an absolute path, or one that starts with `~/` or `$NAME/`"))
    }

    /// Returns the tool server as the agent sees it, and the command by which its keeper starts it. In the sandbox the
    /// agent starts a bridge, and the server runs outside: it writes files that the agent may not.
    ///
    /// # Errors
    /// The path of the bridge cannot be passed to an agent in the sandbox.
    fn tools(
        &self,
        writable: bool,
        server: Option<&ToolServer>,
    ) -> Result<(Option<ToolServer>, Vec<String>), Failure> {
        let Some(server) = server else {
            return Ok((None, Vec::new()));
        };
        if writable || self.held_by() != HeldBy::Landlock {
            return Ok((Some(server.clone()), Vec::new()));
        }
        let (program, args) = bridge().ok_or_else(|| {
            let said =
                "the path of this program is not UTF-8, so kd cannot offer its tools to agents";
            Failure::new(FailureKind::Invalid, said).advise("move it to a folder with another name")
        })?;
        let words = std::iter::once(&server.program).chain(&server.args);
        let words = words.cloned().collect();
        let told = ToolServer {
            program,
            args,
            ..server.clone()
        };
        Ok((Some(told), words))
    }

    fn spec_of(
        &self,
        launch: Launch,
        folder: PathBuf,
        input: Option<Vec<u8>>,
        (rights, tools): (Option<Rights>, Vec<String>),
    ) -> Spec {
        Spec {
            label: self.choice.name.clone(),
            program: launch.program,
            args: launch.args,
            env: launch.env,
            folder,
            input,
            rights,
            tools,
            gentle: launch.gentle,
            grace: GRACE,
        }
    }

    /// Returns the program, its arguments and its environment.
    fn launch(
        &self,
        call: &Call<'_>,
        arguments: fn(&Call<'_>) -> Vec<OsString>,
    ) -> Result<Launch, Failure> {
        depth::check(&self.env)?;
        let to_write = SHARED_TO_WRITE.iter().filter(|_| call.writable).copied();
        let more = self.choice.sees.iter().map(String::as_str).chain(to_write);
        let mut launch = match &self.how {
            How::Known(program) => {
                allowed(
                    program,
                    call,
                    self.choice.trusted,
                    self.env.home().as_deref(),
                )?;
                let own = program.sees(|name| self.env.on(name));
                let mut env = self.seen(own.into_iter().chain(more));
                for (name, value) in program.given {
                    // The user's own value wins.
                    if !env.iter().any(|(seen, _)| seen == name) {
                        env.push(((*name).into(), (*value).into()));
                    }
                }
                for (name, value) in (program.variables)(call) {
                    env.retain(|(seen, _)| *seen != name);
                    env.push((name, value));
                }
                let (at, mut args) = self.find(program)?;
                let reads = (self.is_told_reads() && !call.writable)
                    .then(|| self.reads(&at, call.folder))
                    .transpose()?;
                let reads = reads.as_deref();
                args.extend(arguments(&Call { reads, ..*call }));
                Launch {
                    program: at,
                    args,
                    env,
                    gentle: program.gentle,
                }
            }
            How::Template { argv, .. } => {
                let fill = |word: &String| -> OsString {
                    let word = word.replace("{model}", call.model.unwrap_or_default());
                    let word = word.replace("{folder}", &call.folder.to_string_lossy());
                    word.into()
                };
                let mut filled = argv.iter().map(fill);
                drop(filled.next());
                Launch {
                    program: self.program()?,
                    args: filled.collect(),
                    env: self.seen(more),
                    gentle: Gentle::Terminate,
                }
            }
        };
        let role = if call.writable {
            "council-writable"
        } else {
            "council"
        };
        launch.env.push(("KD_ROLE".into(), role.into()));
        let depth = depth::of(&self.env).saturating_add(1);
        let name = depth::VARIABLE.to_owned();
        launch.env.push((name, depth.to_string()));
        Ok(launch)
    }

    /// Returns the shared variables, the named ones, and those set for every program.
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

    /// Returns the path of a known program, and the arguments that precede all others.
    fn find(&self, program: &Program) -> Result<(PathBuf, Vec<OsString>), Failure> {
        if let Some((name, args)) = self.choice.command.split_first() {
            let at = self
                .locate(name)
                .ok_or_else(|| missing(name, "correct `agents.<name>.command`"))?;
            return Ok((at, args.iter().map(OsString::from).collect()));
        }
        let set = program.path_variable.and_then(|name| self.env.get(name));
        let found = match &set {
            Some(path) => self.locate(path),
            None => program.names.iter().find_map(|name| self.locate(name)),
        };
        found.map(|at| (at, Vec::new())).ok_or_else(|| {
            let name = set.as_deref().unwrap_or(program.names[0]);
            missing(name, &format!("install it with {}", program.install))
        })
    }

    /// Finds a program: a name on the `PATH` of the given environment, a path relative to the folder in which `kd` was
    /// started, wherever the agent works.
    fn locate(&self, name: &str) -> Option<PathBuf> {
        let folders = self.env.get("PATH").unwrap_or_default();
        which::which_in(self.env.expand(name), Some(folders), self.start()?).ok()
    }

    /// The folder from which a relative path of a program is read.
    fn start(&self) -> Option<PathBuf> {
        let start = self.choice.start.clone();
        start.or_else(|| std::env::current_dir().ok())
    }
}

/// Checks whether a program may be started in a folder. A program that runs code from the folder at startup may be
/// started only if the user trusts the folder. The check looks as far up as the program does: to the top of the
/// repository; outside of a repository to the root, where trust in the folder does not extend to its parents. The home
/// directory and folders above it are the user's own.
fn allowed(
    program: &Program,
    call: &Call<'_>,
    trusted: bool,
    home: Option<&Path>,
) -> Result<(), Failure> {
    let folder = call
        .folder
        .canonicalize()
        .unwrap_or_else(|_| call.folder.into());
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.into()));
    let top = checkout::top(&folder);
    for up in folder.ancestors() {
        let is_home = home.as_ref().is_some_and(|home| home.starts_with(up));
        let is_trusted = trusted && (top.is_some() || up == folder);
        let found = program.runs.iter().map(|name| up.join(name));
        let mut found = found.filter(|path| path.symlink_metadata().is_ok());
        if let (false, false, Some(path)) = (is_home, is_trusted, found.next()) {
            let said = format!(
                "{} would run what {} names, and {} is not trusted",
                program.title,
                path.display(),
                up.display()
            );
            return Err(Failure::new(FailureKind::Invalid, said).advise(match trusted {
                true => "remove it, or make your folder a git repository, above which nothing is run",
                false => "check it, then type `kd trust`; or remove the member from the council",
            }));
        }
        if Some(up) == top {
            break;
        }
    }
    Ok(())
}

/// Returns the program and arguments of a bridge to a tool server, if available.
fn bridge() -> Option<(String, Vec<String>)> {
    #[cfg(target_os = "linux")]
    {
        use crate::transport::{keeper, tools};
        let program = keeper::bridge()?.into_os_string().into_string().ok()?;
        Some((program, vec![tools::BRIDGE.to_owned()]))
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns the access that a command gets by its program's name: paths that it may write even in read-only turns, and
/// whether it runs outside of Landlock. A program that belongs to the folder gets neither.
pub fn given_by_name(argv: &[String], folder: &Path, env: &Env) -> (Vec<String>, bool) {
    let path = env.get("PATH").unwrap_or_default();
    let at = argv
        .first()
        .and_then(|name| which::which_in(env.expand(name), Some(path), folder).ok());
    let name = reach::name(argv, at.as_deref(), folder, env);
    let name = name.as_deref();
    (
        name.map(reach::state).unwrap_or_default(),
        name.is_some_and(reach::own_sandbox),
    )
}

/// The command line and environment of a program.
struct Launch {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(String, String)>,
    gentle: Gentle,
}

/// Starts a program in one of its forms.
pub(super) fn started(
    spec: Spec,
    form: fn(Spec) -> std::io::Result<Running>,
) -> Result<Running, Failure> {
    let program = spec.program.clone();
    form(spec).map_err(|error| {
        let said = format!("`{}` cannot be started: {error}", program.display());
        let failure = Failure::new(FailureKind::Missing, said);
        if Errno::from_io_error(&error) == Some(Errno::NOEXEC) {
            return failure.advise("start a script with its interpreter, such as `#!/bin/sh`");
        }
        failure
    })
}

pub(super) fn unspoken() -> Failure {
    Failure::new(
        FailureKind::Missing,
        "the program uses an output format unknown to kd",
    )
}

pub(super) fn unreadable(error: &std::io::Error) -> Failure {
    let said = format!("the program's output cannot be read: {error}");
    Failure::new(FailureKind::Crashed, said)
}

/// Returns a delta that is only a sign of life.
pub(super) fn alive() -> Delta {
    Delta::Text {
        text: String::new(),
    }
}

/// Returns whether a delta is text of the answer or of the thinking before it.
pub(super) fn is_words(delta: &Delta) -> bool {
    matches!(delta, Delta::Text { text } | Delta::Thinking { text } if !text.is_empty())
}

/// Counts the length of an answer so far.
///
/// # Errors
/// The answer is too long.
pub(super) fn bounded(delta: &Delta, length: &mut usize) -> Result<(), Failure> {
    match delta {
        Delta::Text { text } | Delta::Thinking { text } => *length += text.len(),
        Delta::Retrying { .. } => *length = 0,
        _ => {}
    }
    if *length <= ANSWER_MAX {
        return Ok(());
    }
    let said = format!(
        "stopped: the answer exceeded {} MiB",
        ANSWER_MAX / 1024 / 1024
    );
    Err(Failure::new(FailureKind::Invalid, said))
}

fn missing(name: &str, advice: &str) -> Failure {
    Failure::new(
        FailureKind::Missing,
        format!("the program `{name}` was not found"),
    )
    .advise(advice)
}

/// Returns the prompt in blocks. Programs share no way to enforce a schema, so it is part of the text.
fn blocks(request: &Request) -> Vec<Block> {
    let mut blocks = request.prompt.blocks();
    if let (Some(schema), Some(last)) = (&request.schema, blocks.last_mut()) {
        last.text
            .push_str("\n\nAnswer with nothing but one JSON value that this JSON schema allows:\n");
        last.text.push_str(&schema.to_string());
    }
    if let Some(first) = blocks.first_mut().filter(|b| b.text.starts_with('/')) {
        // Programs would take such a beginning for a command of their own.
        first.text.insert_str(0, "The question:\n\n");
    }
    blocks
}

/// Returns the prompt as one text.
fn prompt(request: &Request) -> String {
    let blocks = blocks(request).into_iter();
    blocks.map(|block| block.text).collect()
}

impl Backend for AgentCli {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let writable = request.writable;
        let state = State::Asked(Box::new((self.clone(), request)));
        let agent = self.clone();
        let deltas = stream::unfold(state, |state| async move {
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
        });
        deltas
            .map(move |delta| delta.map_err(|failure| agent.advised(failure, writable)))
            .boxed()
    }
}

/// State of the stream.
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
        let dialect = agent.dialect().ok_or_else(unspoken)?;
        let running = started(spec, Running::start)?;
        Ok(Box::new(Self {
            running,
            reading: Reading::new(dialect),
            ready: VecDeque::new(),
            length: 0,
        }))
    }

    /// Returns the next delta and the new state.
    async fn next(mut self: Box<Self>) -> Option<(Result<Delta, Failure>, State)> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                if let Err(failure) = bounded(&delta, &mut self.length) {
                    return Some((Err(failure), State::Done));
                }
                return Some((Ok(delta), State::Running(self)));
            }
            if self.reading.over() {
                let end = self.reading.end(&Default::default());
                // It may still want to save its session.
                self.running.retire(PATIENCE);
                return Some((end, State::Done));
            }
            let bytes = match self.running.read().await {
                Ok(bytes) => bytes,
                Err(error) => return Some((Err(unreadable(&error)), State::Done)),
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
            if self.ready.iter().any(is_words) && !self.reading.over() {
                self.running.rest();
            }
            if self.ready.is_empty() && !self.reading.over() {
                // The input had nothing to show.
                self.ready.push_back(alive());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_a_budget_are_known_to_the_check_of_limits() {
        for program in PROGRAMS {
            let keeps = kd_core::config::keeps_budget(program.backend);
            assert_eq!(keeps, program.budget.is_some(), "{}", program.backend);
        }
    }

    #[test]
    fn hints_name_the_commands_of_each_program() {
        for program in PROGRAMS {
            let agent = AgentCli::new(program, Choice::default(), Env::default());
            let hint = |kind, message: &str| {
                let failure = agent.advised(Failure::new(kind, message), true);
                failure.hint().to_owned()
            };
            let expired = hint(FailureKind::Auth, "the token has expired");
            assert!(expired.contains(program.login), "{expired}");
            let old = hint(FailureKind::Invalid, "error: unknown option '--tools'");
            assert!(old.contains(program.install), "{old}");
            let known = program.least.or(program.tested);
            let least = known.unwrap_or("the newest version");
            assert!(old.contains(least), "{old}");
            let silent = agent.advice_unheard();
            assert!(silent.contains(program.title), "{silent}");
            assert!(silent.contains(program.login), "{silent}");
        }
    }

    #[test]
    fn a_budget_is_never_zero_and_what_is_reserved_is_what_is_told() {
        for program in PROGRAMS {
            let agent = || AgentCli::new(program, Choice::default(), Env::default());
            for (share, told) in [
                (None, None),
                (Some(BUDGET_STEP_PICO_USD), Some("0.0001")),
                (Some(BUDGET_STEP_PICO_USD * 20_000 + 1), Some("2.0000")),
                (Some(BUDGET_STEP_PICO_USD * 2 - 1), Some("0.0001")),
            ] {
                let (agent, budget) = agent().within(share).unwrap();
                let flag = program.budget.filter(|_| told.is_some());
                let expected: Vec<&str> = flag
                    .into_iter()
                    .chain(told.filter(|_| flag.is_some()))
                    .collect();
                assert_eq!(agent.choice.extra, expected);
                let reserved = budget.map(|pico| format!("{:.4}", pico as f64 / 1e12));
                assert_eq!(reserved.as_deref(), told.filter(|_| flag.is_some()));
            }
            for share in [0, 1, BUDGET_STEP_PICO_USD - 1] {
                let kind = agent()
                    .within(Some(share))
                    .err()
                    .map(|failure| failure.kind);
                let expected = program.budget.map(|_| FailureKind::Limit);
                assert_eq!(kind, expected, "{}", program.backend);
            }
        }
    }
}
