//! Forgetting in thread folders: copies, the log, leftover files, and the messages themselves.

use super::{Found, Job, Pieces, Scope, TOMBSTONE, Target};
use crate::attachments;
use crate::beneath::{Folder, Kind};
use crate::bounds::{self, Bound};
use crate::error::Error;
use crate::frontmatter;
use crate::index::{self, Entry};
use crate::json;
use crate::layout::{self, Layout, Place};
use crate::lock::Lock;
use crate::meta::{Meta, PRIVATE};
use crate::thread::Thread;
use kd_core::message::{Draft, Message, PASS, REPLACES};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_link;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Files in `.kd-lost` and `.kd-new` up to this size are searched; larger ones are removed.
const LEFT_OVER: Bound = Bound {
    what: "a leftover file",
    bytes: 64 << 20,
    why: "",
};
/// Front matter that says which message replaces which: the display of the thread depends on it.
const KEYS_KEPT: [&str; 2] = [REPLACES, PASS];
/// Maximum depth of forks of forks.
const DEPTH_MAX: usize = 1000;

/// A thread that has the same messages.
pub(super) struct Copy {
    pub(super) place: Place,
    /// Their numbers.
    pub(super) numbers: BTreeSet<u32>,
    /// Whether it has no other messages.
    pub(super) is_all: bool,
    /// Whether it is a fork of the thread, or of one of its forks.
    pub(super) is_fork: bool,
}

/// Collects the text to be forgotten. If a file cannot be parsed as a message, its whole text counts. A path of
/// another type or size is ignored.
pub(super) fn pieces(folder: &Folder, scope: &Scope) -> Result<Pieces, Error> {
    let mut pieces = Pieces::default();
    for entry in index::list(folder)? {
        if !scope.has(entry.seq) {
            continue;
        }
        let bytes = match folder.read(&entry.name, bounds::MESSAGE) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(error) if error.is_refused_file() => continue,
            Err(error) => return Err(error),
        };
        match frontmatter::parse(&bytes).0 {
            Some(parsed) if &*parsed.body == TOMBSTONE => {}
            Some(parsed) => pieces.add(&parsed.body),
            None => pieces.add(&String::from_utf8_lossy(&bytes)),
        }
    }
    Ok(pieces)
}

/// Returns the threads of the project with the same message files, byte for byte.
pub(super) fn copies(layout: &Layout, place: &Place, scope: &Scope) -> Result<Vec<Copy>, Error> {
    let Some(folder) = Folder::find(&place.path)? else {
        return Ok(Vec::new());
    };
    let entries: Vec<Entry> = index::list(&folder)?
        .into_iter()
        .filter(|entry| scope.has(entry.seq))
        .collect();
    let places = layout.all_threads(true)?;
    let mut sources = BTreeMap::new();
    for other in &places {
        if let Ok(thread) = Thread::open(other)
            && let Some(lineage) = thread.meta().lineage()
        {
            sources.insert(other.id.clone(), lineage.of);
        }
    }
    let mut found = Vec::new();
    for other in places.iter().filter(|other| other.path != place.path) {
        let Some(theirs) = Folder::find(&other.path)? else {
            continue;
        };
        let numbers = shared(&folder, &theirs, &entries)?;
        if numbers.is_empty() {
            continue;
        }
        let all = index::list(&theirs)?;
        let chain = std::iter::successors(sources.get(&other.id), |id| sources.get(*id));
        found.push(Copy {
            is_all: all.iter().all(|entry| numbers.contains(&entry.seq)),
            is_fork: chain.take(DEPTH_MAX).any(|id| *id == place.id),
            place: other.clone(),
            numbers,
        });
    }
    Ok(found)
}

impl Scope {
    fn has(&self, number: u32) -> bool {
        match self {
            Scope::Whole => true,
            Scope::Messages(numbers) => numbers.contains(&number),
        }
    }
}

/// Returns the numbers of the messages in both folders. A message already forgotten here is not a copy.
fn shared(ours: &Folder, theirs: &Folder, entries: &[Entry]) -> Result<BTreeSet<u32>, Error> {
    let mut numbers = BTreeSet::new();
    for entry in entries {
        let (Some(a), Some(b)) = (ours.look(&entry.name)?, theirs.look(&entry.name)?) else {
            continue;
        };
        if (a.kind, b.kind) != (Kind::File, Kind::File)
            || a.bytes != b.bytes
            || a.bytes > bounds::MESSAGE.bytes
        {
            continue;
        }
        let Some(bytes) = ours.read(&entry.name, bounds::MESSAGE)? else {
            continue;
        };
        let is_tombstone = frontmatter::parse(&bytes)
            .0
            .is_some_and(|parsed| &*parsed.body == TOMBSTONE);
        if !is_tombstone && theirs.read(&entry.name, bounds::MESSAGE)? == Some(bytes) {
            numbers.insert(entry.seq);
        }
    }
    Ok(numbers)
}

