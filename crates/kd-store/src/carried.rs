//! Threads on their way to another machine: `thread.json`, the messages and the events, byte for byte. What belongs to one
//! machine stays: locks, and the index, which is rebuilt.
//!
//! Input: the folder of a thread, or files that another machine read there. Output: those files, or the folder.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::layout::{self, Layout};
use crate::staged::Staged;
use kd_core::ids::ThreadId;

/// Maximum files of a thread.
const FILES_MAX: usize = 100_000;

fn is_carried(name: &str) -> bool {
    matches!(name, layout::THREAD_FILE | layout::EVENTS_FILE) || crate::index::entry(name).is_some()
}

/// Returns whether a thread is there, or none of this id can be.
///
/// # Errors
/// The folder cannot be looked at.
pub fn exists(layout: &Layout, id: &ThreadId) -> Result<bool, Error> {
    if !is_id(id) {
        return Ok(true);
    }
    Ok(Folder::find(&layout.threads_folder().join(&id.0))?.is_some())
}

fn is_id(id: &ThreadId) -> bool {
    layout::is_given(&id.0) && id.0.starts_with("council-")
}

/// The name of a file and its bytes.
pub type Named = (String, Vec<u8>);

/// Returns the files of a thread; `None` if they have more than `most` bytes together.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn read(layout: &Layout, id: &ThreadId, most: usize) -> Result<Option<Vec<Named>>, Error> {
    let Some(folder) = Folder::find(&layout.threads_folder().join(&id.0))? else {
        return Ok(Some(Vec::new()));
    };
    let mut files = Vec::new();
    let mut total = 0;
    for item in folder.items()? {
        let Ok(name) = item.name.into_string() else {
            continue;
        };
        if item.kind != Kind::File || !is_carried(&name) {
            continue;
        }
        let bound = match name.as_str() {
            layout::EVENTS_FILE => bounds::EVENTS,
            layout::THREAD_FILE => bounds::META,
            _ => bounds::MESSAGE,
        };
        let bytes = folder.read(&name, bound)?.unwrap_or_default();
        total += name.len() + bytes.len();
        if total > most {
            return Ok(None);
        }
        files.push((name, bytes));
    }
    files.sort();
    Ok(Some(files))
}

/// Creates a thread from files that another machine has read, completely or not at all. Returns whether it did: a thread with
/// this id is left as it is, and names that no thread of `kd` has make none.
///
/// # Errors
/// The folder cannot be created, or a file cannot be written.
pub fn put(layout: &Layout, id: &ThreadId, files: &[(String, Vec<u8>)]) -> Result<bool, Error> {
    let is_odd = |(name, _): &(String, Vec<u8>)| !is_carried(name);
    if files.len() > FILES_MAX || files.iter().any(is_odd) || exists(layout, id)? {
        return Ok(false);
    }
    let staged = Staged::new(layout)?;
    for (name, bytes) in files {
        staged.folder().replace(name, bytes)?;
    }
    staged.finish_as(id)
}

/// Removes the folder of a thread that another machine keeps.
///
/// # Errors
/// It cannot be removed.
pub fn remove(layout: &Layout, id: &ThreadId) -> Result<(), Error> {
    match Folder::find(&layout.threads_folder())? {
        Some(threads) if is_id(id) => threads.remove_all(&id.0),
        _ => Ok(()),
    }
}
