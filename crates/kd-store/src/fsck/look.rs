//! Finds problems. Only reads.

use super::{Finding, Kind, Remedy, Report};
use crate::attachments;
use crate::beneath::{Folder, Item, Kind as Thing};
use crate::bounds::{self, Bound};
use crate::error::Error;
use crate::frontmatter::{self, Flaw};
use crate::index::{self, Entry};
use crate::layout::{self, Expected, Layout, Place};
use crate::meta::Meta;
use crate::recorded::{Recorded, SHOWN_BYTES};
use crate::stream;
use crate::thread::{self, Thread};
use kd_core::Message;
use kd_core::formats::Newer;
use kd_core::media::CopyName;
use kd_core::message::CHOSEN;
use kd_core::names::KING;
use kd_core::text::Text;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks everything about one thread.
pub(super) fn thread(place: &Place, patience: Duration) -> Result<Report, Error> {
    let open = Folder::open(&place.path)?;
    let folder = open.path();
    if let Err(Error::Newer { path, newer }) = Meta::read(&open) {
        let what = format!("it has {newer}: {}", Newer::HINT);
        return Ok(Report {
            messages: 0,
            findings: vec![found(Kind::NewerMeta, path, what, None)],
        });
    }
    let entries = index::list(&open)?;
    let recorded = recorded(place, &entries);
    let mut findings = Vec::new();
    let mut messages = Vec::new();
    let mut first = None;
    for entry in &entries {
        let path = folder.join(&entry.name);
        let (bytes, time) = match thread::read_file(&open, &entry.name) {
            Ok(Some(read)) => read,
            Ok(None) => continue,
            Err(e) => {
                findings.push(unreadable(path, &e));
                continue;
            }
        };
        missing_copies(&open, entry, &bytes, &mut findings);
        let (parsed, flaws) = frontmatter::parse(&bytes);
        if let Some(parsed) = parsed {
            let at = parsed.at.unwrap_or(time);
            first = first.min(Some(at)).or(Some(at));
            let mut message = parsed.into_message(entry.seq, entry.sender(), time);
            if let Some(what) = recorded.change(&message) {
                findings.push(found(Kind::OtherWords, path.clone(), what, None));
            }
            // Old files have no status: there the text tells whether it is an answer.
            if message.status.is_some() {
                message.body = Text::default();
            }
            messages.push((path.clone(), message));
        }
        text(&path, &bytes, &flaws, &mut findings);
    }
    choices(&messages, &mut findings);
    doubles(folder, &entries, &mut findings);
    if let Some(entry) = entries.iter().find(|e| e.seq > 9999) {
        let what = "numbers above 9999 are not seen by kingdom-cli";
        findings.push(found(
            Kind::FiveDigits,
            folder.join(&entry.name),
            what.into(),
            None,
        ));
    }
    meta(place, &open, &entries, first, &mut findings);
    others(place, &open, &entries, patience, &mut findings)?;
    findings.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    Ok(Report {
        messages: messages.len(),
        findings,
    })
}

/// Returns the messages that the thread's log recorded. A log that cannot be read records nothing: messages count without
/// it, and whatever is wrong with the file is a finding of its own.
fn recorded(place: &Place, entries: &[Entry]) -> Recorded {
    let first = entries.iter().map(|entry| entry.seq).min();
    let read = first.zip(Thread::open(place).ok());
    let read = read.and_then(|(first, thread)| Recorded::since(&thread, first, SHOWN_BYTES).ok());
    read.unwrap_or_default()
}

