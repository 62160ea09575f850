//! Claiming jobs and ending them.

use crate::support::{self, ID, Site, answer, asked, finish, new, places};
use jiff::Timestamp;
use kd_sql::batch::Job;
use kd_sql::fleet::{Ended, FleetError, Idle, ThreadFile};
use std::collections::BTreeSet;
use std::time::Duration;

#[test]
fn two_workers_never_hold_the_same_job() {
    let Some(site) = Site::new() else { return };
    let texts: Vec<String> = (0..600).map(|n| format!("Question {n}?")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    drop(site.created(&texts));
    let taken: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut fleet = site.worker();
                    let mut all = Vec::new();
                    loop {
                        match places(&mut fleet, 3) {
                            none if none.is_empty() => return all,
                            some => all.extend(some),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let all: BTreeSet<u64> = taken.iter().flatten().copied().collect();
    let count: usize = taken.iter().map(Vec::len).sum();
    assert_eq!((all.len(), count), (600, 600));
}

#[test]
fn the_same_worker_that_claims_again_cannot_end_the_claim_before() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    let old = support::held(1);
    fleet.release(ID).unwrap();
    assert_eq!(places(&mut fleet, 1), [1]);
    assert!(!support::finish_job(&mut fleet, &old, &answer("old"), true));
    assert!(finish(&mut fleet, 1, &answer("new"), true));
    assert!(!finish(&mut fleet, 1, &answer("again"), true));
    assert_eq!(
        site.lines(&mut fleet, ID)[0].attempts,
        1,
        "an interrupted attempt does not count"
    );
}

/// Results are written together, each under its own claim.
#[test]
fn of_results_that_are_written_together_only_those_whose_claims_hold_count() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?", "Two?", "Three?", "Four?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    let old = support::held(1);
    fleet.release(ID).unwrap();
    assert_eq!(places(&mut fleet, 3), [1, 2, 3]);
    let ended = |job: &kd_sql::batch::Job, text: &str, keep| Ended::Finished {
        job: job.clone(),
        row: Box::new(answer(text)),
        keep,
        thread: vec![ThreadFile {
            name: "thread.json".into(),
            bytes: text.as_bytes().to_vec(),
        }],
    };
    let all = [
        ended(&old, "old", true),
        ended(&support::held(3), "3", false),
        ended(&support::held(1), "1", true),
        ended(&support::held(2), "2", true),
    ];
    assert_eq!(fleet.write(ID, &all).unwrap(), [false, true, true, true]);
    assert_eq!(fleet.write(ID, &all).unwrap(), [false; 4], "again");
    let lines = site.lines(&mut fleet, ID);
    let lines: Vec<_> = lines
        .iter()
        .map(|row| (row.n, row.id.as_str(), row.answer.as_deref(), row.cached))
        .collect();
    assert_eq!(
        lines,
        [
            (1, "q1", Some("1"), false),
            (2, "q2", Some("2"), false),
            (3, "q3", Some("3"), false),
            (4, "q4", Some("2"), true)
        ]
    );
    assert_eq!(
        places(&mut fleet, 9),
        [5, 6],
        "equal to one that was not kept"
    );
    let mut threads = Vec::new();
    fleet
        .threads(ID, &[1, 2, 3, 4, 5], |place, files| {
            threads.push((place, files[0].bytes.clone()));
            Ok::<_, FleetError>(())
        })
        .unwrap();
    let expected = [(1, b"1".to_vec()), (2, b"2".to_vec()), (3, b"3".to_vec())];
    assert_eq!(threads, expected);
}

fn ended(place: u64, keep: bool) -> Ended {
    Ended::Finished {
        job: support::held(place),
        row: Box::new(answer(&place.to_string())),
        keep,
        thread: Vec::new(),
    }
}

fn taken(jobs: &[Job]) -> Vec<u64> {
    jobs.iter().map(|job| job.place).collect()
}

#[test]
fn a_turn_ends_jobs_and_claims_the_next() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "One?", "Two?", "Three?", "Four?"]);
    assert_eq!(places(&mut fleet, 2), [1, 2]);
    let all = [ended(1, true), ended(2, false)];
    let (held, claimed) = fleet.turn(ID, &all, 1, true).unwrap();
    assert_eq!((held, taken(&claimed.jobs)), (vec![true, true], vec![5]));
    let lines = site.lines(&mut fleet, ID);
    let lines: Vec<_> = lines.iter().map(|row| (row.n, row.cached)).collect();
    assert_eq!(lines, [(1, false), (2, false), (3, true)], "an equal one");
    // Ends that came too late are dropped, and take no claim with them.
    let (held, claimed) = fleet.turn(ID, &all, 9, true).unwrap();
    assert_eq!(held, [false, false]);
    assert_eq!(taken(&claimed.jobs), [6]);
    // Nothing is due after the last one; what was freed before it is found by the next look, from the start.
    let (_, claimed) = fleet.turn(ID, &[], 9, true).unwrap();
    assert_eq!(claimed.idle, Idle::Later(Some(Duration::ZERO)));
    let (_, claimed) = fleet.turn(ID, &[], 9, true).unwrap();
    assert_eq!(taken(&claimed.jobs), [4], "the answer was not kept");
    fleet.cancel(ID).unwrap();
    let (_, claimed) = fleet.turn(ID, &[], 9, true).unwrap();
    assert_eq!(claimed.idle, Idle::Cancelled);
}

