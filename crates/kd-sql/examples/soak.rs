//! A long run of the two queues of batches, with jobs that do nothing:
//!
//! ```text
//! cargo run --release -p kd-sql --example soak -- sqlite [--minutes 90] [--jobs 1000000]
//! cargo run --release -p kd-sql --example soak -- postgresql://kd@localhost/soak [--minutes 90] [--jobs 1000000]
//! ```
//!
//! One process keeps its connections for the whole time. Four workers, which claim one job at a time, serve batches
//! that are created by another connection, in bursts with pauses between them; a sixth connection looks at all batches
//! every five seconds. These are the conditions under which servers with a queue in SQLite were reported to stop taking
//! jobs after hours ([apalis-sqlite 58](https://github.com/apalis-dev/apalis-sqlite/issues/58)).
//!
//! Prints a line each minute: jobs so far, jobs a second, time from the creation of a job to its end (median, 99 %,
//! maximum), memory of this process, size of the database. Exits with 1 if no job ends for a minute although some wait,
//! or if a result is lost or double.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "a program for developers, which may panic"
)]

use jiff::Timestamp;
use kd_core::batch::{Method, Row, Status};
use kd_sql::batch::{Asked, Batches, Finished, Job, NewBatch};
use kd_sql::fleet::{Ended, Fleet, FleetError, Idle, Line, NewFleetBatch, NewWorker, Store};
use postgres::{Client, NoTls};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WORKERS: usize = 4;
/// Jobs of a burst, one batch.
const BURST: u64 = 500;
const LEASE: Duration = Duration::from_secs(60);
/// How long jobs may wait while none ends.
const STUCK: Duration = Duration::from_secs(60);

/// What all threads share.
#[derive(Default)]
struct Shared {
    created: AtomicU64,
    ended: AtomicU64,
    over: AtomicBool,
    /// Milliseconds from creation to end of the jobs of the last minute.
    waits: Mutex<Vec<u32>>,
}

