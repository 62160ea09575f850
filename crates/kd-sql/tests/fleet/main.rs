//! Batches on a real PostgreSQL: claims, leases, tokens, limits and rates over several workers, kills at any moment.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and speak as a test may"
)]

mod faults;
mod forget;
mod hostile;
mod look;
#[path = "../support/postgres.rs"]
mod postgres_server;
mod support;
mod turns;

use jiff::Timestamp;
use kd_core::batch::{Failed, Method, Row, Status};
use kd_core::ledger::Ledger;
use kd_core::spending::Spent;
use kd_core::usage::Certainty;
use kd_sql::fleet::{FleetAccount, FleetError, FleetLimits, Idle, Store};
use postgres::NoTls;
use std::time::Duration;
use support::{ID, LEASE, Site, answer, asked, back, finish, finish_job, new, places, sending};

#[test]
fn equal_questions_are_asked_once_and_an_answer_serves_later_batches() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "One?", "One?"]);
    assert_eq!(places(&mut fleet, 9), [1, 2], "equal ones wait");
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    assert!(finish(&mut fleet, 2, &answer("2"), false));
    let batch = fleet.get(ID).unwrap().unwrap();
    let counts = batch.batch.counts;
    assert_eq!((counts.answered, counts.cached), (4, 2));
    assert!(counts.is_over());
    let more = asked(&["Two?", "One?", "Three?"]);
    assert_eq!(fleet.known(&more).unwrap().len(), 1);
    fleet
        .create(&new("batch-2"), &more, Timestamp::now())
        .unwrap();
    let rows = site.lines(&mut fleet, "batch-2");
    assert_eq!(rows.len(), 1, "the answer to Two? was not kept");
    assert_eq!((rows[0].n, rows[0].cached), (2, true));
    assert_eq!(rows[0].batch, "batch-2");
    let mut fresh = new("batch-3");
    fresh.about.fresh = true;
    fleet.create(&fresh, &more, Timestamp::now()).unwrap();
    assert_eq!(site.lines(&mut fleet, "batch-3"), [], "fresh");
}

#[test]
fn after_a_failure_the_next_equal_question_is_asked_and_retry_takes_its_answer() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "One?", "One?"]);
    assert_eq!(places(&mut fleet, 9), [1]);
    let failed = Row::failed(Method::Ask, "ada: it \u{1b}[31mbroke\0", Timestamp::now());
    assert!(finish(&mut fleet, 1, &failed, false));
    assert_eq!(places(&mut fleet, 9), [2]);
    assert!(finish(&mut fleet, 2, &answer("1"), true));
    let dead = fleet.dead(ID, 9).unwrap();
    assert_eq!((dead.len(), dead[0].attempts), (1, 1));
    assert_eq!(dead[0].reason, "ada: it broke", "cleaned");
    let retried = fleet.retry(ID, Timestamp::now()).unwrap();
    assert_eq!((retried.asked, retried.answered), (0, 1));
    assert_eq!(site.lines(&mut fleet, ID).len(), 3);
    assert_eq!(fleet.cancel(ID).unwrap(), 0, "nothing waits");
}

#[test]
fn members_that_failed_in_answered_questions_are_counted() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?"]);
    assert_eq!(places(&mut fleet, 9), [1, 2, 3]);
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
    assert!(finish(
        &mut fleet,
        1,
        &row(vec![one.clone(), spared, two]),
        false
    ));
    assert!(finish(&mut fleet, 2, &row(vec![one.clone()]), false));
    let dead = Row {
        failures: vec![one],
        ..Row::failed(Method::Ask, "eve: it broke", Timestamp::now())
    };
    assert!(finish(&mut fleet, 3, &dead, false));
    let found = fleet.member_failures(ID, 9).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.member.as_str(), one.questions, one.reason.as_str()))
        .collect();
    assert_eq!(found, [("eve", 2, quoted), ("a\"da", 1, "it broke")]);
    assert_eq!(fleet.member_failures(ID, 1).unwrap().len(), 1);
}

