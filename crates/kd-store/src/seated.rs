//! The members that the user chose for each thread: `threads.jsonl` in the user's own state of the project, never below
//! `.kd`, so that a thread that comes with a folder cannot choose its members in the user's name.

use crate::error::Error;
use crate::layout::Layout;
use crate::private;
use kd_core::ids::{SeatName, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Only the newest notes are read: enough for tens of thousands of threads.
const BYTES_MAX: u64 = 8 << 20;

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Note {
    thread: String,
    members: Vec<String>,
}

impl Layout {
    /// Returns the members that the user chose for a thread; empty if unknown.
    pub fn seated(&self, thread: &ThreadId) -> BTreeSet<String> {
        let bytes = self
            .seated_file()
            .map(|file| private::read_end(&file, BYTES_MAX));
        let bytes = bytes.and_then(Result::ok).unwrap_or_default();
        bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Note>(line).ok())
            .filter(|note| note.thread == thread.0)
            .flat_map(|note| note.members)
            .collect()
    }

    /// Records that the user chose these members for a thread. Does nothing if the user has no state folder.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note_seated(&self, thread: &ThreadId, members: &[SeatName]) -> Result<(), Error> {
        let Some(file) = self.seated_file() else {
            return Ok(());
        };
        let note = Note {
            thread: thread.0.clone(),
            members: members.iter().map(ToString::to_string).collect(),
        };
        let mut line = serde_json::to_vec(&note).map_err(|source| Error::Json {
            path: file.clone(),
            source,
        })?;
        line.push(b'\n');
        private::append(&file, &line)
    }

    /// Forgets a thread's members. Returns the file and how many notes were removed; changes nothing in a dry run.
    pub(crate) fn forget_seated(
        &self,
        thread: &ThreadId,
        dry: bool,
    ) -> Result<Option<(PathBuf, usize)>, Error> {
        let Some(file) = self.seated_file() else {
            return Ok(None);
        };
        let is_of_thread = |line: &[u8]| {
            serde_json::from_slice::<Note>(line).is_ok_and(|note| note.thread == thread.0)
        };
        let gone = private::remove_lines(&file, BYTES_MAX, is_of_thread, dry)?;
        Ok(Some((file, gone)))
    }

    fn seated_file(&self) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("threads.jsonl"))
    }
}
