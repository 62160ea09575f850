//! Runs `git` on an untrusted repository: runs no program that the repository names, writes nothing and fetches
//! nothing.
//!
//! Every `git` command of `kd` is built here. A repository can name: filters, `core.fsmonitor`, hooks, pagers, diff
//! drivers, credential helpers, transports, and another folder as its working tree.

use crate::checkout;
use crate::error::Error;
use kd_core::search_path;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Settings that override the settings of the repository.
const SETTINGS: [&str; 12] = [
    // It could be a file of the reviewed tree.
    "core.attributesFile=/dev/null",
    // Larger files are compared as binary: otherwise git uses twice their size in memory.
    "core.bigFileThreshold=16m",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    // Names in diffs keep bytes that are not UTF-8.
    "core.quotePath=true",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "diff.orderFile=/dev/null",
    "log.showSignature=false",
    "submodule.recurse=false",
];

/// Variables set for every command. All other variables of git are removed.
const VARIABLES: [(&str, &str); 5] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // No transport at all: a partial clone must not fetch missing objects.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
];

/// Arguments of `git diff` that exclude drivers and submodules, which have settings of their own.
pub const DIFF: [&str; 6] = [
    "--diff-algorithm=default",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
];

/// A filter's commands, and whether it is mandatory.
const FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Maximum number of filters to disable. Each takes four settings, which git parses for every command.
const FILTERS_MAX: usize = 256;

/// Time limit for one command. A pipe in place of a file named in the settings would block git forever.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Time limit for commands that read no file content, which are fast.
const LOOK_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum output that is read.
const OUTPUT_BYTES_MAX: u64 = 32 << 20;

/// A repository, accessed read-only.
#[derive(Clone, Debug)]
pub struct GitCommand {
    folder: PathBuf,
    /// Names of the disabled filters.
    filters: Vec<String>,
    limit: Duration,
    /// Additional git variables besides [`VARIABLES`].
    more: Vec<(&'static str, OsString)>,
}

impl GitCommand {
    /// Prepares git in this folder. Runs it once, to find the filters that the settings name.
    ///
    /// # Errors
    /// Git is missing or cannot read the settings, a filter has a name that cannot be overridden, or there are more
    /// than 256 filters.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        Self::within(folder, TIME_MAX)
    }

