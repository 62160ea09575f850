//! Tests the places of files: the search for the root, branches, worktrees, thread ids.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{git, layout, seats};
use kd_core::ids::ThreadId;
use kd_store::Error;
use kd_store::layout::Layout;
use kd_store::thread::Thread;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

const NO_ENV: &dyn Fn(&str) -> Option<OsString> = &|_| None;

/// Creates a repository with one commit, on a branch.
fn repository(root: &Path, branch: &str) {
    fs::create_dir_all(root).unwrap();
    git(root, &["init", "-q", "-b", branch]);
    git(root, &["commit", "-q", "--allow-empty", "-m", "first"]);
}

fn find(start: &Path) -> Layout {
    Layout::find(start, NO_ENV).unwrap()
}

#[test]
fn the_nearest_folder_above_wins_and_none_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let error = Layout::find(&deep, NO_ENV).unwrap_err();
    assert!(matches!(error, Error::NoBase { .. }));
    assert!(error.hint().contains("kd ask"));
    fs::create_dir(dir.path().join(".kd")).unwrap();
    assert_eq!(find(&deep).root(), dir.path());
    fs::create_dir(dir.path().join("a/.kd")).unwrap();
    assert_eq!(find(&deep).root(), dir.path().join("a"));
}

#[test]
fn kd_base_comes_first_and_must_hold_a_kd() {
    let dir = tempfile::tempdir().unwrap();
    let (here, base) = (dir.path().join("here"), dir.path().join("base"));
    fs::create_dir_all(here.join(".kd")).unwrap();
    fs::create_dir_all(&base).unwrap();
    let env = |name: &str| (name == "KD_BASE").then(|| base.clone().into_os_string());
    let error = Layout::find(&here, &env).unwrap_err();
    assert!(matches!(error, Error::BadBase { .. }));
    assert!(Layout::find_or_create(&here, &env).is_err());
    fs::create_dir(base.join(".kd")).unwrap();
    assert_eq!(Layout::find(&here, &env).unwrap().root(), base);
    let empty = |name: &str| (name == "KD_BASE").then(OsString::new);
    assert_eq!(Layout::find(&here, &empty).unwrap().root(), here);
}

#[test]
fn a_new_kd_stands_at_the_top_of_the_checkout_with_its_gitignore() {
    let dir = tempfile::tempdir().unwrap();
    repository(dir.path(), "feature/kd-chat");
    let deep = dir.path().join("src/deep");
    fs::create_dir_all(&deep).unwrap();
    let opened = Layout::find_or_create(&deep, NO_ENV).unwrap();
    assert!(opened.created && !opened.layout.is_elsewhere());
    assert_eq!(opened.layout.root(), dir.path());
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dot-kd/.gitignore");
    let sample = fs::read_to_string(sample).unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join(".kd/.gitignore")).unwrap(),
        sample + "\n# Forum (not tracked)\nforum.db*\n\n# Batches (not tracked)\nbatches/\n"
    );
    let again = Layout::find_or_create(&deep, NO_ENV).unwrap();
    assert!(!again.created);
    assert_eq!(opened.layout.branch(), "feature/kd-chat");
    assert!(
        opened
            .layout
            .threads_folder()
            .ends_with(".kd/branches/feature-kd-chat/threads")
    );

    // Of a thread in use, git would commit only the messages.
    let thread = Thread::create(&opened.layout, &seats(&["a"])).unwrap();
    thread.append(&common::draft("a", "x")).unwrap();
    let stream = kd_store::StreamWriter::create(&thread, "a").unwrap();
    fs::write(thread.path().join(".kd-new/1-1.jsonl"), "left").unwrap();
    kd_store::EventLog::open(&thread).unwrap();
    fs::write(dir.path().join(".kd/forum.db-wal"), "").unwrap();
    drop(kd_sql::forum::ForumStore::open(
        &kd_sql::forum::Place::File(opened.layout.forum_file()),
        None,
    ));
    kd_store::session::update(&opened.layout, &seats(&["a"])[0], |_| {}).unwrap();
    let output = Command::new("git")
        .args(["status", "--porcelain", "-uall"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let message = format!(
        "?? .kd/branches/feature-kd-chat/threads/{}/0001-a.md",
        thread.id()
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        ["?? .kd/.gitignore", message.as_str()]
    );
    drop(stream);
}

#[test]
fn the_branch_is_gits_else_what_current_says() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir(root.join(".kd")).unwrap();
    assert_eq!(find(root).branch(), "main", "no git, no current");
    fs::create_dir_all(root.join(".kd/branches/feature-x")).unwrap();
    fs::write(root.join(".kd/current"), "feature-x\n").unwrap();
    assert_eq!(find(root).branch(), "feature-x");

    repository(root, "topic");
    assert_eq!(
        find(root).branch(),
        "feature-x",
        "git's branch has no folder yet"
    );
    fs::create_dir_all(root.join(".kd/branches/topic")).unwrap();
    assert_eq!(find(root).branch(), "topic");
    git(root, &["checkout", "-q", "--detach"]);
    assert_eq!(find(root).branch(), "feature-x", "HEAD is detached");
    fs::remove_file(root.join(".kd/current")).unwrap();
    assert_eq!(find(root).branch(), "main");
    git(root, &["checkout", "-q", "-b", "模型"]);
    assert_eq!(find(root).branch(), "main", "nothing for a file name");
    git(root, &["checkout", "-q", "-b", "new/one"]);
    assert_eq!(
        find(root).branch(),
        "new/one",
        "no folder, no current: it will be made"
    );
}

