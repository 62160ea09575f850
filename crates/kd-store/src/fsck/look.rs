//! Finding out what is wrong. Reads, and changes nothing.

use super::{Finding, Kind, Remedy, Report};
use crate::error::Error;
use crate::frontmatter::{self, Flaw};
use crate::index::{self, Entry};
use crate::layout::{self, Layout, Place};
use crate::meta::Meta;
use crate::stream;
use crate::thread::{self, Thread};
use kd_core::ids::KING;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Everything about one thread.
pub(super) fn thread(place: &Place) -> Result<Report, Error> {
    let folder = &place.path;
    let entries = index::list(folder)?;
    let mut findings = Vec::new();
    let mut messages = 0;
    let mut first = None;
    let open = File::open(folder).map_err(Error::io("open", folder))?;
    for entry in &entries {
        let path = folder.join(&entry.name);
        let (bytes, time) = match thread::read_file(&open, &entry.name) {
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => {
                findings.push(found(Kind::Unreadable, path, e.to_string(), None));
                continue;
            }
        };
        let (parsed, flaws) = frontmatter::parse(&bytes);
        if let Some(parsed) = parsed {
            messages += 1;
            let at = parsed.at.unwrap_or(time);
            first = first.min(Some(at)).or(Some(at));
        }
        text(&path, &bytes, &flaws, &mut findings);
    }
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
    meta(place, &entries, first, &mut findings);
    others(folder, &entries, &mut findings)?;
    findings.sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    Ok(Report { messages, findings })
}

/// The branch's state and the sessions of its members.
pub(super) fn branch(layout: &Layout) -> Result<Report, Error> {
    let mut files = vec![layout.state_file()];
    let sessions = layout.sessions_folder();
    match fs::read_dir(&sessions) {
        Ok(items) => files.extend(items.flatten().map(|item| item.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".json") && !name.starts_with('.')
        })),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(Error::io("list", &sessions)(e)),
    }
    files.sort();
    let mut findings = Vec::new();
    for file in files {
        torn_json(&file, &mut findings);
    }
    Ok(Report {
        messages: 0,
        findings,
    })
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

/// What is wrong with the text of one message.
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
            "its lines end in CRLF; everybody reads it".into(),
            None,
        );
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

/// What is wrong with `thread.json`, and what it should say.
fn meta(
    place: &Place,
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
    let read = match Meta::read(&path) {
        Ok(Some(meta)) => meta,
        Ok(None) => {
            let what = "it is missing: git does not carry it, and kingdom-cli hides the thread";
            return findings.push(found(Kind::NoMeta, path, what.into(), rebuilt()));
        }
        Err(error) => {
            let what = std::error::Error::source(&error).map(ToString::to_string);
            let what = what.unwrap_or_else(|| error.to_string());
            return findings.push(found(Kind::TornMeta, path, what, rebuilt()));
        }
    };
    let mut mended = read.clone();
    let mut wrong = Vec::new();
    if read.id != place.id {
        wrong.push(format!("its id is `{}`, not the folder's name", read.id));
        mended.id = place.id.clone();
    }
    // kingdom-cli compares times, and one without a zone ends its list in a traceback.
    let zoned = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
    if let Some(text) = read.created_at.as_deref().filter(|text| !zoned(text)) {
        wrong.push(format!(
            "created_at `{text}` has no zone: kingdom-cli cannot list the branch"
        ));
        mended.created_at = read.created().or(first).map(time);
    }
    if read.is_council() && !read.members.iter().any(|m| m == KING) {
        wrong.push("the king is not among its members".into());
        mended.members.insert(0, KING.into());
    }
    if !wrong.is_empty() {
        let remedy = Some(Remedy::WriteMeta(Box::new(mended)));
        findings.push(found(Kind::OddMeta, path, wrong.join("; "), remedy));
    }
}

/// Streams that nobody writes, JSON that nobody can read, and what belongs to nobody.
fn others(folder: &Path, entries: &[Entry], findings: &mut Vec<Finding>) -> Result<(), Error> {
    for sign in stream::streams(&Thread::open_folder(folder)?)? {
        if !sign.held && sign.quiet >= stream::SILENT {
            let what = format!(
                "nobody has written {}'s stream for {} s: kingdom-cli takes it to be at work",
                sign.member,
                sign.quiet.as_secs()
            );
            let remedy = Some(Remedy::SetAside);
            findings.push(found(Kind::StaleStream, sign.path, what, remedy));
        }
    }
    torn_json(&folder.join(layout::PENDING_FILE), findings);
    let known: BTreeSet<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let failed = |e| Error::io("list", folder)(e);
    for item in fs::read_dir(folder).map_err(failed)? {
        let item = item.map_err(failed)?;
        let name = item.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && name != layout::THREAD_FILE && !known.contains(name.as_str()) {
            let what = "it is no part of a thread; it is left alone";
            findings.push(found(Kind::Alien, item.path(), what.into(), None));
        }
    }
    Ok(())
}

/// A file that should be an object of JSON, if it is there.
fn torn_json(path: &Path, findings: &mut Vec<Finding>) {
    type Object = serde_json::Map<String, serde_json::Value>;
    if let Err(error) = crate::json::read::<Object>(path) {
        let what = std::error::Error::source(&error).map(ToString::to_string);
        let what = format!(
            "it cannot be read: {}",
            what.unwrap_or_else(|| error.to_string())
        );
        let remedy = Some(Remedy::SetAside);
        findings.push(found(Kind::TornJson, path.to_path_buf(), what, remedy));
    }
}