    /// Like [`GitCommand::new`], with a time limit for each command.
    ///
    /// # Errors
    /// Those of [`GitCommand::new`].
    pub fn within(folder: &Path, limit: Duration) -> Result<Self, Error> {
        let mut git = Self {
            limit,
            ..Self::without_filters(folder)
        };
        let output = git.output(&[
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^filter\.",
        ])?;
        // 1: there are none.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(git.failed(&output));
        }
        for key in output.stdout.split(|byte| *byte == 0) {
            let key = String::from_utf8_lossy(key);
            let name = key
                .strip_prefix("filter.")
                .and_then(|key| key.rsplit_once('.'));
            let Some((name, _)) = name else { continue };
            // An override's key ends at the first `=`.
            if name.contains(['=', '\n', '\u{fffd}']) {
                return Err(Error::Git {
                    path: git.folder,
                    why: format!("the filter {name:?} in its settings cannot be switched off"),
                });
            }
            git.filters.push(name.to_owned());
        }
        git.filters.sort();
        git.filters.dedup();
        if git.filters.len() > FILTERS_MAX {
            let why = format!(
                "its settings name {} filters, and at most {FILTERS_MAX} are switched off",
                git.filters.len()
            );
            return Err(Error::Git {
                path: git.folder,
                why,
            });
        }
        Ok(git)
    }

    /// Prepares git in this folder for commands that read no file content, which run no filter.
    pub(crate) fn without_filters(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            filters: Vec::new(),
            limit: LOOK_TIME_MAX,
            more: Vec::new(),
        }
    }

    /// Returns the top of the working tree.
    ///
    /// # Errors
    /// If there is no checkout, or if the settings name another folder than the one with `.git`: git would read the
    /// files of that folder instead of the repository's.
    pub fn top(&self) -> Result<PathBuf, Error> {
        let said = self.read(&["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(said.trim_end_matches(['\n', '\r']));
        let folder = self
            .folder
            .canonicalize()
            .map_err(Error::io("read", &self.folder))?;
        let holder = checkout::top(&folder);
        match top.canonicalize() {
            Ok(real) if holder == Some(real.as_path()) => Ok(top),
            _ => Err(Error::Git {
                path: self.folder.clone(),
                why: format!(
                    "its settings name another working tree, {} (`core.worktree`)",
                    top.display()
                ),
            }),
        }
    }

    /// Returns the same git in another folder of this repository.
    #[must_use]
    pub fn at(&self, folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            ..self.clone()
        }
    }

    /// Returns the same git, which takes attributes from a commit or tree, not from the files on disk: those say which
    /// files are compared as text, and how they are converted. Git before 2.41 ignores this.
    #[must_use]
    pub fn with_attributes_of(&self, tree: &str) -> Self {
        let mut git = self.clone();
        git.more.push(("GIT_ATTR_SOURCE", tree.into()));
        git
    }

    /// Applies a diff to a commit; returns git for the result, and the resulting tree. Index and new objects are in
    /// `scratch`, a folder of the caller: the repository is unchanged, and only the returned git knows the tree.
    ///
    /// # Errors
    /// The diff does not apply to the commit, or git fails.
    pub fn applied(
        &self,
        commit: &str,
        diff: &Path,
        scratch: &Path,
    ) -> Result<(Self, String), Error> {
        let objects = self.read(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])?;
        let own = scratch.join("objects");
        std::fs::create_dir_all(&own).map_err(Error::io("make", &own))?;
        let mut git = self.clone();
        git.more = vec![
            ("GIT_INDEX_FILE", scratch.join("index").into()),
            ("GIT_OBJECT_DIRECTORY", own.into()),
            (
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                objects.trim_end_matches(['\n', '\r']).into(),
            ),
        ];
        let diff = diff.to_str().ok_or_else(|| Error::Git {
            path: self.folder.clone(),
            why: format!("{} is no UTF-8", diff.display()),
        })?;
        git.read(&["read-tree", commit])?;
        git.read(&["apply", "--cached", "--whitespace=nowarn", "--", diff])?;
        let tree = git.read(&["write-tree"])?;
        Ok((git, tree.trim().to_owned()))
    }

    /// Builds a command, ready to be started.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(&self.folder)
            .env(
                "PATH",
                search_path::absolute(std::env::var_os("PATH").as_deref()),
            )
            .stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command
            .envs(VARIABLES)
            .envs(self.more.iter().map(|(name, value)| (*name, value)))
            .arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for name in &self.filters {
            for what in FILTER {
                let value = if what == "required" { "false" } else { "" };
                command.args(["-c", &format!("filter.{name}.{what}={value}")]);
            }
        }
        command.args(args);
        command
    }

    /// Returns git's output, up to 32 MiB.
    ///
    /// # Errors
    /// Git cannot be started, fails, or exceeds its time limit.
    pub fn read(&self, args: &[&str]) -> Result<String, Error> {
        let output = self.output(args)?;
        let is_cut = output.stdout.len() as u64 == OUTPUT_BYTES_MAX;
        match output.status.success() || is_cut {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(self.failed(&output)),
        }
    }

    /// Returns git's complete output as bytes; `None` if it is longer than 32 MiB.
    ///
    /// # Errors
    /// Those of [`GitCommand::read`].
    pub fn read_whole<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Option<Vec<u8>>, Error> {
        let output = self.output(args)?;
        if output.stdout.len() as u64 == OUTPUT_BYTES_MAX {
            return Ok(None);
        }
        match output.status.success() {
            true => Ok(Some(output.stdout)),
            false => Err(self.failed(&output)),
        }
    }

    /// Returns a command's exit status and output.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Output, Error> {
        run(self.command(args), self.limit).map_err(|error| Error::Git {
            path: self.folder.clone(),
            why: error.to_string(),
        })
    }

    /// Builds the error for a failed command.
    pub(crate) fn failed(&self, output: &Output) -> Error {
        Error::Git {
            path: self.folder.clone(),
            why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }
}

/// Runs a git command to its end, up to this time limit; keeps up to 32 MiB of its output.
///
/// # Errors
/// It cannot be started or takes longer.
fn run(mut command: Command, limit: Duration) -> io::Result<Output> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("git cannot be started: {error}"));
    // A new process group, so that git's children end with it.
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn().map_err(named)?;
    let (told, heard) = mpsc::channel();
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|out| Box::new(out) as _),
        child.stderr.take().map(|err| Box::new(err) as _),
    ];
    for (which, stream) in streams.into_iter().enumerate() {
        let told = told.clone();
        std::thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            let read = stream.map(|stream| stream.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
            // After the timeout nothing receives this.
            let _ = told.send((which, read.transpose().map(|_| bytes)));
        })?;
    }
    let end = Instant::now() + limit;
    let mut texts = [Vec::new(), Vec::new()];
    for _ in 0..texts.len() {
        let left = end.saturating_duration_since(Instant::now());
        let Ok((which, bytes)) = heard.recv_timeout(left) else {
            finish(&mut child);
            let seconds = limit.as_secs_f64();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "git took longer than {seconds} s: is a file that its settings include a pipe?"
                ),
            ));
        };
        texts[which] = bytes?;
        // It would block, because the rest of its output is not read.
        if texts[which].len() as u64 == OUTPUT_BYTES_MAX {
            finish(&mut child);
        }
    }
    let status = child.wait()?;
    let [stdout, stderr] = texts;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

fn finish(child: &mut std::process::Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}
