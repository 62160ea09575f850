//! The file of marks with other writers, and with rows that cannot be read.

use kd_core::Timestamp;
use kd_core::formats::MARK;
use kd_eval::marks::{By, Mark};
use kd_sql::marks::{Marks, count, path, read_readable};
use kd_store::user_dirs::UserDirs;
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn dirs(home: &Path) -> UserDirs {
    UserDirs::from_env(&|name: &str| (name == "HOME").then(|| home.as_os_str().to_owned()))
}

fn mark(thread: &str, message: u32, credit: f64) -> Mark {
    Mark {
        v: MARK.version,
        project: "p-1".into(),
        thread: thread.into(),
        message,
        at: Timestamp::UNIX_EPOCH,
        by: By::User,
        kind: "number".into(),
        protocol: "council".into(),
        members: Vec::new(),
        unasked: Vec::new(),
        stopping: None,
        winner: Some("391".into()),
        credit,
        answer: None,
        calls: 3,
        usd: 0.0,
    }
}

#[test]
fn writers_wait_for_each_other() {
    type Write = fn(&mut Marks);
    let writers: [(&str, Write); 4] = [
        ("add", |marks| {
            marks.add(&mark("council-1", 5, 1.0)).unwrap();
        }),
        ("forget", |marks| {
            let gone = marks.forget("p-1", "council-1", None, false).unwrap();
            assert_eq!(gone, 1);
        }),
        ("import", |marks| {
            marks.import(&[mark("council-1", 5, 1.0)]).unwrap();
        }),
        ("forget all", |marks| {
            assert_eq!(marks.forget_all().unwrap(), 1);
        }),
    ];
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    let mut here = Marks::open(&dirs).unwrap();
    let file = path(&dirs).unwrap();
    for (name, write) in writers {
        let there = Connection::open(&file).unwrap();
        let (held, holds) = mpsc::channel();
        let other = thread::spawn(move || {
            there.execute_batch("BEGIN IMMEDIATE").unwrap();
            held.send(()).unwrap();
            thread::sleep(Duration::from_millis(300));
            let text = "INSERT INTO marks (project, thread, message, current, mark) VALUES ('p-2', ?1, 1, 0, '')";
            there.execute(text, params![name]).unwrap();
            there.execute_batch("COMMIT").unwrap();
        });
        holds.recv().unwrap();
        write(&mut here);
        other.join().expect(name);
    }
}

#[test]
fn marks_that_cannot_be_read_are_counted_named_replaced_and_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    assert_eq!(count(&dirs).unwrap(), 0);
    let mut marks = Marks::open(&dirs).unwrap();
    for message in 1..=3 {
        marks.add(&mark("council-1", message, 1.0)).unwrap();
    }
    let db = Connection::open(path(&dirs).unwrap()).unwrap();
    let spoil = "UPDATE marks SET mark = CASE message WHEN 1 THEN 'no JSON' ELSE x'ff00' END WHERE message < 3";
    assert_eq!(db.execute(spoil, []).unwrap(), 2);
    assert!(marks.all().is_err());
    let found = read_readable(&dirs).unwrap();
    assert_eq!(found.marks, [mark("council-1", 3, 1.0)]);
    let rows: Vec<i64> = found.unreadable.iter().map(|(row, _)| *row).collect();
    assert_eq!(rows, [1, 2], "{:?}", found.unreadable);
    assert_eq!(count(&dirs).unwrap(), 3);
    // Others are added and forgotten all the same.
    marks.add(&mark("council-2", 7, 1.0)).unwrap();
    let gone = marks.forget("p-1", "council-2", None, false).unwrap();
    assert_eq!(gone, 1);
    // A verdict whose mark cannot be read is marked again.
    for message in 1..=2 {
        let old = marks.add(&mark("council-1", message, 0.0)).unwrap();
        assert_eq!(old, None, "it cannot be read");
    }
    assert_eq!(marks.all().unwrap().len(), 3);
    assert_eq!(db.execute(spoil, []).unwrap(), 4);
    assert_eq!(marks.forget_all().unwrap(), 3);
    assert_eq!(count(&dirs).unwrap(), 0);
}
