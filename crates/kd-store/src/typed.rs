//! Text that the user typed into a chat: drafts, and the input history. Stored in the user's state folder, so that no
//! project can put words into their mouth.
//!
//! Without a state folder nothing is saved.

use crate::error::Error;
use crate::layout::Layout;
use crate::lock::lock_path;
use crate::private;
use kd_core::ids::ThreadId;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A message may have 16 MiB.
const DRAFT_BYTES_MAX: u64 = 16 << 20;
/// Windows of one thread whose drafts are kept apart.
const WINDOWS_MAX: usize = 9;
/// Only the newest are offered again.
const SENT_BYTES_MAX: u64 = 4 << 20;
/// Number of messages offered again.
const SENT_MAX: usize = 200;

/// The draft of one window in a thread. Other windows on the thread, also of other processes, have other drafts; a
/// window that was closed or killed leaves its draft to the next one.
#[derive(Debug, Default)]
pub struct WindowDraft {
    path: Option<PathBuf>,
    /// Places that were passed over because they cannot be read, one line each, until the user has seen them.
    unread: Vec<String>,
    /// Locked as long as the window is open.
    _lock: Option<File>,
}

impl WindowDraft {
    /// Takes a draft that no other window has: one that a closed window left, else an empty one. A draft file that
    /// cannot be read counts as in use and is not changed. Without a state folder, or with too many windows, nothing is
    /// saved.
    pub fn take(layout: &Layout, id: &ThreadId) -> Self {
        let mut free: Option<Self> = None;
        let mut unread = Vec::new();
        for path in draft_files(layout, id) {
            // The first free draft is used if no window left one.
            if free.is_some() && !path.exists() {
                continue;
            }
            let Ok(lock) = private::appending(&lock_path(&path)) else {
                continue;
            };
            if lock.try_lock().is_err() {
                continue;
            }
            let left = match read_draft(&path) {
                Ok(text) => !text.is_empty(),
                Err(error) => {
                    unread.push(format!("{error}; it stays as it is"));
                    continue;
                }
            };
            let draft = Self {
                path: Some(path),
                unread: Vec::new(),
                _lock: Some(lock),
            };
            if left {
                free = Some(draft);
                break;
            }
            free.get_or_insert(draft);
        }
        let mut taken = free.unwrap_or_default();
        taken.unread = unread;
        taken
    }

    /// Returns the text; empty if there is none, or it cannot be read any more.
    pub fn text(&self) -> String {
        let read = self.path.as_deref().map(read_draft);
        read.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns which drafts cannot be read and why, one line each; the first time only.
    pub fn unread(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unread)
    }

    /// Saves the text; removes the file if it is empty.
    ///
    /// # Errors
    /// The state folder cannot be written, or something that cannot be read has come to the place: it stays.
    pub fn keep(&self, text: &str) -> Result<(), Error> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        read_draft(path)?;
        match text.is_empty() {
            true => private::remove(path),
            false => private::replace(path, text.as_bytes()),
        }
    }
}

/// Returns the paths of the drafts in a thread, one for each window; there may be no file.
fn draft_files(layout: &Layout, id: &ThreadId) -> impl Iterator<Item = PathBuf> {
    (1..=WINDOWS_MAX).filter_map(|window| layout.draft_file(id, window))
}

/// Reads a whole draft; empty if there is none.
fn read_draft(path: &Path) -> Result<String, Error> {
    let bytes = private::read(path, DRAFT_BYTES_MAX)?.unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| Error::Unsafe {
        path: path.to_path_buf(),
        why: "it is not UTF-8",
    })
}

/// Forgets the drafts in a thread for whose text `goes` is true. Returns their paths; changes nothing in a dry run.
pub(crate) fn forget_drafts(
    layout: &Layout,
    id: &ThreadId,
    goes: &dyn Fn(&str) -> bool,
    dry: bool,
) -> Result<Vec<PathBuf>, Error> {
    let mut gone = Vec::new();
    for path in draft_files(layout, id) {
        // Also of a draft that no window takes.
        let bytes = private::read_end(&path, DRAFT_BYTES_MAX).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        if text.is_empty() || !goes(&text) {
            continue;
        }
        if !dry {
            private::remove(&path)?;
            private::remove(&lock_path(&path))?;
        }
        gone.push(path);
    }
    Ok(gone)
}

/// Returns the messages sent last on this branch, oldest first.
pub fn sent(layout: &Layout) -> Vec<String> {
    let path = layout.sent_file();
    let bytes = path.and_then(|path| private::read_end(&path, SENT_BYTES_MAX).ok());
    newest(&bytes.unwrap_or_default())
}

/// Remembers a message that was sent on this branch.
///
/// # Errors
/// The state folder cannot be written.
pub fn remember(layout: &Layout, text: &str) -> Result<(), Error> {
    let Some(path) = layout.sent_file() else {
        return Ok(());
    };
    let failed = |source| Error::Json {
        path: path.clone(),
        source,
    };
    let mut line = serde_json::to_vec(text).map_err(failed)?;
    line.push(b'\n');
    let size = fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
    if size > SENT_BYTES_MAX {
        // Messages are remembered only for the input line: those no longer offered may be dropped.
        let mut kept = Vec::new();
        for text in sent(layout) {
            kept.extend(serde_json::to_vec(&text).map_err(failed)?);
            kept.push(b'\n');
        }
        private::replace(&path, &kept)?;
    }
    private::append(&path, &line).map(drop)
}

/// Forgets the messages sent on this branch for which `goes` is true. Returns their number; changes nothing in a dry
/// run.
pub(crate) fn forget_sent(
    layout: &Layout,
    goes: &dyn Fn(&str) -> bool,
    dry: bool,
) -> Result<usize, Error> {
    let Some(path) = layout.sent_file() else {
        return Ok(0);
    };
    let bytes = private::read_end(&path, 2 * SENT_BYTES_MAX)?;
    let mut kept = Vec::new();
    let mut gone = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // An incomplete line is never offered.
        match serde_json::from_slice::<String>(line) {
            Ok(text) if !goes(&text) => kept.extend_from_slice(line),
            _ => gone += 1,
        }
    }
    if gone > 0 && !dry {
        private::replace_synced(&path, &kept)?;
    }
    Ok(gone)
}

/// Saves text that could not be copied to a clipboard, and returns its file.
///
/// # Errors
/// [`Error::NoHome`] if the user has no state folder; [`Error::Io`] if it cannot be written.
pub fn keep_copied(layout: &Layout, text: &str) -> Result<PathBuf, Error> {
    let path = layout.copied_file().ok_or(Error::NoHome {
        variable: "XDG_STATE_HOME",
    })?;
    private::replace(&path, text.as_bytes())?;
    Ok(path)
}

/// Returns the last messages from the end of a file, whose first line may be incomplete.
fn newest(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let texts: Vec<String> = lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    texts[texts.len().saturating_sub(SENT_MAX)..].to_vec()
}
