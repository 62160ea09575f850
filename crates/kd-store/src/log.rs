//! The event log of a thread: `.kd-events.jsonl`, one record per line, without deltas (the message has their text).
//!
//! A writer that dies in the middle of a line leaves it incomplete; the next one ends that line before it starts its
//! own, and readers skip it.

use crate::beneath::{Folder, Kind, wrong_kind};
use crate::bounds;
use crate::error::Error;
use crate::git;
use crate::layout;
use crate::thread::{Thread, beside};
use kd_core::formats::EVENTS;
use kd_core::text::Text;
use kd_core::{Event, Record};
use serde::Deserialize;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// Bytes of a log that are read first for the newest turns.
pub(crate) const TURNS_BYTES: u64 = 64 << 10;

/// Writes a thread's log.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: File,
}

/// The content of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logged {
    /// Records in the order of writing.
    pub records: Vec<Record>,
    /// Lines that are incomplete or unknown.
    pub skipped: usize,
}

impl EventLog {
    /// Opens the log of a thread for writing, creating it if it does not exist.
    ///
    /// # Errors
    /// If the log is not a regular file, has a second hard link, or cannot be opened or created; for a new log also if the
    /// thread is locked for too long.
    pub fn open(thread: &Thread) -> Result<EventLog, Error> {
        let path = thread.path().join(layout::EVENTS_FILE);
        let open = |create| thread.folder().append(layout::EVENTS_FILE, create);
        let file = match open(false)? {
            None => beside(thread.folder(), || open(true))?,
            file => file,
        };
        let gone = || Error::io("open", &path)(io::ErrorKind::NotFound.into());
        let file = file.ok_or_else(gone)?;
        Ok(EventLog { path, file })
    }

