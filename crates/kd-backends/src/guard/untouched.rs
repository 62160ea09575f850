//! Detects files changed during a read-only turn. Output: the same stream, with a notice before its end if files
//! changed meanwhile, or if the folder could not be watched.
//!
//! Compares two snapshots of the folder, whether git tracks it or not; runs no program. The first is taken concurrently
//! with the agent, which usually takes longer to start, and files written after the turn began count even if that
//! snapshot already has them.

use super::snapshot::{Files, Unwatched, changed, snapshot};
use crate::Backend;
use crate::checkout;
use crate::env::Env;
use futures::stream::{self, BoxStream, StreamExt};
use kd_core::{Delta, Failure, Request};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::task::JoinHandle;

/// Maximum number of files that are named; the rest are counted.
const NAMED_MAX: usize = 3;

/// Watches read-only turns of agents that work in a folder.
pub struct Untouched {
    inner: Arc<dyn Backend>,
    env: Env,
    folder: Option<PathBuf>,
}

impl Untouched {
    /// Wraps this backend, whose agent works in this folder, or in the current one.
    pub fn new(inner: Arc<dyn Backend>, env: Env, folder: Option<PathBuf>) -> Self {
        Self { inner, env, folder }
    }

    /// Returns the folder to watch: the repository in which the agent works, or its folder if it is in no repository.
    fn top(&self) -> Option<PathBuf> {
        let folder = self.folder.clone();
        let folder = folder.or_else(|| std::env::current_dir().ok())?;
        let top = checkout::top_of_git(&folder)
            .unwrap_or(&folder)
            .to_path_buf();
        // Files in the home directory change all the time.
        (self.env.home().as_ref() != Some(&top)).then_some(top)
    }
}

impl Backend for Untouched {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let (Some(folder), false) = (self.top(), request.writable) else {
            return self.inner.ask(request);
        };
        let watch = Watch {
            deltas: self.inner.ask(request),
            folder,
            began: SystemTime::now(),
            before: None,
            end: None,
            dropped: Arc::default(),
        };
        stream::unfold(Some(watch), |watch| async move {
            let mut watch = watch?;
            if let Some(end) = watch.end.take() {
                return Some((end, None));
            }
            if watch.before.is_none() {
                watch.before = Some(watch.look());
            }
            match watch.deltas.next().await? {
                Ok(delta) if !matches!(delta, Delta::Finished { .. }) => {
                    Some((Ok(delta), Some(watch)))
                }
                end => match watch.compare().await {
                    Some(notice) => {
                        watch.end = Some(end);
                        Some((Ok(notice), Some(watch)))
                    }
                    None => Some((end, None)),
                },
            }
        })
        .boxed()
    }
}

/// A watched turn.
struct Watch {
    deltas: BoxStream<'static, Result<Delta, Failure>>,
    folder: PathBuf,
    began: SystemTime,
    before: Option<JoinHandle<Result<Files, Unwatched>>>,
    /// The end of the turn, held back until the notice has been sent.
    end: Option<Result<Delta, Failure>>,
    dropped: Arc<AtomicBool>,
}

impl Watch {
    fn look(&self) -> JoinHandle<Result<Files, Unwatched>> {
        let (folder, dropped) = (self.folder.clone(), Arc::clone(&self.dropped));
        tokio::task::spawn_blocking(move || snapshot(&folder, &dropped))
    }

    /// Returns the notice for the end of the turn, if any.
    async fn compare(&mut self) -> Option<Delta> {
        let unwatched = match self.before.take()?.await.ok()? {
            Ok(before) => match self.look().await.ok()? {
                Ok(after) => {
                    let mut changed = changed(&before, &after, self.began);
                    // Files under `.git` come last: a new repository contains many of them.
                    changed.sort_by_key(|path| path.iter().any(|part| part == ".git"));
                    return (!changed.is_empty()).then(|| told(&changed, &self.folder));
                }
                Err(unwatched) => unwatched,
            },
            Err(unwatched) => unwatched,
        };
        let text = match unwatched {
            Unwatched::Stopped => return None,
            Unwatched::TooLarge => format!(
                "{} is too large to watch: files changed during read-only turns would not be noticed",
                self.folder.display()
            ),
        };
        first(&self.folder).then_some(Delta::Notice { text })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The process cannot exit before threads that still scan.
        self.dropped.store(true, Ordering::Relaxed);
    }
}

/// Returns whether this folder is reported for the first time in this process: once is enough.
fn first(folder: &Path) -> bool {
    static SAID: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    said.insert(folder.to_path_buf())
}

fn told(changed: &[PathBuf], folder: &Path) -> Delta {
    let name = |path: &PathBuf| -> String {
        let name = path.to_string_lossy();
        name.chars().filter(|c| !c.is_control()).collect()
    };
    let mut names: Vec<String> = changed.iter().take(NAMED_MAX).map(name).collect();
    if changed.len() > NAMED_MAX {
        names.push(format!("{} more", changed.len() - NAMED_MAX));
    }
    let look = match folder.join(".git").exists() {
        true => " (`git status`, `git diff`)",
        false => "",
    };
    Delta::Notice {
        text: format!(
            "files changed during this read-only turn: {}; if you did not change them, the agent did{look}",
            names.join(", ")
        ),
    }
}
