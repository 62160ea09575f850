//! Repairs problems. Everything that existed before still exists afterwards.

use super::{Finding, Kind, NotMended, Remedy, Report};
use crate::beneath::{Folder, Kind as Thing};
use crate::bounds;
use crate::error::Error;
use crate::frontmatter;
use crate::index::{self, Entry};
use crate::json;
use crate::layout;
use crate::thread::{self, Thread};
use kd_core::message::{Draft, Message};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A younger file may still be being written: other programs create the file first.
const SETTLED: Duration = Duration::from_secs(5);
/// Maximum number of files with the same name in the lost folder.
const NAMES_MAX: u32 = 10_000;

/// Repairs a thread.
pub(super) fn thread(path: &Path, report: &mut Report) -> Result<(), Error> {
    if report.findings.iter().all(|f| f.remedy.is_none()) {
        return Ok(());
    }
    let folder = &Folder::open(path)?;
    // A lock that is not a regular file would block all other repairs, so it is handled first.
    let lock_file = path.join(layout::THREAD_LOCK);
    for finding in &mut report.findings {
        if let (true, Some(remedy)) = (finding.path == lock_file, &finding.remedy) {
            finding.mended = Some(one(folder, finding, remedy));
        }
    }
    let lock = thread::lock_folder(folder)?;
    let mut done: Vec<PathBuf> = Vec::new();
    // Numbers last: until then paths are as they were found.
    report
        .findings
        .sort_by_key(|f| matches!(f.remedy, Some(Remedy::Renumber)));
    for finding in &mut report.findings {
        let Some(remedy) = finding.remedy.as_ref().filter(|_| finding.mended.is_none()) else {
            continue;
        };
        let again = matches!(remedy, Remedy::Rewrite) && done.contains(&finding.path);
        let outcome = match again {
            // Rewriting the file once fixes all problems of its text.
            true => Ok(remedy.says().to_owned()),
            false => one(folder, finding, remedy),
        };
        if outcome.is_ok() {
            done.push(finding.path.clone());
        }
        finding.mended = Some(outcome);
    }
    report
        .findings
        .sort_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    drop(lock);
    Thread::open_folder(path)?.settle()
}

/// Repairs the files beside the threads.
pub(super) fn branch(folder: &Path, report: &mut Report) -> Result<(), Error> {
    if report.findings.iter().all(|f| f.remedy.is_none()) {
        return Ok(());
    }
    let folder = Folder::open(folder)?;
    for finding in &mut report.findings {
        if let Some(remedy) = &finding.remedy {
            finding.mended = Some(one(&folder, finding, remedy));
        }
    }
    Ok(())
}

/// Sets aside entries of an unexpected type, each in the folder that contains it.
pub(super) fn base(report: &mut Report) -> Result<(), Error> {
    for finding in &mut report.findings {
        if let Some(remedy) = &finding.remedy {
            let (folder, _) = Folder::of_file(&finding.path)?;
            finding.mended = Some(one(&folder, finding, remedy));
        }
    }
    Ok(())
}

/// Repairs one problem. Returns a description of the repair.
fn one(folder: &Folder, finding: &Finding, remedy: &Remedy) -> Result<String, NotMended> {
    put_right(folder, finding, remedy).map_err(|error| NotMended::Failed(thread::told(&error)))?
}

fn put_right(
    folder: &Folder,
    finding: &Finding,
    remedy: &Remedy,
) -> Result<Result<String, NotMended>, Error> {
    let (within, name) = Folder::of_file(&finding.path)?;
    let look = within.look(name)?;
    let is_file = look.is_none_or(|look| look.kind == Thing::File);
    let is_meta = matches!(remedy, Remedy::WriteMeta(_));
    let fresh = look.is_some_and(|look| look.modified.elapsed().is_ok_and(|age| age < SETTLED));
    if is_file && !is_meta && finding.kind != Kind::StaleStream && fresh {
        return Ok(Err(NotMended::Fresh));
    }
    Ok(Ok(match remedy {
        Remedy::WriteMeta(meta) => {
            match look {
                Some(_) if is_file => drop(keep(folder, &within, name)?),
                Some(_) => drop(set_aside(folder, &within, name)?),
                None => {}
            }
            json::write_in(folder, layout::THREAD_FILE, meta.as_ref(), bounds::META)?;
            "written".to_owned()
        }
        Remedy::Rewrite | Remedy::Adopt => rewrite(folder, name)?,
        Remedy::Renumber => renumber(folder, name)?,
        Remedy::SetAside if Path::new(name) == Path::new(layout::LOST_FOLDER) => {
            format!("moved to {}", free_lost(&within)?)
        }
        Remedy::SetAside => format!("moved to {}", set_aside(folder, &within, name)?),
    }))
}

