use super::*;
use kd_core::Timestamp;
use kd_eval::marks::By;
use std::os::unix::fs::symlink;
use std::sync::mpsc;
use std::thread;

/// A time after all marks.
const NOW: Timestamp = Timestamp::MAX;

fn dirs(home: &Path) -> UserDirs {
    UserDirs::from_env(&|name: &str| (name == "HOME").then(|| home.as_os_str().to_owned()))
}

pub(super) fn mark(thread: &str, message: u32, credit: f64) -> Mark {
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
        winner: Some("MARKER-391".into()),
        credit,
        answer: None,
        calls: 3,
        usd: 0.0,
    }
}

#[test]
fn an_imported_mark_replaces_only_an_older_one() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let at = |message: u32, second: i64, credit: f64| Mark {
        at: Timestamp::from_second(second).unwrap(),
        ..mark("council-1", message, credit)
    };
    marks.add(&at(1, 50, 1.0)).unwrap();
    marks.add(&at(2, 50, 1.0)).unwrap();
    let file = [
        at(1, 40, 0.0),
        at(2, 60, 0.0),
        // The newest of a file counts, in any order.
        at(3, 20, 0.0),
        at(3, 10, 1.0),
    ];
    let counts = |added, replaced, kept| Imported {
        added,
        replaced,
        kept,
    };
    assert_eq!(marks.import(&file).unwrap(), counts(1, 1, 2));
    let all = marks.all().unwrap();
    let credits: Vec<(u32, f64)> = all.iter().map(|m| (m.message, m.credit)).collect();
    assert_eq!(credits, [(1, 1.0), (2, 0.0), (3, 0.0)]);
    assert_eq!(marks.sums().unwrap(), Sums::of(&all));
    // A second time nothing is new.
    assert_eq!(marks.import(&file).unwrap(), counts(0, 0, 4));
}

#[test]
fn the_newest_mark_of_a_verdict_counts() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    assert_eq!(read(&dirs).unwrap(), []);
    assert!(!path(&dirs).unwrap().exists(), "reading makes no file");
    let mut marks = Marks::open(&dirs).unwrap();
    assert_eq!(marks.add(&mark("council-1", 5, 1.0)).unwrap(), None);
    assert_eq!(marks.add(&mark("council-2", 5, 1.0)).unwrap(), None);
    let old = marks
        .add(&mark("council-1", 5, 0.0))
        .unwrap()
        .expect("corrected");
    assert_eq!(old.credit, 1.0);
    let mut elsewhere = mark("council-1", 5, 0.5);
    elsewhere.project = "p-2".into();
    marks.add(&elsewhere).unwrap();
    let credits: Vec<f64> = read(&dirs).unwrap().iter().map(|m| m.credit).collect();
    assert_eq!(credits, [1.0, 0.0, 0.5]);
    let mode = std::fs::metadata(marks.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // If others can read a file, their access is removed before it is used.
    let path = marks.path().to_owned();
    let set = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    set(0o644);
    assert_eq!(read(&dirs).unwrap().len(), 3);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // What others can write may say what they want.
    for mode in [0o620, 0o602] {
        set(mode);
        let refused = [read(&dirs).map(drop), Marks::open(&dirs).map(drop)];
        for refused in refused {
            let refused = refused.expect_err("others can write it").to_string();
            assert!(refused.ends_with("others can write it"), "{refused}");
        }
    }
}

/// A mark of a council with one member each, right or wrong.
fn council_mark(at: i64, kind: &str, model: &str, right: bool) -> Mark {
    Mark {
        at: Timestamp::from_second(at).unwrap(),
        kind: kind.into(),
        members: vec![kd_eval::marks::Member {
            name: "ann".into(),
            model: model.into(),
            key: Some("391".into()),
            backs: true,
            confidence: None,
        }],
        ..mark(&format!("council-{at}"), 5, f64::from(u8::from(right)))
    }
}

