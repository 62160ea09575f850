//! One thread: a folder of message files, each finished when it has its name.
//!
//! In: drafts. Out: messages with numbers. A number is given once across all processes that use this crate (they hold
//! the thread's lock while they take one), and a program that only creates files exclusively is noticed: by the index
//! when it wrote before us, by a look at the names of known senders when it wrote while we did.
//! `docs/adr/0003-thread-files.md` tells the whole story.

use crate::beneath::{Folder, Kind};
use crate::bounds;
use crate::error::Error;
use crate::frontmatter::{self, Flaw};
use crate::index::{self, Entry, Index, Tip, Want};
use crate::layout::{self, Layout, Place};
use crate::lock::{self, Lock};
use crate::meta::{self, Meta};
use crate::name;
use crate::spool::{Spool, Spooled};
use jiff::Timestamp;
use kd_core::ids::{KING, SeatName, ThreadId};
use kd_core::message::{Draft, Message};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Headers are some hundred bytes long.
const START_BYTES: u64 = 4096;
/// How many numbers in a row may be taken by others before we give up. The other program gives up after ten.
const TRIES_MAX: u32 = 100;
/// How often doubled numbers are looked for in one go.
const PARTINGS_MAX: u32 = 4;
/// How old a file may be to have come while somebody else wrote.
const YOUNG: Duration = Duration::from_secs(60);
/// Members that the other program seats by default: they may write to any thread without being named in it.
const USUAL_SENDERS: [&str; 4] = [KING, "claude", "codex", "cursor"];
/// The most senders whose names are looked at after each append.
const SENDERS_MAX: usize = 64;

/// The most that several messages have together when they are read at once: that of the longest one. What a program
/// keeps of a conversation is a multiple of it.
pub const TOGETHER_BYTES_MAX: u64 = bounds::MESSAGE.bytes;

/// How hard a finished message is pressed onto the disk. Against a killed process all are equal; they differ in what
/// a power cut may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Leave it to the kernel: a power cut may take the last half minute, and leave empty files.
    Buffered,
    /// One sync for each message, before it gets its name: no message is ever half there.
    #[default]
    Whole,
    /// A second sync, of the folder: a message that was announced stays.
    Named,
}

/// Something about a file that was not as it should be. Never fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub what: Trouble,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The text is not as it should be.
    Flaw(Flaw),
    /// It could not be read.
    Unreadable(String),
}

impl Problem {
    /// Whether the file was left out because of it.
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

/// Messages in order, and what was wrong with files among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Messages {
    /// The messages, by number and then by file name.
    pub messages: Vec<Message>,
    /// What was wrong.
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
    /// File-name forms of everybody who may write here.
    senders: Mutex<BTreeSet<String>>,
}

impl Thread {
    /// Opens a new thread for the king and these members, and makes it the branch's current one.
    pub fn create(layout: &Layout, members: &[SeatName]) -> Result<Thread, Error> {
        let thread = Thread::create_for(layout, members, meta::COUNCIL)?;
        layout
            .set_current_thread(thread.id())
            .inspect_err(|_| layout.discard_thread(thread.id()))?;
        Ok(thread)
    }

    /// A new thread for this phase, which is not the current one yet: see [`Layout::set_current_thread`].
    pub fn create_for(layout: &Layout, members: &[SeatName], phase: &str) -> Result<Thread, Error> {
        let (id, folder) = layout.new_thread_folder()?;
        let names = members.iter().map(ToString::to_string);
        let meta = Meta {
            phase: phase.to_owned(),
            ..Meta::new(id.clone(), names, Timestamp::now())
        };
        // A disk that is full in the middle of it leaves nothing.
        let thread = Thread::begin(folder, meta).inspect_err(|_| layout.discard_thread(&id))?;
        // Without the note the thread is as good as one that came with the folder: no reason to stop.
        let _ = layout.note_seated(&id, members);
        Ok(thread)
    }

    /// Opens the thread of a new folder, which may hold messages already.
    pub(crate) fn begin(folder: Folder, meta: Meta) -> Result<Thread, Error> {
        crate::json::write_in(&folder, layout::THREAD_FILE, &meta, bounds::META)?;
        let thread = Thread::with_meta(folder, meta);
        let lock = thread.lock()?;
        thread.rebuild()?;
        drop(lock);
        Ok(thread)
    }

    /// Removes a new thread into which no message could be written, as on a full disk. One with a message stays.
    pub fn discard_unsaid(self, layout: &Layout) {
        if index::list(&self.folder).is_ok_and(|entries| entries.is_empty()) {
            let id = self.meta.id.clone();
            drop(self);
            layout.discard_thread(&id);
        }
    }

