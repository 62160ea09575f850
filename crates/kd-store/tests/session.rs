//! Sessions: kingdom-cli's bytes, unknown keys, and no lost update.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{layout, seats};
use kd_store::session::{self, read, update};
use std::fs;

#[test]
fn a_session_is_written_as_the_other_program_writes_it() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let claude = &seats(&["claude"])[0];
    update(&layout, claude, |state| {
        state.resume_id = Some("abc".into())
    })
    .unwrap();
    let path = layout.branch_folder().join("sessions/claude.json");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\n  \"hand_mode\": false,\n  \"name\": \"claude\",\n  \"resume_id\": \"abc\",\n  \"review_bounce_count\": 0,\n  \"status\": \"idle\"\n}\n"
    );
    assert!(path.with_file_name(".claude.json.lock").exists());
}

#[test]
fn unknown_keys_and_nulls_are_handled_as_they_should() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let seat = &seats(&["a"])[0];
    update(&layout, seat, |_| {}).unwrap();
    let path = layout.session_file(seat);
    fs::write(
        &path,
        "{\"name\": \"a\", \"pid\": null, \"future\": {\"x\": [1]}, \"status\": \"working\"}",
    )
    .unwrap();
    let state = update(&layout, seat, |state| {
        state.pid = Some(42);
        state.started_at = Some("2026-11-21T07:57:55Z".into());
    })
    .unwrap();
    assert_eq!(read(&layout, seat).unwrap(), state);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("\"future\": {\n    \"x\": [\n      1\n    ]\n  }"),
        "{text}"
    );
    assert!(
        text.contains("\"pid\": 42") && text.contains("\"status\": \"working\""),
        "{text}"
    );
}

#[test]
fn no_update_is_lost_between_threads() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let seat = &seats(&["a"])[0];
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    update(&layout, seat, |state| state.review_bounce_count += 1).unwrap();
                }
            });
        }
    });
    assert_eq!(read(&layout, seat).unwrap().review_bounce_count, 200);
}

#[test]
fn a_broken_session_says_where_it_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let layout = layout(dir.path());
    let seat = &seats(&["a"])[0];
    update(&layout, seat, |_| {}).unwrap();
    fs::write(layout.session_file(seat), "{").unwrap();
    let error = read(&layout, seat).unwrap_err();
    assert!(error.to_string().contains("sessions/a.json"), "{error}");
    assert!(error.hint().contains("repair"), "{}", error.hint());
}

#[test]
fn processes_are_written_down_beside_what_others_keep() {
    let dir = tempfile::tempdir().unwrap();
    let layout = common::layout(dir.path());
    let seat = &common::seats(&["claude"])[0];
    let one = session::Process {
        pid: 7,
        run: "1.2".into(),
    };
    let two = session::Process {
        pid: 8,
        ..one.clone()
    };
    session::update(&layout, seat, |state| {
        state.resume_id = Some("abc".into());
        state.set_processes(&[one.clone(), two.clone()]);
    })
    .unwrap();
    let read = session::read(&layout, seat).unwrap();
    assert_eq!((read.pid, read.status.as_str()), (Some(8), "working"));
    assert_eq!(read.processes(), [one, two]);
    session::update(&layout, seat, |state| state.set_processes(&[])).unwrap();
    let read = session::read(&layout, seat).unwrap();
    assert_eq!((read.pid, read.status.as_str()), (None, "idle"));
    assert_eq!(read.resume_id.as_deref(), Some("abc"));
    assert!(read.extra.is_empty(), "{:?}", read.extra);
    assert_eq!(
        session::kept(&layout.sessions_folder()).unwrap(),
        seats(&["claude"])
    );
}