#[test]
fn a_result_of_a_worker_whose_lease_is_over_is_dropped_and_its_cost_counts() {
    let Some(site) = Site::new() else { return };
    let mut slow = site.created(&["One?"]);
    let account = FleetAccount::open(&slow, LEASE, None).unwrap().of(ID);
    assert_eq!(places(&mut slow, 9), [1]);
    let old = support::held(1);
    let most = Spent {
        calls: 1,
        tokens: 100,
        ..Spent::default()
    };
    sending(&account, 1, &most).unwrap();
    let mut other = site.worker();
    other.beat().unwrap();
    assert_eq!(places(&mut other, 9), [] as [u64; 0], "its lease holds");
    site.pass(LEASE * 2, slow.worker());
    other.beat().unwrap();
    assert_eq!(places(&mut other, 9), [1]);
    assert!(sending(&account, 2, &most).is_err(), "it may spend no more");
    assert!(account.was_cut_off(std::time::Instant::now() - LEASE) && !account.is_exhausted());
    account.settled(1, &Spent { tokens: 7, ..most });
    assert!(!support::finish_job(&mut slow, &old, &answer("late"), true));
    assert!(finish(&mut other, 1, &answer("first"), true));
    assert!(!support::finish_job(&mut slow, &old, &answer("late"), true));
    let before = slow.worker();
    slow.beat().unwrap();
    assert_ne!(slow.worker(), before, "a new number");
    assert!(!support::finish_job(&mut slow, &old, &answer("late"), true));
    let rows = site.lines(&mut other, ID);
    assert_eq!(
        (rows.len(), rows[0].answer.as_deref(), rows[0].attempts),
        (1, Some("first"), 2)
    );
    let spent = other.get(ID).unwrap().unwrap().batch.spent;
    assert_eq!(
        (spent.tokens, spent.certainty),
        (100, Certainty::AtMost),
        "with its maximum"
    );
}

#[test]
fn a_question_that_kills_its_workers_fails_after_its_attempts() {
    let Some(site) = Site::new() else { return };
    let mut watcher = site.created(&["One?", "One?"]);
    for attempt in 1..=3 {
        let mut victim = site.worker();
        assert_eq!(places(&mut victim, 9), [1], "attempt {attempt}");
        site.pass(LEASE * 2, victim.worker());
        watcher.beat().unwrap();
    }
    let dead = watcher.dead(ID, 9).unwrap();
    assert_eq!(
        dead[0].reason,
        "a worker was lost 3 times while this question was asked"
    );
    assert_eq!(dead[0].attempts, 3);
    assert_eq!(places(&mut watcher, 9), [2], "the next equal one is tried");
}

#[test]
fn pauses_attempts_and_cancellations_are_kept() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    back(&mut fleet, 1, Duration::from_secs(60), true);
    assert_eq!(places(&mut fleet, 9), [2, 3]);
    back(&mut fleet, 2, Duration::ZERO, false);
    assert_eq!(
        places(&mut fleet, 9),
        [] as [u64; 0],
        "looked for from the cursor"
    );
    assert_eq!(places(&mut fleet, 9), [2]);
    fleet.cancel(ID).unwrap();
    back(&mut fleet, 2, Duration::ZERO, true);
    assert!(
        finish(&mut fleet, 3, &answer("3"), true),
        "what is asked is finished"
    );
    assert_eq!(fleet.claim(ID, 9, true).unwrap().idle, Idle::Cancelled);
    let counts = fleet.get(ID).unwrap().unwrap().batch.counts;
    assert_eq!((counts.answered, counts.cancelled), (1, 2));
    fleet.retry(ID, Timestamp::now()).unwrap();
    assert_eq!(places(&mut fleet, 9), [1, 2]);
}

