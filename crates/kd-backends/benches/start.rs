//! Measures starting a program in a new session: by the standard library's fork, by us without a keeper, with a keeper,
//! and with a keeper and Landlock; from a process with little memory and from one that holds a model.
//!
//! `cargo bench -p kd-backends --bench start` on Linux.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use kd_backends::transport::keeper;
use kd_backends::transport::process::{Gentle, Running, Spec, settle};
use kd_backends::transport::rights::{Rights, landlock};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Memory of this process, in MB.
const HELD: [usize; 3] = [1, 64, 256];
const ROUNDS: usize = 40;
const PROGRAM: &str = "/bin/echo";

/// Time until the caller continues, and until the program's first byte.
type Took = (Duration, Duration);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    println!(
        "ms, medians of {ROUNDS}: until the caller goes on / until the first byte of the program; the ratio is to"
    );
    println!("the fork that is measured in turns with it");
    // Runs without a keeper come first: setting the keeper program cannot be undone.
    round("without a keeper", &runtime, None);
    keeper::use_program(env!("CARGO_BIN_EXE_kd-keeper"));
    round("with a keeper", &runtime, None);
    if landlock().is_some() {
        let rights = Rights {
            read: vec!["/usr".into()],
            write: Vec::new(),
        };
        round("and in Landlock", &runtime, Some(&rights));
    }
}

fn round(what: &str, runtime: &Runtime, rights: Option<&Rights>) {
    println!("\n{what}\nheld, MB  a fork        ours          ratio");
    for megabytes in HELD {
        let mut held = vec![1_u8; megabytes << 20];
        let (mut forked, mut ours) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // The memory is in use: every page was written since the last copy of the page table.
            for page in held.chunks_mut(4096) {
                page[0] = round as u8;
            }
            forked.push(by_fork());
            ours.push(runtime.block_on(by_spawn(rights)));
            assert!(settle(Duration::from_secs(10)));
        }
        std::hint::black_box(&held);
        let (forked, ours) = (medians(&forked), medians(&ours));
        println!(
            "{megabytes:>8}  {:>5.2} / {:>5.2} {:>5.2} / {:>5.2} {:>5.2} / {:>5.2}",
            forked.0,
            forked.1,
            ours.0,
            ours.1,
            ours.0 / forked.0,
            ours.1 / forked.1
        );
    }
}

fn medians(times: &[Took]) -> (f64, f64) {
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    (
        median(times.iter().map(|took| took.0).collect()),
        median(times.iter().map(|took| took.1).collect()),
    )
}

#[expect(
    unsafe_code,
    reason = "the standard library has no safe way to start a session"
)]
fn by_fork() -> Took {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: setsid(2) may be called between fork and exec, and nothing else is.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()
                .map(drop)
                .map_err(std::io::Error::from)
        });
    }
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let went_on = began.elapsed();
    let mut byte = [0];
    child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    let first = began.elapsed();
    child.wait().unwrap();
    (went_on, first)
}

async fn by_spawn(rights: Option<&Rights>) -> Took {
    let spec = Spec {
        label: "bench".into(),
        program: PROGRAM.into(),
        args: Vec::new(),
        env: Vec::new(),
        folder: "/".into(),
        input: None,
        rights: rights.cloned(),
        tools: Vec::new(),
        gentle: Gentle::Terminate,
        grace: Duration::from_secs(1),
    };
    let began = Instant::now();
    let mut running = Running::start(spec).unwrap();
    let went_on = began.elapsed();
    let mut first = None;
    while !running.read().await.unwrap().is_empty() {
        first.get_or_insert_with(|| began.elapsed());
    }
    running.exit().await;
    (went_on, first.unwrap())
}
