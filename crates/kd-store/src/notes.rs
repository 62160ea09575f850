//! Notes in the user's own state of a project: files of JSON lines, never below `.kd`.

use crate::error::Error;
use crate::private;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// A file of notes.
pub(crate) struct Notes {
    /// The file.
    pub(crate) path: PathBuf,
    /// Only the newest notes are read: those in this many bytes at the end of the file.
    pub(crate) bytes_max: u64,
}

impl Notes {
    /// Returns the notes, oldest first; none if the file cannot be read. Lines that are no notes are passed over.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Vec<T> {
        let bytes = private::read_end(&self.path, self.bytes_max).unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// Adds notes.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn add<T: Serialize>(
        &self,
        notes: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let mut lines = Vec::new();
        for note in notes {
            serde_json::to_writer(&mut lines, &note).map_err(|source| Error::Json {
                path: self.path.clone(),
                source,
            })?;
            lines.push(b'\n');
        }
        match lines.is_empty() {
            true => Ok(()),
            false => private::append(&self.path, &lines),
        }
    }

    /// Removes the notes for which `goes` is true. Returns how many; changes nothing in a dry run.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn remove<T: DeserializeOwned>(
        &self,
        goes: impl Fn(&T) -> bool,
        dry: bool,
    ) -> Result<usize, Error> {
        let goes = |line: &[u8]| serde_json::from_slice(line).is_ok_and(|note| goes(&note));
        private::remove_lines(&self.path, self.bytes_max, goes, dry)
    }
}
