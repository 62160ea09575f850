//! What it takes to start a program in a session of its own, beside what the standard library does for it (a fork), from a
//! process that holds little memory and from one that holds a model.
//!
//! `cargo bench -p kd-backends --bench start` on Linux.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use kd_backends::transport::process::{Gentle, Running, Spec, settle};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory of this process, in MB.
const HELD: [usize; 4] = [1, 8, 64, 256];
const ROUNDS: usize = 40;
const PROGRAM: &str = "/bin/true";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    println!("until the caller goes on, ms, medians of {ROUNDS}");
    println!(
        "{:>8} {:>8} {:>8} {:>8}",
        "held, MB", "a fork", "ours", "ratio"
    );
    for megabytes in HELD {
        let mut held = vec![1_u8; megabytes << 20];
        let (mut forked, mut ours) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // What is held is in use: every page was written since the last copy of its table.
            for page in held.chunks_mut(4096) {
                page[0] = round as u8;
            }
            forked.push(by_fork());
            ours.push(runtime.block_on(by_spawn()));
            assert!(settle(Duration::from_secs(10)));
        }
        std::hint::black_box(&held);
        let (forked, ours) = (median(forked), median(ours));
        println!(
            "{megabytes:>8} {forked:>8.2} {ours:>8.2} {:>8.2}",
            ours / forked
        );
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[expect(
    unsafe_code,
    reason = "the standard library has no safe way to start a session"
)]
fn by_fork() -> Duration {
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
    let took = began.elapsed();
    child.wait().unwrap();
    took
}

async fn by_spawn() -> Duration {
    let spec = Spec {
        label: "bench".into(),
        program: PROGRAM.into(),
        args: Vec::new(),
        env: Vec::new(),
        folder: "/".into(),
        input: None,
        rights: None,
        gentle: Gentle::Terminate,
        grace: Duration::from_secs(1),
    };
    let began = Instant::now();
    let mut running = Running::start(spec).unwrap();
    let took = began.elapsed();
    while !running.read().await.unwrap().is_empty() {}
    running.exit().await;
    took
}