/// Returns the members whose lease is held by a process.
pub(super) fn leased(folder: &Folder) -> Result<Vec<String>, Error> {
    let mut held = Vec::new();
    for item in folder.items()? {
        let name = item.name.to_string_lossy();
        if let Some(member) = name.strip_prefix(".turn-")
            && let Some(member) = member.strip_suffix(".lock")
            && item.kind == Kind::File
            && Lock::try_take_in(folder, &item.name)?.is_none()
        {
            held.push(member.to_owned());
        }
    }
    Ok(held)
}

/// Returns other processes of the user that have the folder, or a file in it, open; empty if the system does not
/// report them.
pub(super) fn openers(folder: &Path) -> Vec<u32> {
    let Ok(folder) = folder.canonicalize() else {
        return Vec::new();
    };
    let numbers = |path: &Path| -> Vec<u32> {
        let entries = path.read_dir().into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    };
    let has_open = |pid: &u32| {
        let opened = PathBuf::from(format!("/proc/{pid}/fd"));
        numbers(&opened).iter().any(|number| {
            read_link(opened.join(number.to_string())).is_ok_and(|path| path.starts_with(&folder))
        })
    };
    numbers(Path::new("/proc"))
        .into_iter()
        .filter(|pid| *pid != std::process::id())
        .filter(has_open)
        .collect()
}

/// The event log: replaces strings that repeat forgotten text. The log of a whole thread is removed with its folder.
pub(super) fn events(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let (Scope::Messages(numbers), Some(folder)) = opened(target)? else {
        return Ok(Vec::new());
    };
    let Some(file) = folder.file(layout::EVENTS_FILE)? else {
        return Ok(Vec::new());
    };
    let path = folder.path().join(layout::EVENTS_FILE);
    let failed = |e| Error::io("rewrite", &path)(e);
    let turns = turns(BufReader::new(&file), numbers).map_err(failed)?;
    let temp = format!(".kd-forget.{}.jsonl", std::process::id());
    let mut out = None;
    if !dry {
        // Left by a killed process with the same id.
        folder.remove(&temp)?;
        out = folder.create(&temp)?.map(BufWriter::new);
    }
    let mut file = folder
        .file(layout::EVENTS_FILE)?
        .ok_or_else(|| Error::io("read", &path)(std::io::ErrorKind::NotFound.into()))?;
    let mut changed = 0;
    let mut lines = BufReader::new(&mut file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        let kept = redacted(&line, &job.pieces, numbers, &turns);
        changed += usize::from(kept.as_deref() != Some(&line[..]));
        if let (Some(out), Some(kept)) = (&mut out, kept) {
            out.write_all(&kept).map_err(failed)?;
        }
        line.clear();
    }
    if let Some(out) = out {
        let written = out.into_inner().map_err(|e| failed(e.into_error()))?;
        written.sync_all().map_err(failed)?;
        match changed {
            0 => drop(folder.remove(&temp)?),
            _ => folder
                .rename_from(&folder, &temp, layout::EVENTS_FILE)
                .map_err(failed)?,
        }
    }
    Ok(Found::count(path, changed, "event").into_iter().collect())
}

/// Returns the turns that produced the messages with these numbers.
fn turns(lines: impl BufRead, numbers: &BTreeSet<u32>) -> std::io::Result<BTreeSet<String>> {
    let mut turns = BTreeSet::new();
    for line in lines.split(b'\n') {
        let Ok(record) = serde_json::from_slice::<Value>(&line?) else {
            continue;
        };
        if is_message(&record, numbers) && !record["turn"].is_null() {
            turns.insert(record["turn"].to_string());
        }
    }
    Ok(turns)
}

fn is_message(record: &Value, numbers: &BTreeSet<u32>) -> bool {
    let number = record["message"]["seq"].as_u64();
    record["event"] == "message_added"
        && number.is_some_and(|n| u32::try_from(n).is_ok_and(|n| numbers.contains(&n)))
}

