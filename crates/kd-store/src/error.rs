//! Errors of files on disk. Every error names its path and says what to do next.

use crate::bounds::Bound;
use kd_core::formats::Newer;
use kd_core::size::size;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file that others can write is not used: see [`Error::Unsafe`].
pub(crate) const OTHERS_WRITE: &str = "others can write it";
use std::time::Duration;

/// The reason why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `.kd` folder here or in a parent folder.
    #[error("no `.kd` folder in {start} or any folder above it")]
    NoBase {
        /// The folder in which the search began.
        start: PathBuf,
    },
    /// `KD_BASE` points to a folder without `.kd`.
    #[error("KD_BASE is {path}, which has no `.kd` folder")]
    BadBase {
        /// The variable's value.
        path: PathBuf,
    },
    /// The user's folders are unknown.
    #[error("there is no folder for your own files: neither HOME nor {variable} is set")]
    NoHome {
        /// The variable that names the folder.
        variable: &'static str,
    },
    /// A file or folder is under another user's control, where only the user's own is allowed.
    #[error("{path} is not used: {why}")]
    Unsafe {
        /// The file or folder.
        path: PathBuf,
        /// The reason it is invalid.
        why: &'static str,
    },
    /// A text cannot name a branch, thread or sender, because no character of it is allowed in a file name.
    #[error("`{text}` cannot name a {what}: it has no ASCII letter or digit")]
    BadName {
        /// The rejected text.
        text: String,
        /// The kind of thing that it should name.
        what: &'static str,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The operation, as an infinitive.
        action: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A path below `.kd`, or `.kd` itself, is a link.
    #[error("{path} is a link; kd does not follow links below `.kd`")]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A path is of another type than expected.
    #[error("{path} is {kind}, not {wanted}")]
    WrongKind {
        /// Its path.
        path: PathBuf,
        /// Its type.
        kind: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
    /// A file exceeds the size limit of its kind.
    #[error("{path} has {}; {} has at most {}", size(*bytes), bound.what, size(bound.bytes))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        bound: Bound,
    },
    /// A file that would be changed in place has another hard link.
    #[error("{path} has a second name (a hard link); kd does not write into such a file")]
    SecondName {
        /// The file.
        path: PathBuf,
    },
    /// A folder has too many entries to be listed.
    #[error("{path} holds more than {most} files")]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The limit.
        most: usize,
    },
    /// Another process held the lock for too long.
    #[error("{path} is locked{holder} and was not released within {waited:?}")]
    LockBusy {
        /// The lock file.
        path: PathBuf,
        /// ` by process N`, or empty if unknown.
        holder: String,
        /// The time that this process waited.
        waited: Duration,
    },
    /// Another process streams the same member's answer in this thread.
    #[error("another process already streams into {path}")]
    StreamBusy {
        /// The stream file.
        path: PathBuf,
    },
    /// There is no such thread.
    #[error("there is no thread `{wanted}` in {path}")]
    NoThread {
        /// The requested id.
        wanted: String,
        /// The folder that was searched.
        path: PathBuf,
        /// Existing threads, newest last.
        near: Vec<String>,
    },
    /// Several threads begin with this text.
    #[error("`{wanted}` could be {}", candidates.join(", "))]
    AmbiguousThread {
        /// The requested id.
        wanted: String,
        /// The folder that was searched.
        path: PathBuf,
        /// All threads that begin with it.
        candidates: Vec<String>,
    },
    /// There is no message with this number.
    #[error("there is no message {seq} in {path}")]
    NoMessage {
        /// The thread's folder.
        path: PathBuf,
        /// The number.
        seq: u32,
    },
    /// A JSON file is malformed.
    #[error("{path} is invalid: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's error, with line and column.
        source: serde_json::Error,
    },
    /// A price table is invalid.
    #[error("{path} is not a table of prices: {why}")]
    Prices {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file was written by a newer kd.
    #[error("{path} has {newer}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        newer: Newer,
    },
    /// Other writers took every number that was tried.
    #[error("{tries} numbers in a row were taken by others while writing to {path}")]
    Crowded {
        /// The thread's folder.
        path: PathBuf,
        /// The number of attempts.
        tries: u32,
    },
    /// The highest possible number is used.
    #[error("{path} holds message {}, the last number there is", u32::MAX)]
    NumbersExhausted {
        /// The thread's folder.
        path: PathBuf,
    },
    /// A `git` command failed.
    #[error("git failed in {path}: {why}")]
    Git {
        /// The folder.
        path: PathBuf,
        /// Its error message.
        why: String,
    },
}

impl Error {
    /// Builds an [`Error::Io`], for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }

    /// Returns whether the error rejects content below `.kd`: a link, a pipe, a file of absurd size.
    pub fn is_refused_file(&self) -> bool {
        matches!(
            self,
            Error::Link { .. }
                | Error::WrongKind { .. }
                | Error::TooLarge { .. }
                | Error::SecondName { .. }
                | Error::TooMany { .. }
        )
    }

    /// Returns the file or folder that the error is about.
    pub fn path(&self) -> Option<&Path> {
        Some(match self {
            Error::NoBase { start: path }
            | Error::BadBase { path }
            | Error::Unsafe { path, .. }
            | Error::Io { path, .. }
            | Error::Link { path }
            | Error::WrongKind { path, .. }
            | Error::TooLarge { path, .. }
            | Error::SecondName { path }
            | Error::TooMany { path, .. }
            | Error::LockBusy { path, .. }
            | Error::StreamBusy { path }
            | Error::NoThread { path, .. }
            | Error::AmbiguousThread { path, .. }
            | Error::NoMessage { path, .. }
            | Error::Json { path, .. }
            | Error::Prices { path, .. }
            | Error::Newer { path, .. }
            | Error::Crowded { path, .. }
            | Error::NumbersExhausted { path }
            | Error::Git { path, .. } => path,
            Error::BadName { .. } | Error::NoHome { .. } => return None,
        })
    }

