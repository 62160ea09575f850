//! Reports what other processes do in a thread's folder: [`Input::Found`] for each message, [`Input::FoundDelta`] for
//! each piece of a streaming answer, and [`Input::FoundEnd`] when a stream is over.
//!
//! Relies on file-system notifications instead of polling: an idle folder costs nothing. Only while following a stream,
//! it checks once a second whether the writer is still alive. It runs on its own thread, because it reads files.

use crate::ask::Joiner;
use kd_backends::dialects::{self, Decoder, Dialect};
use kd_core::names::KING;
use kd_core::{Delta, Failure, FailureKind, Input, Member, Message, Op, SeatName};
use kd_store::stream::{self, StreamReader, StreamWriter};
use kd_store::{Error, Thread, layout, watcher};
use notify::Watcher;
use notify::event::{AccessKind, AccessMode, EventKind, MetadataKind, ModifyKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc as inbox;

/// Delay after the last change of a new message file before it is read, unless its writer closes it earlier: other
/// programs write files in pieces.
const REST: Duration = Duration::from_millis(40);
/// Interval between checks whether the writer of a followed stream is alive.
const PULSE: Duration = Duration::from_secs(1);
/// Time for which a stream counts as alive if it existed before this watch and no process locks or writes to it. An
/// archive can contain such a stream, and it must not prevent a member from being asked. A writer that was seen writing
/// may be silent for as long as its member's turn may take.
const FRESH: Duration = Duration::from_secs(30);

/// Stream files written by this process, which the watch ignores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Own(Arc<Mutex<BTreeSet<(u64, u64)>>>);

impl Own {
    /// Starts streams of this process. The lock keeps the watch from looking at a file before it is registered.
    pub(crate) fn begin(
        &self,
        create: impl FnOnce() -> Result<Vec<Result<StreamWriter, Error>>, Error>,
    ) -> Result<Vec<Result<StreamWriter, Error>>, Error> {
        let mut files = self.lock();
        let writers = create()?;
        let started = writers.iter().flatten();
        files.extend(started.filter_map(|writer| identity(writer.path())));
        Ok(writers)
    }

    /// Ends streams of this process.
    pub(crate) fn end(&self, writers: Vec<StreamWriter>) {
        let mut files = self.lock();
        let ours: Vec<_> = writers.iter().filter_map(|w| identity(w.path())).collect();
        let _ = StreamWriter::finish_all(writers);
        for file in ours {
            files.remove(&file);
        }
    }

    fn holds(&self, path: &Path) -> bool {
        let files = self.lock();
        identity(path).is_some_and(|file| files.contains(&file))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(u64, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// An event that wakes the watch thread.
enum Wake {
    Told(notify::Result<notify::Event>),
    Stop,
}

/// Watches a folder until dropped.
pub struct Watch {
    wake: Sender<Wake>,
    /// Kept alive, because dropping it ends the notifications.
    _watcher: Box<dyn Watcher + Send>,
}

impl Watch {
    /// Watches a thread for a reader that knows its messages up to the number `seen`. Reports existing messages and
    /// streams first. `members` determine the dialect in which other programs stream.
    ///
    /// # Errors
    /// If the folder cannot be watched, or the operating system cannot start a thread.
    pub fn start(
        thread: Arc<Thread>,
        seen: u32,
        members: &[Member],
        told: inbox::Sender<Input>,
    ) -> std::io::Result<Watch> {
        Self::over(thread, seen, members, Own::default(), None, told)
    }

    /// Like [`Watch::start`], for a process that also writes to the thread. Sends `first` after the data that already
    /// exist.
    pub(crate) fn over(
        thread: Arc<Thread>,
        seen: u32,
        members: &[Member],
        own: Own,
        first: Option<Op>,
        told: inbox::Sender<Input>,
    ) -> std::io::Result<Watch> {
        let (wake, woken) = mpsc::channel();
        let report = wake.clone();
        let tell = move |event| {
            let _ = report.send(Wake::Told(event));
        };
        let watcher = watcher(thread.path(), tell).map_err(std::io::Error::other)?;
        let patience = members
            .iter()
            .map(|m| (m.name.to_string(), m.deadlines.total))
            .collect();
        let dialects = members
            .iter()
            .filter_map(|m| {
                let program = kd_backends::adapters::programs::program(&m.backend)?;
                Some((m.name.to_string(), dialects::named(program.dialect)?))
            })
            .collect();
        let lookout = Lookout {
            thread,
            own,
            dialects,
            patience,
            resting: BTreeMap::new(),
            streams: BTreeMap::new(),
            last: seen,
            told,
        };
        std::thread::Builder::new()
            .name("kd-watch".into())
            .spawn(move || lookout.look(seen, first, &woken))?;
        Ok(Watch {
            wake,
            _watcher: watcher,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.wake.send(Wake::Stop);
    }
}

/// The event loop has ended: nothing receives reports.
struct Gone;

struct Lookout {
    thread: Arc<Thread>,
    own: Own,
    /// The dialect of each member's program.
    dialects: BTreeMap<String, &'static Dialect>,
    /// Maximum silence of a live member.
    patience: BTreeMap<String, Duration>,
    /// Message files that may still be written, and when to read them.
    resting: BTreeMap<PathBuf, Instant>,
    /// Followed streams, by file.
    streams: BTreeMap<PathBuf, Followed>,
    /// The highest message number reported.
    last: u32,
    told: inbox::Sender<Input>,
}

/// The way in which a stream was discovered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It already existed.
    There,
    /// The system reported a write.
    Told,
}

/// A stream of another process.
struct Followed {
    member: String,
    seat: SeatName,
    reader: StreamReader,
    decoder: Option<Box<dyn Decoder>>,
    /// Whether kd writes it (then it is locked); `None` until known.
    ours: Option<bool>,
    /// Whether it was reported.
    told: bool,
    /// The highest message number reported before it began: its message has a higher one.
    after: u32,
    /// Whether its message was reported.
    answered: bool,
    /// The time when it was last seen growing.
    written: Instant,
    /// Maximum silence before it counts as dead.
    patience: Duration,
}

impl Lookout {
    fn look(mut self, seen: u32, first: Option<Op>, woken: &Receiver<Wake>) {
        let begun = self.sweep(seen).and_then(|()| match first {
            Some(op) => self.tell(Input::Op(op)),
            None => Ok(()),
        });
        if begun.is_err() {
            return;
        }
        let mut pulse = Instant::now() + PULSE;
        loop {
            let now = Instant::now();
            let mut next = self.resting.values().min().copied();
            if !self.streams.is_empty() {
                next = Some(next.map_or(pulse, |n| n.min(pulse)));
            }
            let woke = match next {
                Some(at) => woken.recv_timeout(at.saturating_duration_since(now)),
                None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let done = match woke {
                Ok(Wake::Told(Ok(event))) => self.hear(&event),
                // Events may have been missed: check everything.
                Ok(Wake::Told(Err(_))) => self.sweep(seen),
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => Ok(()),
            };
            let done = done.and_then(|()| self.rested()).and_then(|()| {
                if Instant::now() < pulse {
                    return Ok(());
                }
                pulse = Instant::now() + PULSE;
                self.pulse()
            });
            if done.is_err() {
                return;
            }
        }
    }

    fn tell(&self, input: Input) -> Result<(), Gone> {
        self.told.blocking_send(input).map_err(|_| Gone)
    }

    /// Reports everything that exists.
    fn sweep(&mut self, seen: u32) -> Result<(), Gone> {
        if let Ok(read) = self.thread.since(seen) {
            let last = self.last;
            // A note in place of the text of a known message says nothing new.
            let is_new = |m: &Message| m.seq > last || !kd_store::thread::is_left_out(m);
            let mut new = read.messages.into_iter().filter(is_new);
            new.try_for_each(|message| self.found(message))?;
        }
        for sign in stream::streams(&self.thread).unwrap_or_default() {
            if sign.held || sign.quiet < FRESH {
                self.stream(&sign.path, Found::There)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, event: &notify::Event) -> Result<(), Gone> {
        if event.need_rescan() {
            return self.sweep(0);
        }
        let closed = matches!(
            event.kind,
            EventKind::Access(AccessKind::Close(AccessMode::Write))
        );
        let changed = matches!(
            event.kind,
            EventKind::Create(_)
                | EventKind::Modify(
                    ModifyKind::Data(_)
                        | ModifyKind::Name(_)
                        | ModifyKind::Any
                        | ModifyKind::Metadata(MetadataKind::WriteTime)
                )
        );
        for path in &event.paths {
            if layout::stream_member(path).is_some() {
                if matches!(event.kind, EventKind::Remove(_)) {
                    self.gone(path)?;
                } else if closed || changed {
                    self.stream(path, Found::Told)?;
                }
            } else if path.extension().is_some_and(|e| e == "md")
                && (closed || changed || matches!(event.kind, EventKind::Remove(_)))
            {
                let at = Instant::now() + if closed { Duration::ZERO } else { REST };
                self.resting.insert(path.clone(), at);
            }
        }
        Ok(())
    }

    /// Reports messages whose files have settled.
    fn rested(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let ready = self.resting.iter().filter(|(_, at)| **at <= now);
        let ready: Vec<PathBuf> = ready.map(|(path, _)| path.clone()).collect();
        // Editors remove a file for a moment before they write it again.
        let is_gone = |path: &Path| {
            fs::symlink_metadata(path).is_err_and(|e| e.kind() == ErrorKind::NotFound)
        };
        let (gone, there): (Vec<_>, Vec<_>) = ready.into_iter().partition(|path| is_gone(path));
        there.iter().try_for_each(|path| self.message(path))?;
        if gone.is_empty() {
            return Ok(());
        }
        // Files that are removed together are told together.
        let rest = self.resting.iter().filter(|(_, at)| **at > now);
        let last = rest.filter(|(path, _)| is_gone(path)).map(|(_, at)| *at);
        if let Some(at) = last.max() {
            self.resting.extend(gone.into_iter().map(|path| (path, at)));
            return Ok(());
        }
        let numbers = gone.iter().filter_map(|path| {
            self.resting.remove(path);
            kd_store::thread::number_of(path)
        });
        let messages: Vec<(u32, String)> = numbers.collect();
        match messages.is_empty() {
            true => Ok(()),
            false => self.tell(Input::FoundGone { messages }),
        }
    }

    /// Reports a sender's messages, settled or not.
    fn messages_of(&mut self, sender: &str) -> Result<(), Gone> {
        let end = format!("-{}.md", kd_store::name::sender(sender));
        let theirs = |p: &&PathBuf| p.to_str().is_some_and(|p| p.ends_with(&end));
        let ready: Vec<PathBuf> = self.resting.keys().filter(theirs).cloned().collect();
        ready.iter().try_for_each(|path| self.message(path))
    }

    fn message(&mut self, path: &Path) -> Result<(), Gone> {
        self.resting.remove(path);
        match self.thread.message_in(path) {
            Some(message) => self.found(message),
            None => Ok(()),
        }
    }

    fn found(&mut self, message: Message) -> Result<(), Gone> {
        self.last = self.last.max(message.seq);
        for followed in self.streams.values_mut() {
            followed.answered |= message.from == followed.member;
        }
        self.tell(Input::Found { message })
    }

    /// Starts to follow the stream of a member, if that is a name that a member can have.
    fn follow(&mut self, path: &Path, member: String, patience: Duration) {
        let Ok(seat) = SeatName::new(member.clone()) else {
            return;
        };
        let followed = Followed {
            decoder: self.dialects.get(&member).map(|d| d.decoder()),
            patience,
            member,
            seat,
            reader: StreamReader::of_file(path.to_path_buf()),
            ours: None,
            told: false,
            after: self.last,
            answered: false,
            written: Instant::now(),
        };
        self.streams.insert(path.to_path_buf(), followed);
    }

    /// Reports the text that was added to a stream since the last look.
    fn stream(&mut self, path: &Path, found: Found) -> Result<(), Gone> {
        if self.own.holds(path) {
            return Ok(());
        }
        let member = layout::stream_member(path).unwrap_or_default().to_owned();
        let patience = match found {
            Found::There => FRESH,
            Found::Told => self
                .patience
                .get(&member)
                .copied()
                .unwrap_or(stream::PATIENCE),
        };
        if !self.streams.contains_key(path) {
            // The question was complete before any answer began: report it first.
            self.messages_of(KING)?;
            self.follow(path, member, patience);
        }
        loop {
            let Some(followed) = self.streams.get_mut(path) else {
                return Ok(());
            };
            let Ok(heard) = followed.reader.read() else {
                return self.end(path);
            };
            if heard.gone && heard.lines.is_empty() {
                return self.gone(path);
            }
            let mut deltas = Vec::new();
            if heard.restarted {
                followed.decoder = self.dialects.get(&followed.member).map(|d| d.decoder());
                deltas.push(Delta::Retrying {
                    attempt: 1,
                    after: Duration::ZERO,
                    failure: Failure::new(FailureKind::Crashed, "it begins anew"),
                });
            }
            if heard.lines.is_empty() && deltas.is_empty() {
                return Ok(());
            }
            followed.patience = followed.patience.max(patience);
            followed.written = Instant::now();
            deltas.extend(followed.decode(&heard.lines));
            if followed.ours == Some(true) && !stream::is_held(path) {
                // Left by a killed kd: nothing writes there.
                return self.end(path);
            }
            if !std::mem::replace(&mut followed.told, true) {
                let begins = Delta::Started {
                    model: None,
                    version: None,
                    session: None,
                };
                if !matches!(deltas.first(), Some(Delta::Started { .. })) {
                    deltas.insert(0, begins);
                }
            }
            let seat = followed.seat.clone();
            for delta in deltas {
                self.tell(Input::FoundDelta {
                    seat: seat.clone(),
                    delta,
                })?;
            }
        }
    }

    /// Handles the removal of a stream's file. Its message, if there is one, was written before.
    fn gone(&mut self, path: &Path) -> Result<(), Gone> {
        let Some(followed) = self.streams.get(path) else {
            return Ok(());
        };
        let (member, after) = (followed.member.clone(), followed.after);
        self.messages_of(&member)?;
        if self.streams.get(path).is_some_and(|f| !f.answered) {
            // The file may be seen missing before the system reports the message.
            let since = self.thread.since(after).unwrap_or_default().messages;
            let mut theirs = since.into_iter().filter(|message| message.from == member);
            theirs.try_for_each(|message| self.found(message))?;
        }
        self.end(path)
    }

    fn end(&mut self, path: &Path) -> Result<(), Gone> {
        match self.streams.remove(path) {
            Some(followed) if followed.told => self.tell(Input::FoundEnd {
                seat: followed.seat,
            }),
            _ => Ok(()),
        }
    }

    /// Ends streams whose writers are dead.
    fn pulse(&mut self) -> Result<(), Gone> {
        let alive = |path: &Path, followed: &Followed| {
            path.exists()
                && match followed.ours {
                    Some(true) => stream::is_held(path),
                    _ => stream::is_held(path) || followed.written.elapsed() < followed.patience,
                }
        };
        let dead = self.streams.iter().filter(|(path, f)| !alive(path, f));
        for path in dead.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            self.gone(&path)?;
        }
        Ok(())
    }
}

impl Followed {
    /// Decodes lines: kd's own deltas, or the output of the member's program.
    fn decode(&mut self, lines: &[String]) -> Vec<Delta> {
        let mut joiner = Joiner::default();
        let mut deltas = Vec::new();
        for line in lines {
            let own = match self.ours {
                Some(false) => None,
                _ => serde_json::from_str::<Delta>(line).ok(),
            };
            self.ours.get_or_insert(own.is_some());
            let pieces = match own {
                Some(delta) => vec![delta],
                None => self
                    .decoder
                    .as_mut()
                    .map_or_else(Vec::new, |d| d.line(line.as_bytes())),
            };
            deltas.extend(pieces.into_iter().filter_map(|piece| joiner.push(piece)));
        }
        deltas.extend(joiner.take());
        deltas
    }
}
