//! Seals of threads: reading their contents, the user's signing key, and threads created from sealed files.
//!
//! Input: a thread, or a verified seal. Output: the pieces to be sealed, or a new thread with the same message files
//! and events, byte for byte, and its origin in `thread.json`. The format is in `kd_core::seal`.

use crate::beneath::Folder;
use crate::bounds;
use crate::error::Error;
use crate::fork::{self, Lineage};
use crate::index;
use crate::json;
use crate::layout::{self, Layout};
use crate::lock::{self, Lock};
use crate::meta::{self, IMPORTED, Meta};
use crate::private;
use crate::staged::Staged;
use crate::thread::Thread;
use crate::user_dirs::{UserDirs, make_private};
use jiff::Timestamp;
use kd_core::formats::{EVENTS, Format, THREAD};
use kd_core::ids::ThreadId;
use kd_core::seal::{Kind, Piece, SALT_BYTES, Seal, SecretKey};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Maximum bytes of a file name.
const NAME_BYTES_MAX: usize = 255;
/// The form of the time of sealing.
pub const SEALED_AT: &str = "%Y-%m-%dT%H:%M:%SZ";
/// Digits and a line break, with some tolerance for editors.
const KEY_FILE_BYTES: u64 = 256;

/// The origin of an imported thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its original id.
    pub of: ThreadId,
    /// The head of its seal.
    pub head: String,
    /// The time when it was sealed, according to the file.
    pub sealed_at: String,
    /// The public key that signed the seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The thread from which it was forked, on the machine where it was sealed. A local thread with that id is a
    /// different one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Lineage>,
}

impl Meta {
    /// Returns where the thread was imported from, if it was.
    pub fn origin(&self) -> Option<Origin> {
        serde_json::from_value(self.extra.get(IMPORTED)?.clone()).ok()
    }
}

/// The reason why a thread cannot be sealed or imported.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// An I/O error, or an invalid file in the thread.
    #[error(transparent)]
    Store(#[from] Error),
    /// A file of the thread is not text.
    #[error("{0} is not UTF-8 text, so it cannot be sealed")]
    NotText(PathBuf),
    /// The system provides no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(String),
    /// The key file contains no key.
    #[error("{0} holds no signing key")]
    Key(PathBuf),
    /// Contents of the sealed file were erased.
    #[error("{0} of the contents were erased, so the thread cannot be made from them")]
    Erased(usize),
    /// The seal is valid, but its header is not the header of a thread.
    #[error("the header names {0}")]
    Header(&'static str),
    /// The seal is valid, but its content is not a thread.
    #[error("entry {index} cannot be part of a thread: {what}")]
    Foreign {
        /// The index of the piece.
        index: usize,
        /// The reason it is invalid.
        what: &'static str,
    },
}

fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| SealError::Random(e.to_string()))?;
    Ok(bytes)
}

/// Returns the contents of a thread in the order in which they are sealed: `thread.json`, messages, events.
///
/// # Errors
/// A file cannot be read, or is not text.
pub fn pieces(thread: &Thread) -> Result<Vec<Piece>, SealError> {
    let folder = thread.folder();
    let text = |name: &str, bytes: Vec<u8>| {
        String::from_utf8(bytes).map_err(|_| SealError::NotText(folder.path().join(name)))
    };
    let piece = |kind, name: &str, text: String| {
        let salt = random::<SALT_BYTES>()?;
        let name = name.to_owned();
        Ok::<_, SealError>(Piece {
            kind,
            name,
            text,
            salt,
        })
    };
    // The events before the messages, so that every recorded message has its file.
    let events = folder.read(layout::EVENTS_FILE, bounds::EVENTS)?;
    let events = text(layout::EVENTS_FILE, events.unwrap_or_default())?;
    let mut pieces = Vec::new();
    if let Some(bytes) = folder.read(layout::THREAD_FILE, bounds::META)? {
        let text = text(layout::THREAD_FILE, bytes)?;
        pieces.push(piece(Kind::Thread, layout::THREAD_FILE, text)?);
    }
    for entry in index::list(folder)? {
        if let Some(bytes) = folder.read(&entry.name, bounds::MESSAGE)? {
            pieces.push(piece(
                Kind::Message,
                &entry.name,
                text(&entry.name, bytes)?,
            )?);
        }
    }
    for line in events.split('\n').filter(|line| !line.is_empty()) {
        pieces.push(piece(Kind::Event, layout::EVENTS_FILE, line.to_owned())?);
    }
    Ok(pieces)
}

/// Returns the file of the user's signing key.
///
/// # Errors
/// The user's folders are not known.
pub fn key_file(dirs: &UserDirs) -> Result<PathBuf, Error> {
    Ok(dirs.data()?.join("keys").join("seal.key"))
}

