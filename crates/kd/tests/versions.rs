//! Files of newer versions, through the real program with scripted members: refused with advice, and left unchanged.

use crate::support;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{Home, Said};

fn script(text: &str) -> Value {
    let run = json!([{"text": text}, {"finish": {}}]);
    json!({"runs": [run, run, run, run]})
}

fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).expect("read");
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replacen(from, to, 1)).expect("written");
}

/// Asserts that a command refused a version and says what to do.
fn is_refused(said: &Said, newer: &str) {
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.err.contains(newer), "{}", said.err);
    assert!(said.err.contains("\nhelp: update kd"), "{}", said.err);
}

#[test]
fn a_thread_of_a_newer_version_is_left_out_of_lists_and_never_changed() {
    let home = Home::scripted(&[("ann", script("Ann says so."))]);
    assert_eq!(home.run(&["ask", "-q", "First?"]).code, Some(0));
    assert_eq!(home.run(&["ask", "-q", "Second?"]).code, Some(0));
    let current = fs::read_to_string(home.work().join(".kd/branches/main/state.json"));
    let current = current.expect("the state");
    let id = |thread: &Path| thread.file_name().unwrap().to_string_lossy().into_owned();
    let threads = home.threads();
    let (newer, other): (Vec<_>, Vec<_>) = threads.iter().partition(|t| current.contains(&id(t)));
    let (newer, other) = (newer[0], other[0]);
    let file = newer.join("thread.json");
    change(&file, "{", "{\"kd_version\": 2,");
    let before = fs::read(&file).expect("read");
    let name = id(newer);
    let said = "thread.json has version 2 of a thread; this kd reads versions up to 1";
    for args in [
        ["show", &name].as_slice(),
        &["ask", "-qc", "Third?"],
        &["export", &name],
        &["seal", &name],
        &["fork", &name],
        &["replay", &name],
    ] {
        is_refused(&home.run(args), said);
    }
    let json = home.run(&["council", "status", "--json", &name]).json();
    assert_eq!(json["error"]["kind"], "too_new", "{json}");
    let list = home.run(&["council", "list", "--json"]);
    assert_eq!(list.json().as_array().map(Vec::len), Some(1));
    assert_eq!(list.json()[0]["id"], id(other));
    assert!(list.err.contains(said), "{}", list.err);
    // However many there are, the note is one line.
    let file_of_other = other.join("thread.json");
    let text = fs::read_to_string(&file_of_other).expect("read");
    change(&file_of_other, "{", "{\"kd_version\": 3,");
    let list = home.run(&["council", "list"]);
    assert_eq!(list.err.matches("note:").count(), 1, "{}", list.err);
    let note = "note: left out 2 threads, such as: ";
    assert!(list.err.contains(note), "{}", list.err);
    fs::write(&file_of_other, text).expect("written");
    let mended = home.run(&["fsck", "--repair"]);
    assert!(
        mended.out.contains("version 2 of a thread"),
        "{}",
        mended.out
    );
    assert_eq!(fs::read(&file).expect("read"), before);
    assert_eq!(fs::read_dir(newer).expect("read").count(), {
        let names = fs::read_dir(other).expect("read");
        names.count()
    });
}

#[test]
fn rules_of_a_newer_version_decide_nothing_again() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/council-2e98");
    let home = Home::new(&json!({}));
    let thread = home.work().join(".kd/branches/main/threads/council-2e98");
    fs::create_dir_all(&thread).expect("made");
    for file in fs::read_dir(recorded).expect("read") {
        let file = file.expect("an entry");
        fs::copy(file.path(), thread.join(file.file_name())).expect("copied");
    }
    let log = thread.join(".kd-events.jsonl");
    let whole = fs::read_to_string(&log).expect("read");
    let rules = [
        ("reading", 2, &kd_core::formats::READING),
        ("writing", 1, &kd_core::formats::WRITING),
        ("v", 1, &kd_core::formats::EVENTS),
    ];
    for (field, recorded, format) in rules {
        fs::write(&log, &whole).expect("written");
        let newer = format.version + 1;
        let with = |version| format!("\"{field}\":{version}");
        change(&log, &with(recorded), &with(newer));
        for command in ["replay", "why"] {
            let refused = format!("version {newer} of {}", format.what);
            is_refused(&home.run(&[command, "2e98"]), &refused);
        }
        // The messages are shown all the same.
        assert_eq!(home.run(&["show", "2e98"]).code, Some(0));
    }
}

#[test]
fn memory_and_marks_of_a_newer_version_are_refused() {
    let home = Home::new(&json!({}));
    let kd = home.work().join(".kd");
    fs::create_dir_all(&kd).expect("made");
    fs::write(kd.join("memory.json"), "{\"version\": 2}").expect("written");
    is_refused(
        &home.run(&["memory", "show"]),
        "memory.json has version 2 of the memory of a project",
    );
    let marks = home.work().join("marks.jsonl");
    fs::write(&marks, "{\"v\": 2, \"later\": true}\n").expect("written");
    let said = home.run(&["marks", "import", "marks.jsonl"]);
    assert!(
        said.err.contains("line 1 has version 2 of a mark"),
        "{}",
        said.err
    );
    assert!(said.err.contains("help: update kd"), "{}", said.err);
}