#[test]
fn limits_hold_over_all_workers() {
    let Some(site) = Site::new() else { return };
    let mut limited = new(ID);
    limited.limits = FleetLimits {
        calls: Some(10),
        ..FleetLimits::default()
    };
    let mut fleet = site.worker();
    fleet
        .create(&limited, &asked(&["One?"]), Timestamp::now())
        .unwrap();
    let most = Spent {
        calls: 1,
        tokens: 5,
        ..Spent::default()
    };
    let sent: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let worker = site.worker();
                    let account = FleetAccount::open(&worker, LEASE, None).unwrap().of(ID);
                    let sent = (0..12)
                        .filter(|n| sending(&account, *n, &most).is_ok())
                        .count();
                    assert!(
                        account.is_exhausted()
                            && !account.was_cut_off(std::time::Instant::now() - LEASE)
                    );
                    sent
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(sent, 10);
    fleet.limit(ID).unwrap();
    assert_eq!(fleet.claim(ID, 1, true).unwrap().idle, Idle::Limited);
    limited.limits.calls = None;
    fleet.go_on(&limited, &asked(&["One?"])).unwrap();
    assert_eq!(places(&mut fleet, 1), [1]);
}

#[test]
fn the_rate_of_a_batch_holds_over_all_workers() {
    let Some(site) = Site::new() else { return };
    let texts: Vec<String> = (0..50).map(|n| format!("Question {n}?")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut slow = new(ID);
    slow.every = Some(Duration::from_secs(2));
    let mut fleet = site.worker();
    fleet
        .create(&slow, &asked(&texts), Timestamp::now())
        .unwrap();
    let mut other = site.worker();
    assert_eq!(places(&mut fleet, 9).len(), 1);
    let claimed = other.claim(ID, 9, true).unwrap();
    let Idle::Later(Some(wait)) = claimed.idle else {
        panic!("{claimed:?}")
    };
    assert!(claimed.jobs.is_empty() && wait <= Duration::from_secs(2));
    // Many a second are admitted in small blocks: those of a second at most.
    slow.every = Some(Duration::from_millis(100));
    fleet.go_on(&slow, &asked(&texts)).unwrap();
    site.sql("UPDATE kd_batches SET next_start = 0");
    assert_eq!(places(&mut other, 40).len(), 10);
    assert!(places(&mut fleet, 40).len() <= 1);
}

#[test]
fn slots_of_a_service_are_taken_once_and_its_pause_holds_for_all() {
    let Some(site) = Site::new() else { return };
    let fleet = site.worker();
    let account = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let slots = |per_minute, count| {
        let (tell, told) = std::sync::mpsc::channel();
        account.slots("s".into(), per_minute, count, move |slots| {
            tell.send(slots.unwrap()).unwrap()
        });
        told.recv().unwrap()
    };
    let first = slots(Some(60), 5);
    assert_eq!(
        (first.wait, first.every),
        (Duration::ZERO, Duration::from_secs(1))
    );
    let second = slots(Some(60), 1).wait;
    assert!(
        second > Duration::from_secs(3) && second <= Duration::from_secs(5),
        "{second:?}"
    );
    assert_eq!(slots(None, 1).wait, Duration::ZERO);
    account.pause("s".into(), Duration::from_secs(100));
    for per_minute in [None, Some(60)] {
        let wait = slots(per_minute, 1).wait;
        assert!(wait > Duration::from_secs(90), "{wait:?}");
    }
}

#[test]
fn batches_with_a_higher_priority_come_first_and_refused_ones_are_left() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    let mut urgent = new("batch-2");
    urgent.priority = 5;
    fleet
        .create(&urgent, &asked(&["Two?"]), Timestamp::now())
        .unwrap();
    assert_eq!(fleet.ready().unwrap(), ["batch-2", ID]);
    assert!(
        fleet.claim(ID, 1, false).unwrap().jobs.is_empty(),
        "the other comes first"
    );
    assert_eq!(fleet.claim("batch-2", 1, false).unwrap().jobs.len(), 1);
    fleet.release("batch-2").unwrap();
    fleet
        .refuse("batch-2", "agents.ada differs\u{1b}[2J")
        .unwrap();
    assert_eq!(fleet.ready().unwrap(), [ID]);
    let refusals = fleet.refusals("batch-2").unwrap();
    assert_eq!(refusals[0].reason, "agents.ada differs");
    assert_eq!(fleet.workers().unwrap()[0].name, refusals[0].worker);
    assert_eq!(fleet.claim(ID, 1, false).unwrap().jobs.len(), 1);
    assert_eq!(fleet.workers().unwrap()[0].asking, 1);
    fleet.leave().unwrap();
    let mut other = site.worker();
    assert_eq!(other.workers().unwrap().len(), 1, "it has left");
    assert_eq!(places(&mut other, 1), [1], "and given back what it held");
}

