//! Notes in the user's own state of a project: files of JSON lines, never below `.kd`. A file stays bounded: the oldest notes
//! go first.

use crate::error::Error;
use crate::lock::{Lock, WAIT, lock_path};
use crate::private;
use crate::user_dirs::make_private;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// A file of notes.
pub(crate) struct Notes {
    /// The file.
    pub(crate) path: PathBuf,
    /// Maximum bytes of the file. When it would exceed them, the newest notes stay: those in the last half.
    pub(crate) bytes_max: u64,
}

impl Notes {
    /// Returns the notes, oldest first. Lines that are not notes are passed over.
    ///
    /// # Errors
    /// The file cannot be read, or may have been written by somebody else.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let bytes = private::read_end(&self.path, self.bytes_max)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }

    /// Adds notes. If the file becomes too large, its oldest lines are removed.
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
        if lines.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        if private::append(&self.path, &lines)? > self.bytes_max {
            // What was added is there: if this fails, the next one shortens the file.
            let _ = self.shorten();
        }
        Ok(())
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
        let is_there = self.path.symlink_metadata().is_ok();
        let _lock = (is_there && !dry).then(|| self.lock()).transpose()?;
        if !dry {
            private::remove_unfinished(&self.path);
        }
        private::remove_lines(&self.path, self.bytes_max, goes, dry)
    }

    /// Waits for other writers: what one adds while another replaces the file would be lost.
    fn lock(&self) -> Result<Lock, Error> {
        make_private(self.path.parent().unwrap_or(&self.path))?;
        Lock::take(&lock_path(&self.path), WAIT)
    }

    /// Removes the oldest lines, so that half of the room is free. The file is replaced in one step.
    fn shorten(&self) -> Result<(), Error> {
        private::remove_unfinished(&self.path);
        let end = private::read_end(&self.path, self.bytes_max / 2)?;
        // The first line may be incomplete.
        let cut = end.iter().position(|byte| *byte == b'\n');
        let kept = cut.map_or(&end[..], |cut| &end[cut + 1..]);
        private::replace_synced(&self.path, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn notes(folder: &std::path::Path) -> Notes {
        Notes {
            path: folder.join("state/notes.jsonl"),
            bytes_max: 1000,
        }
    }

    #[test]
    fn the_file_is_bounded_and_the_newest_notes_stay() {
        let dir = tempfile::tempdir().unwrap();
        let notes = notes(dir.path());
        for n in 0..2000_u32 {
            notes.add([n]).unwrap();
            let size = fs::metadata(&notes.path).unwrap().len();
            assert!(size <= 1000, "{n}: {size}");
            let kept: Vec<u32> = notes.read().unwrap();
            let first = n + 1 - kept.len() as u32;
            assert!(kept.iter().copied().eq(first..=n), "{n}: {kept:?}");
            // Half of the room is at least 98 lines of five bytes.
            assert!(kept.len() >= 98.min(n as usize + 1), "{n}: {}", kept.len());
        }
        // One note that is too large leaves no part of itself.
        notes.add(["x".repeat(3000)]).unwrap();
        assert_eq!(fs::read(&notes.path).unwrap(), b"");
        notes.add([7]).unwrap();
        assert_eq!(notes.read::<u32>().unwrap(), [7]);
    }

    #[test]
    fn what_a_killed_program_left_goes_with_the_next_change() {
        let dir = tempfile::tempdir().unwrap();
        let notes = notes(dir.path());
        notes.add([1]).unwrap();
        let left = |name: &str| {
            let path = dir.path().join("state").join(name);
            fs::write(&path, "1\n").unwrap();
            path
        };
        let others = ["notes.jsonl.x.new", "other.jsonl.7.new", "notes.jsonl.7"].map(left);
        let unfinished = left("notes.jsonl.99999999.new");
        assert_eq!(notes.remove(|_: &u32| true, true).unwrap(), 1);
        assert!(unfinished.exists(), "a dry run changes nothing");
        assert_eq!(notes.remove(|_: &u32| true, false).unwrap(), 1);
        assert!(!unfinished.exists() && others.iter().all(|path| path.exists()));
        let unfinished = left("notes.jsonl.99999999.new");
        for n in 0..1000 {
            notes.add([n]).unwrap();
        }
        assert!(!unfinished.exists());
    }

    #[test]
    fn writers_at_once_lose_no_note() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let notes = notes(dir.path());
                scope.spawn(move || {
                    for n in 0..100 {
                        let own = 1000 * (writer + 1) + n;
                        notes.add([own]).unwrap();
                        // Each rewrites the file meanwhile, too.
                        let gone = notes.remove(|note: &u32| *note == own, false);
                        assert_eq!(gone.unwrap(), 1, "{own}");
                        notes.add([writer]).unwrap();
                    }
                });
            }
        });
        let mut left: Vec<u32> = notes(dir.path()).read().unwrap();
        left.sort_unstable();
        // Four hundred notes of two bytes are within the bound.
        let all = (0..4_u32).flat_map(|writer| std::iter::repeat_n(writer, 100));
        assert!(left.iter().copied().eq(all), "{}", left.len());
    }
}
