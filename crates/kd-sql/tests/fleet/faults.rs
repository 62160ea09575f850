//! Workers and the server killed at any moment, by seeds; every result compared with an undisturbed run.

use crate::postgres_server::start;
use crate::support::{ID, Site, answer, asked, back, finish, new, places, sending};
use jiff::Timestamp;
use kd_core::ledger::Ledger;
use kd_core::spending::Spent;
use kd_sql::fleet::{Ended, Fleet, FleetAccount, Idle, NewWorker, Store};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set for copies of this test that work on a batch until they are killed: the address.
const INSIDE: &str = "KD_SQL_TEST_FLEET";
const NAME: &str = "faults::kills_of_workers_and_of_the_server_lose_and_double_nothing";
/// Short, so that the jobs of killed workers are soon given to others.
const LEASE: Duration = Duration::from_millis(400);
const ATTEMPTS: u32 = 200;

/// Works until nothing is left: two jobs at a time, ended in another order, one in four put back once.
fn work(url: &str) {
    let store = Store::parse(url).unwrap();
    let mut fleet = Fleet::open(&store, LEASE).unwrap();
    let worker = NewWorker {
        name: "w".into(),
        kd: "1".into(),
        lease: LEASE,
    };
    fleet.register(&worker).unwrap();
    let accounts = FleetAccount::open(&fleet, LEASE, None).unwrap();
    let account = accounts.of(ID);
    let mut request = 0;
    let mut last = Instant::now();
    loop {
        if last.elapsed() > LEASE / 4 {
            fleet.beat().unwrap();
            accounts.follow(&fleet);
            last = Instant::now();
        }
        let claimed = fleet.claim(ID, 2, true).unwrap();
        match claimed.idle {
            Idle::Over => return,
            _ if claimed.jobs.is_empty() => std::thread::sleep(Duration::from_millis(5)),
            _ => {}
        }
        let mut ended = Vec::new();
        for job in claimed.jobs.into_iter().rev() {
            request += 1;
            let most = Spent {
                calls: 1,
                tokens: 100,
                ..Spent::default()
            };
            if sending(&account, request, &most).is_err() {
                continue;
            }
            std::thread::sleep(Duration::from_micros(500));
            account.settled(request, &Spent { tokens: 10, ..most });
            if job.place % 4 == 0 && job.attempt == 1 {
                let pause = Duration::from_millis(1);
                ended.push(Ended::Back {
                    job,
                    pause,
                    asked: true,
                });
                continue;
            }
            let row = Box::new(answer(&format!("answer to {}", job.question)));
            let keep = job.place % 3 != 0;
            ended.push(Ended::Finished {
                job,
                row,
                keep,
                thread: Vec::new(),
            });
        }
        fleet.write(ID, &ended).unwrap();
    }
}

fn essence(site: &Site) -> BTreeMap<u64, (String, String)> {
    let rows = site.lines(&mut site.worker(), ID);
    let count = rows.len();
    let essence: BTreeMap<_, _> = rows
        .into_iter()
        .map(|row| (row.n, (row.id, row.answer.unwrap_or_default())))
        .collect();
    assert_eq!(essence.len(), count, "no line is double");
    essence
}

fn create(site: &Site, texts: &[&str]) {
    let mut batch = new(ID);
    batch.attempts = ATTEMPTS;
    let mut fleet = Fleet::open(&site.store(), LEASE).unwrap();
    fleet
        .create(&batch, &asked(texts), Timestamp::now())
        .unwrap();
}

fn child(url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(INSIDE, url)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    let _ = kill_process(pid, signal);
}