/// Rewrites a message with what could be parsed of it.
fn rewrite(folder: &Folder, name: &OsStr) -> Result<String, Error> {
    let text = name.to_string_lossy();
    let path = folder.path().join(name);
    let (bytes, time) = thread::read_file(folder, &text)?
        .ok_or_else(|| Error::io("read", &path)(io::ErrorKind::NotFound.into()))?;
    let sender = Entry {
        seq: 0,
        name: text.into_owned(),
    }
    .sender()
    .to_owned();
    let (parsed, _) = frontmatter::parse(&bytes);
    let message = match parsed {
        Some(parsed) => parsed.into_message(0, &sender, time),
        None => Message {
            seq: 0,
            from: sender,
            to: kd_core::Address::default(),
            at: time,
            status: None,
            refs: Vec::new(),
            provenance: kd_core::message::Provenance::default(),
            extra: std::collections::BTreeMap::new(),
            body: String::from_utf8_lossy(&bytes).as_ref().into(),
        },
    };
    let draft = Draft {
        turn: None,
        from: message.from,
        to: message.to,
        at: message.at,
        status: message.status,
        refs: message.refs,
        provenance: message.provenance,
        extra: message.extra,
        body: message.body.into(),
    };
    let kept = keep(folder, folder, name)?;
    folder.replace(name, frontmatter::format(&draft).as_bytes())?;
    Ok(format!("rewritten; the old text is in {kept}"))
}

fn renumber(folder: &Folder, name: &OsStr) -> Result<String, Error> {
    let entries = index::list(folder)?;
    let last = entries.last().map_or(0, |e| e.seq);
    match entries.iter().find(|e| *e.name == *name) {
        Some(entry) => {
            let seq = thread::renumber(folder, entry, last)?;
            Ok(format!("it is number {seq} now"))
        }
        None => Err(Error::io("rename", &folder.path().join(name))(
            io::ErrorKind::NotFound.into(),
        )),
    }
}

/// Keeps the current content of a regular file in the lost folder; returns its path there.
fn keep(folder: &Folder, within: &Folder, name: &OsStr) -> Result<String, Error> {
    in_lost(folder, name, |lost, new| {
        match within.publish(name, lost, new) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Error::io("keep", &within.path().join(name))(e))
            }
            // If the file system has no hard links, the text is copied.
            Err(_) => copy(within, name, lost, new),
        }
    })
}

fn copy(within: &Folder, name: &OsStr, lost: &Folder, new: &OsStr) -> Result<bool, Error> {
    let failed = |e| Error::io("keep", &within.path().join(name))(e);
    let Some(mut from) = within.file(name)? else {
        return Err(failed(io::ErrorKind::NotFound.into()));
    };
    match lost.create(new)? {
        Some(mut to) => io::copy(&mut from, &mut to).map(|_| true).map_err(failed),
        None => Ok(false),
    }
}

/// Moves anything, including a link, into the lost folder; returns its path there.
fn set_aside(folder: &Folder, within: &Folder, name: &OsStr) -> Result<String, Error> {
    in_lost(folder, name, |lost, new| within.move_to(name, lost, new))
}

/// Tries free names in the lost folder, creating it hidden from git; returns the name that was used.
fn in_lost(
    folder: &Folder,
    name: &OsStr,
    put: impl Fn(&Folder, &OsStr) -> Result<bool, Error>,
) -> Result<String, Error> {
    let lost_name = OsStr::new(layout::LOST_FOLDER);
    let in_place = folder.look(lost_name)?.map(|look| look.kind);
    if in_place.is_some_and(|kind| kind != Thing::Folder) {
        free_lost(folder)?;
    }
    let lost = folder.make_folder(lost_name)?;
    if let Some(mut ignore) = lost.create(".gitignore")? {
        let path = lost.path().join(".gitignore");
        ignore
            .write_all(b"*\n")
            .map_err(Error::io("write", &path))?;
    }
    let text = name.to_string_lossy();
    for count in 0..NAMES_MAX {
        let new = match count {
            0 => text.to_string(),
            n => format!("{text}.{n}"),
        };
        if put(&lost, new.as_ref())? {
            return Ok(format!("{}/{new}", layout::LOST_FOLDER));
        }
    }
    Err(Error::Crowded {
        path: lost.path().to_path_buf(),
        tries: NAMES_MAX,
    })
}

/// Moves whatever is in place of the lost folder out of the way; returns its new name.
fn free_lost(folder: &Folder) -> Result<String, Error> {
    for count in 0..NAMES_MAX {
        let new = format!("{}.{count}", layout::LOST_FOLDER);
        if folder.move_to(layout::LOST_FOLDER.as_ref(), folder, new.as_ref())? {
            return Ok(new);
        }
    }
    Err(Error::Crowded {
        path: folder.path().to_path_buf(),
        tries: NAMES_MAX,
    })
}
