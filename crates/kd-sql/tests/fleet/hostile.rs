//! Rows of another program with numbers that cannot be counted with, what happens between two statements, and two processes that
//! run the same batch.

use crate::support::{ID, LEASE, Site, answer, asked, finish, new, places, sending};
use jiff::Timestamp;
use kd_core::batch::{Method, Row};
use kd_core::ledger::Ledger;
use kd_core::spending::Spent;
use kd_sql::fleet::{FleetAccount, FleetError, FleetReader, Slots};
use postgres::{Client, NoTls};
use std::time::Duration;

fn failed() -> Row {
    Row::failed(Method::Ask, "it broke", Timestamp::UNIX_EPOCH)
}

/// Waits until a statement waits for a lock.
fn wait_for_lock(site: &Site) {
    let mut client = Client::connect(&site.url, NoTls).unwrap();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    for _ in 0..2000 {
        let waiting: i64 = client.query_one(sql, &[]).unwrap().get(0);
        if waiting > 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing waits");
}

/// `kd batch retry` makes a failed question wait for an equal one that is being asked, while that one ends.
#[test]
fn a_question_that_is_asked_again_while_its_equal_ends_gets_the_answer() {
    for keep in [true, false] {
        let Some(site) = Site::new() else { return };
        let mut fleet = site.created(&["One?", "One?"]);
        assert_eq!(places(&mut fleet, 9), [1]);
        assert!(finish(&mut fleet, 1, &failed(), false));
        assert_eq!(places(&mut fleet, 9), [2]);
        // The lock of the result's row lets the retry wait in its middle, with the locks that it has.
        let mut other = Client::connect(&site.url, NoTls).unwrap();
        let mut held = other.transaction().unwrap();
        held.execute("SELECT 1 FROM kd_jobs WHERE place = 2 FOR UPDATE", &[])
            .unwrap();
        std::thread::scope(|scope| {
            let retry = scope.spawn(|| {
                let mut admin = kd_sql::fleet::Fleet::open(&site.store(), LEASE).unwrap();
                admin.retry(ID, Timestamp::now()).unwrap()
            });
            wait_for_lock(&site);
            // The equal question ends meanwhile: what the retry has seen of it before is no longer so.
            held.execute(
                "UPDATE kd_jobs SET state = 2, worker = NULL, token = 0 WHERE place = 2",
                &[],
            )
            .unwrap();
            if keep {
                let row = Row {
                    batch: ID.into(),
                    id: "q2".into(),
                    n: 2,
                    ..answer("1")
                };
                let line = serde_json::to_string(&row).unwrap();
                held.execute(
                    "INSERT INTO kd_results (batch, place, key, kept, cached, line) SELECT batch, place, key, true, false, $1 FROM kd_questions WHERE place = 2",
                    &[&line],
                )
                .unwrap();
            }
            held.commit().unwrap();
            let retried = retry.join().unwrap();
            assert_eq!(
                (retried.answered, retried.asked),
                (u64::from(keep), u64::from(!keep))
            );
        });
        let next: &[u64] = if keep { &[] } else { &[1] };
        // The first look is from the cursor on.
        let claimed = [places(&mut fleet, 9), places(&mut fleet, 9)].concat();
        assert_eq!(claimed, next, "asked only if there is no answer");
    }
}

/// The other way round: the end waits for the retry, and then finds the question that waits for it.
#[test]
fn an_end_that_waited_for_a_retry_answers_the_question_that_was_asked_again() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "One?"]);
    assert_eq!(places(&mut fleet, 9), [1]);
    assert!(finish(&mut fleet, 1, &failed(), false));
    assert_eq!(places(&mut fleet, 9), [2]);
    let job = crate::support::held(2);
    let mut other = Client::connect(&site.url, NoTls).unwrap();
    let mut held = other.transaction().unwrap();
    held.execute("SELECT 1 FROM kd_jobs WHERE place = 2 FOR UPDATE", &[])
        .unwrap();
    held.execute(
        "UPDATE kd_jobs SET state = 5, twin = 2 WHERE place = 1",
        &[],
    )
    .unwrap();
    std::thread::scope(|scope| {
        let end = scope.spawn(|| {
            let ended = crate::support::finish_job(&mut fleet, &job, &answer("1"), true);
            (ended, fleet)
        });
        wait_for_lock(&site);
        held.commit().unwrap();
        let (ended, mut fleet) = end.join().unwrap();
        assert!(ended);
        assert_eq!(site.lines(&mut fleet, ID).len(), 2);
        assert!(fleet.get(ID).unwrap().unwrap().batch.counts.is_over());
    });
}

