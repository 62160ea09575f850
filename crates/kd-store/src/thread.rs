//! A thread: a folder of message files, each complete once it has its name.
//!
//! Input: drafts. Output: messages with numbers. A number is unique across all processes that use this crate (they hold
//! the thread's lock while they take one). A program that only creates files exclusively is detected: by the index if
//! it wrote before this process, and by checking the names of known senders if it wrote at the same time.
//! `docs/adr/0003-thread-files.md` has the details.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::frontmatter::{self, Flaw};
use crate::index::{self, Entry, Index, Tip, Want};
use crate::json;
use crate::layout::{self, Layout, Place};
use crate::lock::{self, Lock};
use crate::meta::{self, Meta};
use crate::name;
use crate::spool::{Spool, Spooled};
use jiff::Timestamp;
use kd_core::ids::{SeatName, ThreadId};
use kd_core::message::{Draft, Message};
use kd_core::names::KING;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Headers have a few hundred bytes.
const START_BYTES: u64 = 4096;
/// Maximum number of taken numbers that are skipped in a row. kingdom-cli gives up after ten.
const TRIES_MAX: u32 = 100;
/// Maximum number of rounds that resolve duplicate numbers.
const PARTINGS_MAX: u32 = 4;
/// Maximum age of a file that may have been written concurrently.
const YOUNG: Duration = Duration::from_secs(60);
/// kingdom-cli's default members: they may write to any thread without being listed in it.
const USUAL_SENDERS: [&str; 4] = [KING, "claude", "codex", "cursor"];
/// Maximum number of senders whose names are checked after each append.
const SENDERS_MAX: usize = 64;

/// Maximum total size of messages read at once: the maximum size of one message. The memory for a conversation is a
/// multiple of it.
pub const TOGETHER_BYTES_MAX: u64 = bounds::MESSAGE.bytes;

/// The durability of a finished message. At every level it survives if the process is killed; the levels differ in the
/// data that a power failure may lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// No sync: a power failure may lose the last half minute, and leave empty files.
    Buffered,
    /// One sync per message, before it gets its name: no message is ever incomplete.
    #[default]
    Whole,
    /// A second sync, of the folder: a message that was announced is not lost.
    Named,
}

/// A defect of a file. Never fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The problem.
    pub what: Trouble,
}

/// A problem with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The text has a flaw.
    Flaw(Flaw),
    /// It could not be read.
    Unreadable(String),
}

impl Problem {
    /// Returns whether the file was skipped because of it.
    pub fn is_skipped(&self) -> bool {
        match &self.what {
            Trouble::Flaw(flaw) => flaw.is_fatal(),
            Trouble::Unreadable(_) => true,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what: &dyn fmt::Display = match &self.what {
            Trouble::Flaw(flaw) => flaw,
            Trouble::Unreadable(why) => why,
        };
        let skipped = if self.is_skipped() { "left out " } else { "" };
        write!(f, "{skipped}{}: {what}", self.path.display())
    }
}

/// Messages in order, and defects of their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Messages {
    /// The messages, by number and then by file name.
    pub messages: Vec<Message>,
    /// The defects.
    pub problems: Vec<Problem>,
}

/// A thread on disk. Cheap to open; may be shared between threads.
#[derive(Debug)]
pub struct Thread {
    folder: Folder,
    meta: Meta,
    index: Index,
    spool: Spool,
    durability: Durability,
    /// Whether `thread.json` is missing, as in a clone: it is written with the next message.
    is_bare: AtomicBool,
    /// All known senders, as in file names.
    senders: Mutex<BTreeSet<String>>,
    /// The highest number that was read or given here: later ones are higher, also if the files are gone.
    highest: AtomicU32,
}

impl Thread {
    /// Creates a thread for the king and these members, and makes it the branch's current one.
    ///
    /// # Errors
    /// Those of [`Thread::create_for`]; also if the branch's state cannot be written. Nothing of the thread remains then.
    pub fn create(layout: &Layout, members: &[SeatName]) -> Result<Thread, Error> {
        let thread = Thread::create_for(layout, members, meta::COUNCIL)?;
        layout
            .set_current_thread(thread.id())
            .inspect_err(|_| layout.discard_thread(thread.id()))?;
        Ok(thread)
    }