    /// Appends records in one write, leaving out deltas.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub fn append<'a>(
        &mut self,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Result<(), Error> {
        let mut text = Vec::new();
        for record in records {
            if !matches!(record.event, Event::TurnDelta { .. }) {
                serde_json::to_writer(&mut text, record).map_err(|source| Error::Json {
                    path: self.path.clone(),
                    source,
                })?;
                text.push(b'\n');
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.is_torn().map_err(Error::io("read", &self.path))? {
            text.insert(0, b'\n');
        }
        self.file
            .write_all(&text)
            .map_err(Error::io("write", &self.path))
    }

    /// Returns whether the last line is incomplete.
    fn is_torn(&self) -> io::Result<bool> {
        let len = self.file.metadata()?.len();
        if len == 0 {
            return Ok(false);
        }
        let mut last = [0];
        self.file.read_exact_at(&mut last, len - 1)?;
        Ok(last != *b"\n")
    }
}

/// Returns why a thread's log cannot be written, if something else is in its place. Messages are saved all the same.
pub fn fault(thread: &Thread) -> Option<String> {
    let folder = thread.folder();
    let look = folder.look(layout::EVENTS_FILE).ok()??;
    let path = folder.path().join(layout::EVENTS_FILE);
    let error = if look.kind != Kind::File {
        wrong_kind(path, look.kind, Kind::File)
    } else if look.has_second_name() {
        Error::SecondName { path }
    } else {
        return None;
    };
    Some(format!("events are not logged: {error}; {}", error.hint()))
}

/// Returns the size of a thread's log in bytes: it grows with each record.
pub fn size(thread: &Thread) -> u64 {
    let file = thread.folder().file(layout::EVENTS_FILE).ok().flatten();
    let meta = file.and_then(|file| file.metadata().ok());
    meta.map_or(0, |meta| meta.len())
}

/// Reads a thread's log; empty if there is none. Of a log over the size limit, reads the end.
///
/// # Errors
/// Those of [`read_last`].
pub fn read(thread: &Thread) -> Result<Logged, Error> {
    read_last(thread, bounds::EVENTS.bytes)
}

/// Reads the last bytes of a thread's log. Records that are added meanwhile are not read.
///
/// # Errors
/// If the log cannot be read, or holds a record of a newer version.
pub fn read_last(thread: &Thread, bytes: u64) -> Result<Logged, Error> {
    let mut logged = Logged::default();
    logged.skipped = each_record(thread, bytes, |record, _| logged.records.push(record))?;
    Ok(logged)
}

/// Returns whether the last bytes of a thread's log are all that is ever read of it.
pub(crate) fn is_whole(thread: &Thread, bytes: u64) -> bool {
    bytes >= size(thread).min(bounds::EVENTS.bytes)
}

/// Reads from a thread's log the turns of its messages, from a number up to the newest: their requests and their
/// ends, and the questions, without texts. The log is read backwards, up to the question of the first of these turns.
///
/// # Errors
/// Those of [`read_last`].
pub fn turns_since(thread: &Thread, seq: u32) -> Result<Vec<Record>, Error> {
    let mut bytes = TURNS_BYTES;
    loop {
        let mut records = Vec::new();
        let mut is_whole = is_whole(thread, bytes);
        each_record(thread, bytes, |mut record, _| {
            if let Event::MessageAdded { message, found, .. } = &mut record.event {
                is_whole |= message.is_king() && message.seq <= seq;
                if message.is_king() && !*found {
                    message.body = Text::default();
                    records.push(record);
                }
            } else if is_of_a_turn(&record.event) {
                records.push(record);
            }
        })?;
        if is_whole {
            return Ok(records);
        }
        bytes = bytes.saturating_mul(8);
    }
}

/// Returns whether an event is the request or the end of a turn.
fn is_of_a_turn(event: &Event) -> bool {
    matches!(
        event,
        Event::TurnQueued { .. } | Event::TurnFinished { .. } | Event::TurnFailed { .. }
    )
}

/// Returns whether a thread's log is the user's own: neither tracked by git, as one that came with a clone is, nor a file
/// of somebody else. Amounts in another log are not the user's spending.
pub fn is_own(thread: &Thread) -> bool {
    let Ok(Some(file)) = thread.folder().file(layout::EVENTS_FILE) else {
        return true;
    };
    let is_mine = |meta: Metadata| meta.uid() == rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(is_mine) && !git::tracks(&thread.path().join(layout::EVENTS_FILE))
}

/// Returns whether a thread's record was begun by this user, as far as the folder shows it: the log is the user's own, and
/// the thread was neither imported nor forked from one that was not the user's.
pub fn is_begun_here(thread: &Thread) -> bool {
    let meta = thread.meta();
    let is_fork_of_own = meta.lineage().is_none_or(|lineage| !lineage.foreign);
    is_own(thread) && meta.origin().is_none() && is_fork_of_own
}

/// Reads the records of a thread's log from a place on, the beginning or the end of a line: each with the place where
/// its line ends. Reads a bounded part; empty at the end. `None` if the log is shorter than that, or no line ends there:
/// it was rewritten.
///
/// # Errors
/// Those of [`read_last`].
pub fn read_from(thread: &Thread, at: u64) -> Result<Option<Vec<(u64, Record)>>, Error> {
    let folder = thread.folder();
    let Some(mut file) = folder.file(layout::EVENTS_FILE)? else {
        return Ok((at == 0).then(Vec::new));
    };
    let failed = |e| Error::io("read", &folder.path().join(layout::EVENTS_FILE))(e);
    if file.metadata().map_err(failed)?.len() < at {
        return Ok(None);
    }
    if let Some(before) = at.checked_sub(1) {
        let mut last = [0];
        file.seek(SeekFrom::Start(before)).map_err(failed)?;
        file.read_exact(&mut last).map_err(failed)?;
        if last != *b"\n" {
            return Ok(None);
        }
    }
    let mut part = Vec::new();
    let read = file.take(bounds::EVENT.bytes).read_to_end(&mut part);
    read.map_err(failed)?;
    let mut records = Vec::new();
    let mut end = at;
    // The last line may still be written.
    for line in part.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        end += line.len() as u64;
        if let Ok(record) = serde_json::from_slice::<Record>(line) {
            check(folder, record.v.into())?;
            let thread = thread.id().clone();
            records.push((end, Record { thread, ..record }));
        }
    }
    Ok(Some(records))
}

/// Calls back for each record in the last bytes of a thread's log, with its line without the line break. Returns the
/// number of invalid lines.
pub(crate) fn each_record(
    thread: &Thread,
    bytes: u64,
    mut take: impl FnMut(Record, &[u8]),
) -> Result<usize, Error> {
    let folder = thread.folder();
    let Some(mut file) = folder.file(layout::EVENTS_FILE)? else {
        return Ok(0);
    };
    let failed = |e| Error::io("read", &folder.path().join(layout::EVENTS_FILE))(e);
    let len = file.metadata().map_err(failed)?.len();
    let start = len.saturating_sub(bytes);
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut from = BufReader::new(file.take(bytes));
    let mut skipped = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let whole = read_line(&mut from, &mut line).map_err(failed)?;
        match (whole, line.strip_suffix(b"\n").unwrap_or(&line)) {
            (None, _) => return Ok(skipped),
            (Some(true), []) => {}
            (Some(whole), line) => match serde_json::from_slice::<Record>(line) {
                Ok(record) if whole => {
                    check(folder, record.v.into())?;
                    // Forks and imports have the lines of another thread: the folder determines the thread.
                    let thread = thread.id().clone();
                    take(Record { thread, ..record }, line);
                }
                _ => {
                    if let Ok(line) = serde_json::from_slice::<Versioned>(line) {
                        check(folder, line.v)?;
                    }
                    skipped += 1;
                }
            },
        }
    }
}

/// A line of any version.
#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

fn check(folder: &Folder, version: u64) -> Result<(), Error> {
    EVENTS.check(Some(version)).map_err(|newer| Error::Newer {
        path: folder.path().join(layout::EVENTS_FILE),
        newer,
    })
}

/// Reads a line; skips the rest of one over the limit and returns false. `None` at the end.
fn read_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    let most = bounds::EVENT.bytes;
    let read = from.take(most).read_until(b'\n', line)?;
    if (read as u64) < most || line.ends_with(b"\n") {
        return Ok((read > 0).then_some(true));
    }
    line.clear();
    loop {
        let buffer = from.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        let over = end.is_some() || buffer.is_empty();
        from.consume(used);
        if over {
            return Ok(Some(false));
        }
    }
}
