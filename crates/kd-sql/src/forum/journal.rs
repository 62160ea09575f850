//! Checks the journal beside a database before SQLite acts on it: it may name other files, which SQLite then deletes.

use super::error::ForumError;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// The end of a journal that belongs to a transaction over several files, preceded by the name of the file that lists
/// them. A forum is a single file, so its own journals never end like this.
const SUPER_JOURNAL_END: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Rejects a database whose journal names another file.
///
/// # Errors
/// It does, or it cannot be read.
pub(super) fn check_journal(database: &Path) -> Result<(), ForumError> {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    let path = Path::new(&name);
    let failed = |why: String| ForumError::File {
        path: path.to_path_buf(),
        why,
    };
    let opened = File::options()
        .read(true)
        .custom_flags((rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits() as i32)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e.to_string())),
    };
    let meta = file.metadata().map_err(|e| failed(e.to_string()))?;
    if !meta.is_file() {
        return Err(failed("it is not a regular file".into()));
    }
    let mut end = [0; SUPER_JOURNAL_END.len()];
    let Some(at) = meta.len().checked_sub(end.len() as u64) else {
        return Ok(());
    };
    file.read_exact_at(&mut end, at)
        .map_err(|e| failed(e.to_string()))?;
    if end == SUPER_JOURNAL_END {
        return Err(ForumError::NotOurs {
            place: database.display().to_string(),
            why: "its journal names another file, which SQLite would delete".into(),
        });
    }
    Ok(())
}