/// Reads the user's signing key; `None` if there is none.
///
/// # Errors
/// The file is a link, another user can read it or could have written it, or it contains no key.
pub fn key(dirs: &UserDirs) -> Result<Option<SecretKey>, SealError> {
    let path = key_file(dirs)?;
    let Some(file) = private::open(&path, OFlags::RDONLY)? else {
        return Ok(None);
    };
    let failed = |e| Error::io("read", &path)(e);
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        let why = "others can read it; if nobody has, run `chmod 600` on it";
        return Err(Error::Unsafe { path, why }.into());
    }
    let mut text = String::new();
    file.take(KEY_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|_| SealError::Key(path.clone()))?;
    let key = SecretKey::parse(&text).map_err(|_| SealError::Key(path))?;
    Ok(Some(key))
}

/// Reads the user's signing key, creating one if there is none. Returns whether it is new.
///
/// # Errors
/// Those of [`key`]; also if it cannot be written.
pub fn key_or_new(dirs: &UserDirs) -> Result<(SecretKey, bool), SealError> {
    if let Some(key) = key(dirs)? {
        return Ok((key, false));
    }
    let path = key_file(dirs)?;
    // If several processes run at once, only one creates a key: a key replaced by another would be lost, with
    // everything it signed.
    make_private(path.parent().unwrap_or(&path))?;
    let _lock = Lock::take(&lock::lock_path(&path), lock::WAIT)?;
    if let Some(key) = key(dirs)? {
        return Ok((key, false));
    }
    let new = SecretKey::from_bytes(&random()?);
    private::replace_synced(&path, new.to_file().as_bytes())?;
    Ok((new, true))
}

/// Creates a thread from a verified seal. It has a new id and does not become the current thread.
///
/// # Errors
/// Pieces are missing or are not files of a thread, or writing fails; nothing of the thread remains then.
pub fn import(layout: &Layout, seal: &Seal) -> Result<Thread, SealError> {
    let parts = parts(seal)?;
    let staged = Staged::new(layout)?;
    write(staged.folder(), &parts)?;
    let made = staged.finish(|id| meta(id, seal, &parts));
    made.map_err(|error| match error {
        Error::TooLarge { .. } => SealError::Foreign {
            index: 0,
            what: "its `thread.json` is too large",
        },
        error => error.into(),
    })
}

/// Returns a thread of this project that was imported from the same seal and still has its contents, if there is one.
/// What `thread.json` claims is not enough: every sealed message and event must be there, byte for byte; later ones may
/// follow.
///
/// # Errors
/// As [`import`], or the folder cannot be read.
pub fn imported(layout: &Layout, seal: &Seal) -> Result<Option<Thread>, SealError> {
    let parts = parts(seal)?;
    for place in layout.all_threads(true)? {
        // A thread that cannot be read is none that could be named.
        let Ok(thread) = Thread::open(&place) else {
            continue;
        };
        let origin = thread.meta().origin();
        if origin.is_some_and(|origin| origin.head == seal.head) && holds(thread.folder(), &parts)?
        {
            return Ok(Some(thread));
        }
    }
    Ok(None)
}

/// Returns whether a folder begins with the files of a sealed thread.
fn holds(folder: &Folder, parts: &Parts<'_>) -> Result<bool, Error> {
    for (name, text) in &parts.messages {
        if folder.read(name, bounds::MESSAGE)?.as_deref() != Some(text.as_bytes()) {
            return Ok(false);
        }
    }
    let log = folder.read(layout::EVENTS_FILE, bounds::EVENTS)?;
    Ok(log.unwrap_or_default().starts_with(parts.log.as_bytes()))
}

/// The files of a sealed thread.
#[derive(Default)]
struct Parts<'s> {
    meta: Option<Meta>,
    messages: Vec<(&'s str, &'s str)>,
    log: String,
}

/// Checks that a verified seal contains a thread, as far as its contents are not erased. Returns the numbers of the
/// messages that were forgotten before it was sealed; nothing if its `thread.json` is erased.
///
/// # Errors
/// Its header or an entry cannot be one of a thread.
pub fn check(seal: &Seal) -> Result<Vec<u32>, SealError> {
    let meta = opened_parts(seal)?.meta;
    let forgotten = meta.map(|meta| meta.forgotten()).unwrap_or_default();
    Ok(forgotten.iter().map(|one| one.message).collect())
}

/// Returns the files of a sealed thread whose contents are all present.
fn parts(seal: &Seal) -> Result<Parts<'_>, SealError> {
    let erased = seal.contents().1;
    if erased > 0 {
        return Err(SealError::Erased(erased));
    }
    opened_parts(seal)
}

