//! Threads of one process that set the same current thread at the same time: one of them writes for all.

use kd_core::ids::ThreadId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state files being written, each with an ID that was set in the meantime.
static WRITTEN: Mutex<BTreeMap<PathBuf, Option<ThreadId>>> = Mutex::new(BTreeMap::new());

/// The right and duty to write a state file until there is no newer ID.
pub(super) struct Turn {
    file: PathBuf,
    over: Cell<bool>,
}

impl Turn {
    /// Takes the turn for a state file. `None` if another thread has it; that thread will write this ID or a newer one.
    pub(super) fn take(file: PathBuf, id: &ThreadId) -> Option<Self> {
        let mut files = written();
        if let Some(newer) = files.get_mut(&file) {
            *newer = Some(id.clone());
            return None;
        }
        files.insert(file.clone(), None);
        Some(Self {
            file,
            over: Cell::new(false),
        })
    }

    /// Takes the ID that was set meanwhile, or ends the turn.
    pub(super) fn newer(&self) -> Option<ThreadId> {
        let mut files = written();
        let newer = files.get_mut(&self.file).and_then(Option::take);
        if newer.is_none() && !self.over.replace(true) {
            files.remove(&self.file);
        }
        newer
    }
}

impl Drop for Turn {
    /// After a panic, the next caller writes.
    fn drop(&mut self) {
        if !self.over.get() {
            written().remove(&self.file);
        }
    }
}

fn written() -> MutexGuard<'static, BTreeMap<PathBuf, Option<ThreadId>>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn id(name: &str) -> ThreadId {
        ThreadId(name.into())
    }

    #[test]
    fn who_has_the_turn_writes_the_newest_of_all() {
        let file = PathBuf::from("/who-has-the-turn/state.json");
        let turn = Turn::take(file.clone(), &id("a")).unwrap();
        assert!(Turn::take(file.clone(), &id("b")).is_none());
        assert!(Turn::take(file.clone(), &id("c")).is_none());
        let other = Turn::take("/another/state.json".into(), &id("d"));
        assert_eq!(other.unwrap().newer(), None);
        assert_eq!(turn.newer(), Some(id("c")));
        assert_eq!(turn.newer(), None);
        // The turn is over, although it is not dropped yet.
        let next = Turn::take(file.clone(), &id("e")).unwrap();
        drop(turn);
        assert!(Turn::take(file.clone(), &id("f")).is_none());
        drop(next);
        assert!(Turn::take(file, &id("g")).is_some());
    }
}
