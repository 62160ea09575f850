//! Forks share bytes, keep their lineage, and leave nothing behind on failure.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common;

use common::{draft, layout, seats, thread};
use kd_core::fork::{Cut, NoStage};
use kd_core::{Event, Record, Timestamp};
use kd_store::fork::{ForkError, fork};
use kd_store::{EventLog, Layout, Thread, log};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Returns the message files of a thread, with their bytes and times.
fn files(thread: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let named = fs::read_dir(thread).unwrap().map(Result::unwrap);
    let messages = named.filter(|entry| entry.file_name().to_string_lossy().ends_with(".md"));
    messages
        .map(|entry| {
            let modified = entry.metadata().unwrap().modified().unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, (fs::read(entry.path()).unwrap(), modified))
        })
        .collect()
}

/// Creates a thread of six messages with a log, including a file from another program.
fn source(root: &Path) -> Thread {
    let thread = thread(root, &["ann", "bob"]);
    let mut records = Vec::new();
    for (at, from) in ["king", "ann", "bob", "king", "ann"].iter().enumerate() {
        let message = thread
            .append(&draft(from, &format!("Words {at}.")))
            .unwrap();
        records.push(Record {
            v: 1,
            seq: at as u64,
            ts: Timestamp::UNIX_EPOCH,
            thread: thread.id().clone(),
            event: Event::MessageAdded {
                found: false,
                message,
                turn: None,
            },
        });
    }
    EventLog::open(&thread).unwrap().append(&records).unwrap();
    // Bytes that kd would not write: no time, spaces, CRLF.
    let odd = thread.path().join("0006-bob.md");
    fs::write(
        &odd,
        "---\r\nfrom: bob\r\nto: king\r\n---\r\n\r\nOdd.  \r\n",
    )
    .unwrap();
    let file = fs::File::options().write(true).open(&odd).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000))
        .unwrap();
    thread
}

#[test]
fn a_fork_shares_the_bytes_and_times_of_what_comes_before() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let source = source(dir.path());
    let all = files(source.path());
    for before in 2..=6 {
        let forked = fork(&layout, &source, &Cut::Before(before)).unwrap();
        let mut shared = all.clone();
        shared.retain(|name, _| name.as_str() < format!("{before:04}").as_str());
        assert_eq!(files(forked.path()), shared);
        let lineage = forked.meta().lineage().unwrap();
        assert_eq!(lineage.of, *source.id());
        assert_eq!(lineage.before, Some(before));
        assert_eq!(lineage.messages, before - 1);
        assert_eq!(forked.members(), seats(&["ann", "bob"]));
        let records = log::read(&forked).unwrap().records;
        assert_eq!(records.len() as u32, (before - 1).min(5));
        // The next message gets the number that was left out; the source is unaffected.
        let next = forked.append(&draft("king", "Another way.")).unwrap();
        assert_eq!(next.seq, before);
        assert_eq!(files(source.path()), all);
    }
    let whole = fork(&layout, &source, &Cut::End).unwrap();
    assert_eq!(files(whole.path()), all);
    assert_eq!(whole.meta().lineage().unwrap().before, None);
    let line = |thread: &Thread| fs::read(thread.path().join(".kd-events.jsonl")).unwrap();
    assert_eq!(
        line(&whole),
        line(&source),
        "records are kept byte for byte"
    );
    assert_eq!(
        whole.messages().unwrap().messages,
        source.messages().unwrap().messages
    );
}

#[test]
fn a_fork_of_a_fork_names_the_fork_and_the_source_stays_current() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let source = source(dir.path());
    let first = fork(&layout, &source, &Cut::Before(5)).unwrap();
    let second = fork(&layout, &first, &Cut::Before(3)).unwrap();
    assert_eq!(second.meta().lineage().unwrap().of, *first.id());
    let current = layout.current_thread().unwrap().unwrap();
    assert_eq!(current.id, *source.id(), "switching is the caller's choice");
    let on = layout.with_branch("other").unwrap();
    let there = fork(&on, &source, &Cut::End).unwrap();
    let branch = there.meta().lineage().unwrap().branch;
    assert_eq!(branch.as_deref(), Some(layout.branch()));
}

