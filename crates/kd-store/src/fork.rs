//! Forks: a new thread that shares the beginning of another.
//!
//! Input: a thread and where to cut. Output: a new thread with the same message files, byte for byte and with their
//! times, the records of its prefix, and its lineage in `thread.json`. Later changes of one thread do not affect the
//! other.
//!
//! The lineage is a key of `thread.json`: kingdom-cli ignores keys that it does not know, and writes the file only when
//! it creates a thread.

use crate::attachments;
use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::index;
use crate::layout::{self, Layout};
use crate::log;
use crate::meta::Meta;
use crate::staged::Staged;
use crate::thread::Thread;
use jiff::Timestamp;
use kd_core::fork::{Cut, NoStage, Prefix, prefix};
use kd_core::ids::ThreadId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;

/// The key of `thread.json`.
pub(crate) const KEY: &str = "fork";

/// The origin of a forked thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The source thread.
    pub of: ThreadId,
    /// Its branch, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The number of the first message that was left out, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// The stage of a deliberation at which it was forked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Number of message files that both share.
    pub messages: u32,
    /// Whether the source may be somebody else's: imported, tracked by git, not begun by this user's `kd` in this folder, or
    /// a fork of such a thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreign: bool,
}

impl Lineage {
    /// Describes the cut: `before message 7`, `at review`, `after 6 messages`, and whether the source may be somebody
    /// else's.
    pub fn words(&self) -> String {
        let cut = match (&self.stage, self.before) {
            (Some(stage), _) => format!("at the stage {stage}"),
            (None, Some(before)) => format!("before message {before}"),
            (None, None) if self.messages == 1 => "after 1 message".into(),
            (None, None) => format!("after {} messages", self.messages),
        };
        match self.foreign {
            true => format!("{cut}; may be somebody else's"),
            false => cut,
        }
    }
}

impl Meta {
    /// Returns where the thread was forked from, if it is a fork.
    pub fn lineage(&self) -> Option<Lineage> {
        serde_json::from_value(self.extra.get(KEY)?.clone()).ok()
    }

    fn set_lineage(&mut self, lineage: &Lineage) {
        let value = serde_json::to_value(lineage).unwrap_or(Value::Null);
        self.extra.insert(KEY.to_owned(), value);
    }
}