    /// Creates a thread in this phase, without making it current: see [`Layout::set_current_thread`].
    ///
    /// # Errors
    /// If the thread's folder or a file in it cannot be created. Nothing of the thread remains then.
    pub fn create_for(layout: &Layout, members: &[SeatName], phase: &str) -> Result<Thread, Error> {
        let (id, folder) = layout.new_thread_folder()?;
        let names = members.iter().map(ToString::to_string);
        let meta = Meta {
            phase: phase.to_owned(),
            ..Meta::new(id.clone(), names, Timestamp::now())
        };
        // If the disk is full, nothing remains.
        let thread = Thread::begin_with(folder, meta, members)
            .inspect_err(|_| layout.discard_thread(&id))?;
        // If the note cannot be written, the thread counts as one that came with the folder: no reason to fail.
        let _ = layout.note_seated(&id, members);
        Ok(thread)
    }

    /// Creates the thread in a new folder, which may contain messages already.
    pub(crate) fn begin(folder: Folder, meta: Meta) -> Result<Thread, Error> {
        Thread::begin_with(folder, meta, &[])
    }

    /// Like [`Thread::begin`], and creates the lock files of these members: later, each would take the thread's lock and
    /// stamp the index again.
    fn begin_with(folder: Folder, meta: Meta, members: &[SeatName]) -> Result<Thread, Error> {
        crate::json::write_in(&folder, layout::THREAD_FILE, &meta, bounds::META)?;
        let thread = Thread::with_meta(folder, meta);
        let lock = thread.lock()?;
        for member in members {
            // The first lease creates one that is missing.
            let name = layout::turn_lock(member.as_str());
            let _ = thread.folder.lock_file(name.as_ref());
        }
        thread.rebuild()?;
        drop(lock);
        Ok(thread)
    }

    /// Removes a new thread whose first message could not be written, as on a full disk. Keeps a thread with more messages
    /// than the `begun` that it was created with: a fork begins with those of its source.
    pub fn discard_unsaid(self, layout: &Layout, begun: usize) {
        if index::list(&self.folder).is_ok_and(|entries| entries.len() <= begun) {
            let id = self.meta.id.clone();
            drop(self);
            layout.discard_thread(&id);
        }
    }

    /// Opens an existing thread.
    ///
    /// # Errors
    /// Those of [`Thread::open_folder`].
    pub fn open(place: &Place) -> Result<Thread, Error> {
        Thread::open_folder(&place.path)
    }

    /// Opens the thread in a folder. Without a `thread.json` the members are derived from the senders.
    ///
    /// # Errors
    /// [`Error::NoThread`] if there is no such folder, [`Error::Newer`] if a newer version wrote it; also if it is a
    /// link or cannot be read.
    pub fn open_folder(path: &Path) -> Result<Thread, Error> {
        let id = ThreadId(
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        );
        let Some(folder) = Folder::find(path)? else {
            return Err(Error::NoThread {
                wanted: id.0,
                path: path.parent().unwrap_or(path).to_path_buf(),
                near: Vec::new(),
            });
        };
        let read = Meta::read(&folder);
        let is_bare = matches!(read, Ok(None));
        let meta = match read {
            Ok(Some(meta)) => Meta { id, ..meta },
            Err(error) if !matches!(error, Error::Json { .. }) && !error.is_refused_file() => {
                return Err(error);
            }
            // A malformed file, or a link, counts as missing; `fsck` reports it.
            Ok(None) | Err(_) => {
                let entries = index::list(&folder)?;
                Meta::rebuilt(id, entries.iter().map(|e| e.sender().to_owned()))
            }
        };
        let mut thread = Thread::with_meta(folder, meta);
        thread.is_bare = AtomicBool::new(is_bare);
        Ok(thread)
    }

