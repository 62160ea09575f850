//! The event log: what is left out, incomplete lines, and records of other versions.
#![allow(
    clippy::unwrap_used,
    reason = "a helper of a test may fail and speak as a test may"
)]

use crate::common;

use common::{draft, thread};
use kd_core::event::Purpose;
use kd_core::{Delta, Event, Record, SeatName, ThreadId, TurnId};
use kd_store::log::{self, EventLog};
use kd_store::thread::Thread;
use std::fs::{self, OpenOptions};
use std::io::Write;

fn records(thread: &Thread, texts: &[&str]) -> Vec<Record> {
    texts
        .iter()
        .enumerate()
        .map(|(i, text)| Record {
            v: 1,
            seq: i as u64 + 1,
            ts: "2026-11-21T07:57:55Z".parse().unwrap(),
            thread: thread.id().clone(),
            event: Event::Noticed {
                text: (*text).to_owned(),
            },
        })
        .collect()
}

#[test]
fn records_come_back_and_deltas_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    assert_eq!(log::read(&thread).unwrap(), log::Logged::default());
    let mut all = records(&thread, &["one\ntwo", "three"]);
    let delta = Event::TurnDelta {
        turn: TurnId::new(1),
        delta: Delta::Text { text: "x".into() },
    };
    let message = thread.append(&draft("a", "x")).unwrap();
    all[1].event = Event::MessageAdded {
        message,
        turn: Some(TurnId::new(1)),
        found: false,
    };
    let mut log = EventLog::open(&thread).unwrap();
    log.append(&all).unwrap();
    log.append(&[Record {
        event: delta,
        ..all[0].clone()
    }])
    .unwrap();
    let logged = log::read(&thread).unwrap();
    assert_eq!((logged.records, logged.skipped), (all, 0));
}

#[test]
fn records_belong_to_the_thread_whose_folder_holds_them() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    let foreign = Record {
        thread: ThreadId("council-of-another".into()),
        ..records(&thread, &["copied"]).remove(0)
    };
    EventLog::open(&thread).unwrap().append(&[foreign]).unwrap();
    let logged = log::read(&thread).unwrap();
    assert_eq!(logged.records, records(&thread, &["copied"]));
}

#[test]
fn a_torn_line_is_passed_over_and_the_next_record_stands_on_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    let all = records(&thread, &["one", "two"]);
    EventLog::open(&thread).unwrap().append(&all[..1]).unwrap();
    let path = thread.path().join(".kd-events.jsonl");
    let whole = fs::read(&path).unwrap();
    for cut in 1..whole.len() - 1 {
        fs::write(&path, &whole).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&whole[..cut]).unwrap();
        assert_eq!(log::read(&thread).unwrap().records, all[..1], "{cut}");
        EventLog::open(&thread).unwrap().append(&all[1..]).unwrap();
        let logged = log::read(&thread).unwrap();
        assert_eq!(
            (logged.records.as_slice(), logged.skipped),
            (&all[..], 1),
            "{cut}"
        );
    }
}

#[test]
fn unknown_events_are_counted_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    let path = thread.path().join(".kd-events.jsonl");
    fs::write(&path, "{\"v\":1,\"event\":\"dreamt\"}\n").unwrap();
    EventLog::open(&thread)
        .unwrap()
        .append(&records(&thread, &["x"]))
        .unwrap();
    let logged = log::read(&thread).unwrap();
    assert_eq!((logged.records.len(), logged.skipped), (1, 1));
    assert!(
        fs::read_to_string(&path)
            .unwrap()
            .starts_with("{\"v\":1,\"event\":\"dreamt\"}")
    );
}

#[test]
fn what_stands_in_place_of_the_log_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ada"]);
    let path = thread.path().join(".kd-events.jsonl");
    assert_eq!(log::fault(&thread), None);
    EventLog::open(&thread).unwrap();
    assert_eq!(log::fault(&thread), None);
    let second = dir.path().join("second");
    std::fs::hard_link(&path, &second).unwrap();
    assert!(log::fault(&thread).unwrap().contains("not logged"));
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&second, &path).unwrap();
    let told = log::fault(&thread).unwrap();
    assert!(
        told.contains("link") && told.contains(".kd-events.jsonl"),
        "{told}"
    );
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(log::fault(&thread).is_some());
}

#[test]
fn turns_are_read_back_to_the_question_of_their_round() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    let long = "long words ".repeat(20_000);
    let mut all = Vec::new();
    let mut push = |event| {
        let base = records(&thread, &["x"]).remove(0);
        all.push(Record { event, ..base });
    };
    for round in 0..4 {
        let turn = TurnId::new(round + 1);
        let added = |from: &str, body: &str| Event::MessageAdded {
            message: thread.append(&draft(from, body)).unwrap(),
            turn: (from != "king").then_some(turn),
            found: false,
        };
        push(added("king", "Why?"));
        push(Event::TurnQueued {
            turn,
            seat: SeatName::new("a").unwrap(),
            purpose: Purpose::Answer,
            replaces: None,
            ahead: Vec::new(),
        });
        push(added("a", &long));
        push(Event::TurnFinished {
            turn,
            seat: SeatName::new("a").unwrap(),
            message: Some(2 * round + 2),
            usage: None,
            tools: 0,
            thought: 0,
        });
    }
    EventLog::open(&thread).unwrap().append(&all).unwrap();
    let turns = |from| -> Vec<u32> {
        let records = log::turns_since(&thread, from).unwrap();
        let mut begun = Vec::new();
        let whole = records.iter().filter_map(|record| match record.event {
            Event::TurnQueued { turn, .. } => {
                begun.push(turn);
                None
            }
            Event::TurnFinished { turn, message, .. } => message.filter(|_| begun.contains(&turn)),
            _ => None,
        });
        whole.collect()
    };
    // The answer alone is longer than what is read first.
    assert!(turns(8).ends_with(&[8]));
    assert!(turns(4).ends_with(&[4, 6, 8]));
    assert_eq!(turns(0), [2, 4, 6, 8]);
}

#[test]
fn a_log_that_git_tracks_is_not_the_users_own() {
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a"]);
    assert!(log::is_own(&thread), "there is none");
    let mut own = EventLog::open(&thread).unwrap();
    own.append(&records(&thread, &["one"])).unwrap();
    assert!(log::is_own(&thread));
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        let done = git.args(args).current_dir(dir.path()).output().unwrap();
        assert!(done.status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    assert!(log::is_own(&thread));
    git(&["add", "-f", thread.path().to_str().unwrap()]);
    assert!(!log::is_own(&thread));
}