#[test]
fn the_reftable_format_is_asked_of_git() {
    let dir = tempfile::tempdir().unwrap();
    let init = Command::new("git")
        .args(["init", "-q", "-b", "tabled", "--ref-format=reftable"])
        .arg(dir.path())
        .output()
        .unwrap();
    if !init.status.success() {
        println!("skipped: this git knows no reftable");
        return;
    }
    fs::create_dir(dir.path().join(".kd")).unwrap();
    assert_eq!(find(dir.path()).branch(), "tabled");
    git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(dir.path(), &["checkout", "-q", "--detach"]);
    assert_eq!(find(dir.path()).branch(), "main");
}

#[test]
fn worktrees_find_their_sisters_kd_and_the_owners_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (owner, linked) = (base.join("owner"), base.join("linked"));
    repository(&owner, "main");
    git(
        &owner,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "side/line",
            linked.to_str().unwrap(),
        ],
    );
    fs::create_dir_all(owner.join(".kd/branches/side-line")).unwrap();
    fs::write(owner.join(".kd/config.json"), "{}").unwrap();

    let from_linked = find(&linked);
    assert_eq!(from_linked.root(), owner);
    assert_eq!(from_linked.branch(), "side/line");

    // A worktree with its own `.kd` stores its threads there, but uses the owner's configuration.
    fs::create_dir(linked.join(".kd")).unwrap();
    let own = find(&linked);
    assert_eq!(own.root(), linked);
    assert_eq!(own.config_file(), owner.join(".kd/config.json"));
    let env = |name: &str| (name == "KD_BASE").then(|| linked.clone().into_os_string());
    let fixed = Layout::find(&linked, &env).unwrap();
    assert_eq!(fixed.config_file(), linked.join(".kd/config.json"));

    // The owner in turn finds that of a linked worktree.
    fs::remove_dir_all(owner.join(".kd")).unwrap();
    assert_eq!(find(&owner).root(), linked);
}

#[test]
fn ids_resolve_exactly_then_by_the_beginning_here_then_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let here = layout(dir.path());
    let there = here.with_branch("other/branch").unwrap();
    let archived = here.kd().join("archive/old/threads/council-eeee");
    for path in [
        here.threads_folder().join("council-aa11"),
        here.threads_folder().join("council-aa22"),
        here.threads_folder().join("council-aa"),
        there.threads_folder().join("council-bbbb"),
        archived.clone(),
    ] {
        fs::create_dir_all(path).unwrap();
    }
    let id = |wanted: &str| here.resolve(wanted).map(|place| place.id.0);
    assert_eq!(id("council-aa").unwrap(), "council-aa");
    assert_eq!(id("council-aa1").unwrap(), "council-aa11");
    assert_eq!(id("council-b").unwrap(), "council-bbbb");
    assert_eq!(here.resolve("council-e").unwrap().path, archived);
    assert!(here.resolve("council-e").unwrap().archived);

    let error = id("council-a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`council-a` could be council-aa, council-aa11, council-aa22"
    );
    for wanted in ["", "nothing", "../threads/council-aa", "/"] {
        let error = id(wanted).unwrap_err();
        assert!(
            matches!(&error, Error::NoThread { .. }),
            "{wanted:?}: {error}"
        );
        assert!(error.hint().contains("council-aa22"), "{}", error.hint());
    }
    assert_eq!(here.threads().unwrap().len(), 3);
    assert_eq!(here.all_threads(false).unwrap().len(), 4);
    assert_eq!(
        here.all_threads(true).unwrap().last().unwrap().branch,
        "old"
    );
}