#[test]
fn questions_that_wait_for_one_that_has_ended_are_asked() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?", "One?", "One?", "Three?", "Three?"]);
    assert_eq!(places(&mut fleet, 9), [1, 2, 5]);
    site.sql("UPDATE kd_jobs SET state = 2, worker = NULL WHERE place = 1");
    assert_eq!(places(&mut fleet, 9), [] as [u64; 0]);
    assert!(finish(&mut fleet, 2, &answer("2"), true));
    // The command that goes on with the batch lets them be asked, one of them, and those of the others wait.
    let questions = asked(&["One?", "Two?", "One?", "One?", "Three?", "Three?"]);
    fleet.go_on(&new(ID), &questions).unwrap();
    assert_eq!(places(&mut fleet, 9), [3]);
    assert!(finish(&mut fleet, 3, &answer("1"), true));
    assert!(finish(&mut fleet, 5, &answer("3"), true));
    assert!(fleet.get(ID).unwrap().unwrap().batch.counts.is_over());
    // So does a worker that finds nothing else, also when they wait for each other.
    site.sql("UPDATE kd_jobs SET state = 5, twin = 9 - place WHERE place IN (4, 5)");
    let mut freed = Vec::new();
    // The first looks are from the cursor on, and at what is left.
    for _ in 0..3 {
        freed.extend(places(&mut fleet, 9));
    }
    assert_eq!(freed, [4, 5]);
}

/// A request that is settled while another asks for a limit counts once.
#[test]
fn a_request_that_is_settled_meanwhile_counts_once_for_the_limit() {
    let Some(site) = Site::new() else { return };
    let mut limited = new(ID);
    limited.limits.calls = Some(40);
    let mut fleet = site.worker();
    fleet
        .create(&limited, &asked(&["One?"]), Timestamp::now())
        .unwrap();
    let accounts = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let account = accounts.of(ID);
    let done = std::sync::atomic::AtomicBool::new(false);
    let done = &done;
    let one = Spent {
        calls: 1,
        ..Spent::default()
    };
    std::thread::scope(|scope| {
        // Each is sent, then settled by the heartbeat, while the others are announced.
        let beats = scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                fleet.beat().unwrap();
            }
        });
        for n in 0..40 {
            sending(&account, n, &one).unwrap_or_else(|e| panic!("request {n}: {e}"));
            account.settled(n, &one);
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        beats.join().unwrap();
    });
    assert!(sending(&account, 41, &one).is_err());
}

/// Sums and additions of what another program wrote never fail.
#[test]
fn hostile_amounts_end_no_worker() {
    let huge = i64::MAX;
    for amount in [format!("{huge}"), format!("-{huge}")] {
        let Some(site) = Site::new() else { return };
        let mut fleet = site.created(&["One?", "Two?"]);
        let mut lost = site.worker();
        let accounts = FleetAccount::open(&lost, LEASE, None).unwrap();
        let account = accounts.of(ID);
        for worker in [lost.worker(), 98, 99] {
            site.sql(&format!(
                "INSERT INTO kd_spending (batch, worker, millis, calls, tokens, pico_usd) VALUES ('{ID}', {worker}, {amount}, {amount}, {amount}, {amount});
                 INSERT INTO kd_requests (worker, request, batch, calls, tokens, pico_usd) VALUES ({worker}, 77, '{ID}', {amount}, {amount}, {amount})"
            ));
        }
        let most = Spent {
            calls: 1,
            tokens: 10,
            ..Spent::default()
        };
        for request in 1..=3 {
            sending(&account, request, &most).unwrap();
        }
        account.settled(1, &most);
        let at_least = Spent {
            certainty: kd_core::usage::Certainty::AtLeast,
            ..most
        };
        account.settled(2, &at_least);
        lost.beat().unwrap();
        lost.add_time(ID, Duration::from_secs(1)).unwrap();
        site.pass(LEASE * 2, lost.worker());
        fleet.beat().unwrap();
        assert_eq!(fleet.workers().unwrap().len(), 1, "{amount}");
        let spent = fleet.get(ID).unwrap().unwrap().batch.spent;
        assert!(spent.calls >= 3, "{amount}: {spent:?}");
        FleetReader::new(&site.store()).look(9).unwrap();
        site.sql("UPDATE kd_batches SET max_calls = 5");
        let own = FleetAccount::open(&fleet, LEASE, None).unwrap().of(ID);
        let fits = sending(&own, 9, &most).is_ok();
        assert_eq!(fits, amount.starts_with('-'), "{amount}");
    }
}

#[test]
fn a_worker_that_cannot_be_ended_stops_no_other_and_damage_is_told_as_such() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?"]);
    let (mut bad, mut lost) = (site.worker(), site.worker());
    assert_eq!(places(&mut bad, 1), [1]);
    assert_eq!(places(&mut lost, 1), [2]);
    site.sql(
        "ALTER TABLE kd_jobs ALTER COLUMN attempts DROP NOT NULL; UPDATE kd_jobs SET attempts = NULL WHERE place = 1",
    );
    for worker in [&bad, &lost] {
        site.pass(LEASE * 2, worker.worker());
    }
    fleet.beat().unwrap();
    let names = fleet.workers().unwrap();
    assert_eq!(names.len(), 2, "the damaged one is still there: {names:?}");
    assert_eq!(places(&mut fleet, 9), [2], "of the other lost one");
    site.sql("ALTER TABLE kd_batches ALTER COLUMN priority DROP NOT NULL; UPDATE kd_batches SET priority = NULL");
    let error = fleet.get(ID).unwrap_err();
    assert!(matches!(error, FleetError::Damaged(_)), "{error}");
    assert!(error.hint().contains("who else writes"), "{}", error.hint());
}

