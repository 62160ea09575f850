//! Answers in progress: `.stream-<member>.jsonl`, complete lines, present only while being written.
//!
//! The writer holds a lock on its file while it runs, so that a reader can distinguish a live stream from a stream
//! left by a killed process. It removes the file when it is finished or dropped; the message file must exist before
//! that.

use crate::beneath::{Folder, Kind, Look};
use crate::error::Error;
use crate::layout;
use crate::spool::Spooled;
use crate::thread::{Thread, beside};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Buffered bytes that force a write: some frames of a fast stream.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes per call of [`StreamReader::read`], so that a flood cannot fill the memory.
const READ_BYTES_MAX: u64 = 4 << 20;
/// A longer line is not an event of any model; it is truncated.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Default time for which other programs may be silent and still count as alive: the default of `council.timeout`,
/// after which they end the turn themselves.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The beginning of each line that kd writes.
const OUR_WORDS: &[u8; 8] = b"{\"kind\":";

/// Writes a member's stream.
#[derive(Debug)]
pub struct StreamWriter {
    folder: Folder,
    name: String,
    path: PathBuf,
    file: File,
    /// Holds the lock that marks the writer as running.
    _alive: File,
    buffer: Vec<u8>,
    removed: bool,
}

impl StreamWriter {
    /// Starts a member's stream in a thread. Removes what a dead writer left; a live one is an error.
    ///
    /// # Errors
    /// [`Error::StreamBusy`] if a live process streams as this member; also if the thread is locked for too long, or
    /// the file cannot be created.
    pub fn create(thread: &Thread, member: &str) -> Result<StreamWriter, Error> {
        StreamWriter::place(thread, member, b"", PATIENCE)
    }

    /// Starts a stream with a first line, so that a stream found after a kill shows its owner; an empty file would not.
    /// A stream of another program, which holds no lock, counts as live until it was silent for `patience`.
    ///
    /// # Errors
    /// Those of [`StreamWriter::create`]; also if the first line cannot be written as JSON.
    pub fn begin(
        thread: &Thread,
        member: &str,
        first: &impl Serialize,
        patience: Duration,
    ) -> Result<StreamWriter, Error> {
        let text = first_line(thread, member, first)?;
        StreamWriter::place(thread, member, &text, patience)
    }

    /// Starts the streams of several members like [`StreamWriter::begin`], under one lock: each with its patience. Returns
    /// one result per member.
    ///
    /// # Errors
    /// If the thread is locked for too long, or the first line cannot be written as JSON. Each inner error is about one
    /// stream, which was not started.
    pub fn begin_all(
        thread: &Thread,
        first: &impl Serialize,
        members: &[(&str, Duration)],
    ) -> Result<Vec<Result<StreamWriter, Error>>, Error> {
        let Some((member, _)) = members.first() else {
            return Ok(Vec::new());
        };
        let text = first_line(thread, member, first)?;
        StreamWriter::place_all(thread, &text, members)
    }

    fn place(
        thread: &Thread,
        member: &str,
        text: &[u8],
        patience: Duration,
    ) -> Result<StreamWriter, Error> {
        let mut placed = StreamWriter::place_all(thread, text, &[(member, patience)])?;
        // One member gives one result.
        placed.pop().unwrap_or_else(|| {
            let path = layout::stream_file(thread.path(), member);
            Err(Error::io("create", &path)(io::ErrorKind::Other.into()))
        })
    }

    fn place_all(
        thread: &Thread,
        text: &[u8],
        members: &[(&str, Duration)],
    ) -> Result<Vec<Result<StreamWriter, Error>>, Error> {
        let folder = thread.folder();
        let put = |_: &(&str, Duration)| thread.spool().put(text);
        let spooled: Vec<Result<Spooled, Error>> = members.iter().map(put).collect();
        beside(folder, || {
            let each = members.iter().zip(spooled);
            Ok(each
                .map(|((member, patience), one)| Self::link(folder, member, *patience, &one?))
                .collect())
        })
    }

    /// Gives a spooled text the name of a member's stream. The caller holds the thread's lock.
    fn link(
        folder: &Folder,
        member: &str,
        patience: Duration,
        spooled: &Spooled,
    ) -> Result<StreamWriter, Error> {
        let name = layout::stream_name(member);
        let path = folder.path().join(&name);
        if sign(folder, member)?.is_some_and(|sign| sign.is_live(patience)) {
            return Err(Error::StreamBusy { path });
        }
        // A new file instead of a truncated one, so that a reader of the old file notices.
        folder.remove(&name)?;
        let alive = spooled.link(folder, &name)?;
        // Written under its new name: watchers of the folder see no writes under another one.
        let file = folder.append_linked(&name)?;
        let gone = || Error::io("open", &path)(io::ErrorKind::NotFound.into());
        let file = file.ok_or_else(gone)?;
        Ok(StreamWriter {
            folder: folder.clone(),
            name,
            path,
            file,
            _alive: alive,
            buffer: Vec::new(),
            removed: false,
        })
    }