#[test]
fn a_name_that_would_be_more_than_a_word_in_a_command_is_no_thread() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let given = [
        "council-a94d",
        "chat_1.old",
        "Chat 2",
        "模型-1",
        "a@b,c:d=e%f+g",
    ];
    let odd = [
        "council-1; reboot",
        "council-$(id)",
        "council-`id`",
        "--yes",
        "a&b",
        "a|b",
        "a>b",
        "a'b",
        "a\"b",
        "a\\b",
        "a*",
        "a\nb",
        "a\tb",
        "a\u{1b}[2J",
        "a\u{202e}b",
    ];
    for name in given.iter().chain(&odd) {
        fs::create_dir_all(layout.threads_folder().join(name)).unwrap();
        fs::create_dir_all(
            layout
                .kd()
                .join("branches")
                .join(name)
                .join("threads/council-b"),
        )
        .unwrap();
    }
    let listed = |places: Vec<kd_store::Place>, what: fn(&kd_store::Place) -> String| {
        let mut names: Vec<String> = places.iter().map(what).collect();
        names.sort();
        names.dedup();
        names
    };
    let mut expected = given.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(
        listed(layout.threads().unwrap(), |p| p.id.0.clone()),
        expected
    );
    let branches = listed(layout.all_threads(false).unwrap(), |p| p.branch.clone());
    expected.push(
        branches
            .iter()
            .find(|b| !expected.contains(b))
            .unwrap()
            .clone(),
    );
    expected.sort();
    assert_eq!(branches, expected);
    for name in odd {
        assert!(layout.resolve(name).is_err(), "{name}");
    }
}

#[test]
fn the_current_thread_is_kept_with_the_keys_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    assert_eq!(layout.current_thread().unwrap(), None);
    fs::create_dir_all(layout.threads_folder().join("council-1234")).unwrap();
    fs::write(
        layout.state_file(),
        "{\"branch\": \"Main\", \"worktrees\": {\"x\": 1}, \"current_thread\": \"council-gone\"}",
    )
    .unwrap();
    assert_eq!(layout.current_thread().unwrap(), None, "it is gone");
    let id = ThreadId("council-1234".into());
    layout.set_current_thread(&id).unwrap();
    assert_eq!(layout.current_thread().unwrap().unwrap().id, id);
    assert_eq!(
        fs::read_to_string(layout.state_file()).unwrap(),
        "{\n  \"branch\": \"Main\",\n  \"current_thread\": \"council-1234\",\n  \"worktrees\": {\n    \"x\": 1\n  }\n}\n"
    );
}

#[test]
fn many_threads_opened_at_once_have_ids_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..40 {
                    Thread::create(&layout, &[]).unwrap();
                }
            });
        }
    });
    assert_eq!(layout.threads().unwrap().len(), 320);
    assert!(layout.current_thread().unwrap().is_some());
}

#[test]
fn threads_of_the_other_program_are_all_read() {
    let dot_kd = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dot-kd");
    let dir = tempfile::tempdir().unwrap();
    copy(&dot_kd, &dir.path().join(".kd"));
    let layout = find(dir.path()).with_branch("feature/kd-chat").unwrap();
    let counts: Vec<_> = layout
        .threads()
        .unwrap()
        .iter()
        .map(|place| {
            let all = Thread::open(place).unwrap().messages().unwrap();
            (place.id.0.clone(), all.messages.len(), all.problems.len())
        })
        .collect();
    let expected = [
        ("council-3970", 22, 0),
        ("council-63d9", 2, 0),
        ("council-822c", 4, 0),
        ("council-a94d", 7, 0),
        ("council-c9f3", 7, 0),
        ("council-hand", 6, 4),
    ]
    .map(|(id, messages, problems)| (id.to_owned(), messages, problems));
    assert_eq!(counts, expected);
    let hand = Thread::open(&layout.resolve("council-hand").unwrap()).unwrap();
    assert_eq!(hand.tail(1).unwrap().messages[0].seq, 10_000);
    assert_eq!(
        hand.append(&common::draft("king", "x")).unwrap().seq,
        10_001
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let target = to.join(item.file_name());
        if item.path().is_dir() {
            copy(&item.path(), &target);
        } else {
            fs::copy(item.path(), target).unwrap();
        }
    }
}

#[test]
fn a_torn_state_loses_nothing_and_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let thread = Thread::create(&layout, &seats(&["claude"])).unwrap();
    fs::write(layout.state_file(), "{\"current_thread\": \"counc").unwrap();
    assert_eq!(
        layout.current_thread().unwrap(),
        None,
        "no thread is current"
    );
    assert_eq!(layout.threads().unwrap().len(), 1, "all are there");
    layout.set_current_thread(thread.id()).unwrap();
    assert_eq!(layout.current_thread().unwrap().unwrap().id, *thread.id());
    let torn = layout.branch_folder().join("state.torn.json");
    assert_eq!(
        fs::read_to_string(torn).unwrap(),
        "{\"current_thread\": \"counc"
    );
}
