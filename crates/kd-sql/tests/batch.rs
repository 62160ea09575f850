//! Batches in a real file: kills at any moment, equal questions, results of a run that is over, limits across kills.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and speak as a test may"
)]

use jiff::Timestamp;
use kd_core::batch::{Failed, Method, Row, Status};
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use kd_sql::batch::{Asked, Batches, Finished, NewBatch};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the copy of this test that works on a batch until it is killed.
const INSIDE: &str = "KD_SQL_TEST_BATCH";
const ID: &str = "batch-1";
const ATTEMPTS: u32 = 200;

fn now() -> Timestamp {
    Timestamp::now()
}

fn asked(texts: &[&str]) -> Vec<Asked> {
    let all = texts.iter().enumerate();
    all.map(|(at, text)| Asked {
        id: format!("q{}", at + 1),
        text: (*text).to_owned(),
        key: format!("key of {text}"),
    })
    .collect()
}

fn new(id: &str, fresh: bool) -> NewBatch {
    NewBatch {
        id: id.into(),
        key: format!("key of {id}"),
        method: "ask".into(),
        fresh,
        ..NewBatch::default()
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("app.db")
}

fn answer(text: &str) -> Row {
    Row {
        status: Status::Answered,
        answer: Some(text.to_owned()),
        reason: None,
        ..Row::failed(Method::Ask, "", Timestamp::UNIX_EPOCH)
    }
}

fn finish(batches: &mut Batches, run: i64, place: u64, row: &Row, keep: bool) -> Vec<Row> {
    let finished = Finished {
        batch: ID,
        place,
        row,
        keep,
    };
    batches.finish(run, &finished).unwrap()
}

/// Returns the lines of a batch, in order.
fn lines(batches: &Batches, id: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let read = |line: &str| {
        rows.push(serde_json::from_str(line).unwrap());
        Ok::<_, kd_store::Error>(())
    };
    batches.results(id, read).unwrap();
    rows
}

fn created(dir: &Path, texts: &[&str], fresh: bool) -> Batches {
    let mut batches = Batches::at(&file(dir)).unwrap();
    batches
        .create(&new(ID, fresh), &asked(texts), now())
        .unwrap();
    batches
}

fn places(batches: &mut Batches, run: i64, most: usize) -> Vec<u64> {
    let jobs = batches.claim(ID, run, most, now()).unwrap();
    jobs.iter().map(|job| job.place).collect()
}

#[test]
fn a_method_that_kd_does_not_know_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = Batches::at(&file(dir.path())).unwrap();
    let new = NewBatch {
        method: "guess".into(),
        ..new(ID, false)
    };
    batches.create(&new, &asked(&["One?"]), now()).unwrap();
    let error = batches.begin(ID, 3, now()).unwrap_err();
    assert!(error.to_string().contains("`guess`"), "{error}");
}

#[test]
fn equal_questions_are_asked_once_and_an_answer_serves_later_batches() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "Two?", "One?", "One?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [1, 2], "equal ones wait");
    let rows = finish(&mut batches, run, 1, &answer("1"), true);
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.n, row.id.as_str(), row.cached))
        .collect();
    assert_eq!(told, [(1, "q1", false), (3, "q3", true), (4, "q4", true)]);
    finish(&mut batches, run, 2, &answer("2"), false);
    let counts = batches.get(ID).unwrap().unwrap().counts;
    assert_eq!(
        (counts.answered, counts.cached, counts.is_over()),
        (4, 2, true)
    );

    let more = asked(&["Two?", "One?", "Three?"]);
    batches
        .create(&new("batch-2", false), &more, now())
        .unwrap();
    let rows = lines(&batches, "batch-2");
    assert_eq!(rows.len(), 1, "the answer to Two? was not kept");
    assert_eq!(
        (rows[0].n, rows[0].cached, rows[0].answer.as_deref()),
        (2, true, Some("1"))
    );
    assert_eq!(rows[0].batch, "batch-2");
    batches.create(&new("batch-3", true), &more, now()).unwrap();
    assert_eq!(lines(&batches, "batch-3"), [], "fresh");
}

#[test]
fn a_fresh_batch_asks_equal_questions_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "One?"], true);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [1, 2]);
}

#[test]
fn after_a_failure_the_next_equal_question_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "One?", "One?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [1]);
    let failed = Row::failed(Method::Ask, "ada: it broke", now());
    assert_eq!(finish(&mut batches, run, 1, &failed, false).len(), 1);
    assert_eq!(places(&mut batches, run, 9), [2]);
    assert_eq!(finish(&mut batches, run, 2, &answer("1"), true).len(), 2);
    let dead = batches.dead(ID, 9).unwrap();
    assert_eq!(
        (dead.len(), dead[0].reason.as_str(), dead[0].attempts),
        (1, "ada: it broke", 1)
    );
    assert_eq!(retried(&mut batches), (0, 1), "an equal one has an answer");
    let rows = lines(&batches, ID);
    assert_eq!(rows.len(), 3, "the line of the failure is gone");
    assert!(rows[0].cached && rows[0].answer.as_deref() == Some("1"));
}