#[test]
fn results_are_read_once_in_the_order_of_their_transactions() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "Three?"]);
    assert_eq!(places(&mut fleet, 9), [1, 2, 3]);
    let mut seen = kd_sql::fleet::Seen::default();
    let read = |fleet: &mut kd_sql::fleet::Fleet, seen: &mut _| {
        let mut places = Vec::new();
        fleet
            .new_results(ID, seen, |_, lines| {
                assert!(lines.iter().all(|line| line.text.starts_with("{\"v\":")));
                places.extend(lines.into_iter().map(|line| line.place));
                Ok::<_, FleetError>(())
            })
            .unwrap();
        places
    };
    // A transaction that began earlier ends later.
    let mut held = postgres::Client::connect(&site.url, NoTls).unwrap();
    let mut open = held.transaction().unwrap();
    open.execute(
        "INSERT INTO kd_results (batch, place, key, kept, cached, line) VALUES ($1, 9, 'k', false, false, '{\"v\":1}')",
        &[&ID],
    )
    .unwrap();
    assert!(finish(&mut fleet, 2, &answer("2"), true));
    assert_eq!(read(&mut fleet, &mut seen), [2]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    assert_eq!(read(&mut fleet, &mut seen), [1]);
    open.commit().unwrap();
    assert!(finish(&mut fleet, 3, &answer("3"), true));
    assert_eq!(read(&mut fleet, &mut seen), [3, 9]);
    assert_eq!(read(&mut fleet, &mut seen), [] as [u64; 0]);
}

#[test]
fn a_user_without_rights_beyond_a_schema_is_enough_and_a_newer_version_is_refused() {
    let Some(site) = Site::new() else { return };
    let role = format!("app_{}", std::process::id());
    site.sql(&format!(
        "DROP SCHEMA IF EXISTS {role} CASCADE; DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN NOSUPERUSER; \
         CREATE SCHEMA {role} AUTHORIZATION {role}"
    ));
    let (before, after) = site.url.split_once("kd@").unwrap();
    let after = after.split_once("options=").unwrap().0;
    let url = format!("{before}{role}@{after}options=-csearch_path%3D{role}");
    let own = Site { url };
    let mut fleet = own.created(&["One?"]);
    assert_eq!(places(&mut fleet, 1), [1]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    own.sql("UPDATE kd_store SET version = 99");
    let error = kd_sql::fleet::Fleet::open(&own.store(), LEASE).unwrap_err();
    assert!(matches!(error, FleetError::Newer { .. }), "{error}");
}

#[test]
fn what_another_program_wrote_is_data() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?"]);
    site.sql("UPDATE kd_questions SET question = repeat('x', 2 << 20) WHERE place = 1");
    assert_eq!(places(&mut fleet, 9), [2], "the others are asked");
    let dead = fleet.dead(ID, 9).unwrap();
    assert_eq!((dead.len(), dead[0].n), (1, 1));
    assert!(dead[0].reason.contains("longer than 1 MiB"), "{dead:?}");
    site.sql(
        "UPDATE kd_batches SET source = E'\\x1b[2Jq.txt', command = E'kd \\x1b]0;x\\x07batch'",
    );
    let about = fleet.get(ID).unwrap().unwrap().batch.about;
    assert_eq!(
        (about.source.as_str(), about.command.as_str()),
        ("q.txt", "kd batch")
    );
    site.sql("UPDATE kd_batches SET id = 'batch-../../x' WHERE id = 'batch-1'");
    assert!(fleet.get("batch-../../x").is_err(), "ids name folders");
    let store = Store::parse("postgresql://u:pw@127.0.0.1:1/x").unwrap();
    assert_eq!(format!("{store:?}"), "postgresql://u@127.0.0.1:1/x");
    let error = kd_sql::fleet::Fleet::open(&store, LEASE).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("pw@"), "{error:?}");
    assert_eq!(answer("x").status, Status::Answered);
}

