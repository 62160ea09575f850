//! The log of a thread's events: `.kd-events.jsonl`, one record a line, deltas left out (the message has their text).
//!
//! A writer that dies in the middle of a line leaves it torn; the next one ends that line before it begins its own,
//! and readers pass over it.

use crate::error::Error;
use crate::layout;
use crate::thread::{Thread, beside};
use kd_core::{Event, Record};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Writes a thread's log.
#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: File,
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logged {
    /// Records in the order in which they were written.
    pub records: Vec<Record>,
    /// Lines that are torn, or of a version that we do not know.
    pub skipped: usize,
}

impl EventLog {
    /// Opens the log of a thread for writing, and makes it if it is not there.
    pub fn open(thread: &Thread) -> Result<EventLog, Error> {
        let path = thread.path().join(layout::EVENTS_FILE);
        let open = |create| {
            OpenOptions::new()
                .read(true)
                .append(true)
                .create(create)
                .open(&path)
        };
        let file = match open(false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => beside(thread.path(), || {
                open(true).map_err(Error::io("create", &path))
            })?,
            file => file.map_err(Error::io("open", &path))?,
        };
        Ok(EventLog { path, file })
    }

    /// Adds records, deltas left out, in one write.
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

    /// Whether the last line lacks its end.
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

/// Reads a thread's log; a thread without one has an empty one.
pub fn read(thread: &Thread) -> Result<Logged, Error> {
    let path = thread.path().join(layout::EVENTS_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Logged::default()),
        Err(e) => return Err(Error::io("read", &path)(e)),
    };
    let mut logged = Logged::default();
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => logged.records.push(record),
            Err(_) => logged.skipped += 1,
        }
    }
    Ok(logged)
}