#[test]
fn the_rate_of_a_batch_and_a_question_that_is_asked_alone_hold_for_turns_too() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?"]);
    site.sql("UPDATE kd_jobs SET due = 1, attempts = 2 WHERE place = 3");
    assert_eq!(places(&mut fleet, 1), [1]);
    let (_, claimed) = fleet.turn(ID, &[ended(1, true)], 9, true).unwrap();
    assert_eq!(taken(&claimed.jobs), [2]);
    let two = Ended::Back {
        job: claimed.jobs[0].clone(),
        pause: Duration::from_secs(600),
        asked: false,
    };
    let (_, claimed) = fleet.turn(ID, &[], 9, true).unwrap();
    assert!(claimed.jobs.is_empty(), "the third waits until it is alone");
    // The first look after a place begins again from the start.
    let mut claimed = fleet.turn(ID, &[two], 9, true).unwrap().1;
    if claimed.jobs.is_empty() {
        claimed = fleet.claim(ID, 9, true).unwrap();
    }
    assert_eq!((taken(&claimed.jobs), claimed.alone), (vec![3], true));
    site.sql("UPDATE kd_jobs SET due = 0 WHERE place = 2");
    let (_, none) = fleet.turn(ID, &[], 9, true).unwrap();
    assert!(none.jobs.is_empty(), "it is asked alone");
    let three = Ended::Finished {
        job: claimed.jobs[0].clone(),
        row: Box::new(answer("3")),
        keep: true,
        thread: Vec::new(),
    };
    let (held, claimed) = fleet.turn(ID, &[three], 9, true).unwrap();
    assert_eq!((held, taken(&claimed.jobs)), (vec![true], vec![2]));
    let mut slow = new("batch-2");
    slow.every = Some(Duration::from_secs(3600));
    let questions = asked(&["Five?", "Six?"]);
    fleet.create(&slow, &questions, Timestamp::now()).unwrap();
    let (_, first) = fleet.turn("batch-2", &[], 9, true).unwrap();
    assert_eq!(taken(&first.jobs), [1]);
    let (_, second) = fleet.turn("batch-2", &[], 9, true).unwrap();
    assert!(second.jobs.is_empty(), "an hour later");
}

#[test]
fn a_claim_that_cannot_be_made_takes_no_result_with_it() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?"]);
    assert_eq!(places(&mut fleet, 2), [1, 2]);
    // Another process ends this worker: it is not waited for, because it may wait for what this worker writes.
    let mut client = postgres::Client::connect(&site.url, postgres::NoTls).unwrap();
    let mut other = client.transaction().unwrap();
    let lock = "SELECT 1 FROM kd_workers WHERE id = $1 FOR UPDATE";
    other.query(lock, &[&fleet.worker()]).unwrap();
    let (held, claimed) = fleet.turn(ID, &[ended(1, true)], 9, true).unwrap();
    assert_eq!((held, taken(&claimed.jobs)), (vec![true], vec![]));
    other.rollback().unwrap();
    site.sql("ALTER TABLE kd_batches ALTER COLUMN limited DROP NOT NULL; UPDATE kd_batches SET limited = NULL");
    let error = fleet.turn(ID, &[ended(2, true)], 9, true).unwrap_err();
    assert!(matches!(error, FleetError::Damaged(_)), "{error}");
    let lines = site.lines(&mut fleet, ID);
    assert_eq!(lines.len(), 2, "both are written");
}
