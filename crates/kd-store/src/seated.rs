//! The members that the user chose for each thread: `threads.jsonl` in the user's own state of the project, never below
//! `.kd`, so that a thread that comes with a folder cannot choose its members in the user's name.

use crate::error::Error;
use crate::layout::Layout;
use crate::notes::Notes;
use kd_core::ids::{SeatName, ThreadId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Maximum bytes of the file: enough for tens of thousands of threads.
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
        let notes = self.notes_of(thread);
        notes.into_iter().flat_map(|note| note.members).collect()
    }

    /// Returns whether this user's `kd` created a thread, or the user chose its members. Also true if that is unknown,
    /// because the user has no state folder.
    pub(crate) fn is_noted(&self, thread: &ThreadId) -> bool {
        self.state.is_none() || !self.notes_of(thread).is_empty()
    }

    /// Returns the notes of a thread; empty if they cannot be read, which means that no member was chosen.
    fn notes_of(&self, thread: &ThreadId) -> Vec<Note> {
        let notes = self.seated_notes().map(|notes| notes.read::<Note>());
        let mut notes = notes.and_then(Result::ok).unwrap_or_default();
        notes.retain(|note| note.thread == thread.0);
        notes
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