    /// Returns its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line; it is written at the next [`StreamWriter::flush`], or when the buffer is full. A line break inside
    /// it becomes a space.
    ///
    /// # Errors
    /// If the buffer is full and cannot be written.
    pub fn line(&mut self, line: &str) -> Result<(), Error> {
        self.buffer.extend(
            line.bytes()
                .map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }),
        );
        self.end_line()
    }

    /// Adds a value as one line of JSON.
    ///
    /// # Errors
    /// If the value cannot be written as JSON, or as [`StreamWriter::line`].
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.buffer, value).map_err(|source| Error::Json {
            path: self.path.clone(),
            source,
        })?;
        self.end_line()
    }

    /// Writes the buffer in one write. Call it once per frame, not per token.
    ///
    /// # Errors
    /// If the file cannot be written. The buffered lines are lost then.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.buffer);
        // A failed write is dropped: the message will contain the whole text.
        self.buffer.clear();
        written.map_err(Error::io("write", &self.path))
    }

    /// Ends the stream and removes its file. Call it once the message file exists.
    ///
    /// # Errors
    /// If the file cannot be written or removed, or the thread is locked for too long.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.remove()
    }

    /// Removes several streams of one thread under one lock. Unlike [`StreamWriter::finish`], drops lines that are
    /// still buffered.
    ///
    /// # Errors
    /// If a file cannot be removed, or the thread is locked for too long. Some streams may be left then.
    pub fn finish_all(mut writers: Vec<StreamWriter>) -> Result<(), Error> {
        let Some(folder) = writers.first().map(|w| w.folder.clone()) else {
            return Ok(());
        };
        beside(&folder, || {
            writers.iter_mut().try_for_each(StreamWriter::unlink)
        })
    }

    fn end_line(&mut self) -> Result<(), Error> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Error> {
        let folder = self.folder.clone();
        beside(&folder, || self.unlink())
    }

    /// Removes the file. The caller holds the thread's lock.
    fn unlink(&mut self) -> Result<(), Error> {
        self.removed = true;
        self.folder.remove(&self.name).map(drop)
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if !self.removed {
            let _ = self.remove();
        }
    }
}

/// The data that arrived since the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Complete lines, in order.
    pub lines: Vec<String>,
    /// A new stream began: earlier lines belong to an earlier attempt.
    pub restarted: bool,
    /// The file is gone, and was read completely.
    pub gone: bool,
}

/// Reads a member's stream as it grows.
#[derive(Debug)]
pub struct StreamReader {
    path: PathBuf,
    /// Its folder, once opened.
    folder: Option<Folder>,
    open: Option<File>,
    offset: u64,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// Whether a stream was read before this file.
    heard_any: bool,
}

impl StreamReader {
    /// Creates a reader from the beginning of a member's stream, which need not exist yet.
    pub fn new(thread: &Thread, member: &str) -> StreamReader {
        StreamReader::of_file(layout::stream_file(thread.path(), member))
    }

    /// Creates a reader of a stream file.
    pub fn of_file(path: PathBuf) -> StreamReader {
        StreamReader {
            path,
            folder: None,
            open: None,
            offset: 0,
            partial: Vec::new(),
            heard_any: false,
        }
    }

    /// Reads what arrived since the last call, at most a few MiB, so call it again while it returns lines.
    ///
    /// # Errors
    /// If the file or its folder cannot be read, or is a link.
    pub fn read(&mut self) -> Result<Heard, Error> {
        let failed = |e| Error::io("read", &self.path)(e);
        let mut heard = Heard::default();
        let name = self.path.file_name().unwrap_or_default().to_owned();
        if self.folder.is_none() {
            self.folder = Folder::find(self.path.parent().unwrap_or(&self.path))?;
        }
        let Some(folder) = self.folder.clone() else {
            heard.gone = true;
            return Ok(heard);
        };
        let named = folder.look(&name)?;
        let ours = match &self.open {
            Some(file) => Some(Look::of_file(file).map_err(failed)?),
            None => None,
        };
        let same = match (&named, &ours) {
            (Some(named), Some(ours)) => named.is_same(ours) && named.bytes >= self.offset,
            (None, Some(_)) => true,
            _ => false,
        };
        if !same {
            if named.is_none() {
                heard.gone = true;
                return Ok(heard);
            }
            heard.restarted = self.heard_any;
            self.open = folder.file(&name)?;
            self.offset = 0;
            self.partial.clear();
        }
        if let Some(file) = &mut self.open {
            file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
            let mut bytes = Vec::new();
            file.take(READ_BYTES_MAX)
                .read_to_end(&mut bytes)
                .map_err(failed)?;
            self.heard_any = true;
            self.offset += bytes.len() as u64;
            let drained = bytes.is_empty();
            self.cut(&bytes, &mut heard.lines);
            if named.is_none() && drained {
                self.open = None;
                heard.gone = true;
            }
        }
        Ok(heard)
    }

