//! Whether an agent kept its hands off: the files of the repository before and after a read-only turn. Comes in: a
//! stream. Goes out: the same stream, with a notice before its end when files changed meanwhile.
//!
//! `git status` runs beside the agent, which mostly takes longer to begin than git to look; what was written after the
//! turn began counts even if git saw it already. A folder that is in no repository, or is too large to be looked at
//! quickly, is not watched. `.kd` is ours.

use crate::Backend;
use crate::env::Env;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, Request};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long git may take: a repository that is slower is not watched.
const LOOK: Duration = Duration::from_secs(2);
/// How far behind the clock the times of files may be: systems note them by ticks.
const TICK: Duration = Duration::from_millis(10);
/// Files that are named; the rest is counted.
const NAMED_MAX: usize = 3;

/// Watches over read-only turns of agents that work in a folder.
pub struct Untouched {
    inner: Arc<dyn Backend>,
    env: Env,
    folder: Option<PathBuf>,
}

impl Untouched {
    /// Guards this backend, whose agent works in this folder; else in ours.
    pub fn new(inner: Arc<dyn Backend>, env: Env, folder: Option<PathBuf>) -> Self {
        Self { inner, env, folder }
    }
}

/// A turn that is watched.
struct Watch {
    deltas: BoxStream<'static, Result<Delta, Failure>>,
    git: PathBuf,
    folder: PathBuf,
    began: SystemTime,
    before: Option<JoinHandle<Option<Files>>>,
    /// The end of the turn, held back until what came before it is told.
    end: Option<Result<Delta, Failure>>,
}

impl Backend for Untouched {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let place = || {
            let folder = self
                .folder
                .clone()
                .or_else(|| std::env::current_dir().ok())?;
            // Where no repository is, no program need be started to hear it.
            top(&folder)?;
            let path = self.env.get("PATH")?;
            let git = which::which_in("git", Some(path), &folder).ok()?;
            Some((git, folder))
        };
        let (Some((git, folder)), false) = (place(), request.writable) else {
            return self.inner.ask(request);
        };
        let watch = Watch {
            deltas: self.inner.ask(request),
            git,
            folder,
            began: SystemTime::now(),
            before: None,
            end: None,
        };
        stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            if let Some(end) = watch.end.take() {
                return Some((end, None));
            }
            if watch.before.is_none() {
                let (git, folder) = (watch.git.clone(), watch.folder.clone());
                watch.before = Some(tokio::spawn(async move { look(&git, &folder).await }));
            }
            match watch.deltas.next().await? {
                Ok(delta) if !matches!(delta, Delta::Finished { .. }) => {
                    Some((Ok(delta), Some(watch)))
                }
                end => {
                    let before = match watch.before.take() {
                        Some(before) => before.await.ok().flatten(),
                        None => None,
                    };
                    let after = match before {
                        Some(_) => look(&watch.git, &watch.folder).await,
                        None => None,
                    };
                    let changed = match (before, after) {
                        (Some(before), Some(after)) => changed(&before, &after, watch.began),
                        _ => Vec::new(),
                    };
                    if changed.is_empty() {
                        return Some((end, None));
                    }
                    watch.end = Some(end);
                    Some((Ok(told(&changed)), Some(watch)))
                }
            }
        })
        .boxed()
    }
}

/// The files that differ from the last commit: what git says of each, its size and when it was written.
type Files = BTreeMap<String, (String, u64, Option<SystemTime>)>;

async fn look(git: &Path, folder: &Path) -> Option<Files> {
    let mut command = Command::new(git);
    command
        // No program that the repository names is run.
        .args(["-c", "core.fsmonitor=false", "--no-optional-locks"])
        .args(["status", "--porcelain=v1", "-z", "--untracked-files=all"])
        .args(["--no-renames", "--", ":/", ":(top,exclude,glob)**/.kd/**"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.stdout(Stdio::piped());
    // Starting a program holds its thread up until it runs: not the one that hears the agent.
    let git = tokio::task::spawn_blocking(move || command.spawn());
    let seen = async { git.await.ok()?.ok()?.wait_with_output().await.ok() };
    let seen = timeout(LOOK, seen).await.ok()??;
    if !seen.status.success() {
        return None;
    }
    let top = top(folder)?;
    let entries = seen.stdout.split(|byte| *byte == 0);
    Some(
        entries
            .filter(|entry| entry.len() > 3)
            .map(|entry| {
                let entry = String::from_utf8_lossy(entry);
                let (how, path) = entry.split_at(3);
                let about = std::fs::symlink_metadata(top.join(path)).ok();
                let size = about.as_ref().map_or(0, std::fs::Metadata::len);
                let written = about.and_then(|about| about.modified().ok());
                (path.to_owned(), (how.to_owned(), size, written))
            })
            .collect(),
    )
}

/// The folder that git's paths start from; none outside of a repository.
fn top(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|folder| folder.join(".git").exists())
}

fn changed(before: &Files, after: &Files, began: SystemTime) -> Vec<String> {
    let since = |written: &Option<SystemTime>| written.is_some_and(|at| at + TICK >= began);
    let mut paths: Vec<String> = after
        .iter()
        .filter(|(path, now)| before.get(*path) != Some(now) || since(&now.2))
        .map(|(path, _)| path.clone())
        .collect();
    paths.extend(
        before
            .keys()
            .filter(|path| !after.contains_key(*path))
            .cloned(),
    );
    paths
}

fn told(changed: &[String]) -> Delta {
    let mut names: Vec<String> = changed
        .iter()
        .take(NAMED_MAX)
        .map(|path| path.chars().filter(|c| !c.is_control()).collect())
        .collect();
    if changed.len() > NAMED_MAX {
        names.push(format!("{} more", changed.len() - NAMED_MAX));
    }
    Delta::Notice {
        text: format!(
            "files changed during this read-only turn: {}; if that was not you, the agent broke its promise (`git status`, `git diff`)",
            names.join(", ")
        ),
    }
}