#[test]
fn members_that_failed_in_answered_questions_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "Two?", "Three?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [1, 2, 3]);
    let failed = |member: &str, message: &str| Failed {
        member: member.into(),
        kind: "auth".into(),
        message: message.into(),
    };
    // What a member says looks like a failure: it is none.
    let said = r#"{"member":"bob","kind":"x","message":"y"}"#;
    let row = |failures| Row {
        failures,
        ..answer(said)
    };
    let quoted = r#"the key \ "k" was refused"#;
    let (one, two) = (failed("eve", quoted), failed("a\"da", "it broke"));
    // It was not needed.
    let spared = Failed {
        kind: "cancelled".into(),
        ..failed("bob", "stopped")
    };
    finish(
        &mut batches,
        run,
        1,
        &row(vec![one.clone(), spared, two]),
        false,
    );
    finish(&mut batches, run, 2, &row(vec![one.clone()]), false);
    let dead = Row {
        failures: vec![one],
        ..Row::failed(Method::Ask, "eve: it broke", Timestamp::now())
    };
    finish(&mut batches, run, 3, &dead, false);
    let found = batches.member_failures(ID, 9).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.member.as_str(), one.questions, one.reason.as_str()))
        .collect();
    assert_eq!(found, [("eve", 2, quoted), ("a\"da", 1, "it broke")]);
    assert_eq!(batches.member_failures(ID, 1).unwrap().len(), 1);
}

#[test]
fn a_result_of_a_run_that_is_over_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?"], false);
    let first = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, first, 1), [1]);
    let second = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(finish(&mut batches, first, 1, &answer("old"), true), []);
    assert_eq!(
        places(&mut batches, first, 1),
        [] as [u64; 0],
        "it takes nothing"
    );
    let job = batches.claim(ID, second, 1, now()).unwrap().remove(0);
    assert_eq!((job.place, job.attempt), (1, 2));
    assert_eq!(finish(&mut batches, first, 1, &answer("old"), true), []);
    assert_eq!(
        finish(&mut batches, second, 1, &answer("new"), true).len(),
        1
    );
    assert_eq!(finish(&mut batches, second, 1, &answer("again"), true), []);
    let rows = lines(&batches, ID);
    assert_eq!(
        (rows.len(), rows[0].answer.as_deref(), rows[0].attempts),
        (1, Some("new"), 2)
    );
}

#[test]
fn a_question_that_kills_the_process_fails_after_its_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "One?"], false);
    for _ in 0..3 {
        let run = batches.begin(ID, 3, now()).unwrap();
        assert_eq!(places(&mut batches, run, 9), [1]);
    }
    let run = batches.begin(ID, 3, now()).unwrap();
    let dead = batches.dead(ID, 9).unwrap();
    assert_eq!(
        dead[0].reason,
        "kd was killed 3 times while this question was asked"
    );
    assert_eq!(places(&mut batches, run, 9), [2], "the next one is tried");
    assert_eq!(lines(&batches, ID)[0].status, Status::Failed);
}

#[test]
fn a_pause_is_kept_and_an_interrupted_attempt_does_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "Two?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [1, 2]);
    let due = now().checked_add(Duration::from_secs(60)).unwrap();
    batches
        .put_back((ID, run), 1, due, Some("busy"), true)
        .unwrap();
    batches.release(ID, run).unwrap();
    let job = batches.claim(ID, run, 9, now()).unwrap();
    assert_eq!((job.len(), job[0].place, job[0].attempt), (1, 2, 1));
    let next = batches.next_due(ID).unwrap().unwrap();
    assert_eq!(next.as_millisecond(), due.as_millisecond());
    let job = batches.claim(ID, run, 9, due).unwrap();
    assert_eq!((job[0].place, job[0].attempt), (1, 2));
}

#[test]
fn a_cancelled_batch_hands_out_nothing_and_can_be_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?", "Two?", "Two?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 1), [1]);
    assert_eq!(batches.cancel(ID).unwrap(), 2);
    assert_eq!(places(&mut batches, run, 9), [] as [u64; 0]);
    assert_eq!(finish(&mut batches, run, 1, &answer("1"), true).len(), 1);
    let counts = batches.get(ID).unwrap().unwrap().counts;
    assert_eq!((counts.answered, counts.cancelled), (1, 2));
    assert_eq!(retried(&mut batches), (2, 0));
    assert_eq!(places(&mut batches, run, 9), [2], "equal ones wait again");
    assert_eq!(finish(&mut batches, run, 2, &answer("2"), true).len(), 2);
}