    /// Replaces the members in `thread.json`. An open thread keeps those with which it was opened.
    ///
    /// # Errors
    /// If the thread is locked for too long, or the file cannot be read or written.
    pub fn set_members(&self, members: &[SeatName]) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut meta = Meta::read(&self.folder)?.unwrap_or_else(|| self.found_meta());
        let names = members.iter().map(ToString::to_string);
        meta.members = std::iter::once(KING.to_owned()).chain(names).collect();
        json::write_in(&self.folder, layout::THREAD_FILE, &meta, bounds::META)
    }

    /// Writes `thread.json` where git did not carry it, so that the members keep their order and kingdom-cli shows the
    /// thread. A failure is no reason to lose a message: `kd fsck` reports it.
    fn write_missing_meta(&self) {
        if !self.is_bare.swap(false, Ordering::Relaxed) || self.folder.has(layout::THREAD_FILE) {
            return;
        }
        let meta = self.found_meta();
        let _ = json::write_in(&self.folder, layout::THREAD_FILE, &meta, bounds::META);
    }

    /// Returns the metadata with the time of the first message, if the file does not say when the thread was opened.
    fn found_meta(&self) -> Meta {
        let mut meta = self.meta.clone();
        if meta.created_at.is_none() {
            let first = self.head(1).ok();
            let first = first.and_then(|read| read.messages.into_iter().next());
            meta.created_at = first.map(|m| m.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
        meta
    }

    fn with_meta(folder: Folder, meta: Meta) -> Thread {
        let senders = USUAL_SENDERS
            .iter()
            .map(|s| (*s).to_owned())
            .chain(meta.members.iter().map(|m| name::sender(m)))
            .take(SENDERS_MAX)
            .collect();
        Thread {
            index: Index::new(&folder),
            spool: Spool::new(folder.clone()),
            folder,
            meta,
            durability: Durability::default(),
            is_bare: AtomicBool::new(false),
            senders: Mutex::new(senders),
            highest: AtomicU32::new(0),
        }
    }

    /// Sets the durability.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Thread {
        self.durability = durability;
        self
    }

    /// Returns its id, which is its folder's name.
    pub fn id(&self) -> &ThreadId {
        &self.meta.id
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Returns its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns its open folder.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the folder of its branch's member sessions.
    pub fn sessions_folder(&self) -> PathBuf {
        layout::sessions_of(layout::branch_of(self.path()))
    }

    /// Returns its metadata, from `thread.json` or derived without it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Restricts the thread, for later commands too, to members that run on this machine. Stored in `thread.json`,
    /// which a clone lacks.
    ///
    /// # Errors
    /// If the thread is locked for too long, or the file cannot be written.
    pub fn make_private(&mut self) -> Result<(), Error> {
        if self.meta.is_private() {
            return Ok(());
        }
        let lock = self.lock()?;
        // Keeps what another process wrote there meanwhile.
        let mut meta = match Meta::read(&self.folder) {
            Ok(Some(meta)) => meta,
            _ => self.meta.clone(),
        };
        meta.extra
            .insert(meta::PRIVATE.to_owned(), serde_json::Value::Bool(true));
        crate::json::write_in(&self.folder, layout::THREAD_FILE, &meta, bounds::META)?;
        drop(lock);
        self.meta = Meta {
            id: self.meta.id.clone(),
            ..meta
        };
        Ok(())
    }

    /// Returns the members, without the king. Omits names that cannot be members.
    pub fn members(&self) -> Vec<SeatName> {
        self.meta.seats()
    }

    /// Writes a message. When this returns, the file is complete under its final name. Returns the message as a reader
    /// would parse it.
    ///
    /// The cost does not grow with the thread, unless another program wrote to it since the last append.
    ///
    /// # Errors
    /// If the message cannot be written or synced, the thread is locked for too long, or no number is left.
    pub fn append(&self, draft: &Draft) -> Result<Message, Error> {
        let mut written = self.append_all(&[draft])?;
        // One draft gives one result.
        written.pop().unwrap_or_else(|| {
            Err(Error::io("append to", self.path())(
                io::ErrorKind::Other.into(),
            ))
        })
    }

    /// Writes several messages in order, like [`Thread::append`], but waits for the disk once: the answers of members
    /// that finish together are synced together. Returns one result per message; the outer error is about the thread.
    ///
    /// # Errors
    /// If the thread is locked for too long, or its folder cannot be synced. The messages may exist in that case. Each
    /// inner error is about one message, which was not written.
    pub fn append_all(&self, drafts: &[&Draft]) -> Result<Vec<Result<Message, Error>>, Error> {
        // Written and synced before the lock is taken, so that several processes can do it concurrently.
        let texts: Vec<String> = drafts.iter().map(|d| frontmatter::format(d)).collect();
        let put = |text: &String| self.spool.put(text.as_bytes());
        let mut spooled: Vec<Result<Spooled, Error>> = texts.iter().map(put).collect();
        if self.durability != Durability::Buffered {
            // All messages are written now, so the disk can sync them together.
            for one in &mut spooled {
                if let Err(error) = one.as_ref().map_or(Ok(()), Spooled::sync) {
                    *one = Err(error);
                }
            }
        }
        let senders: Vec<String> = drafts.iter().map(|d| name::sender(&d.from)).collect();
        let lock = self.lock()?;
        let ready = spooled.iter().zip(&senders);
        let ready: Vec<(&Spooled, &str)> = ready
            .filter_map(|(one, sender)| Some((one.as_ref().ok()?, sender.as_str())))
            .collect();
        let mut numbers = self.link_all(&ready).into_iter();
        let mut written = Vec::with_capacity(drafts.len());
        for (((draft, text), sender), spooled) in
            drafts.iter().zip(&texts).zip(&senders).zip(spooled)
        {
            written.push(spooled.and_then(|_| {
                let gone = || Error::io("append to", self.path())(io::ErrorKind::Other.into());
                let seq = numbers.next().ok_or_else(gone)??;
                let (parsed, _) = frontmatter::parse(text.as_bytes());
                // Formatted front matter always parses: its property test ensures this.
                parsed
                    .map(|parsed| parsed.into_message(seq, sender, draft.at))
                    .ok_or_else(|| {
                        Error::io("read back", self.path())(io::ErrorKind::InvalidData.into())
                    })
            }));
        }
        self.write_missing_meta();
        drop(lock);
        if self.durability == Durability::Named {
            let synced = self.folder.as_file().sync_all();
            synced.map_err(Error::io("sync", self.path()))?;
        }
        Ok(written)
    }

    /// Calls `tell` with every message in order, for streaming output. Returns the defects.
    ///
    /// # Errors
    /// If the folder cannot be listed, or the callback fails. A message that cannot be read is a defect, not an error.
    pub fn each<E: From<Error>>(
        &self,
        mut tell: impl FnMut(Message) -> Result<(), E>,
    ) -> Result<Vec<Problem>, E> {
        let mut problems = Vec::new();
        for entry in index::list(&self.folder)? {
            let read = self.read(std::slice::from_ref(&entry))?;
            problems.extend(read.problems);
            read.messages.into_iter().try_for_each(&mut tell)?;
        }
        Ok(problems)
    }

    /// Returns all messages. Reads every file, and lists the folder, which is the source of truth. Like all methods
    /// that return several messages, it keeps complete texts only of the newest, up to [`TOGETHER_BYTES_MAX`]; of older
    /// ones it returns the header and a note instead of the text.
    ///
    /// # Errors
    /// If the folder cannot be listed. A message that cannot be read is one of the problems returned, not an error.
    pub fn messages(&self) -> Result<Messages, Error> {
        let entries = index::list(&self.folder)?;
        self.read(&entries)
    }

    /// Returns the newest `n` messages, in order.
    ///
    /// # Errors
    /// Those of [`Thread::messages`]; also if an outdated index cannot be rebuilt.
    pub fn tail(&self, n: usize) -> Result<Messages, Error> {
        self.read(&self.entries(Want::Last(n))?)
    }

    /// Returns all messages with a number above `seq`.
    ///
    /// # Errors
    /// Those of [`Thread::tail`].
    pub fn since(&self, seq: u32) -> Result<Messages, Error> {
        self.read(&self.entries(Want::After(seq))?)
    }

    /// Returns up to `n` messages with numbers below `seq`, the newest of those, in order; and whether there are more.
    ///
    /// # Errors
    /// Those of [`Thread::messages`].
    pub fn before(&self, seq: u32, n: usize) -> Result<(Messages, bool), Error> {
        let mut entries = index::list(&self.folder)?;
        entries.retain(|e| e.seq < seq);
        let more = entries.len() > n;
        entries.drain(..entries.len().saturating_sub(n));
        Ok((self.read(&entries)?, more))
    }

    /// Returns the message with a number; if several share it, the first by name.
    ///
    /// # Errors
    /// [`Error::NoMessage`] if there is no readable message with this number, or as [`Thread::tail`].
    pub fn message(&self, seq: u32) -> Result<Message, Error> {
        let mut entries = self.entries(Want::After(seq.saturating_sub(1)))?;
        entries.retain(|e| e.seq == seq);
        let found = self.read(&entries)?.messages.into_iter().next();
        found.ok_or_else(|| Error::NoMessage {
            path: self.path().to_path_buf(),
            seq,
        })
    }

    /// Returns the message in a file of this thread; `None` if the name is not a message's, or the file is missing or
    /// unreadable.
    pub fn message_in(&self, file: &Path) -> Option<Message> {
        let name = file.file_name()?.to_str()?;
        let entry = index::entry(name)?;
        self.read(&[entry]).ok()?.messages.pop()
    }

    /// Counts the messages: files with a message's name and beginning. Opens each file.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn count_readable(&self) -> Result<usize, Error> {
        let entries = index::list(&self.folder)?;
        if entries.is_empty() {
            return Ok(0);
        }
        let sound = |entry: &&Entry| {
            read_start(&self.folder, &entry.name).is_ok_and(|bytes| frontmatter::has_header(&bytes))
        };
        Ok(entries.iter().filter(sound).count())
    }

    /// Counts the message files.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn count(&self) -> Result<usize, Error> {
        match self.index.tip() {
            Some(tip) => Ok(tip.count as usize),
            None => Ok(index::list(&self.folder)?.len()),
        }
    }

    /// Returns the first `n` messages, in order.
    ///
    /// # Errors
    /// Those of [`Thread::messages`].
    pub fn head(&self, n: usize) -> Result<Messages, Error> {
        let mut entries = index::list(&self.folder)?;
        entries.truncate(n);
        self.read(&entries)
    }

    /// Makes numbers unique again after a program without our lock used one twice while we wrote. Call it when a
    /// session ends: until then every append does it.
    ///
    /// # Errors
    /// If the thread is locked for too long, or files cannot be listed or renamed.
    pub fn settle(&self) -> Result<(), Error> {
        if !self.index.exists() {
            return Ok(());
        }
        // The last rebuild may have left duplicates that were written while it ran, although its index is valid.
        let settled = self.index.tip().is_some()
            && self
                .index
                .entries(Want::After(0))
                .is_some_and(|entries| !has_doubles(&entries));
        if !settled {
            let _lock = self.lock()?;
            self.rebuild()?;
        }
        Ok(())
    }

    /// Takes the thread's lock.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        lock_folder(&self.folder)
    }

    /// Gives spooled texts of these senders the next numbers, in order. Returns one result per text. The caller holds the
    /// lock.
    fn link_all(&self, texts: &[(&Spooled, &str)]) -> Vec<Result<u32, Error>> {
        let mut linked = Vec::with_capacity(texts.len());
        while linked.len() < texts.len() {
            match self.link_some(&texts[linked.len()..]) {
                Ok(numbers) => linked.extend(numbers.into_iter().map(Ok)),
                Err(error) => linked.push(Err(error)),
            }
        }
        linked
    }

    /// Gives the first texts the next numbers, as many as are free in a row, with one change of the index. Returns at
    /// least one number; an error is about the first text. The caller holds the lock.
    fn link_some(&self, texts: &[(&Spooled, &str)]) -> Result<Vec<u32>, Error> {
        let mut tip = self.index.tip();
        for _ in 0..TRIES_MAX {
            let last = match &tip {
                Some(tip) => tip.seq,
                None => self.rebuild()?,
            };
            // Numbers that were shown do not change: `git checkout` may have taken the files away, and brings them back.
            let last = last.max(self.highest.load(Ordering::Relaxed));
            let first = last.checked_add(1).ok_or_else(|| Error::NumbersExhausted {
                path: self.path().to_path_buf(),
            })?;
            // The index is valid, or was just rebuilt, unless the folder cannot be stamped.
            let tip_now = tip.take().or_else(|| self.index.tip());
            let mut entries = Vec::with_capacity(texts.len());
            let mut failed = None;
            for ((spooled, sender), seq) in texts.iter().zip(first..=u32::MAX) {
                let name = format!("{seq:04}-{sender}.md");
                match spooled.publish(&self.folder, &name) {
                    Ok(()) => entries.push(Entry { seq, name }),
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => break,
                    Err(e) => {
                        failed = Some(Error::io("create", &self.path().join(&name))(e));
                        break;
                    }
                }
            }
            if entries.is_empty() {
                match failed {
                    Some(error) => return Err(error),
                    None => continue,
                }
            }
            let _ = match &tip_now {
                Some(tip) => self.index.push(tip, &entries),
                None => self.index.note(&entries),
            };
            let taken = self.taken(&entries, tip_now.as_ref());
            let free = entries.partition_point(|e| taken.is_none_or(|taken| e.seq < taken));
            // Those after it would be out of order. One that cannot be removed stays, with those before it: linked again under
            // another number, one answer would be there twice. A number that is there twice is mended later.
            while let Some(last) = entries.get(free..).and_then(<[Entry]>::last) {
                if self.folder.remove(&last.name).is_err() {
                    break;
                }
                entries.pop();
            }
            if entries.is_empty() {
                continue;
            }
            let mut senders = self.senders();
            for entry in &entries {
                if !senders.contains(entry.sender()) {
                    senders.insert(entry.sender().to_owned());
                }
            }
            if let Some(newest) = entries.last() {
                self.highest.fetch_max(newest.seq, Ordering::Relaxed);
            }
            return Ok(entries.into_iter().map(|e| e.seq).collect());
        }
        Err(Error::Crowded {
            path: self.path().to_path_buf(),
            tries: TRIES_MAX,
        })
    }

    /// Returns the lowest number of these new messages that another sender has too, written without our lock.
    fn taken(&self, entries: &[Entry], tip: Option<&Tip>) -> Option<u32> {
        let senders = self.senders();
        // A short thread is listed with fewer calls than its senders are looked up. Without an index to detect other
        // programs, all names count.
        let lookups = entries.len() * senders.len();
        if tip.is_none_or(|tip| tip.count as usize <= lookups)
            && let Ok(names) = index::list(&self.folder)
        {
            let is_taken = |e: &&Entry| names.iter().filter(|n| n.seq == e.seq).count() > 1;
            return entries.iter().find(is_taken).map(|e| e.seq);
        }
        let is_taken = |e: &&Entry| {
            let mut others = senders.iter().filter(|s| *s != e.sender());
            others.any(|s| self.folder.has(format!("{:04}-{s}.md", e.seq)))
        };
        entries.iter().find(is_taken).map(|e| e.seq)
    }

    /// Rebuilds the index and returns the highest number. The caller holds the lock.
    fn rebuild(&self) -> Result<u32, Error> {
        self.spool.clean()?;
        let temp = self.spool.folder()?;
        let mut entries = self.index.rebuild(&temp)?;
        // Others keep writing; the next caller resolves duplicates written after the last round.
        for _ in 0..PARTINGS_MAX {
            if !self.part_doubles(&entries)? {
                break;
            }
            entries = self.index.rebuild(&temp)?;
        }
        let mut senders = self.senders();
        for entry in &entries {
            if senders.len() < SENDERS_MAX && !senders.contains(entry.sender()) {
                senders.insert(entry.sender().to_owned());
            }
        }
        Ok(entries.last().map_or(0, |e| e.seq))
    }

    /// Renumbers each recent file whose number was taken: a program that lists, adds one and creates causes this if it
    /// listed before we wrote. Messages that we announced keep their numbers, and so do old duplicates, which `fsck`
    /// reports and repairs. Returns whether a file was moved. The caller holds the lock.
    fn part_doubles(&self, entries: &[Entry]) -> Result<bool, Error> {
        if !has_doubles(entries) {
            return Ok(false);
        }
        let ours = self.index.ours();
        let before = entries.last().map_or(0, |e| e.seq);
        let mut last = before;
        for group in entries.chunk_by(|a, b| a.seq == b.seq) {
            if group.len() == 1 {
                continue;
            }
            let may_move = |e: &&Entry| !ours.contains(&e.name) && is_young(&self.folder, &e.name);
            let movable: Vec<&Entry> = group.iter().filter(may_move).collect();
            // One of them may keep the number.
            let keeps = usize::from(movable.len() == group.len());
            for entry in movable.into_iter().skip(keeps) {
                last = renumber(&self.folder, entry, last)?;
            }
        }
        Ok(last > before)
    }

    fn senders(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the wanted entries: from the index if it is valid, otherwise from the folder.
    fn entries(&self, want: Want) -> Result<Vec<Entry>, Error> {
        if let Some(entries) = self.index.entries(want) {
            return Ok(entries);
        }
        // Readers repair an existing index if no writer is active, but never create one.
        if self.index.exists()
            && let Ok(Some(_lock)) = Lock::try_take_in(&self.folder, layout::THREAD_LOCK.as_ref())
            && let Ok(temp) = self.spool.folder()
        {
            if let Some(entries) = self.index.entries(want) {
                return Ok(entries);
            }
            return Ok(want.cut(self.index.rebuild(&temp)?));
        }
        Ok(want.cut(index::list(&self.folder)?))
    }

    fn read(&self, entries: &[Entry]) -> Result<Messages, Error> {
        let mut all = Messages::default();
        let mut room = Some(TOGETHER_BYTES_MAX);
        if let Some(newest) = entries.last() {
            self.highest.fetch_max(newest.seq, Ordering::Relaxed);
        }
        // The newest first, because a question continues from them.
        for entry in entries.iter().rev() {
            let problem = |what| Problem {
                path: self.path().join(&entry.name),
                what,
            };
            match read_file(&self.folder, &entry.name) {
                Ok(Some((bytes, time))) => {
                    let (parsed, flaws) = frontmatter::parse(&bytes);
                    let parsed = parsed.map(|p| p.into_message(entry.seq, entry.sender(), time));
                    // No gaps: once a message does not fit, no older one is kept.
                    let rest = room.and_then(|room| room.checked_sub(bytes.len() as u64));
                    all.messages.extend(parsed.map(|message| match rest {
                        Some(_) => message,
                        None => left_out(message),
                    }));
                    room = rest;
                    let flaws = flaws.into_iter().rev();
                    all.problems
                        .extend(flaws.map(|flaw| problem(Trouble::Flaw(flaw))));
                }
                // Removed since the folder was listed.
                Ok(None) => {}
                Err(e) => all.problems.push(problem(Trouble::Unreadable(told(&e)))),
            }
        }
        all.messages.reverse();
        all.problems.reverse();
        Ok(all)
    }
}

