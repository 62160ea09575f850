//! A queued message survives its session, and is taken over once.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::thread;
use kd_core::{Address, Delivery};
use kd_store::{Layout, Queue};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

fn delivery(id: &str, asked: Option<&[&str]>) -> Delivery {
    let seat = |name: &&str| kd_core::SeatName::new(*name).unwrap();
    Delivery {
        id: id.into(),
        body: format!("words of {id}\nand more"),
        to: Address::All,
        asked: asked.map(|names| names.iter().map(seat).collect()),
    }
}

fn files(folder: &Path) -> usize {
    let names = fs::read_dir(folder).into_iter().flatten();
    names
        .filter(|e| {
            let name = e.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("queue-")
        })
        .count()
}

#[test]
fn a_dead_session_leaves_its_words_to_exactly_one_other() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state/x");
    let (mut first, left) = Queue::open(&folder).unwrap();
    assert!(left.is_empty());
    assert!(!folder.exists(), "nothing to keep, no file");
    first.keep(&delivery("a", None)).unwrap();
    first.keep(&delivery("b", None)).unwrap();
    first.keep(&delivery("c", None)).unwrap();
    first.keep(&delivery("a", Some(&["claude"]))).unwrap();
    first.forget("b").unwrap();

    let (living, left) = Queue::open(&folder).unwrap();
    assert!(left.is_empty(), "its owner lives");
    drop(first);
    let (mut second, left) = Queue::open(&folder).unwrap();
    let wanted = [delivery("a", Some(&["claude"])), delivery("c", None)];
    assert_eq!(left, wanted);
    let (_third, none) = Queue::open(&folder).unwrap();
    assert!(none.is_empty(), "taken over once");
    assert_eq!(files(&folder), 1);

    second.forget("a").unwrap();
    second.forget("c").unwrap();
    assert_eq!(files(&folder), 0);
    drop(living);
}

#[test]
fn a_message_that_waits_in_another_running_session_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let (here, _) = Queue::open(dir.path()).unwrap();
    let (mut there, _) = Queue::open(dir.path()).unwrap();
    assert!(!here.waits_elsewhere());
    there.keep(&delivery("a", None)).unwrap();
    assert!(here.waits_elsewhere());
    assert!(!there.waits_elsewhere(), "it is its own");
    there.keep(&delivery("a", Some(&["claude"]))).unwrap();
    assert!(!here.waits_elsewhere(), "it is sent");
    there.keep(&delivery("b", None)).unwrap();
    assert!(here.waits_elsewhere());
    drop(there);
    assert!(!here.waits_elsewhere(), "its session is dead");
    let (_later, left) = Queue::open(dir.path()).unwrap();
    assert_eq!(left.len(), 2, "and another one takes it over");
}

#[test]
fn a_torn_line_and_a_strange_one_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let whole = serde_json::json!({"keep": delivery("a", None)});
    let text = format!("{{\"later\": 1}}\n{whole}\n{{\"forget\": \"a");
    fs::write(dir.path().join("queue-1-0.jsonl"), text).unwrap();
    let (_queue, left) = Queue::open(dir.path()).unwrap();
    assert_eq!(left, [delivery("a", None)]);
}

#[test]
fn a_queue_is_for_the_user_alone_and_not_reached_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state");
    let (mut queue, _) = Queue::open(&folder).unwrap();
    queue.keep(&delivery("a", None)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for item in fs::read_dir(&folder).unwrap() {
        let path = item.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
    }
    let line = serde_json::json!({"keep": delivery("planted", None)});
    let planted = dir.path().join("planted");
    fs::write(&planted, format!("{line}\n")).unwrap();
    symlink(&planted, folder.join("queue-1-7.jsonl")).unwrap();
    let (_other, left) = Queue::open(&folder).unwrap();
    assert_eq!(left, []);
    assert!(planted.exists());
}

/// Nothing below `.kd` is a queue: it is in the user's state folder, one per project, branch and thread.
#[test]
fn the_queue_of_a_thread_is_outside_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let env = |name: &str| -> Option<OsString> {
        (name == "XDG_STATE_HOME").then(|| state.clone().into())
    };
    let mut folders = Vec::new();
    for project in ["x/app", "y/app"] {
        let root = dir.path().join(project);
        fs::create_dir_all(&root).unwrap();
        let thread = thread(&root, &["claude"]);
        let layout = Layout::find(&root, &env).unwrap();
        let folder = layout.queue_folder(thread.path()).unwrap();
        assert!(folder.starts_with(&state) && folder.ends_with(&thread.id().0));
        assert_eq!(layout.queue_folder(&dir.path().join("elsewhere")), None);
        let homeless = Layout::find(&root, &|_| None).unwrap();
        assert_eq!(homeless.queue_folder(thread.path()), None);
        folders.push(folder);
    }
    assert_ne!(folders[0].parent(), folders[1].parent());
}
