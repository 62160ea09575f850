//! Whom the user seated in which thread: `threads.jsonl` in the user's own state of the project, never below `.kd`, so
//! that no thread that comes with a folder can name its members for the user.
//!
//! Input: a thread and its members. Output: the members that the user seated in it here.

use crate::error::Error;
use crate::layout::Layout;
use crate::private;
use kd_core::ids::{SeatName, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The newest notes that are read: those of tens of thousands of threads.
const BYTES_MAX: u64 = 8 << 20;

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Note {
    thread: String,
    members: Vec<String>,
}

impl Layout {
    /// The members that the user seated in a thread here. None where that is not known.
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

    /// Notes that the user seated these members in a thread. Does nothing where the user has no state folder.
    ///
    /// # Errors
    /// Where the note cannot be written.
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

    /// Forgets whom the user seated in a thread. Returns the file and how many notes of it went; changes nothing if it runs
    /// dry.
    pub(crate) fn forget_seated(
        &self,
        thread: &ThreadId,
        dry: bool,
    ) -> Result<Option<(PathBuf, usize)>, Error> {
        let Some(file) = self.seated_file() else {
            return Ok(None);
        };
        let bytes = private::read_end(&file, BYTES_MAX)?;
        let mut kept = Vec::new();
        let mut gone = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice::<Note>(line) {
                Ok(note) if note.thread == thread.0 => gone += 1,
                _ => kept.extend_from_slice(line),
            }
        }
        if gone > 0 && !dry {
            private::replace_synced(&file, &kept)?;
        }
        Ok(Some((file, gone)))
    }

    fn seated_file(&self) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("threads.jsonl"))
    }
}