/// Returns whether two entries have the same number.
fn has_doubles(entries: &[Entry]) -> bool {
    entries.windows(2).any(|pair| pair[0].seq == pair[1].seq)
}

/// The end of the note that replaces the text of a message.
const LEFT_OUT: &str = "; `kd export` writes all of it]";

/// Returns whether a note replaces the text of a message, because newer ones fill the limit.
pub fn is_left_out(message: &Message) -> bool {
    message.body.starts_with('[') && message.body.ends_with(LEFT_OUT)
}

/// Returns the number in the name of a message file, and its sender there; `None` for other files.
pub fn number_of(file: &Path) -> Option<(u32, String)> {
    let entry = index::entry(file.file_name()?.to_str()?)?;
    Some((entry.seq, entry.sender().to_owned()))
}

/// Replaces a message's text by a note, because newer ones fill the limit.
fn left_out(message: Message) -> Message {
    let size = kd_core::size::size(message.body.len() as u64);
    let body = format!(
        "[{size} left out: with newer messages the thread is larger than {} MiB{LEFT_OUT}",
        TOGETHER_BYTES_MAX >> 20
    );
    Message {
        body: body.into(),
        ..message
    }
}

/// Moves a message to the next free number above `last` and returns that number. Its text is unchanged.
pub(crate) fn renumber(folder: &Folder, entry: &Entry, last: u32) -> Result<u32, Error> {
    let mut seq = last;
    for _ in 0..TRIES_MAX {
        seq = seq.checked_add(1).ok_or_else(|| Error::NumbersExhausted {
            path: folder.path().to_path_buf(),
        })?;
        let to = format!("{seq:04}-{}.md", entry.sender());
        match folder.publish(entry.name.as_ref(), folder, to.as_ref()) {
            // Removes the old name, unless the rename already did.
            Ok(()) => {
                folder.remove(&entry.name)?;
                return Ok(seq);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io("rename", &folder.path().join(&entry.name))(e)),
        }
    }
    Err(Error::Crowded {
        path: folder.path().to_path_buf(),
        tries: TRIES_MAX,
    })
}