/// The reason why a thread could not be forked.
#[derive(Debug, thiserror::Error)]
pub enum ForkError {
    /// An I/O error, or an invalid file in the thread.
    #[error(transparent)]
    Store(#[from] Error),
    /// There is no such stage.
    #[error(transparent)]
    Stage(#[from] NoStage),
    /// There is no message with this number.
    #[error("{thread} has no message {number}: the last one is {last}")]
    OutOfRange {
        /// The thread.
        thread: ThreadId,
        /// The requested number.
        number: u32,
        /// The number of its last message.
        last: u32,
    },
    /// The fork would be empty.
    #[error("nothing of {thread} comes before message {number}")]
    Empty {
        /// The thread.
        thread: ThreadId,
        /// The requested number.
        number: u32,
    },
    /// The thread has no messages.
    #[error("{0} has no messages")]
    NoMessages(ThreadId),
}

/// Forks a thread. The new thread is on the branch of `layout`, and does not become the current one.
///
/// # Errors
/// The cut is not in the thread, or a file cannot be read or written; nothing of the fork remains then.
pub fn fork(layout: &Layout, source: &Thread, cut: &Cut) -> Result<Thread, ForkError> {
    // The log before the messages, so that every recorded message has its file.
    let (prefix, lines) = kept(source, cut)?;
    let entries = index::list(source.folder())?;
    let last = entries.last().map_or(0, |entry| entry.seq);
    let number = prefix.before.unwrap_or(last.saturating_add(1));
    let shared: Vec<&str> = entries
        .iter()
        .filter(|entry| entry.seq < number)
        .map(|entry| entry.name.as_str())
        .collect();
    let thread = || source.id().clone();
    if entries.is_empty() {
        return Err(ForkError::NoMessages(thread()));
    }
    if matches!(cut, Cut::Before(_)) && number > last {
        let thread = thread();
        return Err(ForkError::OutOfRange {
            thread,
            number,
            last,
        });
    }
    if shared.is_empty() {
        let thread = thread();
        return Err(ForkError::Empty { thread, number });
    }
    let lineage = Lineage {
        of: thread(),
        branch: branch_of(layout, source),
        before: prefix.before.filter(|number| *number <= last),
        stage: match cut {
            Cut::Stage(stage) => Some(stage.clone()),
            Cut::End | Cut::Before(_) => None,
        },
        messages: u32::try_from(shared.len()).unwrap_or(u32::MAX),
        foreign: !log::is_begun_here(source) || !layout.is_noted(source.id()),
    };
    let staged = Staged::new(layout)?;
    copy(source.folder(), staged.folder(), &shared)?;
    attachments::copy(source.folder(), staged.folder(), &shared)?;
    write_log(staged.folder(), &lines)?;
    let forked = staged
        .finish(|id| meta(source, id, &lineage))
        .map_err(|error| of_source(error, source))?;
    // Copies only the user's own choice of members: a folder's members stay with the folder.
    let seated = layout.seated(source.id());
    let mut members = source.members();
    members.retain(|member| seated.contains(member.as_str()));
    // If the note cannot be written, the fork counts as one that came with the folder.
    let _ = layout.note_seated(forked.id(), &members);
    // Without the notes its verdicts could not be marked, and nobody would know why.
    layout
        .note_forked_verdicts(source.id(), forked.id())
        .inspect_err(|_| layout.discard_thread(forked.id()))?;
    Ok(forked)
}

/// Returns the records that a fork keeps, and their lines.
fn kept(source: &Thread, cut: &Cut) -> Result<(Prefix, Vec<u8>), ForkError> {
    let (mut records, mut lines) = (Vec::new(), Vec::new());
    log::each_record(source, bounds::EVENTS.bytes, |record, line| {
        records.push(record);
        lines.push(line.to_vec());
    })?;
    let prefix = prefix(&records, cut)?;
    let mut kept = Vec::new();
    for at in &prefix.records {
        kept.extend_from_slice(&lines[*at]);
        kept.push(b'\n');
    }
    Ok((prefix, kept))
}

/// Makes a "too large" error of the copied description name the source's file, which the user can change.
fn of_source(error: Error, source: &Thread) -> Error {
    match error {
        Error::TooLarge { bytes, bound, .. } => Error::TooLarge {
            path: source.path().join(layout::THREAD_FILE),
            bytes,
            bound,
        },
        error => error,
    }
}

fn meta(source: &Thread, id: &ThreadId, lineage: &Lineage) -> Meta {
    let mut meta = Meta {
        id: id.clone(),
        ..source.meta().clone()
    };
    let now = Meta::new(id.clone(), [], Timestamp::now());
    meta.created_at = now.created_at;
    meta.set_lineage(lineage);
    // The seal belongs to the source.
    meta.extra.remove(crate::meta::IMPORTED);
    meta
}

fn branch_of(layout: &Layout, source: &Thread) -> Option<String> {
    let branch = layout::branch_of(source.path());
    let is_here = branch == layout.branch_folder();
    let name = branch.file_name().and_then(|name| name.to_str());
    name.filter(|_| !is_here).map(str::to_owned)
}

/// Copies message files with their times: if a header has no time, the file's counts.
fn copy(from: &Folder, to: &Folder, names: &[&str]) -> Result<(), Error> {
    for name in names {
        let Some((bytes, time)) = from.read_timed(name, bounds::MESSAGE)? else {
            continue;
        };
        let failed = |e| Error::io("write", &to.path().join(name))(e);
        let taken = || failed(std::io::ErrorKind::AlreadyExists.into());
        let mut file = to.create(name)?.ok_or_else(taken)?;
        file.write_all(&bytes).map_err(failed)?;
        file.set_modified(time).map_err(failed)?;
        file.sync_all().map_err(failed)?;
    }
    Ok(())
}

fn write_log(folder: &Folder, lines: &[u8]) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    folder.replace(layout::EVENTS_FILE, lines)
}

/// Arranges threads as a tree: each with its depth, forks below their source in the given order. Every thread appears
/// once; a thread whose source is not listed is at the top.
pub fn tree(threads: &[(ThreadId, Option<Lineage>)]) -> Vec<(usize, usize)> {
    let place = |id: &ThreadId| threads.iter().position(|(other, _)| other == id);
    let parents: Vec<Option<usize>> = threads
        .iter()
        .map(|(_, lineage)| place(&lineage.as_ref()?.of))
        .collect();
    let mut lines = Vec::new();
    let mut seen = vec![false; threads.len()];
    let tops = (0..threads.len()).filter(|at| parents[*at].is_none());
    // A file may claim a cycle of forks: threads that no top leads to are tops themselves.
    let order: Vec<usize> = tops.chain(0..threads.len()).collect();
    for top in order {
        let mut stack = vec![(0, top)];
        while let Some((depth, at)) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            lines.push((depth, at));
            let forks = (0..threads.len()).rev();
            stack.extend(
                forks
                    .filter(|fork| parents[*fork] == Some(at))
                    .map(|fork| (depth + 1, fork)),
            );
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forked(id: &str, of: Option<&str>) -> (ThreadId, Option<Lineage>) {
        let lineage = of.map(|of| Lineage {
            of: ThreadId(of.into()),
            branch: None,
            before: Some(3),
            stage: None,
            messages: 2,
            foreign: false,
        });
        (ThreadId(id.into()), lineage)
    }

    #[test]
    fn a_tree_names_every_thread_once_below_its_source() {
        let threads = [
            forked("c", Some("a")),
            forked("a", None),
            forked("b", Some("gone")),
            forked("d", Some("c")),
            forked("e", Some("a")),
            // Two that claim to be forks of each other, and one of itself.
            forked("x", Some("y")),
            forked("y", Some("x")),
            forked("z", Some("z")),
        ];
        let lines: Vec<String> = tree(&threads)
            .into_iter()
            .map(|(depth, at)| format!("{depth}{}", threads[at].0))
            .collect();
        assert_eq!(lines, ["0a", "1c", "2d", "1e", "0b", "0x", "1y", "0z"]);
    }

    #[test]
    fn a_lineage_survives_the_file_and_an_odd_one_is_none() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        let thread = Thread::create(&layout, &[]).unwrap();
        let (_, lineage) = forked("a", Some("council-0000"));
        let mut meta = thread.meta().clone();
        assert_eq!(meta.lineage(), None);
        meta.set_lineage(lineage.as_ref().unwrap());
        let text = serde_json::to_string(&meta).unwrap();
        let read: Meta = serde_json::from_str(&text).unwrap();
        assert_eq!(read.lineage(), lineage);
        meta.extra.insert(KEY.into(), "council-0000".into());
        assert_eq!(meta.lineage(), None);
    }
}