#[test]
fn a_fork_has_the_noted_verdicts_of_its_source_and_tells_if_that_was_not_begun_here() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let env = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
    fs::create_dir(dir.path().join(".kd")).unwrap();
    let layout = Layout::find(dir.path(), &env).unwrap();
    let source = Thread::create(&layout, &seats(&["ann"])).unwrap();
    source.append(&draft("king", "Which?")).unwrap();
    EventLog::open(&source).unwrap();
    layout.note_verdict(source.id(), "d-1").unwrap();
    let other = Thread::create(&layout, &seats(&["ann"])).unwrap();
    layout.note_verdict(other.id(), "d-2").unwrap();
    let forked = fork(&layout, &source, &Cut::End).unwrap();
    let holds = |thread: &Thread, digest| layout.verdicts().unwrap().holds(thread.id(), digest);
    assert!(holds(&forked, "d-1") && holds(&source, "d-1"));
    assert!(!holds(&forked, "d-2") && !holds(&other, "d-1"));
    let foreign = |thread: &Thread| thread.meta().lineage().unwrap().foreign;
    assert!(!foreign(&forked) && log::is_begun_here(&forked));
    // Without the notes, as in a copied folder, nothing tells that it was begun here. A fork was begun here itself.
    let state = home.join(".local/state/kd/projects");
    let state = fs::read_dir(state).unwrap().next().unwrap().unwrap().path();
    let noted = fs::read(state.join("threads.jsonl")).unwrap();
    fs::remove_file(state.join("threads.jsonl")).unwrap();
    let copied = fork(&layout, &source, &Cut::End).unwrap();
    assert!(foreign(&copied) && !log::is_begun_here(&copied));
    assert!(
        copied
            .meta()
            .lineage()
            .unwrap()
            .words()
            .ends_with("; may be somebody else's")
    );
    fs::write(state.join("threads.jsonl"), noted).unwrap();
    let twice = fork(&layout, &forked, &Cut::End).unwrap();
    assert!(!foreign(&twice) && holds(&twice, "d-1"));
    // As in a clone: git tracks the log.
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let done = git.args(args).current_dir(dir.path()).output().unwrap();
        assert!(done.status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-f", source.path().to_str().unwrap()]);
    let tracked = fork(&layout, &source, &Cut::End).unwrap();
    let again = fork(&layout, &tracked, &Cut::End).unwrap();
    for thread in [&tracked, &again] {
        assert!(foreign(thread) && log::is_own(thread) && !log::is_begun_here(thread));
    }
    assert!(holds(&again, "d-1"), "the verdict itself fell here");
}

#[test]
fn what_cannot_be_forked_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let source = source(dir.path());
    let folders = || fs::read_dir(layout.threads_folder()).unwrap().count();
    let empty = thread(dir.path(), &["ann"]);
    let threads = folders();
    let fails = |thread: &Thread, cut: Cut| fork(&layout, thread, &cut).unwrap_err();
    assert!(matches!(
        fails(&source, Cut::Before(7)),
        ForkError::OutOfRange {
            number: 7,
            last: 6,
            ..
        }
    ));
    assert!(matches!(
        fails(&source, Cut::Before(1)),
        ForkError::Empty { number: 1, .. }
    ));
    assert!(matches!(fails(&empty, Cut::End), ForkError::NoMessages(_)));
    assert!(matches!(
        fails(&source, Cut::Stage("review".into())),
        ForkError::Stage(NoStage::NoDeliberation)
    ));
    // A link in place of a message is not followed.
    let link = source.path().join("0003-bob.md");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    assert!(matches!(fails(&source, Cut::End), ForkError::Store(_)));
    assert_eq!(folders(), threads);
}

#[test]
fn a_description_that_would_be_too_large_makes_no_fork_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let source = source(dir.path());
    let path = source.path().join("thread.json");
    let lists = "[],".repeat(200_000);
    fs::write(&path, format!("{{\"id\":\"x\",\"x\":[{lists}[]]}}")).unwrap();
    let source = Thread::open_folder(source.path()).unwrap();
    let threads = fs::read_dir(layout.threads_folder()).unwrap().count();
    let error = fork(&layout, &source, &Cut::End).unwrap_err();
    assert!(
        error.to_string().contains(&*path.to_string_lossy()),
        "{error}"
    );
    assert_eq!(
        fs::read_dir(layout.threads_folder()).unwrap().count(),
        threads
    );
}