#[test]
fn a_method_that_kd_does_not_know_is_an_error() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    site.sql("UPDATE kd_batches SET method = 'guess'");
    let error = fleet.claim(ID, 1, true).unwrap_err();
    assert!(matches!(error, FleetError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("`guess`"), "{error}");
}

/// The row of a worker is deleted, or says that it has ended; or no worker is named.
#[test]
fn questions_of_workers_that_are_gone_are_asked_again_and_the_attempts_count() {
    let vanishes = [
        "DELETE FROM kd_workers WHERE id = $1",
        "UPDATE kd_workers SET ended = 1 WHERE id = $1",
        "UPDATE kd_jobs SET worker = NULL WHERE worker = $1",
    ];
    for vanish in vanishes {
        let Some(site) = Site::new() else { return };
        let mut fleet = site.created(&["One?", "Two?"]);
        site.sql("UPDATE kd_jobs SET due = -1 WHERE place = 2");
        assert_eq!(places(&mut fleet, 1), [2]);
        let most = Spent {
            calls: 1,
            tokens: 5,
            ..Spent::default()
        };
        for attempt in 1..=3 {
            let mut gone = site.worker();
            assert_eq!(places(&mut gone, 1), [1], "{vanish}, attempt {attempt}");
            let account = FleetAccount::open(&gone, LEASE, None).unwrap().of(ID);
            sending(&account, 1, &most).unwrap();
            site.sql(&vanish.replace("$1", &gone.worker().to_string()));
            let late = crate::support::held(1);
            fleet.beat().unwrap();
            assert!(!crate::support::finish_job(
                &mut gone,
                &late,
                &answer("late"),
                true
            ));
        }
        let dead = fleet.dead(ID, 9).unwrap();
        assert_eq!(
            (dead.len(), dead[0].n, dead[0].attempts),
            (1, 1, 3),
            "{vanish}"
        );
        assert!(
            dead[0].reason.contains("lost 3 times"),
            "{}",
            dead[0].reason
        );
        // What they have sent counts.
        if !vanish.contains("NULL") {
            let spent = fleet.get(ID).unwrap().unwrap().batch.spent;
            assert_eq!(spent.tokens, 15, "{vanish}");
        }
        assert!(
            finish(&mut fleet, 2, &answer("2"), true),
            "of one that lives"
        );
        assert!(fleet.get(ID).unwrap().unwrap().batch.counts.is_over());
    }
}

#[test]
fn no_pause_and_no_slot_of_another_program_stops_a_service() {
    let Some(site) = Site::new() else { return };
    let fleet = site.worker();
    let account = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let slots = |per_minute| -> Slots {
        let (tell, told) = std::sync::mpsc::channel();
        account.slots("s".into(), per_minute, 1, move |slots| {
            tell.send(slots.unwrap()).unwrap()
        });
        told.recv().unwrap()
    };
    let pause = Duration::from_secs(600);
    for n in [i64::MAX, i64::MIN] {
        site.sql(&format!(
            "DELETE FROM kd_services; INSERT INTO kd_services (name, next_start, paused_until) VALUES ('s', {n}, {n})"
        ));
        assert!(slots(None).wait <= pause, "{n}");
        assert!(
            slots(Some(600)).wait <= pause + Duration::from_secs(500),
            "{n}"
        );
        account.pause("s".into(), Duration::from_secs(100));
        let wait = slots(None).wait;
        assert!(
            wait <= pause && wait > Duration::from_secs(90),
            "{n}: {wait:?}"
        );
    }
}

#[test]
fn one_process_runs_a_batch_until_its_connection_ends() {
    let Some(site) = Site::new() else { return };
    let mut first = site.created(&["One?"]);
    let mut second = site.worker();
    assert!(first.hold(ID).unwrap() && first.hold(ID).unwrap());
    assert!(!second.hold(ID).unwrap());
    assert!(second.hold("batch-2").unwrap(), "of another batch");
    drop(first);
    for _ in 0..2000 {
        if second.hold(ID).unwrap() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nobody gets it");
}

#[test]
fn a_thread_that_is_too_large_is_left_out() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?"]);
    site.sql(&format!(
        "INSERT INTO kd_threads SELECT '{ID}', n, 'm1.md', convert_to(repeat('x', CASE n WHEN 1 THEN {} ELSE 3 END), 'UTF8') FROM generate_series(1, 2) n",
        kd_sql::fleet::THREAD_BYTES_MAX
    ));
    let mut found = Vec::new();
    fleet
        .threads(ID, &[1, 2], |place, files| {
            found.push((place, files[0].bytes.len()));
            Ok::<_, FleetError>(())
        })
        .unwrap();
    assert_eq!(found, [(2, 3)]);
}
