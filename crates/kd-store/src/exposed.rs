//! Finds the files in a `.kd` that git would add: the messages of threads, unless the user excludes them; and the
//! user's own state, if the `.gitignore` of `.kd` has no effect, because it is a link or a folder, or other lines
//! overrule it.

use crate::git;
use crate::layout::Layout;
use crate::private;
use std::path::PathBuf;

/// A message.
const MESSAGE: &str = ".kd/branches/a/threads/council-0000/0001-king.md";
/// Files of the user's own state.
const STATE: [&str; 4] = [
    ".kd/config.local.json",
    ".kd/branches/a/threads/council-0000/.kd-events.jsonl",
    ".kd/branches/a/logs/ask-council-0000.log",
    ".kd/branches/a/sessions/ann.json",
];
/// Bytes of the note that are read.
const NOTE_BYTES: u64 = 64;

/// The files that git would add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposed {
    /// The messages of threads.
    Messages,
    /// Logs, sessions and settings of this machine too.
    State,
}

impl Exposed {
    fn word(self) -> &'static str {
        match self {
            Exposed::Messages => "messages",
            Exposed::State => "state",
        }
    }
}

impl Layout {
    /// Returns the files of this `.kd` that git would add, if the user was not warned yet. Runs git.
    pub fn exposed(&self) -> Option<Exposed> {
        if self.is_elsewhere() || !self.is_in_checkout() {
            return None;
        }
        let told = self.told_exposed();
        if told == Some(Exposed::State) {
            return None;
        }
        let mut paths = vec![MESSAGE];
        paths.extend(STATE);
        let added = git::would_add(self.root(), &paths).unwrap_or_else(|| vec![MESSAGE]);
        let now = match added.iter().any(|path| STATE.contains(path)) {
            true => Some(Exposed::State),
            false => added.contains(&MESSAGE).then_some(Exposed::Messages),
        };
        now.filter(|now| told.is_none_or(|told| told < *now))
    }

    /// Records that the user was warned about files that git would add. Without a state folder, the warning is repeated.
    pub fn note_exposed(&self, exposed: Exposed) {
        if let Some(file) = self.exposed_file() {
            let _ = private::replace(&file, exposed.word().as_bytes());
        }
    }

    fn told_exposed(&self) -> Option<Exposed> {
        let bytes = private::read_end(&self.exposed_file()?, NOTE_BYTES).ok()?;
        let all = [Exposed::Messages, Exposed::State];
        all.into_iter().find(|one| one.word().as_bytes() == bytes)
    }

    fn exposed_file(&self) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("git-told"))
    }
}
