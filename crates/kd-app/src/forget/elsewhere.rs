//! Copies that are not removed because they are not `kd`'s: git history, sessions of agent programs.

use crate::env::Env;
use kd_store::git_command::GitCommand;
use kd_store::{Layout, Place};
use std::path::PathBuf;
use std::time::Duration;

/// A possible copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its path.
    pub path: PathBuf,
    /// The description, and advice.
    pub why: String,
}

/// The places where agent programs keep the sessions of all questions: the program, the variable that moves its folder,
/// the default folder below the home folder, and the subfolder of sessions.
const PROGRAMS: &[(&str, &str, &str, &str)] = &[
    ("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects"),
    (
        "Claude Code",
        "CLAUDE_CONFIG_DIR",
        ".claude",
        "history.jsonl",
    ),
    ("Codex", "CODEX_HOME", ".codex", "sessions"),
    ("Codex", "CODEX_HOME", ".codex", "history.jsonl"),
    ("Codex", "CODEX_HOME", ".codex", "log"),
    ("Gemini CLI", "", ".gemini", "tmp"),
    ("Cursor", "CURSOR_CONFIG_DIR", ".cursor", "chats"),
    ("Cursor", "CURSOR_CONFIG_DIR", ".cursor", "projects"),
    ("OpenCode", "", ".local/share/opencode", "storage"),
    ("OpenCode", "", ".local/share/opencode", "log"),
    ("Goose", "", ".local/share/goose", "sessions"),
    ("Qwen Code", "", ".qwen", "tmp"),
    ("Copilot CLI", "", ".copilot", "history-session-state"),
    ("Copilot CLI", "", ".copilot", "logs"),
    ("Aider", "", "", ".aider.chat.history.md"),
];

/// Time limit for git to check whether a thread is committed.
const GIT_TIME: Duration = Duration::from_secs(10);

/// Returns possible copies, limited to paths that exist.
pub(super) fn found(layout: &Layout, places: &[&Place], env: &Env) -> Vec<Elsewhere> {
    let mut found: Vec<Elsewhere> = committed(layout, places).into_iter().collect();
    for (program, variable, folder, part) in PROGRAMS {
        let moved = env.var_os(variable).filter(|_| !variable.is_empty());
        let folder = match (moved, folder.is_empty()) {
            (Some(moved), _) => PathBuf::from(moved),
            (None, true) => layout.root().to_path_buf(),
            (None, false) => match env.var_os("HOME") {
                Some(home) => PathBuf::from(home).join(folder),
                None => continue,
            },
        };
        let path = folder.join(part);
        if path.is_absolute() && path.symlink_metadata().is_ok() {
            found.push(Elsewhere {
                path,
                why: format!("{program} keeps its own sessions here"),
            });
        }
    }
    found
}

/// Returns the git history as a copy, if a commit contains the threads.
fn committed(layout: &Layout, places: &[&Place]) -> Option<Elsewhere> {
    let git = GitCommand::within(layout.root(), GIT_TIME).ok()?;
    let paths = places.iter().filter_map(|place| place.path.to_str());
    let args = ["log", "--all", "-n", "1", "--format=%h", "--"];
    let args: Vec<&str> = args.into_iter().chain(paths).collect();
    let commit = git.read(&args).ok()?;
    let commit = commit.trim();
    (!commit.is_empty()).then(|| Elsewhere {
        path: layout.root().join(".git"),
        why: format!(
            "git has it in commit {commit} or older ones; `git filter-repo` rewrites history"
        ),
    })
}
