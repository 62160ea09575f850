//! Putting right what was found. Everything that was there is still there afterwards.

use super::{Finding, Kind, Remedy, Report};
use crate::error::Error;
use crate::frontmatter;
use crate::index::{self, Entry};
use crate::json;
use crate::layout;
use crate::thread::{self, Thread};
use kd_core::message::{Draft, Message};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that is younger may still be written: programs without our way of writing create first.
const SETTLED: Duration = Duration::from_secs(5);
/// How many files of one name may be lost.
const NAMES_MAX: u32 = 10_000;

/// Puts a thread right.
pub(super) fn thread(folder: &Path, report: &mut Report) -> Result<(), Error> {
    if report.findings.iter().all(|f| f.remedy.is_none()) {
        return Ok(());
    }
    let lock = thread::lock_folder(folder)?;
    let mut done: Vec<PathBuf> = Vec::new();
    // Numbers last: until then paths are as they were found.
    report
        .findings
        .sort_by_key(|f| matches!(f.remedy, Some(Remedy::Renumber)));
    for finding in &mut report.findings {
        let Some(remedy) = &finding.remedy else {
            continue;
        };
        let again = matches!(remedy, Remedy::Rewrite) && done.contains(&finding.path);
        let outcome = match again {
            // One writing anew mends all that is wrong with a text.
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
    Thread::open_folder(folder)?.settle()
}

/// Puts the files beside the threads right.
pub(super) fn branch(folder: &Path, report: &mut Report) -> Result<(), Error> {
    for finding in &mut report.findings {
        if let Some(remedy) = &finding.remedy {
            finding.mended = Some(one(folder, finding, remedy));
        }
    }
    Ok(())
}

/// Puts one thing right; says what was done.
fn one(folder: &Path, finding: &Finding, remedy: &Remedy) -> Result<String, String> {
    let is_meta = matches!(remedy, Remedy::WriteMeta(_));
    if !is_meta && finding.kind != Kind::StaleStream && is_fresh(&finding.path) {
        return Err("it was written a moment ago: try again in some seconds".into());
    }
    let done = match remedy {
        Remedy::WriteMeta(meta) => {
            let kept = match finding.kind {
                Kind::NoMeta => Ok(()),
                _ => keep(folder, &finding.path).map(drop),
            };
            kept.and_then(|()| json::write(&finding.path, meta.as_ref()))
                .map(|()| "written".to_owned())
        }
        Remedy::Rewrite | Remedy::Adopt => rewrite(folder, &finding.path),
        Remedy::Renumber => renumber(folder, &finding.path),
        Remedy::SetAside => keep(folder, &finding.path).and_then(|kept| {
            fs::remove_file(&finding.path).map_err(Error::io("move", &finding.path))?;
            Ok(format!("moved to {}", short(&kept)))
        }),
    };
    done.map_err(|error| error.to_string())
}

/// Writes a message anew, with what could be read of it.
fn rewrite(folder: &Path, path: &Path) -> Result<String, Error> {
    let open = File::open(folder).map_err(Error::io("open", folder))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (bytes, time) = thread::read_file(&open, &name).map_err(Error::io("read", path))?;
    let sender = Entry {
        seq: 0,
        name: name.into_owned(),
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
            body: String::from_utf8_lossy(&bytes).into_owned(),
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
        body: message.body,
    };
    let kept = keep(folder, path)?;
    json::replace(path, frontmatter::format(&draft).as_bytes())?;
    Ok(format!("written anew; the old text is in {}", short(&kept)))
}

fn renumber(folder: &Path, path: &Path) -> Result<String, Error> {
    let entries = index::list(folder)?;
    let last = entries.last().map_or(0, |e| e.seq);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match entries.iter().find(|e| e.name == name) {
        Some(entry) => {
            let seq = thread::renumber(folder, entry, last)?;
            Ok(format!("it is number {seq} now"))
        }
        None => Err(Error::io("rename", path)(io::ErrorKind::NotFound.into())),
    }
}

/// Keeps a file's present content in the lost folder, under a name that is free; git ignores the folder.
fn keep(folder: &Path, path: &Path) -> Result<PathBuf, Error> {
    let lost = folder.join(layout::LOST_FOLDER);
    fs::create_dir_all(&lost).map_err(Error::io("create", &lost))?;
    let ignore = lost.join(".gitignore");
    if !ignore.exists() {
        fs::write(&ignore, "*\n").map_err(Error::io("write", &ignore))?;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for count in 0..NAMES_MAX {
        let kept = match count {
            0 => lost.join(name.as_ref()),
            n => lost.join(format!("{name}.{n}")),
        };
        // Where the disk knows no links the text is copied.
        let linked = fs::hard_link(path, &kept).or_else(|e| match e.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => Err(e),
            _ => File::create_new(&kept).and_then(|_| fs::copy(path, &kept).map(drop)),
        });
        match linked {
            Ok(()) => return Ok(kept),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io("keep", path)(e)),
        }
    }
    Err(Error::Crowded {
        path: lost,
        tries: NAMES_MAX,
    })
}

fn short(kept: &Path) -> String {
    let name = kept.file_name().unwrap_or_default().to_string_lossy();
    format!("{}/{name}", layout::LOST_FOLDER)
}

fn is_fresh(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|meta| meta.modified());
    age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < SETTLED))
}
