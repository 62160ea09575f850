//! The verdicts that this user's `kd` has reached: `verdicts.jsonl` in the user's own state of the project, never
//! below `.kd`. Anybody may have written the data of a verdict in a folder, but not a digest in this file.

use crate::error::Error;
use crate::layout::Layout;
use crate::notes::Notes;
use kd_core::ids::ThreadId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Maximum bytes of the file: when it is full, the newest 50,000 verdicts stay. Older ones cannot be marked any more.
const BYTES_MAX: u64 = 8 << 20;

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Note {
    thread: String,
    verdict: String,
}

/// The verdicts of a project that this user's `kd` has reached.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(BTreeMap<String, BTreeSet<String>>);

impl Verdicts {
    /// Returns whether this user's `kd` has reached a verdict with this digest in a thread.
    pub fn holds(&self, thread: &ThreadId, digest: &str) -> bool {
        let of = self.0.get(&thread.0);
        of.is_some_and(|digests| digests.contains(digest))
    }
}

impl Layout {
    /// Returns the verdicts that this user's `kd` saw fall; none if the user has no state folder.
    ///
    /// # Errors
    /// The notes cannot be read, or may have been written by somebody else.
    pub fn verdicts(&self) -> Result<Verdicts, Error> {
        let mut found = Verdicts::default();
        let notes = self.verdict_notes().map(|notes| notes.read::<Note>());
        for note in notes.transpose()?.into_iter().flatten() {
            found.0.entry(note.thread).or_default().insert(note.verdict);
        }
        Ok(found)
    }

    /// Records the digest of a new verdict of a thread.
    ///
    /// # Errors
    /// The note cannot be written; [`Error::NoHome`] if the user has no state folder.
    pub fn note_verdict(&self, thread: &ThreadId, digest: &str) -> Result<(), Error> {
        if self.state.is_none() {
            let variable = "XDG_STATE_HOME";
            return Err(Error::NoHome { variable });
        }
        self.note_verdicts(thread, [digest.to_owned()])
    }

    /// Copies the digests of its source to a fork, because the fork's verdicts could not be marked without them.
    ///
    /// # Errors
    /// The notes cannot be read or written.
    pub(crate) fn note_forked_verdicts(
        &self,
        source: &ThreadId,
        fork: &ThreadId,
    ) -> Result<(), Error> {
        let of = self.verdicts()?.0.remove(&source.0).unwrap_or_default();
        self.note_verdicts(fork, of)
    }

    fn note_verdicts(
        &self,
        thread: &ThreadId,
        digests: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let Some(notes) = self.verdict_notes() else {
            return Ok(());
        };
        notes.add(digests.into_iter().map(|verdict| Note {
            thread: thread.0.clone(),
            verdict,
        }))
    }

    /// Forgets the verdicts of a thread. Returns the file and how many notes were removed; changes nothing in a dry run.
    pub(crate) fn forget_verdicts(
        &self,
        thread: &ThreadId,
        dry: bool,
    ) -> Result<Option<(PathBuf, usize)>, Error> {
        let Some(notes) = self.verdict_notes() else {
            return Ok(None);
        };
        let gone = notes.remove(|note: &Note| note.thread == thread.0, dry)?;
        Ok(Some((notes.path, gone)))
    }

    fn verdict_notes(&self) -> Option<Notes> {
        Some(Notes {
            path: self.state.as_ref()?.join("verdicts.jsonl"),
            bytes_max: BYTES_MAX,
        })
    }
}
