//! Threads on their way to another machine: `thread.json`, the messages and the events, byte for byte. Files that
//! belong to one machine stay: locks, and the index, which is rebuilt.
//!
//! Input: the folder of a thread, or files that another machine read there. Output: those files, or the folder.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::layout::{self, Layout};
use crate::staged::{self, Staged};
use kd_core::ids::ThreadId;
use std::io::Write;

/// Maximum files of a thread.
const FILES_MAX: usize = 100_000;

fn is_carried(name: &str) -> bool {
    matches!(name, layout::THREAD_FILE | layout::EVENTS_FILE) || crate::index::entry(name).is_some()
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

/// The folder to which threads of other machines come. It is looked through once: it may get very many.
#[derive(Clone, Debug)]
pub struct Incoming {
    threads: Folder,
}

impl Incoming {
    /// Opens the folder, creating it if it is missing.
    ///
    /// # Errors
    /// It cannot be created or read.
    pub fn open(layout: &Layout) -> Result<Self, Error> {
        Ok(Self {
            threads: staged::swept(layout)?,
        })
    }

    /// Returns whether a thread is there, or none of this id can be.
    pub fn has(&self, id: &ThreadId) -> bool {
        !is_id(id) || self.threads.has(&id.0)
    }

    /// Creates a thread from files that another machine has read, completely or not at all. Returns whether it did: a thread
    /// with this id is left as it is, and names that no thread of `kd` has make none.
    ///
    /// # Errors
    /// The folder cannot be created, or a file cannot be written.
    pub fn put(&self, id: &ThreadId, files: &[(String, Vec<u8>)]) -> Result<bool, Error> {
        let is_odd = |(name, _): &(String, Vec<u8>)| !is_carried(name);
        if files.is_empty() || files.len() > FILES_MAX || files.iter().any(is_odd) || self.has(id) {
            return Ok(false);
        }
        let staged = Staged::new_in(&self.threads)?;
        for (name, bytes) in files {
            let path = staged.folder().path().join(name);
            let Some(mut file) = staged.folder().create(name)? else {
                return Ok(false);
            };
            file.write_all(bytes).map_err(Error::io("write", &path))?;
        }
        staged.finish_as(id)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_thread_comes_whole_and_once_and_nothing_else_does() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        let incoming = Incoming::open(&layout).unwrap();
        let id = ThreadId("council-20260102-030405-0000000000000001".into());
        let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
        let files = [file("0001-king.md", "One."), file("thread.json", "{}")];
        assert!(!incoming.put(&id, &[]).unwrap() && !incoming.has(&id));
        let odd = [file("../x.md", "Two.")];
        assert!(!incoming.put(&id, &odd).unwrap() && !incoming.has(&id));
        assert!(incoming.put(&id, &files).unwrap() && incoming.has(&id));
        assert_eq!(read(&layout, &id, 1000).unwrap().unwrap(), files);
        assert_eq!(read(&layout, &id, 10).unwrap(), None, "too large");
        let others = [file("0001-king.md", "Another.")];
        assert!(!incoming.put(&id, &others).unwrap());
        assert_eq!(read(&layout, &id, 1000).unwrap().unwrap(), files);
        let no_thread = ThreadId("../x".into());
        assert!(incoming.has(&no_thread) && !incoming.put(&no_thread, &files).unwrap());
        remove(&layout, &id).unwrap();
        assert!(!incoming.has(&id));
        let left = fs::read_dir(layout.threads_folder()).unwrap().count();
        assert_eq!(left, 0, "no hidden folder is left");
    }
}