/// Each row of another program ends its question, or means nothing; the other questions are asked.
#[test]
fn damaged_rows_stop_no_other_question_and_no_worker() {
    let huge = i64::MAX;
    let damages = [
        "UPDATE kd_questions SET question = repeat('x', 2 << 20) WHERE place = 2".to_owned(),
        "DELETE FROM kd_questions WHERE place = 2".to_owned(),
        "UPDATE kd_questions SET id = repeat('x', 1 << 20), key = repeat('x', 1 << 20) WHERE place = 2".to_owned(),
        "UPDATE kd_jobs SET attempts = 2147483647 WHERE place = 2".to_owned(),
        "UPDATE kd_jobs SET due = -1 WHERE place = 2".to_owned(),
        format!("UPDATE kd_jobs SET due = -{huge} - 1 WHERE place = 2"),
        "UPDATE kd_jobs SET state = 1, token = 7 WHERE place = 2".to_owned(),
        format!("UPDATE kd_batches SET every = {huge}, next_start = -{huge}"),
        format!("UPDATE kd_batches SET pause = {huge}, max_calls = {huge}"),
        format!("INSERT INTO kd_results (batch, place, key, kept, cached, line) VALUES ('{ID}', 2, 'k', false, false, 'x')"),
        format!("INSERT INTO kd_workers (name, kd, lease, started, beat) VALUES ('e', 'e', {huge}, 0, {huge})"),
        format!("INSERT INTO kd_workers (name, kd, lease, started, beat) VALUES ('e', 'e', {huge}, 0, -{huge} - 1)"),
        format!("INSERT INTO kd_requests (worker, request, batch, calls, tokens, pico_usd)
            SELECT 99, n, '{ID}', {huge}, {huge}, {huge} FROM generate_series(1, 2) n"),
        format!("INSERT INTO kd_spending (batch, worker, millis, calls, tokens, pico_usd)
            SELECT '{ID}', n, {huge}, {huge}, {huge}, {huge} FROM generate_series(98, 99) n"),
    ];
    for damage in damages {
        let Some(site) = Site::new() else { return };
        let mut fleet = site.created(&["One?", "Two?", "Three?"]);
        site.sql(&damage);
        let mut answered = Vec::new();
        for _ in 0..9 {
            fleet.beat().unwrap_or_else(|e| panic!("{damage}: {e}"));
            let claimed = fleet.claim(ID, 1, true);
            let claimed = claimed.unwrap_or_else(|e| panic!("{damage}: {e}"));
            for job in claimed.jobs {
                answered.push(job.place);
                let ended = finish_job(&mut fleet, &job, &answer("yes"), true);
                assert!(ended, "{damage}");
            }
            // The rate of a batch may be any; time is not waited for.
            site.sql("UPDATE kd_batches SET next_start = 0");
        }
        answered.sort_unstable();
        assert!(
            [&[1, 2, 3][..], &[1, 3]].contains(&&answered[..]),
            "{damage}: {answered:?}"
        );
        fleet.workers().unwrap_or_else(|e| panic!("{damage}: {e}"));
        let batch = fleet.get(ID).unwrap_or_else(|e| panic!("{damage}: {e}"));
        assert!(batch.unwrap().batch.counts.is_over(), "{damage}");
    }
}

/// A lease that another program made endless ends.
#[test]
fn no_lease_is_longer_than_a_day() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    let mut lost = site.worker();
    assert_eq!(places(&mut lost, 1), [1]);
    let day = Duration::from_secs(86_400).as_millis();
    site.sql(&format!(
        "UPDATE kd_workers SET lease = {} WHERE id = {}",
        i64::MAX,
        lost.worker()
    ));
    fleet.beat().unwrap();
    assert_eq!(fleet.workers().unwrap().len(), 2);
    let shown = fleet.workers().unwrap().pop().unwrap();
    assert_eq!(shown.lease.as_millis(), day);
}

/// Without a known maximum a sum is a lower bound, until the worker tells what it has spent.
#[test]
fn a_request_without_a_known_maximum_is_counted_as_at_least_and_corrected_later() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    let mut slept = site.worker();
    let accounts = FleetAccount::open(&slept, LEASE, None).unwrap();
    let account = accounts.of(ID);
    let unknown = Spent {
        calls: 1,
        certainty: Certainty::AtLeast,
        ..Spent::default()
    };
    for request in 1..=2 {
        sending(&account, request, &unknown).unwrap();
    }
    site.pass(LEASE * 2, slept.worker());
    fleet.beat().unwrap();
    let spent = |fleet: &mut kd_sql::fleet::Fleet| fleet.get(ID).unwrap().unwrap().batch.spent;
    assert_eq!(
        spent(&mut fleet),
        Spent {
            calls: 2,
            ..unknown
        }
    );
    let real = Spent {
        calls: 1,
        tokens: 120,
        pico_usd: 7,
        ..Spent::default()
    };
    account.settled(1, &real);
    slept.beat().unwrap();
    slept.beat().unwrap();
    let after = spent(&mut fleet);
    assert_eq!((after.calls, after.tokens, after.pico_usd), (2, 120, 7));
    assert_eq!(after.certainty, Certainty::AtLeast);
}