/// Redacts a line of the log; `None` if nothing of it remains. An unaffected line keeps its bytes.
fn redacted(
    line: &[u8],
    pieces: &Pieces,
    numbers: &BTreeSet<u32>,
    turns: &BTreeSet<String>,
) -> Option<Vec<u8>> {
    // An incomplete line is of no use, and could contain anything.
    let mut record: Value = serde_json::from_slice(line).ok()?;
    let mut changed = false;
    if is_message(&record, numbers) && record["message"]["body"] != TOMBSTONE {
        record["message"]["body"] = TOMBSTONE.into();
        changed = true;
    }
    for part in ["", "/fact"] {
        let is_of_turn = record
            .pointer(&format!("{part}/turn"))
            .is_some_and(|turn| turns.contains(&turn.to_string()));
        if is_of_turn
            && let Some(text) = record.pointer_mut(&format!("{part}/text"))
            && text.is_string()
            && *text != TOMBSTONE
        {
            *text = TOMBSTONE.into();
            changed = true;
        }
    }
    changed |= blank(&mut record, pieces);
    if !changed {
        return Some(line.to_vec());
    }
    let mut bytes = serde_json::to_vec(&record).ok()?;
    bytes.push(b'\n');
    Some(bytes)
}

/// Replaces strings that repeat forgotten text, including keys.
fn blank(value: &mut Value, pieces: &Pieces) -> bool {
    match value {
        Value::String(text) if pieces.are_in(text) => {
            *text = TOMBSTONE.to_owned();
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |any, one| blank(one, pieces) | any),
        Value::Object(map) => {
            let keys: Vec<String> = map
                .keys()
                .filter(|key| pieces.are_in(key))
                .cloned()
                .collect();
            let mut any = !keys.is_empty();
            for (at, key) in keys.into_iter().enumerate() {
                if let Some(value) = map.remove(&key) {
                    map.insert(format!("{TOMBSTONE} {}", at + 1), value);
                }
            }
            for value in map.values_mut() {
                any |= blank(value, pieces);
            }
            any
        }
        _ => false,
    }
}

/// Files in a thread that is kept: those left by killed writers, `kd fsck` and kingdom-cli, and pictures and documents that
/// only forgotten messages name.
pub(super) fn left_over(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let (Scope::Messages(numbers), Some(folder)) = opened(target)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for copy in attachments::orphans(&folder, |number| numbers.contains(&number))? {
        let path = folder.path().join(&*copy);
        found.push(Found::file(path, "an attached file"));
        if !dry {
            folder.remove(&*copy)?;
        }
    }
    let is_ours = |name: &str| {
        layout::stream_member(Path::new(name)).is_some()
            || layout::is_stray_queue(name)
            || name == layout::PENDING_FILE
            // Left by `Folder::replace` and by a killed rewrite of the log.
            || (name.starts_with('.') && (name.ends_with(".json") || name.starts_with(".kd-forget.")))
    };
    let mut places = vec![(folder.clone(), false)];
    for below in [layout::LOST_FOLDER, layout::SPOOL_FOLDER] {
        if folder
            .look(below)?
            .is_some_and(|look| look.kind == Kind::Folder)
        {
            places.extend(folder.folder(below)?.map(|below| (below, true)));
        }
    }
    for (folder, all) in places {
        for item in folder.items()? {
            let goes = item.kind == Kind::File
                && (all || item.name.to_str().is_some_and(is_ours))
                && holds(&folder, &item.name, &job.pieces)?;
            if goes {
                found.push(Found::file(
                    folder.path().join(&item.name),
                    "a leftover file",
                ));
                if !dry {
                    crate::thread::beside_locked(&folder, || folder.remove(&item.name))?;
                }
            }
        }
    }
    Ok(found)
}