/// Checks the branch's state and the sessions of its members.
pub(super) fn branch(layout: &Layout) -> Result<Report, Error> {
    let mut files = vec![layout.state_file()];
    let sessions = match Folder::find(&layout.sessions_folder()) {
        Ok(sessions) => sessions,
        // The check of `.kd` itself reports it.
        Err(e) if e.is_refused_file() => None,
        Err(e) => return Err(e),
    };
    if let Some(sessions) = sessions {
        files.extend(sessions.items()?.into_iter().filter_map(|item| {
            let name = item.name.to_str()?;
            let kept = name.ends_with(".json") && !name.starts_with('.');
            kept.then(|| sessions.path().join(name))
        }));
    }
    files.sort();
    let mut findings = Vec::new();
    for file in files {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            continue;
        };
        match Folder::find(folder) {
            Ok(Some(folder)) => torn_json(&folder, name, bounds::SESSION, &mut findings),
            Ok(None) => {}
            Err(e) if e.is_refused_file() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Report {
        messages: 0,
        findings,
    })
}

/// Checks `.kd` for entries of an unexpected type or size: links, pipes, folders in place of files. [`thread`] checks
/// the threads.
pub(super) fn base(layout: &Layout) -> Result<Report, Error> {
    let mut findings = Vec::new();
    if let Some(kd) = Folder::find(&layout.kd())? {
        walk(&kd, Path::new(""), &mut findings)?;
    }
    findings.sort_by(|a: &Finding, b| a.path.cmp(&b.path));
    Ok(Report {
        messages: 0,
        findings,
    })
}

