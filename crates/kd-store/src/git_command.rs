//! `git` as a reader of a repository that nobody trusts: no program that the repository names is run, nothing is written
//! and nothing is fetched.
//!
//! Every `git` command of `kd` is built here. What a repository can name: filters, `core.fsmonitor`, hooks, pagers, diff
//! drivers, credential helpers, transports, and another folder as its working tree.

use crate::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings that take the place of those of the repository.
const SETTINGS: [&str; 9] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "diff.orderFile=/dev/null",
    "log.showSignature=false",
    "submodule.recurse=false",
];

/// Variables that every command gets. All other variables of git are removed.
const VARIABLES: [(&str, &str); 5] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // No transport at all: a partial clone must not fetch what is missing.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
];

/// Arguments of `git diff` that keep drivers and submodules, which have settings of their own, out of it.
pub const DIFF: [&str; 5] = [
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
];

/// What a filter can be told to run, and whether it must.
const FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Filters that are switched off. Each takes four settings, which git parses anew for every command.
const FILTERS_MAX: usize = 256;

/// A repository that is only read.
#[derive(Clone, Debug)]
pub struct GitCommand {
    folder: PathBuf,
    /// Names of the filters that are switched off.
    filters: Vec<String>,
}

impl GitCommand {
    /// Git in this folder. Starts it once, to learn which filters the settings name.
    ///
    /// # Errors
    /// When git is not there or cannot read the settings, when a filter has a name that cannot be overridden, or when
    /// there are more than 256 filters.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let mut git = Self {
            folder: folder.to_path_buf(),
            filters: Vec::new(),
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
            // An override ends its key at the first `=`.
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

    /// The top of the working tree.
    ///
    /// # Errors
    /// When there is none, or when the settings name another folder than the one that holds `.git`: its files would be
    /// read in place of the repository's.
    pub fn top(&self) -> Result<PathBuf, Error> {
        let said = self.read(&["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(said.trim_end_matches(['\n', '\r']));
        let folder = self
            .folder
            .canonicalize()
            .map_err(Error::io("read", &self.folder))?;
        let holder = folder.ancestors().find(|up| up.join(".git").exists());
        match top.canonicalize() {
            Ok(real) if holder == Some(&real) => Ok(top),
            _ => Err(Error::Git {
                path: self.folder.clone(),
                why: format!(
                    "its settings name another working tree, {} (`core.worktree`)",
                    top.display()
                ),
            }),
        }
    }

    /// The same git in another folder of this repository.
    #[must_use]
    pub fn at(&self, folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            ..self.clone()
        }
    }

    /// A command, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.folder).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command.envs(VARIABLES).arg("--no-pager");
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

    /// What git prints.
    ///
    /// # Errors
    /// When it cannot be started, or fails.
    pub fn read(&self, args: &[&str]) -> Result<String, Error> {
        let output = self.output(args)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(self.failed(&output)),
        }
    }

    fn output(&self, args: &[&str]) -> Result<Output, Error> {
        self.command(args).output().map_err(|error| Error::Git {
            path: self.folder.clone(),
            why: format!("git cannot be started: {error}"),
        })
    }

    fn failed(&self, output: &Output) -> Error {
        Error::Git {
            path: self.folder.clone(),
            why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }
    }
}