/// Returns whether a file repeats forgotten text: as text, or in the strings of its lines. True if it is too large to
/// search.
pub(super) fn holds(
    folder: &Folder,
    name: &std::ffi::OsStr,
    pieces: &Pieces,
) -> Result<bool, Error> {
    match folder.read(name, LEFT_OVER) {
        Ok(bytes) => Ok(bytes.is_some_and(|bytes| repeats(&bytes, pieces))),
        Err(Error::TooLarge { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Returns whether bytes repeat forgotten text, as text or as JSON strings.
pub(super) fn repeats(bytes: &[u8], pieces: &Pieces) -> bool {
    if pieces.are_in(&String::from_utf8_lossy(bytes)) {
        return true;
    }
    let in_json = |bytes: &[u8]| {
        serde_json::from_slice::<Value>(bytes).is_ok_and(|mut value| blank(&mut value, pieces))
    };
    in_json(bytes) || bytes.split(|byte| *byte == b'\n').any(in_json)
}

/// The messages: files, or the whole folder.
pub(super) fn messages(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let (scope, Some(folder)) = opened(target)? else {
        return Ok(Vec::new());
    };
    let entries = index::list(&folder)?;
    let Scope::Messages(numbers) = scope else {
        let found = Found::count(folder.path().to_path_buf(), entries.len(), "message")
            .unwrap_or_else(|| Found::file(folder.path().to_path_buf(), "an empty thread"));
        if !dry {
            drop(folder);
            remove_folder(&target.place)?;
        }
        return Ok(vec![found]);
    };
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| numbers.contains(&entry.seq)) {
        let (bytes, time) = match crate::thread::read_file(&folder, &entry.name) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            // A link or a pipe is replaced; a file that is too large is treated like any other.
            Err(error) if error.is_refused_file() => (Vec::new(), job.now),
            Err(error) => return Err(error),
        };
        let (parsed, _) = frontmatter::parse(&bytes);
        let message = parsed.map(|p| p.into_message(entry.seq, entry.sender(), time));
        if message.as_ref().is_some_and(|m| &*m.body == TOMBSTONE) {
            continue;
        }
        found.push(Found::file(folder.path().join(&entry.name), "1 message"));
        if !dry {
            let text = tombstone(message, entry, time);
            crate::thread::beside_locked(&folder, || {
                note(&folder, target, numbers, job.now)?;
                folder.replace(&entry.name, text.as_bytes())
            })?;
        }
    }
    if !dry && !found.is_empty() {
        let synced = folder.as_file().sync_all();
        synced.map_err(Error::io("sync", folder.path()))?;
    }
    Ok(found)
}

/// Records in `thread.json` that messages were forgotten. A clone has no `thread.json`, and needs none.
fn note(
    folder: &Folder,
    target: &Target,
    numbers: &BTreeSet<u32>,
    now: jiff::Timestamp,
) -> Result<(), Error> {
    let mut meta = match Meta::read(folder) {
        Ok(Some(meta)) => meta,
        Err(newer @ Error::Newer { .. }) => return Err(newer),
        _ => Thread::open(&target.place)?.meta().clone(),
    };
    meta.note_forgotten(numbers, now);
    match json::write_in(folder, layout::THREAD_FILE, &meta, bounds::META) {
        // Nothing in a folder may prevent a message from being forgotten.
        Err(Error::TooLarge { .. }) => {
            let (forgotten, private) = (meta.forgotten(), meta.is_private());
            let entries = index::list(folder)?;
            let senders = entries.iter().map(|entry| entry.sender().to_owned());
            meta = Meta::rebuilt(meta.id, senders);
            meta.set_forgotten(forgotten);
            if private {
                meta.extra.insert(PRIVATE.to_owned(), Value::Bool(true));
            }
            json::write_in(folder, layout::THREAD_FILE, &meta, bounds::META)
        }
        written => written,
    }
}

/// Returns the rest of a forgotten message: its sender, its recipients and its time.
fn tombstone(message: Option<Message>, entry: &Entry, time: jiff::Timestamp) -> String {
    let known = message.as_ref();
    frontmatter::format(&Draft {
        turn: None,
        from: known.map_or_else(|| entry.sender().to_owned(), |m| m.from.clone()),
        to: known.map_or_else(Default::default, |m| m.to.clone()),
        at: known.map_or(time, |m| m.at),
        status: known.and_then(|m| m.status),
        refs: Vec::new(),
        provenance: known.map(|m| m.provenance.clone()).unwrap_or_default(),
        extra: known
            .map(|m| {
                m.extra
                    .clone()
                    .into_iter()
                    .filter(|(key, _)| KEYS_KEPT.contains(&key.as_str()))
            })
            .into_iter()
            .flatten()
            .collect(),
        body: TOMBSTONE.to_owned(),
    })
}

/// Removes a thread's folder with all its content; never follows links.
fn remove_folder(place: &Place) -> Result<(), Error> {
    let Some(threads) = place.path.parent().map(Folder::find).transpose()?.flatten() else {
        return Ok(());
    };
    threads.remove_all(&place.id.0)?;
    let synced = threads.as_file().sync_all();
    synced.map_err(Error::io("sync", threads.path()))
}

fn opened(target: &Target) -> Result<(&Scope, Option<Folder>), Error> {
    Ok((&target.scope, Folder::find(&target.place.path)?))
}