    /// Opens a thread that is on disk.
    pub fn open(place: &Place) -> Result<Thread, Error> {
        Thread::open_folder(&place.path)
    }

    /// Opens the thread of a folder. Without a `thread.json` the members are told from the senders.
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
        let meta = match Meta::read(&folder) {
            Ok(Some(meta)) => Meta { id, ..meta },
            Err(error) if !matches!(error, Error::Json { .. }) && !error.is_refused_file() => {
                return Err(error);
            }
            // One that is torn, or a link, says no more than one that is missing; `fsck` tells of it.
            Ok(None) | Err(_) => {
                let entries = index::list(&folder)?;
                Meta::rebuilt(id, entries.iter().map(|e| e.sender().to_owned()))
            }
        };
        Ok(Thread::with_meta(folder, meta))
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
            senders: Mutex::new(senders),
        }
    }

    /// The same thread with another durability.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Thread {
        self.durability = durability;
        self
    }

    /// Its id, also its folder's name.
    pub fn id(&self) -> &ThreadId {
        &self.meta.id
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its folder, open.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Where the sessions of its branch's members are kept.
    pub fn sessions_folder(&self) -> PathBuf {
        layout::sessions_of(layout::branch_of(self.path()))
    }

    /// What `thread.json` says, or what could be told without it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// From now on only members that answer on this machine may be asked here, by every later command too. The mark is in
    /// `thread.json`, which a clone lacks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn make_private(&mut self) -> Result<(), Error> {
        if self.meta.is_private() {
            return Ok(());
        }
        let lock = self.lock()?;
        // What another process noted there meanwhile stays.
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

    /// The members, without the king. Names that cannot be seats are left out.
    pub fn members(&self) -> Vec<SeatName> {
        self.meta
            .members
            .iter()
            .filter_map(|m| SeatName::new(m.as_str()).ok())
            .collect()
    }

    /// Writes a message. When this returns, the file has its name and is whole; the message is as every reader sees it.
    ///
    /// The cost does not grow with the thread, unless another program wrote to it since the last append.
    pub fn append(&self, draft: &Draft) -> Result<Message, Error> {
        let mut written = self.append_all(&[draft])?;
        // One in, one out.
        written.pop().unwrap_or_else(|| {
            Err(Error::io("append to", self.path())(
                io::ErrorKind::Other.into(),
            ))
        })
    }

    /// Writes several messages as [`Thread::append`] writes one, in order, with one wait for the disk: members that
    /// finish together are synced together. Gives what became of each; an error of the whole is one of the thread.
    pub fn append_all(&self, drafts: &[&Draft]) -> Result<Vec<Result<Message, Error>>, Error> {
        // Written and synced before the lock is taken, so that several processes finish at the same time.
        let texts: Vec<String> = drafts.iter().map(|d| frontmatter::format(d)).collect();
        let put = |text: &String| self.spool.put(text.as_bytes());
        let mut spooled: Vec<Result<Spooled, Error>> = texts.iter().map(put).collect();
        if self.durability != Durability::Buffered {
            // All are written by now, so that the disk can take them in one go.
            for one in &mut spooled {
                if let Err(error) = one.as_ref().map_or(Ok(()), Spooled::sync) {
                    *one = Err(error);
                }
            }
        }
        let lock = self.lock()?;
        let mut written = Vec::with_capacity(drafts.len());
        for ((draft, text), spooled) in drafts.iter().zip(&texts).zip(spooled) {
            written.push(spooled.and_then(|spooled| {
                let sender = name::sender(&draft.from);
                let seq = self.link(&spooled, &sender)?;
                let (parsed, _) = frontmatter::parse(text.as_bytes());
                // What we format always parses: the property test of the front matter says so.
                parsed
                    .map(|parsed| parsed.into_message(seq, &sender, draft.at))
                    .ok_or_else(|| {
                        Error::io("read back", self.path())(io::ErrorKind::InvalidData.into())
                    })
            }));
        }
        drop(lock);
        if self.durability == Durability::Named {
            let synced = self.folder.as_file().sync_all();
            synced.map_err(Error::io("sync", self.path()))?;
        }
        Ok(written)
    }

    /// Gives all messages, one after another, each in whole: for output that goes on at once. Returns what was wrong.
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

    /// All messages. Reads every file; lists the folder, which is the truth. As with all that give several messages, the
    /// newest are whole, up to [`TOGETHER_BYTES_MAX`]; of older ones only the headers are kept, with a note in place of
    /// the text.
    pub fn messages(&self) -> Result<Messages, Error> {
        let entries = index::list(&self.folder)?;
        self.read(&entries)
    }

    /// The newest `n` messages, in order.
    pub fn tail(&self, n: usize) -> Result<Messages, Error> {
        self.read(&self.entries(Want::Last(n))?)
    }

    /// All messages with a number above `seq`.
    pub fn since(&self, seq: u32) -> Result<Messages, Error> {
        self.read(&self.entries(Want::After(seq))?)
    }

    /// At most `n` messages with a number below `seq`, the newest of those, in order; and whether there are more.
    pub fn before(&self, seq: u32, n: usize) -> Result<(Messages, bool), Error> {
        let mut entries = index::list(&self.folder)?;
        entries.retain(|e| e.seq < seq);
        let more = entries.len() > n;
        entries.drain(..entries.len().saturating_sub(n));
        Ok((self.read(&entries)?, more))
    }

    /// The message of a number; of several with one number the first by name.
    pub fn message(&self, seq: u32) -> Result<Message, Error> {
        let mut entries = self.entries(Want::After(seq.saturating_sub(1)))?;
        entries.retain(|e| e.seq == seq);
        let found = self.read(&entries)?.messages.into_iter().next();
        found.ok_or_else(|| Error::NoMessage {
            path: self.path().to_path_buf(),
            seq,
        })
    }

    /// The message of a file of this thread; none if the name is no message's, or the file is gone or unreadable.
    pub fn message_in(&self, file: &Path) -> Option<Message> {
        let name = file.file_name()?.to_str()?;
        let entry = index::entry(name)?;
        self.read(&[entry]).ok()?.messages.pop()
    }

    /// How many messages there are: files that are named like messages and begin like one. Looks into each.
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

    /// How many message files there are.
    pub fn count(&self) -> Result<usize, Error> {
        match self.index.tip() {
            Some(tip) => Ok(tip.count as usize),
            None => Ok(index::list(&self.folder)?.len()),
        }
    }

    /// The first `n` messages, in order.
    pub fn head(&self, n: usize) -> Result<Messages, Error> {
        let mut entries = index::list(&self.folder)?;
        entries.truncate(n);
        self.read(&entries)
    }

    /// Makes numbers unique again that a program without our lock gave twice while we wrote. To be called when a
    /// session ends: until then every append does it.
    pub fn settle(&self) -> Result<(), Error> {
        if !self.index.exists() {
            return Ok(());
        }
        // The last rebuild may have left doubles behind that came while it ran; its index is true all the same.
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

    /// Gives a spooled text the next number. The caller holds the lock.
    fn link(&self, spooled: &Spooled, sender: &str) -> Result<u32, Error> {
        let mut tip = self.index.tip();
        for _ in 0..TRIES_MAX {
            let last = match &tip {
                Some(tip) => tip.seq,
                None => self.rebuild()?,
            };
            let seq = last.checked_add(1).ok_or_else(|| Error::NumbersExhausted {
                path: self.path().to_path_buf(),
            })?;
            let entry = Entry {
                seq,
                name: format!("{seq:04}-{sender}.md"),
            };
            // The index is true, or was just written: only in a folder that we cannot stamp is it neither.
            let tip_now = tip.take().or_else(|| self.index.tip());
            match spooled.publish(&self.folder, &entry.name) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(Error::io("create", &self.path().join(&entry.name))(e)),
            }
            let _ = match &tip_now {
                Some(tip) => self.index.push(tip, &entry),
                None => self.index.note(&entry),
            };
            if !self.is_taken(seq, sender, tip_now.as_ref())? {
                self.senders().insert(sender.to_owned());
                return Ok(seq);
            }
            self.folder.remove(&entry.name)?;
        }
        Err(Error::Crowded {
            path: self.path().to_path_buf(),
            tries: TRIES_MAX,
        })
    }

    /// Whether somebody else has a message of this number: a program that does not take our lock.
    fn is_taken(&self, seq: u32, sender: &str, tip: Option<&Tip>) -> Result<bool, Error> {
        if tip.is_none() {
            // There is no index that could tell us of strangers, so look at all names.
            let entries = index::list(&self.folder)?;
            return Ok(entries.iter().filter(|e| e.seq == seq).count() > 1);
        }
        let senders = self.senders();
        let mut others = senders.iter().filter(|s| *s != sender);
        Ok(others.any(|s| self.folder.has(format!("{seq:04}-{s}.md"))))
    }

    /// Writes the index anew and gives the highest number. The caller holds the lock.
    fn rebuild(&self) -> Result<u32, Error> {
        self.spool.clean()?;
        let temp = self.spool.folder()?;
        let mut entries = self.index.rebuild(&temp)?;
        // Others go on writing meanwhile; whoever comes next parts what comes after the last round.
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

    /// Gives a number of its own to each file that just came under a number which was taken: a program that lists,
    /// adds one and creates does that when it listed before we wrote. What we have announced keeps its number, and so
    /// does every double that is not young: those are told and mended by `fsck`. True when a file was moved. The
    /// caller holds the lock.
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

    /// The wanted entries: from the index if it is true, else from the folder.
    fn entries(&self, want: Want) -> Result<Vec<Entry>, Error> {
        if let Some(entries) = self.index.entries(want) {
            return Ok(entries);
        }
        // Readers mend an index that was there, if nobody is at work; they never make one.
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
        // The newest first: what a question goes on from.
        for entry in entries.iter().rev() {
            let problem = |what| Problem {
                path: self.path().join(&entry.name),
                what,
            };
            match read_file(&self.folder, &entry.name) {
                Ok(Some((bytes, time))) => {
                    let (parsed, flaws) = frontmatter::parse(&bytes);
                    let parsed = parsed.map(|p| p.into_message(entry.seq, entry.sender(), time));
                    // What is left out has no gaps: where one message does not fit, no older one does.
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
                // Somebody removed it after we listed the folder: then it is not there.
                Ok(None) => {}
                Err(e) => all.problems.push(problem(Trouble::Unreadable(told(&e)))),
            }
        }
        all.messages.reverse();
        all.problems.reverse();
        Ok(all)
    }
}

/// Whether two entries have one number.
fn has_doubles(entries: &[Entry]) -> bool {
    entries.windows(2).any(|pair| pair[0].seq == pair[1].seq)
}

/// A message whose text is left out because newer ones fill the room.
fn left_out(message: Message) -> Message {
    let size = crate::error::size(message.body.len() as u64);
    let body = format!(
        "[{size} left out: with newer messages the thread is larger than {} MiB; `kd export` writes all of it]",
        TOGETHER_BYTES_MAX >> 20
    );
    Message {
        body: body.into(),
        ..message
    }
}

/// Moves a message to the next free number above `last`, which it gives. Its text stays as it is.
pub(crate) fn renumber(folder: &Folder, entry: &Entry, last: u32) -> Result<u32, Error> {
    let mut seq = last;
    for _ in 0..TRIES_MAX {
        seq = seq.checked_add(1).ok_or_else(|| Error::NumbersExhausted {
            path: folder.path().to_path_buf(),
        })?;
        let to = format!("{seq:04}-{}.md", entry.sender());
        match folder.publish(entry.name.as_ref(), folder, to.as_ref()) {
            // The link of the old name goes, unless the rename took it with it.
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

/// Whether a plain file was written within the last minute.
fn is_young(folder: &Folder, name: &str) -> bool {
    folder.look(name).ok().flatten().is_some_and(|look| {
        let age = look.modified.elapsed();
        look.kind == Kind::File && age.map_or(true, |age| age < YOUNG)
    })
}

/// Changes a file of ours in a thread's folder that is no message, so that the index stays true if it was. Takes the
/// thread's lock.
pub(crate) fn beside<T>(
    folder: &Folder,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    beside_within(folder, lock::WAIT, change)
}

/// The same, waiting up to `wait` for the thread's lock.
pub(crate) fn beside_within<T>(
    folder: &Folder,
    wait: Duration,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let _lock = Lock::take_in(folder, layout::THREAD_LOCK.as_ref(), wait)?;
    beside_locked(folder, change)
}

/// The same, where the caller holds the thread's lock.
pub(crate) fn beside_locked<T>(
    folder: &Folder,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let index = Index::new(folder);
    let tip = index.tip();
    let done = change();
    if let Some(tip) = tip {
        // An index that could not be stamped is untrue, and will be written again.
        let _ = index.touch(&tip);
    }
    done
}

pub(crate) fn lock_folder(folder: &Folder) -> Result<Lock, Error> {
    Lock::take_in(folder, layout::THREAD_LOCK.as_ref(), lock::WAIT)
}

/// A message file's bytes and its own time; `None` if it is not there.
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

/// What is wrong with a file, where its path is said already.
pub(crate) fn told(error: &Error) -> String {
    match error {
        Error::Link { .. } => "it is a link, not a regular file".into(),
        Error::WrongKind { kind, wanted, .. } => format!("it is {kind}, not {wanted}"),
        Error::TooLarge { bound, .. } => format!("it is larger than {} MiB", bound.bytes >> 20),
        Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// The part of a message file in which its header stands: the first kilobytes, or all if the header is longer.
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