fn walk(folder: &Folder, below: &Path, findings: &mut Vec<Finding>) -> Result<(), Error> {
    for item in folder.items()? {
        let below = below.join(&item.name);
        let Some(expected) = layout::expects(&below) else {
            continue;
        };
        match misfit(folder, &item, expected) {
            Some(odd) => findings.push(odd),
            None if expected == Expected::Folder && !layout::is_thread(&below) => {
                if let Some(inner) = folder.folder(&item.name)? {
                    walk(&inner, &below, findings)?;
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// Reports a name of an unexpected type, or a file of absurd size.
fn misfit(folder: &Folder, item: &Item, expected: Expected) -> Option<Finding> {
    let path = || folder.path().join(&item.name);
    let what = match (expected, item.kind) {
        (Expected::Folder, Thing::Folder) => return None,
        (Expected::File(None), Thing::File) => return None,
        (Expected::File(Some(bound)), Thing::File) => {
            let look = folder.look(&item.name).ok()??;
            if look.bytes <= bound.bytes {
                return None;
            }
            let error = Error::TooLarge {
                path: path(),
                bytes: look.bytes,
                bound,
            };
            thread::told(&error)
        }
        (Expected::Folder, kind) => format!("it is {}, not a folder", kind.words()),
        (Expected::File(_), kind) => format!("it is {}, not a regular file", kind.words()),
    };
    let what = match item.kind {
        Thing::Link => format!("{what}; kd does not follow it"),
        _ => what,
    };
    Some(found(
        Kind::Unreadable,
        path(),
        what,
        Some(Remedy::SetAside),
    ))
}

/// Reports an unreadable file. A file that `kd` rejects can be moved aside; if the system rejects it, the user must
/// fix it.
fn unreadable(path: PathBuf, error: &Error) -> Finding {
    let remedy = error.is_refused_file().then_some(Remedy::SetAside);
    found(Kind::Unreadable, path, thread::told(error), remedy)
}

fn found(kind: Kind, path: PathBuf, what: String, remedy: Option<Remedy>) -> Finding {
    Finding {
        kind,
        path,
        what,
        remedy,
        mended: None,
    }
}

/// Reports problems in the text of one message.
fn text(path: &Path, bytes: &[u8], flaws: &[Flaw], findings: &mut Vec<Finding>) {
    let mut find = |kind, what: String, remedy| {
        findings.push(found(kind, path.to_path_buf(), what, remedy));
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return find(
            Kind::Empty,
            "it is empty: its writer was stopped".into(),
            Some(Remedy::SetAside),
        );
    }
    if let Some(flaw) = flaws.iter().find(|flaw| flaw.is_fatal()) {
        let (kind, remedy) = match flaw {
            Flaw::NoHeader => (Kind::NoHeader, Remedy::Adopt),
            _ => (Kind::TornHeader, Remedy::SetAside),
        };
        return find(kind, flaw.to_string(), Some(remedy));
    }
    let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    if !flaws.is_empty() {
        find(Kind::OddHeader, flaws.join("; "), Some(Remedy::Rewrite));
    }
    let text = String::from_utf8_lossy(bytes);
    let header = frontmatter::header(&text).unwrap_or_default();
    if header.contains("---") {
        let what = "a value holds `---`: kingdom-cli takes what follows for the body";
        find(Kind::EarlyEnd, what.into(), Some(Remedy::Rewrite));
    }
    if header.lines().any(|line| line.trim().starts_with("- ")) {
        let what = "its references stand on lines of their own: kingdom-cli reads none";
        find(Kind::BlockList, what.into(), Some(Remedy::Rewrite));
    }
    if text.contains("\r\n") {
        find(
            Kind::Crlf,
            "its lines end in CRLF, which every version reads".into(),
            None,
        );
    }
}

/// Reports messages of the user that choose an answer which is not there.
fn choices(messages: &[(PathBuf, Message)], findings: &mut Vec<Finding>) {
    let all = || messages.iter().map(|(_, message)| message);
    for (path, message) in messages.iter().filter(|(_, message)| message.is_king()) {
        let Some(chosen) = message.extra.get(CHOSEN) else {
            continue;
        };
        if !message.is_choice(all()) {
            let what = format!(
                "it chooses message {chosen}, which is no earlier answer: it is read as a question"
            );
            findings.push(found(Kind::StrayChoice, path.clone(), what, None));
        }
    }
}

fn doubles(folder: &Path, entries: &[Entry], findings: &mut Vec<Finding>) {
    for group in entries.chunk_by(|a, b| a.seq == b.seq) {
        for entry in &group[1..] {
            let what = format!(
                "number {} is also that of {}: kingdom-cli's chat shows only one of them",
                entry.seq, group[0].name
            );
            let path = folder.join(&entry.name);
            findings.push(found(Kind::Double, path, what, Some(Remedy::Renumber)));
        }
    }
}

/// Reports problems of `thread.json`, with its corrected content.
fn meta(
    place: &Place,
    folder: &Folder,
    entries: &[Entry],
    first: Option<jiff::Timestamp>,
    findings: &mut Vec<Finding>,
) {
    let path = place.path.join(layout::THREAD_FILE);
    let time = |at: jiff::Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let rebuilt = || {
        let senders = entries.iter().map(|e| e.sender().to_owned());
        let mut meta = Meta::rebuilt(place.id.clone(), senders);
        meta.created_at = first.map(time);
        Some(Remedy::WriteMeta(Box::new(meta)))
    };
    let read = match Meta::read(folder) {
        Ok(Some(meta)) => meta,
        Ok(None) => {
            let what = "it is missing: git does not carry it, and kingdom-cli hides the thread";
            return findings.push(found(Kind::NoMeta, path, what.into(), rebuilt()));
        }
        Err(error) => {
            let what = std::error::Error::source(&error).map(ToString::to_string);
            let what = what.unwrap_or_else(|| thread::told(&error));
            return findings.push(found(Kind::TornMeta, path, what, rebuilt()));
        }
    };
    let mut mended = read.clone();
    let mut wrong = Vec::new();
    if read.id != place.id {
        wrong.push(format!("its id is `{}`, not the folder's name", read.id));
        mended.id = place.id.clone();
    }
    // kingdom-cli compares times, and one without a zone makes its list fail with a traceback.
    let zoned = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
    if let Some(text) = read.created_at.as_deref().filter(|text| !zoned(text)) {
        wrong.push(format!(
            "created_at `{text}` has no zone: kingdom-cli cannot list the branch"
        ));
        mended.created_at = read.created().or(first).map(time);
    }
    if read.is_council() && !read.members.iter().any(|m| m == KING) {
        wrong.push("`king` is not among its members".into());
        mended.members.insert(0, KING.into());
    }
    if !wrong.is_empty() {
        let remedy = Some(Remedy::WriteMeta(Box::new(mended)));
        findings.push(found(Kind::OddMeta, path, wrong.join("; "), remedy));
    }
}

/// Reports abandoned streams, malformed JSON, and unknown files.
fn others(
    place: &Place,
    folder: &Folder,
    entries: &[Entry],
    patience: Duration,
    findings: &mut Vec<Finding>,
) -> Result<(), Error> {
    for sign in stream::streams(&Thread::open(place)?)? {
        if !sign.is_live(patience) {
            let what = format!(
                "{}'s stream has not changed for {} s: kingdom-cli still shows it as answering",
                sign.member,
                sign.quiet.as_secs()
            );
            let remedy = Some(Remedy::SetAside);
            findings.push(found(Kind::StaleStream, sign.path, what, remedy));
        }
    }
    torn_json(
        folder,
        layout::PENDING_FILE.as_ref(),
        bounds::PENDING,
        findings,
    );
    let known: BTreeSet<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    for item in folder.items()? {
        let name = item.name.to_string_lossy();
        if known.contains(&*name) || name == layout::THREAD_FILE || name == layout::PENDING_FILE {
            continue;
        }
        if name == layout::SPOOL_FOLDER
            && let Ok(Some(spool)) = folder.folder(&item.name)
        {
            let odd = |item| misfit(&spool, item, Expected::File(None));
            findings.extend(spool.items()?.iter().filter_map(odd));
        }
        if layout::is_stray_queue(&name) && item.kind == Thing::File {
            let what = "it has queued messages; kd sends none from a thread folder";
            let path = folder.path().join(&item.name);
            let remedy = Some(Remedy::SetAside);
            findings.push(found(Kind::StrayQueue, path, what.into(), remedy));
            continue;
        }
        match layout::expects_in_thread(&name) {
            Some(expected) => {
                findings.extend(misfit(folder, &item, expected).or_else(|| odd_copy(folder, &name)))
            }
            None if !name.starts_with('.') => {
                let what = "it is no part of a thread; it is left alone";
                let path = folder.path().join(&item.name);
                findings.push(found(Kind::Alien, path, what.into(), None));
            }
            None => {}
        }
    }
    Ok(())
}

/// Reports the pictures and documents of a message that have no copy.
fn missing_copies(folder: &Folder, entry: &Entry, bytes: &[u8], findings: &mut Vec<Finding>) {
    for named in attachments::named_in(&entry.name, bytes) {
        if let Ok(None) = folder.look(&*named.copy) {
            let what = format!(
                "it is missing: {} names it as {}, and members are not shown it",
                entry.name, named.name
            );
            let path = folder.path().join(&*named.copy);
            findings.push(found(Kind::NoCopy, path, what, None));
        }
    }
}

/// Reports a copy whose bytes do not match the digest in its name.
fn odd_copy(folder: &Folder, name: &str) -> Option<Finding> {
    let copy = CopyName::parse(name)?;
    let path = || folder.path().join(name);
    match folder.read(name, bounds::COPY) {
        Ok(Some(bytes)) if !copy.fits(&bytes) => {
            let what = "its bytes are not those that were attached: members are not shown it";
            let remedy = Some(Remedy::SetAside);
            Some(found(Kind::OddCopy, path(), what.into(), remedy))
        }
        Ok(_) => None,
        Err(error) => Some(unreadable(path(), &error)),
    }
}

/// Checks that a file, if it exists, is a JSON object.
fn torn_json(folder: &Folder, name: &OsStr, bound: Bound, findings: &mut Vec<Finding>) {
    type Object = serde_json::Map<String, serde_json::Value>;
    let Some(name) = name.to_str() else { return };
    if let Err(error) = crate::json::read_in::<Object>(folder, name, bound) {
        let what = std::error::Error::source(&error).map(ToString::to_string);
        let what = format!(
            "it cannot be read: {}",
            what.unwrap_or_else(|| thread::told(&error))
        );
        let remedy = Some(Remedy::SetAside);
        let path = folder.path().join(name);
        findings.push(found(Kind::TornJson, path, what, remedy));
    }
}