/// Returns whether a regular file was written within the last minute.
fn is_young(folder: &Folder, name: &str) -> bool {
    folder.look(name).ok().flatten().is_some_and(|look| {
        let age = look.modified.elapsed();
        look.kind == Kind::File && age.map_or(true, |age| age < YOUNG)
    })
}

/// Changes a file of kd in a thread's folder that is not a message, so that a valid index stays valid. Takes the
/// thread's lock.
pub(crate) fn beside<T>(
    folder: &Folder,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    beside_within(folder, lock::WAIT, change)
}

/// Like [`beside`], waiting up to `wait` for the thread's lock.
pub(crate) fn beside_within<T>(
    folder: &Folder,
    wait: Duration,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let _lock = Lock::take_in(folder, layout::THREAD_LOCK.as_ref(), wait)?;
    beside_locked(folder, change)
}

/// Like [`beside`]; the caller holds the thread's lock.
pub(crate) fn beside_locked<T>(
    folder: &Folder,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let index = Index::new(folder);
    let tip = index.tip();
    let done = change();
    if let Some(tip) = tip {
        // An index that could not be stamped is invalid, and will be rebuilt.
        let _ = index.touch(&tip);
    }
    done
}

pub(crate) fn lock_folder(folder: &Folder) -> Result<Lock, Error> {
    Lock::take_in(folder, layout::THREAD_LOCK.as_ref(), lock::WAIT)
}