impl Shared {
    fn end(&self, created: Instant, jobs: u64) {
        let wait = u32::try_from(created.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut waits = self.waits.lock().expect("no thread panics with it");
        waits.extend((0..jobs).map(|_| wait));
        self.ended.fetch_add(jobs, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// A batch that was created, and when.
struct Burst {
    id: String,
    created: Instant,
}

fn questions(batch: &str) -> Vec<Asked> {
    let asked = |n: u64| Asked {
        id: format!("q{n}"),
        text: format!("Question {n} of {batch}?"),
        key: format!("{batch} {n}"),
    };
    (1..=BURST).map(asked).collect()
}

fn about(id: &str) -> NewBatch {
    NewBatch {
        id: id.into(),
        key: id.into(),
        method: "ask".into(),
        fresh: true,
        ..NewBatch::default()
    }
}

fn answer(job: &Job) -> Row {
    Row {
        status: Status::Answered,
        answer: Some(format!("The answer to {}.", job.question)),
        reason: None,
        ..Row::failed(Method::Ask, "", Timestamp::now())
    }
}

/// A worker on SQLite: it claims one job at a time, and leaves its connection open.
fn sqlite_worker(path: &Path, bursts: &Mutex<Receiver<Burst>>, shared: &Shared) {
    let mut batches = Batches::at(path).expect("it opens");
    loop {
        let burst = bursts.lock().expect("no thread panics with it").recv();
        let Ok(burst) = burst else { return };
        let _lock = batches.lock(&burst.id).expect("a lock").expect("free");
        let run = batches
            .begin(&burst.id, 3, Timestamp::now())
            .expect("it begins");
        while let Some(job) = batches
            .claim(&burst.id, run, 1, Timestamp::now())
            .expect("claimed")
            .pop()
        {
            let finished = Finished {
                batch: &burst.id,
                place: job.place,
                row: &answer(&job),
                keep: true,
            };
            let lines = batches.finish(run, &finished).expect("written");
            assert_eq!(lines.len(), 1, "{} {}", burst.id, job.place);
            shared.end(burst.created, 1);
        }
    }
}

/// A worker on PostgreSQL, as `kd worker`: it looks for batches in pauses that double, serves one until nothing is left of it, and claims
/// one job at a time.
fn postgres_worker(store: &Store, created: &Mutex<Vec<Burst>>, shared: &Shared) {
    let mut fleet = Fleet::open(store, LEASE).expect("it opens");
    let worker = NewWorker {
        name: "soak".into(),
        kd: "1".into(),
        lease: LEASE,
    };
    fleet.register(&worker).expect("registered");
    let (mut pause, mut beat) = (Duration::from_millis(200), Instant::now());
    while !shared.is_over() {
        let mut worked = false;
        for id in fleet.ready().expect("read") {
            let since = {
                let created = created.lock().expect("no thread panics with it");
                created.iter().find(|b| b.id == id).map(|b| b.created)
            };
            let since = since.unwrap_or_else(Instant::now);
            loop {
                if beat.elapsed() > Duration::from_secs(10) {
                    fleet.beat().expect("a sign of life");
                    beat = Instant::now();
                }
                let claimed = fleet.claim(&id, 1, false).expect("claimed");
                if let Some(job) = claimed.jobs.into_iter().next() {
                    let row = Box::new(answer(&job));
                    let ended = Ended::Finished {
                        job,
                        row,
                        keep: true,
                        thread: Vec::new(),
                    };
                    assert_eq!(fleet.write(&id, &[ended]).expect("written"), [true], "{id}");
                    shared.end(since, 1);
                    worked = true;
                    continue;
                }
                assert_ne!(claimed.idle, Idle::Cancelled, "{id}");
                // What was put back before the place from which it claimed, or another worker still asks.
                if claimed.idle != Idle::Later(Some(Duration::ZERO)) {
                    break;
                }
            }
        }
        if beat.elapsed() > Duration::from_secs(10) {
            fleet.beat().expect("a sign of life");
            beat = Instant::now();
        }
        if worked {
            pause = Duration::from_millis(200);
        } else {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }
    fleet.leave().expect("left");
}

/// Creates batches so that `jobs` are spread over `time`: one to seven at once, then a pause that makes up for them, and
/// every half hour one of three minutes.
fn bursts(jobs: u64, time: Duration, shared: &Shared, mut create: impl FnMut(String)) {
    let count = jobs.div_ceil(BURST);
    let pauses = (time.as_secs() / 1800).max(1);
    let idle = Duration::from_secs(180).min(time / 20);
    let busy = time.saturating_sub(idle * u32::try_from(pauses).unwrap_or(1));
    let step = busy / u32::try_from(count).unwrap_or(1);
    let (mut together, mut left, mut due) = (1, 1, Instant::now());
    for n in 1..=count {
        create(format!("batch-{n:06}"));
        shared.created.fetch_add(BURST, Ordering::Relaxed);
        due += step;
        if n % (count / pauses).max(1) == count / pauses / 2 {
            due += idle;
        }
        left -= 1;
        if left == 0 {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            together = together % 7 + 1;
            left = together;
        }
    }
}

fn memory_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    number.unwrap_or_default() / 1024
}

/// Prints a line each minute; ends the process if the workers stop.
fn watch(shared: &Shared, size_mib: impl Fn() -> u64) {
    let (mut last, mut line, mut moved, mut at_line) = (0, Instant::now(), Instant::now(), 0);
    let began = Instant::now();
    println!("minute     jobs  jobs/s  median ms    99 %  maximum  memory MiB  database MiB");
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let (ended, over) = (shared.ended.load(Ordering::Relaxed), shared.is_over());
        if ended != last || ended == shared.created.load(Ordering::Relaxed) {
            (last, moved) = (ended, Instant::now());
        }
        if moved.elapsed() > STUCK {
            let waiting = shared.created.load(Ordering::Relaxed) - ended;
            eprintln!(
                "error: no job has ended for {} s, and {waiting} wait",
                STUCK.as_secs()
            );
            std::process::exit(1);
        }
        if line.elapsed() >= Duration::from_secs(60) || over {
            let mut waits =
                std::mem::take(&mut *shared.waits.lock().expect("no thread panics with it"));
            waits.sort_unstable();
            let of = |share: usize| {
                waits.get((waits.len() * share / 100).min(waits.len().saturating_sub(1)))
            };
            let of = |share| of(share).copied().unwrap_or_default();
            println!(
                "{:>6} {ended:>8} {:>7.0} {:>10} {:>7} {:>8} {:>11} {:>13}",
                began.elapsed().as_secs() / 60,
                (ended - at_line) as f64 / line.elapsed().as_secs_f64(),
                of(50),
                of(99),
                of(100),
                memory_mib(),
                size_mib(),
            );
            (line, at_line) = (Instant::now(), ended);
        }
        if over {
            return;
        }
    }
}

fn wait_for_all(shared: &Shared) {
    while shared.ended.load(Ordering::Relaxed) < shared.created.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Panics unless every batch has each of its results once, with the answer to its question, and as many claims were ended as there are jobs:
/// two ends of one job would leave one result.
fn check(all: &[String], shared: &Shared, mut lines: impl FnMut(&str) -> Vec<Row>) {
    for id in all {
        let rows = lines(id);
        let mut places: Vec<u64> = rows.iter().map(|row| row.n).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(1..=BURST), "{id}: lost or double");
        for row in rows {
            let expected = format!("The answer to Question {} of {id}?.", row.n);
            assert_eq!(row.answer, Some(expected), "{id} {}", row.n);
        }
    }
    let ended = shared.ended.load(Ordering::Relaxed);
    assert_eq!(
        ended,
        all.len() as u64 * BURST,
        "ended twice, or not at all"
    );
    println!(
        "{} results, none lost, none double",
        all.len() as u64 * BURST
    );
}

fn sqlite(jobs: u64, time: Duration) {
    let folder = PathBuf::from("target/soak");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("soak.db");
    let shared = Arc::new(Shared::default());
    let (send, receive) = channel::<Burst>();
    let receive = Mutex::new(receive);
    let mut batches = Batches::at(&path).expect("it opens");
    let mut all = Vec::new();
    let size = || {
        let of =
            |end: &str| std::fs::metadata(path.with_extension(end)).map_or(0, |file| file.len());
        (of("db") + of("db-wal")) >> 20
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| sqlite_worker(&path, &receive, &shared)))
            .collect();
        scope.spawn(|| watch(&shared, size));
        scope.spawn(|| {
            let batches = Batches::at(&path).expect("it opens");
            while !shared.is_over() {
                batches.all().expect("read");
                std::thread::sleep(Duration::from_secs(5));
            }
        });
        fill(jobs, time, &shared, &send, |id| {
            batches
                .create(&about(id), &questions(id), Timestamp::now())
                .expect("created");
            all.push(id.to_owned());
        });
        drop(send);
        for worker in workers {
            worker.join().expect("a worker that ends");
        }
        shared.over.store(true, Ordering::Relaxed);
    });
    check(&all, &shared, |id| {
        let mut rows = Vec::new();
        let read = |line: &str| {
            rows.push(serde_json::from_str(line).expect("a line"));
            Ok::<_, kd_store::Error>(())
        };
        batches.results(id, read).expect("results");
        rows
    });
    drop(batches);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Creates the batches, and tells the workers of each.
fn fill(
    jobs: u64,
    time: Duration,
    shared: &Shared,
    send: &Sender<Burst>,
    mut create: impl FnMut(&str),
) {
    bursts(jobs, time, shared, |id| {
        create(&id);
        let created = Instant::now();
        send.send(Burst { id, created }).expect("workers listen");
    });
    wait_for_all(shared);
}

fn postgres((url, store): (&str, &Store), jobs: u64, time: Duration) {
    let shared = Shared::default();
    let created: Mutex<Vec<Burst>> = Mutex::default();
    let mut fleet = Fleet::open(store, LEASE).expect("it opens");
    let mut all = Vec::new();
    let client = Client::connect(url, NoTls).expect("connected");
    let client = Mutex::new(client);
    let size = || {
        let mut client = client.lock().expect("no thread panics with it");
        let row = client.query_one("SELECT pg_database_size(current_database())", &[]);
        row.map_or(0, |row| {
            u64::try_from(row.get::<_, i64>(0)).unwrap_or(0) >> 20
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| postgres_worker(store, &created, &shared));
        }
        scope.spawn(|| watch(&shared, size));
        scope.spawn(|| {
            let mut fleet = Fleet::open(store, LEASE).expect("it opens");
            while !shared.is_over() {
                fleet.all().expect("read");
                std::thread::sleep(Duration::from_secs(5));
            }
        });
        bursts(jobs, time, &shared, |id| {
            let new = NewFleetBatch {
                about: about(&id),
                attempts: 3,
                ..NewFleetBatch::default()
            };
            let instant = Instant::now();
            let mut created = created.lock().expect("no thread panics with it");
            fleet
                .create(&new, &questions(&id), Timestamp::now())
                .expect("created");
            created.push(Burst {
                id: id.clone(),
                created: instant,
            });
            // Only the newest batches can still have jobs.
            let old = created.len().saturating_sub(200);
            created.drain(..old);
            all.push(id);
        });
        wait_for_all(&shared);
        shared.over.store(true, Ordering::Relaxed);
    });
    check(&all, &shared, |id| {
        let mut rows = Vec::new();
        let read = |line: &Line| {
            let row: Row = serde_json::from_str(&line.text).expect("a line");
            assert_eq!((row.batch.as_str(), row.n), (id, line.place));
            rows.push(row);
            Ok::<_, FleetError>(())
        };
        fleet.results(id, read).expect("results");
        rows
    });
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let minutes = after("--minutes").unwrap_or(90);
    let jobs = after("--jobs").unwrap_or(1_000_000);
    let time = Duration::from_secs(60 * minutes);
    match args.first().map(String::as_str) {
        Some("sqlite") => sqlite(jobs, time),
        Some(url) => match Store::parse(url) {
            Some(store) => postgres((url, &store), jobs, time),
            None => eprintln!("error: not an address of PostgreSQL: {url}"),
        },
        None => eprintln!("usage: soak sqlite|postgresql://… [--minutes N] [--jobs N]"),
    }
}