#[test]
fn what_a_decision_reads_is_what_all_marks_say() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let agree = |marks: &Marks, what: &str| {
        let all = marks.all().unwrap();
        let evidence = marks.of_kind("number", NOW).unwrap();
        assert_eq!(evidence.sums, Sums::of(&all), "{what}");
        let here: Vec<&Mark> = all.iter().filter(|mark| mark.kind == "number").collect();
        let recent: Vec<&Mark> = evidence.recent.iter().collect();
        assert_eq!(recent, here, "{what}");
    };
    for at in 0..30 {
        let kind = if at % 3 == 0 { "choice" } else { "number" };
        let model = format!("m-{}", at % 2);
        marks
            .add(&council_mark(at, kind, &model, at % 5 > 0))
            .unwrap();
    }
    agree(&marks, "marked");
    let found = marks
        .like(&council_mark(99, "number", "m-1", true), NOW)
        .unwrap();
    assert_eq!(found.recent.len(), 10);
    let own = marks
        .like(&council_mark(4, "choice", "m-1", true), NOW)
        .unwrap();
    assert!(
        own.recent.iter().any(|mark| mark.thread == "council-4"),
        "its own mark"
    );
    let state = marks.state().unwrap();
    // Corrected at its time, so the order stays.
    marks.add(&council_mark(4, "choice", "m-9", false)).unwrap();
    let sums = marks.of_kind("number", NOW).unwrap().sums;
    assert_eq!(sums, Sums::of(&marks.all().unwrap()), "corrected");
    assert_ne!(marks.state().unwrap(), state);
    marks.forget("p-1", "council-4", None, false).unwrap();
    agree(&marks, "forgotten");
    marks.forget_all().unwrap();
    agree(&marks, "all forgotten");
}

#[test]
fn the_newest_marks_are_read_and_no_more() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let many = RECENT as i64 + 5;
    // The oldest are added last, as by an import.
    let imported = |at| Mark {
        by: By::Import,
        ..council_mark(at, "number", "m", true)
    };
    let all: Vec<Mark> = (0..many).rev().map(imported).collect();
    marks.add_all(&all).unwrap();
    let found = marks
        .like(&council_mark(-1, "number", "m", true), NOW)
        .unwrap();
    let times: Vec<i64> = found
        .recent
        .iter()
        .map(|mark| mark.at.as_second())
        .collect();
    assert!(times.iter().copied().eq(5..many), "{times:?}");
    let sums: Vec<_> = found.sums.iter().collect();
    assert_eq!(sums[0].2.questions, RECENT as u64 + 5);
}

/// Only a part of many marks is read: it must be the newest part, in the order in which they were made.
#[test]
fn the_newest_of_many_marks_are_read_whatever_the_clock_said() {
    let (ahead, behind) = (4_000_000_000, -100);
    for wrong in [ahead, behind] {
        let home = tempfile::tempdir().unwrap();
        let mut marks = Marks::open(&dirs(home.path())).unwrap();
        let many = RECENT as i64 + 1;
        let first = if wrong == ahead { wrong } else { 1 };
        let then = if wrong == ahead { 1 } else { wrong };
        let old: Vec<Mark> = (0..many)
            .map(|n| council_mark(first + n, "number", "m", true))
            .collect();
        marks.add_all(&old).unwrap();
        let new: Vec<Mark> = (0..60)
            .map(|n| Mark {
                thread: format!("council-new{n}"),
                ..council_mark(then, "number", "m", false)
            })
            .collect();
        marks.add_all(&new).unwrap();
        let verdict = council_mark(99, "number", "m", true);
        for found in [
            marks.of_kind("number", NOW).unwrap(),
            marks.like(&verdict, NOW).unwrap(),
        ] {
            let newest = found.recent.iter().rev().take(60);
            assert!(
                newest
                    .rev()
                    .map(|m| &m.thread)
                    .eq(new.iter().map(|m| &m.thread))
            );
        }
    }
}

#[test]
fn a_mark_made_while_the_clock_was_ahead_is_not_the_newest() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let now = Timestamp::from_second(100).unwrap();
    for at in [1, 2, 4_000_000_000, 3, 4] {
        let mark = council_mark(at, "number", "m", true);
        marks.add(&mark).unwrap();
    }
    let order = [
        "council-1",
        "council-2",
        "council-4000000000",
        "council-3",
        "council-4",
    ];
    let verdict = council_mark(99, "number", "m", true);
    for evidence in [
        marks.of_kind("number", now).unwrap(),
        marks.like(&verdict, now).unwrap(),
        // That time has come.
        marks.like(&verdict, NOW).unwrap(),
    ] {
        let found: Vec<&str> = evidence.recent.iter().map(|m| m.thread.as_str()).collect();
        assert_eq!(found, order);
        assert!(evidence.recent.iter().all(|mark| mark.at <= now));
    }
    // What the user sees and exports is the time that was noted.
    let all = marks.all().unwrap();
    assert_eq!(all[2].at.as_second(), 4_000_000_000);
}

