//! The places that store something of a thread, one step each. To store something of a thread in a new place, add a row
//! here and a line to the test that plants a text in each.

use super::thread::{events, left_over, messages, repeats};
use super::{Found, Job, Scope, Target, branch};
use crate::beneath::{self, Folder, Kind};
use crate::bounds::Bound;
use crate::error::Error;
use crate::json;
use crate::layout::{self, Layout};
use crate::lock::{self, Lock};
use crate::{memory, private, session, staged, typed};
use kd_core::memory::Session;
use std::path::{Path, PathBuf};

/// Logs and copies are searched up to this size.
pub(super) const SEARCHED: Bound = Bound {
    what: "a log",
    bytes: 64 << 20,
    why: "",
};

/// Examines one place for one thread; removes the traces there unless it is a dry run.
type Step = fn(&Job<'_>, &Target, bool) -> Result<Vec<Found>, Error>;

/// All steps by name, in order: the messages, which identify the rest, come last.
pub const STEPS: &[(&str, Step)] = &[
    ("memory", remembered),
    ("review", reviewed),
    ("held", held),
    ("sessions", sessions),
    ("logs", logs),
    ("old-typed", old_typed),
    ("drafts", drafts),
    ("sent", sent),
    ("copied", copied),
    ("queue", queue),
    ("seated", seated),
    ("verdicts", verdicts),
    ("current", current),
    ("temporary", temporary),
    ("events", events),
    ("left-over", left_over),
    ("messages", messages),
];

/// Outcomes of earlier deliberations: `.kd/memory.json`.
fn remembered(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let goes = |one: &Session| {
        let here = one.thread == target.place.id;
        match &target.scope {
            Scope::Whole => here,
            Scope::Messages(numbers) => {
                (here && one.message.is_some_and(|n| numbers.contains(&n)))
                    || job.pieces.are_in(&one.question)
                    || job.pieces.are_in(&one.answer)
            }
        }
    };
    let kept = memory::read(job.layout)?;
    let gone = kept.sessions.iter().filter(|one| goes(one)).count();
    if !dry && gone > 0 {
        memory::update(job.layout, |kept| kept.sessions.retain(|one| !goes(one)))?;
    }
    let path = job.layout.memory_file();
    Ok(Found::count(path, gone, "remembered question")
        .into_iter()
        .collect())
}

/// The report of a review and the user's marks of its findings.
fn reviewed(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let Some(reviews) = job.reviews else {
        return Ok(Vec::new());
    };
    let id = &target.place.id.0;
    let mut found = Vec::new();
    let goes = match &target.scope {
        Scope::Whole => true,
        Scope::Messages(_) => reviews
            .report_bytes(id)?
            .is_some_and(|bytes| repeats(&bytes, &job.pieces)),
    };
    if goes && let Some(path) = reviews.forget_report(id, dry)? {
        found.push(Found::file(path, "the report of a review"));
    }
    if target.scope == Scope::Whole {
        let (path, marks) = reviews.forget_marks(id, dry)?;
        found.extend(Found::count(path, marks, "mark"));
    }
    Ok(found)
}

/// Finds data that other crates hold: marks of verdicts in a database.
fn held(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    for holder in &job.holders {
        found.extend(holder.forget(job, target, dry)?);
    }
    Ok(found)
}

/// Sessions of agent programs that were asked in the thread: they must not be resumed.
fn sessions(_: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let folder = layout::sessions_of(branch(&target.place));
    let mut found = Vec::new();
    for seat in session::kept(&folder)? {
        let state = session::read_in(&folder, &seat)?;
        let id = target.place.id.0.as_str();
        if state.thread.as_deref() == Some(id) && state.resume_id.is_some() {
            found.push(Found::file(
                layout::session_file_in(&folder, &seat),
                "the name of an agent program's session",
            ));
            if !dry {
                session::update_in(&folder, &seat, |state| {
                    state.resume_id = None;
                    state.thread = None;
                })?;
            }
        }
    }
    Ok(found)
}

/// Logs of background rounds and of members' programs.
fn logs(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let own = format!("ask-{}.log", target.place.id.0);
    searched(job, &branch(&target.place).join("logs"), dry, |name| {
        (name == own && target.scope == Scope::Whole).then_some(true)
    })
}

/// The user's typing that older versions stored below `.kd`.
fn old_typed(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let branch = branch(&target.place);
    let own = format!("{}.md", target.place.id.0);
    let mut found = searched(job, &branch.join("drafts"), dry, |name| {
        (name == own && target.scope == Scope::Whole).then_some(true)
    })?;
    found.extend(searched(job, branch, dry, |name| {
        (!matches!(name, "sent.jsonl" | "copied.md")).then_some(false)
    })?);
    Ok(found)
}

/// Finds, and unless `dry` removes, files of a folder below `.kd`: those selected by `sure`, and others that repeat
/// forgotten text or are too large to search.
fn searched(
    job: &Job<'_>,
    folder: &Path,
    dry: bool,
    sure: impl Fn(&str) -> Option<bool>,
) -> Result<Vec<Found>, Error> {
    let Some(folder) = Folder::find(folder)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for item in folder.items()? {
        let Some(name) = item.name.to_str().filter(|_| item.kind == Kind::File) else {
            continue;
        };
        let goes = match sure(name) {
            Some(sure) => sure,
            None => match folder.read(name, SEARCHED) {
                Ok(bytes) => bytes.is_some_and(|bytes| repeats(&bytes, &job.pieces)),
                Err(Error::TooLarge { .. }) => true,
                Err(error) => return Err(error),
            },
        };
        if goes {
            found.push(Found::file(
                folder.path().join(name),
                "a file that quotes it",
            ));
            if !dry {
                folder.remove(name)?;
            }
        }
    }
    Ok(found)
}

/// Returns the layout of the thread's own branch.
fn here(job: &Job<'_>, target: &Target) -> Result<Layout, Error> {
    job.layout.with_branch(&target.place.branch)
}

/// The drafts of the next message, one for each window.
fn drafts(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let layout = here(job, target)?;
    let id = &target.place.id;
    let goes = |draft: &str| target.scope == Scope::Whole || job.pieces.are_in(draft);
    let gone = typed::forget_drafts(&layout, id, &goes, dry)?.into_iter();
    Ok(gone
        .map(|path| Found::file(path, "the draft of a message"))
        .collect())
}

/// Lines of the input history.
fn sent(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let layout = here(job, target)?;
    let gone = typed::forget_sent(&layout, &|text| job.pieces.are_in(text), dry)?;
    let found = layout
        .sent_file()
        .and_then(|path| Found::count(path, gone, "typed line"));
    Ok(found.into_iter().collect())
}

/// Text copied from a chat if the terminal has no clipboard.
fn copied(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let Some(path) = here(job, target)?.copied_file() else {
        return Ok(Vec::new());
    };
    let bytes = private::read_end(&path, SEARCHED.bytes)?;
    if bytes.is_empty() || !repeats(&bytes, &job.pieces) {
        return Ok(Vec::new());
    }
    if !dry {
        private::remove(&path)?;
    }
    Ok(vec![Found::file(path, "copied text")])
}

/// Messages waiting to be sent.
fn queue(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let Some(folder) = job.layout.queue_folder(&target.place.path) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for file in private::files(&folder)? {
        let is_queue = layout::is_queue_file(&file);
        let goes = target.scope == Scope::Whole
            || (is_queue && repeats(&private::read_end(&file, SEARCHED.bytes)?, &job.pieces));
        if goes {
            if !dry {
                private::remove(&file)?;
            }
            if is_queue {
                found.push(Found::file(file, "queued messages"));
            }
        }
    }
    if !dry && target.scope == Scope::Whole {
        private::remove_empty(&folder);
    }
    Ok(found)
}

/// The members that the user chose.
fn seated(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    if target.scope != Scope::Whole {
        return Ok(Vec::new());
    }
    let found = job.layout.forget_seated(&target.place.id, dry)?;
    let found = found.and_then(|(path, count)| Found::count(path, count, "note"));
    Ok(found.into_iter().collect())
}

/// The digests of its verdicts, whatever is forgotten of it: they could confirm a guess of the text.
fn verdicts(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let found = job.layout.forget_verdicts(&target.place.id, dry)?;
    let found = found.and_then(|(path, count)| Found::count(path, count, "note"));
    Ok(found.into_iter().collect())
}

/// The branch's current thread.
fn current(_: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    if target.scope != Scope::Whole {
        return Ok(Vec::new());
    }
    let Some(folder) = Folder::find(branch(&target.place))? else {
        return Ok(Vec::new());
    };
    let path = folder.path().join(layout::STATE_FILE);
    let read = || json::read::<serde_json::Map<String, serde_json::Value>>(&path);
    let is_current = |state: &serde_json::Map<String, serde_json::Value>| {
        state.get("current_thread").and_then(|id| id.as_str()) == Some(&target.place.id.0)
    };
    if !read()?.is_some_and(|state| is_current(&state)) {
        return Ok(Vec::new());
    }
    if !dry {
        let _lock = Lock::take_beside(&folder, layout::STATE_FILE, lock::WAIT)?;
        if let Some(mut state) = read()?.filter(is_current) {
            state.remove("current_thread");
            json::write(&path, &state)?;
        }
    }
    Ok(vec![Found::file(path, "the current thread of the branch")])
}

/// Temporary files of killed processes beside the files that are rewritten.
fn temporary(job: &Job<'_>, target: &Target, dry: bool) -> Result<Vec<Found>, Error> {
    let branch = branch(&target.place);
    let mut found = Vec::new();
    let below = [
        job.layout.kd(),
        branch.to_path_buf(),
        layout::sessions_of(branch),
    ];
    for folder in below
        .iter()
        .filter_map(|path| Folder::find(path).transpose())
    {
        let folder = folder?;
        for item in folder.items()? {
            let is_left = item.kind == Kind::File && item.name.to_str().is_some_and(is_left_below);
            if is_left {
                found.push(Found::file(
                    folder.path().join(&item.name),
                    "a temporary file",
                ));
                if !dry {
                    beneath::remove(&folder.path().join(&item.name))?;
                }
            }
        }
    }
    // A fork or an import of the same messages may have been killed on any branch.
    for threads in job.layout.threads_folders()? {
        for left in staged::left(&threads)? {
            found.push(Found::file(left.path(), "an unfinished copy of a thread"));
            if !dry {
                left.remove()?;
            }
        }
    }
    let layout = here(job, target)?;
    let drafts = layout.draft_file(&target.place.id, 1);
    let mut outside: Vec<PathBuf> = job
        .reviews
        .map(|r| r.folder().to_path_buf())
        .into_iter()
        .collect();
    outside.extend(
        [layout.sent_file(), drafts]
            .into_iter()
            .flatten()
            .filter_map(|path| Some(path.parent()?.to_path_buf())),
    );
    for folder in outside {
        for file in private::files(&folder)? {
            if file
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(is_left_outside)
            {
                if !dry {
                    private::remove(&file)?;
                }
                found.push(Found::file(file, "a temporary file"));
            }
        }
    }
    Ok(found)
}

/// Returns whether a name is a temporary file of [`Folder::replace`] whose process is gone: `.state.123.0.json`.
fn is_left_below(name: &str) -> bool {
    let Some(stem) = name.strip_prefix('.').and_then(|n| n.strip_suffix(".json")) else {
        return false;
    };
    let mut parts = stem.rsplitn(3, '.');
    let (count, pid) = (parts.next(), parts.next());
    count.is_some_and(|count| count.parse::<u32>().is_ok()) && pid.is_some_and(is_gone)
}

/// Returns whether a name is a temporary file of [`private::replace`] whose process is gone: `sent.jsonl.123.new`.
fn is_left_outside(name: &str) -> bool {
    let stem = name
        .strip_suffix(".new")
        .and_then(|stem| stem.rsplit_once('.'));
    stem.is_some_and(|(_, pid)| is_gone(pid))
}

/// Returns whether a text is a process id that no process has.
fn is_gone(pid: &str) -> bool {
    let pid = pid
        .parse::<i32>()
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_files_of_processes_that_are_gone_are_left_over() {
        let own = std::process::id();
        for (name, below, outside) in [
            (".state.999999999.0.json".to_owned(), true, false),
            (format!(".state.{own}.0.json"), false, false),
            ("sent.jsonl.999999999.new".to_owned(), false, true),
            (format!("sent.jsonl.{own}.new"), false, false),
            ("state.json".to_owned(), false, false),
            (".pending-messages.json".to_owned(), false, false),
            ("notes.new".to_owned(), false, false),
        ] {
            assert_eq!(is_left_below(&name), below, "{name}");
            assert_eq!(is_left_outside(&name), outside, "{name}");
        }
    }
}