/// Checks the header of a seal as one of a thread.
fn check_header(seal: &Seal) -> Result<(), SealError> {
    let (thread, at) = (&seal.header.thread, &seal.header.sealed_at);
    if thread.is_empty() || thread.starts_with('.') || !is_plain(thread) {
        return Err(SealError::Header("a thread whose id cannot name a folder"));
    }
    let time = at.parse::<Timestamp>();
    if !time.is_ok_and(|time| time.strftime(SEALED_AT).to_string() == *at) {
        return Err(SealError::Header("no time of sealing"));
    }
    Ok(())
}

/// Returns the files of a sealed thread whose contents are not erased.
fn opened_parts(seal: &Seal) -> Result<Parts<'_>, SealError> {
    check_header(seal)?;
    let mut parts = Parts::default();
    let mut names = BTreeSet::new();
    for (index, entry) in seal.entries.iter().enumerate() {
        let foreign = |what| Err(SealError::Foreign { index, what });
        let name = entry.name.as_str();
        let fits = match entry.kind {
            Kind::Thread => index == 0 && name == layout::THREAD_FILE,
            Kind::Message => index::entry(name).is_some() && is_plain(name) && names.insert(name),
            Kind::Event => name == layout::EVENTS_FILE,
        };
        if !fits {
            return foreign(entry_fault(entry.kind));
        }
        let Some(opened) = &entry.opened else {
            continue;
        };
        let text = opened.text.as_str();
        let len = text.len() as u64;
        match entry.kind {
            Kind::Thread => {
                known(text, &THREAD, meta::VERSION, name)?;
                match serde_json::from_str(text) {
                    Ok(meta) if len <= bounds::META.bytes => parts.meta = Some(meta),
                    _ => return foreign(entry_fault(entry.kind)),
                }
            }
            Kind::Message => {
                if len > bounds::MESSAGE.bytes {
                    return foreign(entry_fault(entry.kind));
                }
                parts.messages.push((name, text));
            }
            Kind::Event => {
                let all = parts.log.len() as u64 + len + 1;
                let is_line = !text.is_empty() && !text.contains('\n');
                if !is_line || len >= bounds::EVENT.bytes || all > bounds::EVENTS.bytes {
                    return foreign(entry_fault(entry.kind));
                }
                known(text, &EVENTS, "v", name)?;
                parts.log.push_str(text);
                parts.log.push('\n');
            }
        }
    }
    Ok(parts)
}

/// Describes an entry whose content does not match its kind.
fn entry_fault(kind: Kind) -> &'static str {
    match kind {
        Kind::Thread => "it is no `thread.json`",
        Kind::Message => "it is no message file",
        Kind::Event => "it is no line of a log of events",
    }
}

/// Rejects a sealed file of a version that could not be read after the import.
fn known(text: &str, format: &'static Format, field: &str, name: &str) -> Result<(), SealError> {
    let path = || PathBuf::from(name);
    Ok(json::check_version(text.as_bytes(), format, field, path)?)
}

/// Returns whether a name is a plain, non-hidden file name on every file system.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain)
}

fn write(folder: &Folder, parts: &Parts<'_>) -> Result<(), Error> {
    for (name, text) in &parts.messages {
        let failed = |e| Error::io("write", &folder.path().join(name))(e);
        let taken = || failed(std::io::ErrorKind::AlreadyExists.into());
        let mut file = folder.create(name)?.ok_or_else(taken)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)?;
    }
    match parts.log.is_empty() {
        true => Ok(()),
        false => folder.replace(layout::EVENTS_FILE, parts.log.as_bytes()),
    }
}

fn meta(id: &ThreadId, seal: &Seal, parts: &Parts<'_>) -> Meta {
    let senders = parts
        .messages
        .iter()
        .filter_map(|(name, _)| index::entry(name));
    let senders = senders.map(|entry| entry.sender().to_owned());
    let mut meta = match &parts.meta {
        Some(meta) => Meta {
            id: id.clone(),
            ..meta.clone()
        },
        None => Meta::rebuilt(id.clone(), senders),
    };
    let origin = Origin {
        of: ThreadId(seal.header.thread.clone()),
        head: seal.head.clone(),
        sealed_at: seal.header.sealed_at.clone(),
        key: seal.signer().map(|key| key.to_string()),
        fork: meta.lineage(),
    };
    meta.extra.remove(fork::KEY);
    let value = serde_json::to_value(origin).unwrap_or(Value::Null);
    meta.extra.insert(IMPORTED.to_owned(), value);
    meta
}