/// Kills a process of the server: it drops all connections and recovers.
fn crash(url: &str) {
    let Ok(mut client) = postgres::Client::connect(url, postgres::NoTls) else {
        return;
    };
    let row = client.query_opt(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1",
        &[],
    );
    if let Ok(Some(row)) = row
        && let Some(pid) = Pid::from_raw(row.get(0))
    {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Lets the lease of a worker end.
fn lose(site: &Site, victim: &Fleet, watcher: &mut Fleet) {
    site.pass(crate::support::LEASE * 2, victim.worker());
    watcher.beat().unwrap();
}

#[test]
fn a_question_that_kills_its_workers_takes_no_other_with_it() {
    let Some(site) = Site::new() else { return };
    let mut watcher = site.created(&["One?", "Two?", "Three?"]);
    for attempt in 1..=2 {
        let mut victim = site.worker();
        assert_eq!(places(&mut victim, 2), [1, 2], "attempt {attempt}");
        lose(&site, &victim, &mut watcher);
    }
    // Both have one attempt left: they are asked after all others, and alone.
    let (mut busy, mut victim) = (site.worker(), site.worker());
    assert_eq!(places(&mut busy, 9), [3]);
    for _ in 0..2 {
        // The first look is from the cursor on.
        assert_eq!(places(&mut busy, 9), [] as [u64; 0], "it holds another one");
    }
    let other = asked(&["Other?"]);
    busy.create(&new("batch-2"), &other, Timestamp::now())
        .unwrap();
    let of_other = |fleet: &mut Fleet| fleet.claim("batch-2", 9, true).unwrap().jobs.len();
    assert_eq!(of_other(&mut busy), 0, "it first ends what it holds");
    assert_eq!(places(&mut victim, 9), [1]);
    assert_eq!(places(&mut victim, 9), [] as [u64; 0], "it asks this alone");
    assert_eq!(of_other(&mut victim), 0);
    assert!(finish(&mut busy, 3, &answer("3"), true));
    assert_eq!(places(&mut busy, 9), [2]);
    lose(&site, &victim, &mut watcher);
    assert!(finish(&mut busy, 2, &answer("2"), true));
    assert_eq!(of_other(&mut busy), 1, "then it goes on with others");
    let dead = watcher.dead(ID, 9).unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].n, dead[0].attempts), (1, 3));
    assert_eq!(watcher.claim(ID, 9, true).unwrap().idle, Idle::Over);
}

/// What a worker gives back of one batch changes nothing for a question of another one that it asks alone, or waits for.
#[test]
fn a_worker_that_gives_another_batch_back_still_asks_alone() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?"]);
    let other = asked(&["Other?"]);
    for id in ["batch-2", "batch-3"] {
        fleet.create(&new(id), &other, Timestamp::now()).unwrap();
    }
    let of = |fleet: &mut Fleet, id: &str| fleet.claim(id, 9, true).unwrap().jobs.len();
    assert_eq!(of(&mut fleet, "batch-2"), 1);
    site.sql("UPDATE kd_jobs SET due = 1, attempts = 2 WHERE batch = 'batch-1'");
    assert_eq!(
        places(&mut fleet, 9),
        [] as [u64; 0],
        "it holds another one"
    );
    fleet.release("batch-3").unwrap();
    assert_eq!(of(&mut fleet, "batch-3"), 0, "it still ends that first");
    fleet.release("batch-2").unwrap();
    assert_eq!(places(&mut fleet, 9), [1]);
    fleet.release("batch-3").unwrap();
    assert_eq!(of(&mut fleet, "batch-3"), 0, "it asks this alone");
    fleet.release(ID).unwrap();
    assert_eq!(of(&mut fleet, "batch-3"), 1);
}

/// A service that is down says nothing about the question: it is still asked alone.
#[test]
fn a_question_that_comes_back_unasked_is_still_asked_alone() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?", "Two?"]);
    site.sql("UPDATE kd_jobs SET due = 1, attempts = 2");
    for pause in [Duration::ZERO, Duration::from_secs(3600)] {
        assert_eq!(places(&mut fleet, 9), [1], "{pause:?}");
        back(&mut fleet, 1, pause, false);
    }
    assert_eq!(places(&mut fleet, 9), [1]);
    // One that was asked and has failed has not killed its worker.
    back(&mut fleet, 1, Duration::ZERO, true);
    assert_eq!(places(&mut fleet, 9), [1]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
}

/// Rows of another program that no worker can serve stop no batch.
#[test]
fn a_batch_without_a_valid_id_stops_no_other() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    site.sql(
        "INSERT INTO kd_batches SELECT '!' || n, key || n, method, asks, parts, source, output, command, fresh, 100, attempts, pause,
             every, next_start, max_calls, max_tokens, max_pico_usd, created - 1, cancelled, limited
             FROM kd_batches, generate_series(1, 150) n WHERE id = 'batch-1';
         INSERT INTO kd_jobs (batch, place, state) SELECT '!' || n, 1, 0 FROM generate_series(1, 150) n",
    );
    assert_eq!(fleet.ready().unwrap(), ["batch-1"]);
    assert_eq!(places(&mut fleet, 9), [1]);
}

