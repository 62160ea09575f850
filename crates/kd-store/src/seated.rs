//! The members that the user chose for each thread: `threads.jsonl` in the user's own state of the project, never below
//! `.kd`, so that a thread that comes with a folder cannot choose its members in the user's name.

use crate::error::Error;
use crate::layout::Layout;
use crate::notes::Notes;
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
        let notes = self.seated_notes().map(|notes| notes.read::<Note>());
        notes
            .into_iter()
            .flatten()
            .filter(|note| note.thread == thread.0)
            .flat_map(|note| note.members)
            .collect()
    }

    /// Records that the user chose these members for a thread. Does nothing if the user has no state folder.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note_seated(&self, thread: &ThreadId, members: &[SeatName]) -> Result<(), Error> {
        let Some(notes) = self.seated_notes() else {
            return Ok(());
        };
        notes.add([Note {
            thread: thread.0.clone(),
            members: members.iter().map(ToString::to_string).collect(),
        }])
    }

    /// Forgets a thread's members. Returns the file and how many notes were removed; changes nothing in a dry run.
    pub(crate) fn forget_seated(
        &self,
        thread: &ThreadId,
        dry: bool,
    ) -> Result<Option<(PathBuf, usize)>, Error> {
        let Some(notes) = self.seated_notes() else {
            return Ok(None);
        };
        let gone = notes.remove(|note: &Note| note.thread == thread.0, dry)?;
        Ok(Some((notes.path, gone)))
    }

    fn seated_notes(&self) -> Option<Notes> {
        Some(Notes {
            path: self.state.as_ref()?.join("threads.jsonl"),
            bytes_max: BYTES_MAX,
        })
    }
}