    /// Suggests what to do next.
    pub fn hint(&self) -> String {
        match self {
            Error::NoBase { .. } => {
                "ask a question here (`kd ask \"…\"` creates the folder), or go to a project that has one".into()
            }
            Error::BadBase { .. } => {
                "set KD_BASE to the folder that holds `.kd`, not to `.kd` itself, or unset it".into()
            }
            Error::NoHome { variable } => format!("set HOME or {variable}"),
            Error::Unsafe { path, why } if *why == OTHERS_WRITE => format!(
                "see whether it has only what you put there: then `chmod go-w {}`, else move it away",
                path.display()
            ),
            Error::Unsafe { path, .. } => format!(
                "check {}; move it away, or replace it with your own folder",
                path.display()
            ),
            Error::BadName { what, .. } => format!("give the {what} a name with at least one ASCII letter or digit"),
            Error::Io { source, path, .. } => io_hint(source, path),
            Error::Link { path } if crate::layout::is_base(path) => {
                "set KD_BASE to the folder that holds it to use it anyway, or replace it with a folder".into()
            }
            Error::Link { .. } => {
                "remove it, or replace it with what it points to; `kd fsck --repair` moves a link aside and leaves its target alone".into()
            }
            Error::WrongKind { .. } => "remove it; `kd fsck --repair` moves it aside".into(),
            Error::TooLarge { path, .. } => format!("remove {}, or make it smaller", path.display()),
            Error::SecondName { path } => {
                let path = path.display();
                format!("replace it with a copy: cp {path} {path}.own && mv {path}.own {path}")
            }
            Error::TooMany { path, .. } => format!("move what does not belong there out of {}", path.display()),
            Error::LockBusy { path, .. } => format!(
                "wait for the other program to end, or stop it; {} can stay",
                path.display()
            ),
            Error::StreamBusy { .. } => {
                "another kd asks this member in this thread: wait for it, or start a new thread".into()
            }
            Error::NoThread { near, .. } if near.is_empty() => {
                "there are no threads yet: `kd ask \"…\"` starts the first".into()
            }
            Error::NoThread { near, .. } => {
                let newest: Vec<_> = near.iter().rev().take(5).cloned().collect();
                format!(
                    "threads here: {}; `kd list --all` shows those of other branches",
                    newest.join(", ")
                )
            }
            Error::AmbiguousThread { .. } => "type more of the id".into(),
            Error::NoMessage { .. } => "`kd show` lists the messages of the thread".into(),
            Error::Json { path, .. } if path.file_name().is_some_and(|name| name == "marks.db") => {
                "`kd marks export > marks.jsonl` first saves the marks that can be read; then `kd marks forget --all` and `kd marks import marks.jsonl`".into()
            }
            Error::Json { path, .. } => format!(
                "repair {} by hand, or move it away: kd rebuilds what it can",
                path.display()
            ),
            Error::Prices { .. } => "`kd prices update` downloads a new one, `kd prices reset` uses the built-in one".into(),
            Error::Newer { .. } => Newer::HINT.into(),
            Error::Crowded { .. } => "another program writes to the thread too fast: stop it, then try again".into(),
            Error::NumbersExhausted { .. } => "start a new thread".into(),
            Error::Git { .. } => "run `git status` there to see what is wrong".into(),
        }
    }
}

/// Returns whether a path is in a `.kd`: only that is elsewhere with KD_BASE.
fn is_below_kd(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".kd")
}

fn io_hint(source: &io::Error, path: &Path) -> String {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk or your quota is full: free some space, then try again; no partial file was left"
                .into()
        }
        io::ErrorKind::ReadOnlyFilesystem if is_below_kd(path) => {
            "the disk is mounted read-only: set KD_BASE to a folder that can be written".into()
        }
        io::ErrorKind::ReadOnlyFilesystem => "the disk is mounted read-only".into(),
        io::ErrorKind::PermissionDenied => {
            // What does not exist belongs to nobody.
            let there = path.ancestors().find(|place| place.symlink_metadata().is_ok());
            let check = format!(
                "check who owns {} and its permissions",
                there.unwrap_or(path).display()
            );
            match is_below_kd(path) {
                true => format!("{check}, or set KD_BASE to a folder of your own"),
                false => check,
            }
        }
        io::ErrorKind::NotFound => "it was moved or removed a moment ago; try again".into(),
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory | io::ErrorKind::AlreadyExists => {
            format!("{} is a file of another kind: move it away", path.display())
        }
        _ => format!("check {} and its disk, then try again", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_a_kd_is_elsewhere_with_kd_base() {
        let dir = tempfile::tempdir().unwrap();
        let hint = |path: &Path| io_hint(&io::Error::from(io::ErrorKind::PermissionDenied), path);
        let inside = hint(&dir.path().join("app/.kd/branches/main"));
        let outside = hint(&dir.path().join("state/kd/app-1"));
        let owner = format!(
            "check who owns {} and its permissions",
            dir.path().display()
        );
        assert_eq!(outside, owner);
        assert_eq!(
            inside,
            format!("{owner}, or set KD_BASE to a folder of your own")
        );
    }
}
