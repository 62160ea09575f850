//! Tests the reports about runs that people read: the log file, and the view in the database.

use crate::servers::{Site, each};
use crate::talk::at;
use jiff::tz::TimeZone;
use kd_core::config::forum::Settings;
use kd_forum::MAIN;
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::words::Outcome;
use kd_sql::forum::{Caller, Place, RunEnd, RunnerLog};
use serde_json::json;
use std::path::Path;

fn line(reason: &str) -> LogLine {
    LogLine {
        at: at(0),
        forum: MAIN.into(),
        event: LogEvent::RunCompleted {
            agent: "ada".into(),
            action: "skip".into(),
            success: true,
            post_id: None,
            reason: Some(reason.into()),
        },
    }
}

fn new_york() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").expect("a zone")
}

#[test]
fn the_log_file_begins_with_its_zone_and_turns_when_it_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join(".kd/logs");
    let log = RunnerLog::new(&logs, MAIN, TimeZone::UTC);
    log.write(&line("a\n2026-01-01 00:00:00 - Cycle complete"))
        .unwrap();
    log.write(&line("b")).unwrap();
    let text = std::fs::read_to_string(log.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0], "# Times are in UTC.");
    assert!(lines[1].ends_with(r"(a\n2026-01-01 00:00:00 - Cycle complete)"));
    // Another time zone never follows this first line.
    let there = RunnerLog::new(&logs, MAIN, new_york());
    there.write(&line("c")).unwrap();
    let text = std::fs::read_to_string(there.path()).unwrap();
    assert!(text.starts_with("# Times are in UTC-"), "{text}");
    assert_eq!(text.lines().count(), 2);
    let older = std::fs::read_to_string(logs.join("runner.log.1")).unwrap();
    assert_eq!(older.lines().count(), 3);

    let small = RunnerLog::new(&logs, "research", TimeZone::UTC).with_bytes_max(300);
    for _ in 0..40 {
        small.write(&line("d")).unwrap();
    }
    let mut files: Vec<(String, u64)> = std::fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().len(),
            )
        })
        .filter(|(name, _)| name.starts_with("runner-"))
        .collect();
    files.sort();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "runner-research.log",
            "runner-research.log.1",
            "runner-research.log.2",
            "runner-research.log.3"
        ]
    );
    assert!(files.iter().all(|(_, bytes)| *bytes <= 300), "{files:?}");
    for (name, _) in &files {
        let text = std::fs::read_to_string(logs.join(name)).unwrap();
        assert!(text.starts_with("# Times are in UTC.\n"), "{name}: {text}");
    }
}

#[test]
fn the_log_file_is_written_through_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let kd = folder.path().join(".kd");
    let outside = folder.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    let victim = outside.join("victim");
    std::fs::write(&victim, "precious\n").unwrap();
    let plants: [fn(&Path, &Path); 5] = [
        |logs, _| {
            std::os::unix::fs::symlink(logs.parent().unwrap().join("../outside"), logs).unwrap();
        },
        |logs, victim| {
            std::fs::create_dir(logs).unwrap();
            std::os::unix::fs::symlink(victim, logs.join("runner.log")).unwrap();
        },
        |logs, victim| {
            std::fs::create_dir(logs).unwrap();
            std::fs::hard_link(victim, logs.join("runner.log")).unwrap();
        },
        |logs, victim| {
            std::fs::create_dir(logs).unwrap();
            std::os::unix::fs::symlink(victim, logs.join(".runner.log.lock")).unwrap();
        },
        |logs, _| {
            std::fs::create_dir(logs).unwrap();
            std::fs::create_dir(logs.join("runner.log")).unwrap();
        },
    ];
    for (number, plant) in plants.iter().enumerate() {
        let _ = std::fs::remove_dir_all(&kd);
        std::fs::create_dir(&kd).unwrap();
        plant(&kd.join("logs"), &victim);
        let log = RunnerLog::new(&kd.join("logs"), MAIN, TimeZone::UTC);
        assert!(log.write(&line("x")).is_err(), "plant {number}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
        assert_eq!(
            std::fs::read_dir(&outside).unwrap().count(),
            1,
            "plant {number}"
        );
    }
}

#[test]
fn a_run_is_read_in_the_view_of_the_seed() {
    each(|site| {
        let mut store = site.open();
        let settings = Settings::default();
        let outcomes = [
            (Outcome::Acted, "create_thread"),
            (Outcome::Skipped, "create_thread"),
            (Outcome::LimitExceeded, "skip"),
            (Outcome::Failed, "create_thread"),
        ];
        for (outcome, _) in outcomes {
            let run = store.begin_run(None, MAIN, "ada", at(0)).unwrap().unwrap();
            let caller = Caller {
                run: Some(run),
                ..crate::talk::persona("ada")
            };
            let title = format!("About {}", outcome.word());
            let arguments = json!({"title": title, "body": "b"});
            let done = store
                .call(&caller, &settings, "create_thread", &arguments, at(1))
                .unwrap();
            assert_eq!(done["success"], true, "{done}");
            let end = RunEnd {
                outcome,
                reason: None,
                claim: None,
                tokens: 7,
            };
            store.end_run(run, &end, at(2)).unwrap();
        }
        let rows = history(site);
        assert_eq!(rows.len(), outcomes.len(), "{rows:?}");
        for (row, (outcome, action)) in rows.iter().zip(outcomes) {
            let success = i64::from(outcome.is_success());
            let (agent, done, ok, word, ended) = row;
            assert_eq!(
                (agent.as_str(), done.as_str(), *ok, word.as_str()),
                ("ada", action, success, outcome.word())
            );
            assert_eq!(
                ended.get(..19),
                Some(at(2).strftime("%F %T").to_string().as_str())
            );
        }
    });
}

type Row = (String, String, i64, String, String);

/// Returns the rows that a person reads with a database client.
fn history(site: &Site) -> Vec<Row> {
    let sql = "SELECT agent, action, success, outcome, ended_at FROM run_history ORDER BY id";
    match &site.place {
        Place::File(path) => {
            let db = rusqlite::Connection::open(path).unwrap();
            let mut rows = db.prepare(sql).unwrap();
            let rows = rows.query_map([], |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                ))
            });
            rows.unwrap().map(Result::unwrap).collect()
        }
        Place::Server(url) => {
            let mut client = postgres::Client::connect(url, postgres::NoTls).unwrap();
            let rows = client.query(sql, &[]).unwrap();
            let rows = rows.iter().map(|row| {
                let success: i32 = row.get(2);
                (
                    row.get(0),
                    row.get(1),
                    i64::from(success),
                    row.get(3),
                    row.get(4),
                )
            });
            rows.collect()
        }
    }
}