/// The table has the texts of all marks: 1,000 of its rows are spread over as many pages.
#[test]
fn a_decision_reads_marks_from_an_index_alone() {
    let home = tempfile::tempdir().unwrap();
    let marks = Marks::open(&dirs(home.path())).unwrap();
    for column in ["kind", "council"] {
        let query = format!("EXPLAIN QUERY PLAN {}", newest_of(column));
        let plan = marks
            .db
            .query_row(&query, ["number"], |row| row.get::<_, String>(3))
            .unwrap();
        assert!(plan.contains("USING COVERING INDEX"), "{column}: {plan}");
    }
}

#[test]
fn a_decision_waits_for_no_writer() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    let mut marks = Marks::open(&dirs).unwrap();
    let mark = council_mark(1, "number", "m", true);
    marks.add(&mark).unwrap();
    marks.db.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(of_kind(&dirs, "number", NOW).unwrap().recent, [mark]);
}

#[test]
fn a_file_of_version_1_becomes_one_of_this_version() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    drop(Marks::open(&dirs).unwrap());
    let file = path(&dirs).unwrap();
    std::fs::remove_file(&file).unwrap();
    let db = Connection::open(&file).unwrap();
    db.execute_batch(SCHEMA).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    for at in 0..20 {
        let mark = council_mark(at, "number", "m", at > 2);
        db.execute(
            "INSERT INTO marks (project, thread, message, current, mark) VALUES ('p-1', ?1, 5, 1, ?2)",
            params![mark.thread, serde_json::to_string(&mark).unwrap()],
        )
        .unwrap();
    }
    drop(db);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let marks = Marks::open(&dirs).unwrap();
    let found = marks
        .like(&council_mark(99, "number", "m", true), NOW)
        .unwrap();
    assert_eq!(
        found,
        Evidence::of(marks.all().unwrap()).with(Published::all())
    );
    assert_eq!(found.recent.len(), 20);
    // A mark whose short form is missing or broken is read from its text.
    let db = Connection::open(&file).unwrap();
    let broken =
        "UPDATE marks SET brief = CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN x'0102' ELSE brief END";
    assert_eq!(db.execute(broken, []).unwrap(), 20);
    let again = marks
        .like(&council_mark(99, "number", "m", true), NOW)
        .unwrap();
    assert_eq!(again, found);
}

#[test]
fn nothing_of_a_forgotten_mark_is_left_in_the_file() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    let mut marks = Marks::open(&dirs).unwrap();
    for message in [3, 5] {
        marks.add(&mark("council-1", message, 1.0)).unwrap();
        marks.add(&mark("council-1", message, 0.0)).unwrap();
    }
    let mut other = mark("council-2", 5, 1.0);
    other.winner = None;
    marks.add(&other).unwrap();
    assert_eq!(marks.forget("p-1", "council-1", None, true).unwrap(), 2);
    assert_eq!(marks.all().unwrap().len(), 3);
    assert_eq!(
        marks.forget("p-1", "council-1", Some(&[5]), false).unwrap(),
        1
    );
    assert_eq!(marks.forget("p-2", "council-1", None, false).unwrap(), 0);
    assert_eq!(marks.forget("p-1", "council-1", None, false).unwrap(), 1);
    assert_eq!(marks.all().unwrap(), [other]);
    let bytes = std::fs::read(marks.path()).unwrap();
    assert!(!bytes.windows(10).any(|w| w == b"MARKER-391"));
    assert_eq!(marks.forget_all().unwrap(), 1);
    assert_eq!(marks.all().unwrap(), []);
}