/// Reads a message file and its own time; `None` if it does not exist.
pub(crate) fn read_file(
    folder: &Folder,
    name: &str,
) -> Result<Option<(Vec<u8>, Timestamp)>, Error> {
    let read = folder.read_timed(name, bounds::MESSAGE)?;
    Ok(read.map(|(bytes, time)| {
        let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
        (bytes, time)
    }))
}

/// Describes an error about a file whose path is already mentioned.
pub fn told(error: &Error) -> String {
    match error {
        Error::Link { .. } => "it is a link, not a regular file".into(),
        Error::WrongKind { kind, wanted, .. } => format!("it is {kind}, not {wanted}"),
        Error::TooLarge { bound, .. } => format!("it is larger than {} MiB", bound.bytes >> 20),
        Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// Reads the part of a message file that contains its header: the first kilobytes, or all if the header is longer.
fn read_start(folder: &Folder, name: &str) -> Result<Vec<u8>, Error> {
    let Some(file) = folder.file(name)? else {
        return Ok(Vec::new());
    };
    let failed = |e| Error::io("read", &folder.path().join(name))(e);
    let mut bytes = Vec::with_capacity(START_BYTES as usize);
    (&file)
        .take(START_BYTES)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if !frontmatter::has_header(&bytes) {
        let rest = bounds::MESSAGE.bytes - START_BYTES;
        (&file).take(rest).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}
