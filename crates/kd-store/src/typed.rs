//! Text that the user typed into a chat: drafts, and the input history. Stored in the user's state folder, so that no
//! project can put words into their mouth.
//!
//! Without a state folder nothing is saved.

use crate::error::Error;
use crate::layout::Layout;
use crate::private;
use kd_core::ids::ThreadId;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A message may have 16 MiB.
const DRAFT_BYTES_MAX: u64 = 16 << 20;
/// Only the newest are offered again.
const SENT_BYTES_MAX: u64 = 4 << 20;
/// Number of messages offered again.
const SENT_MAX: usize = 200;

/// Returns the draft of a message in a thread; empty if there is none, or it cannot be read.
pub fn draft(layout: &Layout, id: &ThreadId) -> String {
    let path = layout.draft_file(id);
    let bytes = path.and_then(|path| private::read_end(&path, DRAFT_BYTES_MAX).ok());
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Saves the draft of a message; removes it if it is empty.
///
/// # Errors
/// The state folder cannot be written.
pub fn keep_draft(layout: &Layout, id: &ThreadId, text: &str) -> Result<(), Error> {
    let Some(path) = layout.draft_file(id) else {
        return Ok(());
    };
    if !text.is_empty() {
        return private::replace(&path, text.as_bytes());
    }
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path)(e)),
        _ => Ok(()),
    }
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
    private::append(&path, &line)
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