/// Asks again; returns how many will be asked and how many are answered.
fn retried(batches: &mut Batches) -> (u64, u64) {
    let retried = batches.retry(ID, now()).unwrap();
    (retried.asked, retried.answered)
}

/// Runs a batch of four equal questions until the first has ended, with a cancellation at some moment, and tries again.
/// `expected`: the places asked afterwards, and the lines when they are answered.
#[test]
fn equal_questions_are_asked_once_across_a_cancellation() {
    for (end, keep, fresh, expected) in [
        ("answered before", true, false, vec![]),
        ("answered after", true, false, vec![]),
        // An answer that is not kept serves nobody else, but one of the others serves the rest.
        ("answered after", false, false, vec![2]),
        ("still asked", true, false, vec![]),
        ("failed", false, false, vec![1]),
        ("answered after", true, true, vec![2, 3, 4]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut batches = created(dir.path(), &["One?"; 4], fresh);
        let run = batches.begin(ID, 3, now()).unwrap();
        assert_eq!(places(&mut batches, run, 1), [1]);
        let told = format!("{end}, kept: {keep}, fresh: {fresh}");
        let row = match end {
            "failed" => Row::failed(Method::Ask, "ada: it broke", now()),
            _ => answer("1"),
        };
        if end == "answered before" {
            finish(&mut batches, run, 1, &row, keep);
        }
        batches.cancel(ID).unwrap();
        if matches!(end, "answered after" | "failed") {
            finish(&mut batches, run, 1, &row, keep);
        }
        retried(&mut batches);
        if end == "still asked" {
            assert_eq!(finish(&mut batches, run, 1, &row, keep).len(), 4, "{told}");
        }
        let next = places(&mut batches, run, 9);
        assert_eq!(next, expected, "{told}");
        for place in next {
            finish(&mut batches, run, place, &answer("1"), true);
        }
        assert_eq!(lines(&batches, ID).len(), 4, "{told}");
        assert!(batches.get(ID).unwrap().unwrap().counts.is_over(), "{told}");
    }
}

#[test]
fn an_answer_is_kept_under_what_its_question_was_asked_with() {
    let dir = tempfile::tempdir().unwrap();
    let texts = ["One?", "Two?", "Two?"];
    let mut batches = created(dir.path(), &texts, false);
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 1), [1]);
    finish(&mut batches, run, 1, &answer("1"), true);
    let mut later = asked(&texts);
    later.iter_mut().for_each(|one| one.key.push_str(", later"));
    batches.go_on(ID, "kd batch run later", &later).unwrap();
    let about = batches.get(ID).unwrap().unwrap().about;
    assert_eq!(about.command, "kd batch run later");
    let run = batches.begin(ID, 3, now()).unwrap();
    assert_eq!(places(&mut batches, run, 9), [2]);
    assert_eq!(finish(&mut batches, run, 2, &answer("2"), true).len(), 2);
    for (key, known) in [
        ("key of One?", true),
        ("key of One?, later", false),
        ("key of Two?", false),
        ("key of Two?, later", true),
    ] {
        assert_eq!(batches.knows(key).unwrap(), known, "{key}");
    }
}

#[test]
fn what_is_in_flight_when_a_batch_is_cancelled_is_not_asked_again() {
    // A question that fails and may be asked again, one whose run was killed, and one whose run was stopped.
    for end in ["put back", "killed", "released"] {
        let dir = tempfile::tempdir().unwrap();
        let mut batches = created(dir.path(), &["One?"], false);
        let run = batches.begin(ID, 3, now()).unwrap();
        assert_eq!(places(&mut batches, run, 1), [1]);
        batches.cancel(ID).unwrap();
        match end {
            "put back" => batches
                .put_back((ID, run), 1, now(), Some("busy"), true)
                .unwrap(),
            "released" => batches.release(ID, run).unwrap(),
            _ => {
                batches.begin(ID, 3, now()).unwrap();
            }
        }
        assert_eq!(batches.next_due(ID).unwrap(), None, "{end}: nothing is due");
        let counts = batches.get(ID).unwrap().unwrap().counts;
        assert_eq!(counts.cancelled, 1, "{end}");
        assert_eq!(retried(&mut batches), (1, 0), "{end}");
    }
}