#[test]
fn a_cut_off_request_concerns_only_questions_that_had_begun() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    let accounts = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let (account, other) = (accounts.of(ID), accounts.of("batch-2"));
    let before = std::time::Instant::now();
    fleet.leave().unwrap();
    assert!(sending(&account, 1, &Spent::default()).is_err());
    assert!(account.was_cut_off(before) && account.was_cut_off(before));
    assert!(!account.was_cut_off(std::time::Instant::now()));
    assert!(!other.was_cut_off(before), "of another batch");
}

/// Requests that wait at the same time are recorded together: a limit holds within them, and who no longer waits sends nothing.
#[test]
fn requests_that_are_announced_together_keep_to_the_limit_and_can_be_taken_back() {
    let Some(site) = Site::new() else { return };
    let mut limited = new(ID);
    limited.limits.calls = Some(10);
    let mut fleet = site.worker();
    let questions = asked(&["One?"]);
    fleet
        .create(&limited, &questions, Timestamp::now())
        .unwrap();
    let accounts = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let account = accounts.of(ID);
    let most = Spent {
        calls: 1,
        tokens: 5,
        ..Spent::default()
    };
    let waiting: Vec<_> = (0..30).map(|n| account.sending(n, &most)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let sent: Vec<bool> = waiting
        .into_iter()
        .map(|one| runtime.block_on(one).is_ok())
        .collect();
    assert_eq!(sent.iter().filter(|is_sent| **is_sent).count(), 10);
    assert!(account.is_over());
    fleet
        .create(&new("batch-2"), &questions, Timestamp::now())
        .unwrap();
    let other = accounts.of("batch-2");
    drop(other.sending(1, &most));
    other.settled(1, &Spent::default());
    sending(&other, 2, &most).unwrap();
    let mut database = postgres::Client::connect(&site.url, NoTls).unwrap();
    let sql = "SELECT count(*) FROM kd_requests WHERE batch = 'batch-2'";
    // What was dropped while it was recorded is taken back after that.
    let mut open: i64 = 0;
    for _ in 0..500 {
        fleet.beat().unwrap();
        open = database.query_one(sql, &[]).unwrap().get(0);
        if open == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(open, 1, "nothing is left of the one that was dropped");
    let spent = fleet.get("batch-2").unwrap().unwrap().batch.spent;
    assert_eq!(spent, Spent::default());
}

/// The clock of a machine must not matter: leases, pauses and rates compare times of the database only.
#[test]
fn no_clock_of_this_machine_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fleet");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        files += 1;
        for clock in ["SystemTime", "Zoned::now"] {
            assert!(!text.contains(clock), "{clock} in {}", path.display());
        }
        // The time in a line is for people.
        let lines = text.lines().filter(|line| line.contains("Timestamp::now"));
        for line in lines {
            assert!(line.contains("Row::failed"), "{line}");
        }
    }
    assert!(files > 10);
}
