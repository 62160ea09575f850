//! The list of forum files that the user's `kd` created: `forums.jsonl` in the user's state folder, never beside the
//! forum. A file that came with a folder cannot claim to be one of them: its path, its inode and the id inside must all
//! match.

use super::db::{Db, args, first_text};
use super::error::ForumError;
use kd_store::error::Error;
use kd_store::git;
use kd_store::private;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Only the newest notes are read: enough for tens of thousands of forums.
const BYTES_MAX: u64 = 8 << 20;

/// One line of the file.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    path: String,
    /// The id inside the forum.
    id: String,
    inode: u64,
    /// The creation time of the file, in nanoseconds; 0 if the file system does not report it.
    born: u64,
}

impl Note {
    fn of(file: &Path, id: &str) -> Result<Self, Error> {
        let failed = |e| Error::io("look at", file)(e);
        let real = file.canonicalize().map_err(failed)?;
        let meta = fs::symlink_metadata(&real).map_err(failed)?;
        let born = meta.created().ok();
        let born = born.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            path: real.to_string_lossy().into_owned(),
            id: id.to_owned(),
            inode: meta.ino(),
            born: born.map_or(0, |time| time.as_nanos() as u64),
        })
    }
}

/// Returns whether a forum file is the user's own. Git must track neither it nor the files that SQLite keeps beside it:
/// a pull could have changed them.
pub(super) fn is_own(db: &mut Db, file: &Path, state: Option<&Path>) -> Result<bool, ForumError> {
    let (Some(state), Some(id)) = (state, number(db)?) else {
        return Ok(false);
    };
    let (Ok(note), Ok(bytes)) = (
        Note::of(file, &id),
        private::read_end(&notes(state), BYTES_MAX),
    ) else {
        return Ok(false);
    };
    let mut kept = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Note>(line).ok());
    Ok(kept.any(|kept| kept == note) && !is_tracked(file))
}

/// Makes a forum file the user's own: gives it an id if it has none, and notes that outside. Returns whether it could
/// be noted.
pub(super) fn make_own(db: &mut Db, file: &Path, state: Option<&Path>) -> Result<bool, ForumError> {
    let Some(state) = state else {
        return Ok(false);
    };
    let id = match number(db)? {
        Some(id) => id,
        None => {
            let row = db.row(
                "INSERT INTO identity (id) SELECT lower(hex(randomblob(16))) RETURNING id",
                &[],
            )?;
            first_text(row)?.unwrap_or_default()
        }
    };
    let noted = Note::of(file, &id).and_then(|note| {
        let mut line = serde_json::to_vec(&note).map_err(|source| Error::Json {
            path: file.to_path_buf(),
            source,
        })?;
        line.push(b'\n');
        private::append(&notes(state), &line)
    });
    Ok(noted.is_ok())
}

fn number(db: &mut Db) -> Result<Option<String>, ForumError> {
    let row = db.row("SELECT id FROM identity ORDER BY id LIMIT 1", args![])?;
    Ok(first_text(row)?.filter(|id| !id.is_empty()))
}

fn notes(state: &Path) -> PathBuf {
    state.join("forums.jsonl")
}

fn is_tracked(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let names = ["", "-wal", "-journal"].map(|end| format!("{name}{end}"));
    let folder = file.parent().unwrap_or(Path::new("."));
    git::tracks_any(folder, &names.each_ref().map(String::as_str))
}