    fn cut(&mut self, bytes: &[u8], lines: &mut Vec<String>) {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.partial.extend_from_slice(end);
                    let line = String::from_utf8_lossy(&self.partial);
                    let line = line.trim_end_matches('\r');
                    if !line.is_empty() {
                        lines.push(line.to_owned());
                    }
                    self.partial.clear();
                }
                None => {
                    let room = LINE_BYTES_MAX.saturating_sub(self.partial.len());
                    self.partial
                        .extend_from_slice(&piece[..piece.len().min(room)]);
                }
            }
        }
    }
}

/// A stream file that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSign {
    /// The member.
    pub member: String,
    /// The file.
    pub path: PathBuf,
    /// Whether a process of kd holds it now. Other programs hold no lock: judge those by `quiet`.
    pub held: bool,
    /// The time since the last write; if the file's time is in the future, the time until then.
    pub quiet: Duration,
    /// Whether kd wrote it, which holds it as long as it runs. Such files are never empty.
    pub ours: bool,
}

impl StreamSign {
    /// Returns whether the stream is being written. kd's streams are locked; streams of other programs count as live
    /// until they were silent for `patience`.
    pub fn is_live(&self, patience: Duration) -> bool {
        self.held || (!self.ours && self.quiet < patience)
    }
}

/// Returns the first line of a stream, so that a stream found after a kill shows its owner.
fn first_line(thread: &Thread, member: &str, first: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut line = serde_json::to_vec(first).map_err(|source| Error::Json {
        path: layout::stream_file(thread.path(), member),
        source,
    })?;
    line.push(b'\n');
    Ok(line)
}

/// Lists all stream files of a thread, by member.
///
/// # Errors
/// If the folder cannot be listed.
pub fn streams(thread: &Thread) -> Result<Vec<StreamSign>, Error> {
    let mut found = Vec::new();
    for item in thread.folder().items()? {
        if let Some(member) = layout::stream_member(Path::new(&item.name)) {
            found.extend(sign(thread.folder(), member)?);
        }
    }
    found.sort_by(|a, b| a.member.cmp(&b.member));
    Ok(found)
}

/// Describes a stream file; `None` if it does not exist, or is not a regular file.
fn sign(folder: &Folder, member: &str) -> Result<Option<StreamSign>, Error> {
    let name = layout::stream_name(member);
    let Some(look) = folder.look(&name)?.filter(|look| look.kind == Kind::File) else {
        return Ok(None);
    };
    let quiet = SystemTime::now().duration_since(look.modified);
    Ok(Some(StreamSign {
        member: member.to_owned(),
        held: is_locked(folder, &name),
        ours: is_ours(folder, &name),
        // A clock may be slightly ahead. But an archive can contain any time, and its stream would look alive until
        // then.
        quiet: quiet.unwrap_or_else(|ahead| ahead.duration()),
        path: folder.path().join(name),
    }))
}

/// Removes streams left by killed processes of kd. Keeps locked streams, and streams of other programs. Lists
/// the folder.
///
/// # Errors
/// If the folder cannot be listed, a file cannot be removed, or the thread is locked for too long.
pub fn sweep(thread: &Thread) -> Result<(), Error> {
    sweep_where(thread, || streams(thread))
}

/// Like [`sweep`], for these members only, without listing the folder.
///
/// # Errors
/// If a file cannot be removed, or the thread is locked for too long.
pub fn sweep_of(thread: &Thread, members: &[&str]) -> Result<(), Error> {
    sweep_where(thread, || {
        let signs = members.iter().map(|member| sign(thread.folder(), member));
        Ok(signs
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    })
}

fn sweep_where(
    thread: &Thread,
    look: impl Fn() -> Result<Vec<StreamSign>, Error>,
) -> Result<(), Error> {
    let folder = thread.folder();
    let name = |sign: &StreamSign| layout::stream_name(&sign.member);
    let dead = |sign: &StreamSign| sign.ours && !sign.held;
    if !look()?.iter().any(dead) {
        return Ok(());
    }
    // Starting a stream needs the thread's lock: a stream that is not held now has no writer.
    beside(folder, || {
        for sign in look()?.iter().filter(|sign| dead(sign)) {
            folder.remove(name(sign))?;
        }
        Ok(())
    })
}

/// Returns whether a process of kd is writing a stream file.
pub fn is_held(path: &Path) -> bool {
    Folder::of_file(path).is_ok_and(|(folder, name)| is_locked(&folder, name))
}

/// Returns whether a stream is in kd's format, not in the format of an agent program.
fn is_ours(folder: &Folder, name: &str) -> bool {
    let Ok(Some(file)) = folder.file(name) else {
        return false;
    };
    let mut start = Vec::new();
    let read = file.take(OUR_WORDS.len() as u64).read_to_end(&mut start);
    read.is_ok() && !start.is_empty() && OUR_WORDS.starts_with(&start)
}

/// Returns whether a process holds the lock on a file.
fn is_locked(folder: &Folder, name: impl AsRef<OsStr>) -> bool {
    match folder.file(name) {
        Ok(Some(file)) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
        _ => false,
    }
}
