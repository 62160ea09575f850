//! The verdicts that this user's `kd` saw fall: `verdicts.jsonl` in the user's own state of the project, never below `.kd`.
//! What a folder says about a verdict can be anybody's; a digest in this file cannot.

use crate::error::Error;
use crate::layout::Layout;
use crate::private;
use kd_core::ids::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Only the newest notes are read: enough for half a million verdicts.
const BYTES_MAX: u64 = 64 << 20;

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Note {
    thread: String,
    verdict: String,
}

/// The verdicts of a project that this user's `kd` saw fall.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(BTreeMap<String, BTreeSet<String>>);

impl Verdicts {
    /// Returns whether a verdict of a thread with this digest fell here.
    pub fn holds(&self, thread: &ThreadId, digest: &str) -> bool {
        let of = self.0.get(&thread.0);
        of.is_some_and(|digests| digests.contains(digest))
    }
}

impl Layout {
    /// Returns the verdicts that this user's `kd` saw fall; none if that is unknown.
    pub fn verdicts(&self) -> Verdicts {
        let file = self.verdicts_file();
        let bytes = file.map(|file| private::read_end(&file, BYTES_MAX));
        let bytes = bytes.and_then(Result::ok).unwrap_or_default();
        let mut found = Verdicts::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(note) = serde_json::from_slice::<Note>(line) {
                found.0.entry(note.thread).or_default().insert(note.verdict);
            }
        }
        found
    }

    /// Notes the digest of a verdict that fell in a thread. Does nothing if the user has no state folder.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note_verdict(&self, thread: &ThreadId, digest: &str) -> Result<(), Error> {
        self.note_verdicts(thread, [digest.to_owned()])
    }

    /// Notes for a fork the verdicts of its source.
    pub(crate) fn note_forked_verdicts(
        &self,
        source: &ThreadId,
        fork: &ThreadId,
    ) -> Result<(), Error> {
        let of = self.verdicts().0.remove(&source.0).unwrap_or_default();
        self.note_verdicts(fork, of)
    }

    fn note_verdicts(
        &self,
        thread: &ThreadId,
        digests: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let Some(file) = self.verdicts_file() else {
            return Ok(());
        };
        let mut lines = Vec::new();
        for verdict in digests {
            let thread = thread.0.clone();
            let note = Note { thread, verdict };
            serde_json::to_writer(&mut lines, &note).map_err(|source| Error::Json {
                path: file.clone(),
                source,
            })?;
            lines.push(b'\n');
        }
        match lines.is_empty() {
            true => Ok(()),
            false => private::append(&file, &lines),
        }
    }

    /// Forgets the verdicts of a thread. Returns the file and how many notes were removed; changes nothing in a dry run.
    pub(crate) fn forget_verdicts(
        &self,
        thread: &ThreadId,
        dry: bool,
    ) -> Result<Option<(PathBuf, usize)>, Error> {
        let Some(file) = self.verdicts_file() else {
            return Ok(None);
        };
        let is_of_thread = |line: &[u8]| {
            serde_json::from_slice::<Note>(line).is_ok_and(|note| note.thread == thread.0)
        };
        let gone = private::remove_lines(&file, BYTES_MAX, is_of_thread, dry)?;
        Ok(Some((file, gone)))
    }

    fn verdicts_file(&self) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("verdicts.jsonl"))
    }
}