#[test]
fn files_that_are_not_ours_are_refused_and_left() {
    let home = tempfile::tempdir().unwrap();
    let dirs = dirs(home.path());
    drop(Marks::open(&dirs).unwrap());
    let file = path(&dirs).unwrap();
    let db = Connection::open(&file).unwrap();
    db.pragma_update(None, "user_version", 5).unwrap();
    drop(db);
    let newer = read(&dirs).unwrap_err().to_string();
    assert!(
        newer.contains("version 5 of the database of marks"),
        "{newer}"
    );
    std::fs::write(&file, "not a database, but long enough to be read as one").unwrap();
    assert!(read(&dirs).is_err());
    assert!(std::fs::read(&file).unwrap().starts_with(b"not a database"));
    std::fs::remove_file(&file).unwrap();
    let elsewhere = home.path().join("elsewhere.db");
    symlink(&elsewhere, &file).unwrap();
    assert!(Marks::open(&dirs).is_err());
    assert!(!elsewhere.exists());
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

#[test]
fn a_verdict_of_any_size_is_kept_in_bounds_and_compared_as_before() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let long = |end: &str| Some("4".repeat(300_000) + end);
    let member = |end: &str| kd_eval::marks::Member {
        name: "ann".into(),
        model: "vendor/m-1".into(),
        key: long(end),
        backs: end == "x",
        confidence: None,
    };
    let big = Mark {
        members: vec![member("x"), member("x"), member("y")],
        winner: long("x"),
        answer: long("y"),
        ..mark("council-1", 5, 0.0)
    };
    marks.add(&big).unwrap();
    let kept = marks.all().unwrap().remove(0);
    let told = |mark: &Mark| -> Vec<Option<bool>> {
        mark.members.iter().map(|m| mark.was_right(m)).collect()
    };
    assert_eq!(told(&kept), [Some(false), Some(false), Some(true)]);
    assert_eq!(told(&kept), told(&big));
    assert!(kept.line().unwrap().len() < 4096);
    assert_eq!(marks.sums().unwrap(), Sums::of([&big]));
    // What a decision reads is the same.
    assert_eq!(marks.of_kind("number", NOW).unwrap().recent, [kept]);
}

#[test]
fn what_is_exported_makes_the_same_marks_elsewhere() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let all: Vec<Mark> = (0..50)
        .map(|at| Mark {
            by: By::Import,
            usd: 0.1 * at as f64,
            winner: Some(format!("{at}\n\u{0}\"日").repeat(at as usize)),
            ..council_mark(at, "number", "vendor/m-1", at % 3 > 0)
        })
        .collect();
    marks.add_all(&all).unwrap();
    let lines: Vec<String> = (marks.all().unwrap().iter())
        .map(|mark| mark.line().unwrap())
        .collect();
    let read = |line: &String| Mark::of_line(line, Timestamp::MAX).unwrap();
    let read: Vec<Mark> = lines.iter().map(read).collect();
    let mut copy = Marks::open(&dirs(other.path())).unwrap();
    assert_eq!(copy.import(&read).unwrap().added, 50);
    assert_eq!(copy.all().unwrap(), marks.all().unwrap());
    assert_eq!(copy.sums().unwrap(), marks.sums().unwrap());
}

#[test]
fn marks_of_any_project_are_found_by_thread() {
    let home = tempfile::tempdir().unwrap();
    let mut marks = Marks::open(&dirs(home.path())).unwrap();
    let of = |project: &str, thread: &str, message| Mark {
        project: project.into(),
        ..mark(thread, message, 1.0)
    };
    assert_eq!(marks.threads().unwrap(), []);
    let all = [
        of("p-1", "council-1", 5),
        of("p-1", "council-1", 9),
        of("p-2", "council-1", 5),
    ];
    marks.add_all(&all).unwrap();
    marks.add(&of("p-2", "council-1", 5)).unwrap();
    let place = |project: &str, thread: &str, marks| MarkedThread {
        project: project.into(),
        thread: thread.into(),
        marks,
    };
    let found = [place("p-1", "council-1", 2), place("p-2", "council-1", 1)];
    assert_eq!(marks.threads().unwrap(), found);
    assert_eq!(marks.forget("p-2", "council-1", None, false).unwrap(), 1);
    assert_eq!(marks.threads().unwrap(), found[..1]);
}