#[test]
fn requests_in_flight_at_a_kill_count_with_their_maximum() {
    let dir = tempfile::tempdir().unwrap();
    let mut batches = created(dir.path(), &["One?"], false);
    let run = batches.begin(ID, 3, now()).unwrap();
    let most = |tokens| Spent {
        calls: 1,
        tokens,
        pico_usd: tokens * 10,
        certainty: Certainty::Exact,
    };
    for request in [1, 2, 3] {
        batches.sending((ID, run), request, &most(100)).unwrap();
    }
    batches.settled((ID, run), 1, &most(7)).unwrap();
    batches.settled((ID, run), 2, &Spent::default()).unwrap();
    let spent = |batches: &Batches| batches.get(ID).unwrap().unwrap().spent;
    let before = spent(&batches);
    batches.begin(ID, 3, now()).unwrap();
    let after = spent(&batches);
    assert_eq!(
        before, after,
        "they count at once, not from the next run on"
    );
    assert_eq!((after.calls, after.tokens, after.pico_usd), (2, 107, 1070));
    assert_eq!(after.certainty, Certainty::AtMost);
    batches.settled((ID, run), 3, &most(50)).unwrap();
    assert_eq!(spent(&batches), after, "it is counted already");
}

#[test]
fn one_process_has_the_lock_and_a_file_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let batches = created(dir.path(), &["One?"], false);
    let lock = batches.lock(ID).unwrap();
    assert!(lock.is_some());
    assert!(batches.lock(ID).unwrap().is_none());
    drop(lock);
    assert!(batches.lock(ID).unwrap().is_some());
    let other = dir.path().join("other.db");
    std::fs::write(&other, "not a database, but long enough to be read as one").unwrap();
    assert!(Batches::at(&other).is_err());
    assert!(
        std::fs::read(&other)
            .unwrap()
            .starts_with(b"not a database")
    );
}

/// Works on the batch in this folder until nothing is left: two jobs at a time, ended in another order, one in four put back
/// once.
fn work(dir: &Path) {
    let mut batches = Batches::at(&file(dir)).unwrap();
    let Some(_lock) = batches.lock(ID).unwrap() else {
        return;
    };
    let run = batches.begin(ID, ATTEMPTS, now()).unwrap();
    let mut request = 0;
    loop {
        let mut jobs = batches.claim(ID, run, 2, now()).unwrap();
        if jobs.is_empty() {
            return;
        }
        jobs.reverse();
        for job in jobs {
            request += 1;
            let most = Spent {
                calls: 1,
                tokens: 100,
                ..Spent::default()
            };
            batches.sending((ID, run), request, &most).unwrap();
            std::thread::sleep(Duration::from_micros(500));
            let spent = Spent { tokens: 10, ..most };
            batches.settled((ID, run), request, &spent).unwrap();
            if job.place % 4 == 0 && job.attempt == 1 {
                batches
                    .put_back((ID, run), job.place, now(), None, true)
                    .unwrap();
                continue;
            }
            let row = answer(&format!("answer to {}", job.question));
            finish(&mut batches, run, job.place, &row, job.place % 3 != 0);
        }
    }
}

/// Returns what matters of the lines: place to answer.
fn essence(batches: &Batches) -> BTreeMap<u64, (String, String)> {
    let rows = lines(batches, ID);
    let count = rows.len();
    let essence: BTreeMap<_, _> = rows
        .into_iter()
        .map(|row| (row.n, (row.id, row.answer.unwrap_or_default())))
        .collect();
    assert_eq!(essence.len(), count, "no line is double");
    essence
}

/// `KD_BATCH_SEEDS=200` kills more; `tests/batch/run --full` does.
#[test]
fn kills_at_any_moment_lose_and_double_nothing() {
    if let Some(dir) = std::env::var_os(INSIDE) {
        work(Path::new(&dir));
        return;
    }
    let seeds: u64 = std::env::var("KD_BATCH_SEEDS").map_or(6, |n| n.parse().unwrap());
    let texts: Vec<String> = (0..120).map(|n| format!("Question {}?", n % 90)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let calm = tempfile::tempdir().unwrap();
    let batches = created(calm.path(), &texts, false);
    drop(batches);
    work(calm.path());
    let expected = essence(&Batches::at(&file(calm.path())).unwrap());
    assert_eq!(expected.len(), 120);
    let mut kills = 0;
    for seed in 1..=seeds {
        let dir = tempfile::tempdir().unwrap();
        drop(created(dir.path(), &texts, false));
        let mut state = seed;
        let mut sent = 0;
        loop {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "kills_at_any_moment_lose_and_double_nothing"])
                .env(INSIDE, dir.path())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(5 + (state >> 33) % 60));
            child.kill().unwrap();
            sent += 1;
            if child.wait().unwrap().signal().is_none() || sent > 2_000 {
                break;
            }
            kills += 1;
        }
        work(dir.path());
        let batches = Batches::at(&file(dir.path())).unwrap();
        assert_eq!(essence(&batches), expected, "seed {seed}");
        let batch = batches.get(ID).unwrap().unwrap();
        assert!(batch.counts.is_over(), "seed {seed}: {batch:?}");
        assert!(batch.spent.calls >= 90, "seed {seed}: {batch:?}");
    }
    println!("{kills} kills with {seeds} seeds: 120 results each, none lost, none double");
    assert!(kills >= seeds, "{kills} kills hit");
}