/// A claim that another program changed is given back with the next beat: its worker would never end it.
#[test]
fn a_claim_that_its_worker_does_not_know_is_given_back() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    assert_eq!(places(&mut fleet, 9), [1]);
    fleet.beat().unwrap();
    assert_eq!(places(&mut fleet, 9), [] as [u64; 0], "it is still asked");
    site.sql("UPDATE kd_jobs SET token = token + 1000");
    fleet.beat().unwrap();
    assert!(!finish(&mut fleet, 1, &answer("late"), true));
    assert_eq!(places(&mut fleet, 9), [1]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
}

/// Once as many transactions as asked have failed, the disk has space again.
#[test]
fn a_full_disk_of_the_server_is_waited_for() {
    let Some(site) = Site::new() else { return };
    let mut fleet = site.created(&["One?"]);
    site.sql(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('tries') < 3 THEN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER no_space BEFORE INSERT ON kd_results FOR EACH ROW EXECUTE FUNCTION no_space()",
    );
    assert_eq!(places(&mut fleet, 1), [1]);
    assert!(finish(&mut fleet, 1, &answer("1"), true));
    assert_eq!(site.lines(&mut fleet, ID).len(), 1);
    // What is not tried again tells what to do.
    site.sql("ALTER SEQUENCE tries RESTART; CREATE TRIGGER no_space BEFORE INSERT ON kd_batches FOR EACH ROW EXECUTE FUNCTION no_space()");
    let error = fleet.create(&new("batch-2"), &asked(&["One?"]), Timestamp::now());
    let error = error.unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert!(error.hint().contains("free space"), "{}", error.hint());
}

/// `KD_BATCH_SEEDS=50` disturbs more; `tests/batch/run --full` does.
#[test]
fn kills_of_workers_and_of_the_server_lose_and_double_nothing() {
    if let Some(url) = std::env::var_os(INSIDE) {
        work(url.to_str().unwrap());
        return;
    }
    let Some(server) = start(None) else { return };
    let seeds: u64 = std::env::var("KD_BATCH_SEEDS").map_or(3, |n| n.parse().unwrap());
    let texts: Vec<String> = (0..160).map(|n| format!("Question {}?", n % 120)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let site = |seed: u64| {
        let base = Site {
            url: format!("postgresql://kd@localhost:{}/postgres", server.port),
        };
        base.sql(&format!("CREATE SCHEMA s{seed}"));
        Site {
            url: format!("{}?options=-csearch_path%3Ds{seed}", base.url),
        }
    };
    let calm = site(0);
    create(&calm, &texts);
    work(&calm.url);
    let expected = essence(&calm);
    assert_eq!(expected.len(), 160);
    let (mut kills, mut stops, mut crashes) = (0, 0, 0);
    for seed in 1..=seeds {
        let site = site(seed);
        create(&site, &texts);
        let mut state = seed;
        let mut dice = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % n
        };
        let mut workers: Vec<Child> = (0..3).map(|_| child(&site.url)).collect();
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(20 + dice(80)));
            let at = dice(3) as usize;
            match dice(8) {
                0 => {
                    crash(&site.url);
                    crashes += 1;
                }
                1 | 2 => {
                    // Stopped for longer than its lease, then continued.
                    signal(&workers[at], Signal::STOP);
                    std::thread::sleep(LEASE * 2);
                    signal(&workers[at], Signal::CONT);
                    stops += 1;
                }
                _ => {
                    workers[at].kill().unwrap();
                    workers[at].wait().unwrap();
                    workers[at] = child(&site.url);
                    kills += 1;
                }
            }
        }
        for mut worker in workers {
            assert!(worker.wait().unwrap().success(), "seed {seed}");
        }
        assert_eq!(essence(&site), expected, "seed {seed}");
        let batch = site.worker().get(ID).unwrap().unwrap().batch;
        assert!(
            batch.counts.is_over() && batch.spent.calls >= 120,
            "seed {seed}: {batch:?}"
        );
    }
    println!(
        "{seeds} seeds: {kills} workers killed, {stops} stopped past their lease, {crashes} crashes of the server: 160 results each, none lost, none double"
    );
    assert!(kills > 0);
}
