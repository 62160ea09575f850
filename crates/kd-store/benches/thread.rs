//! Measures a thread with 10, 1,000 and 10,000 messages: appending, the newest screenful, everything, the list.
//!
//! `cargo bench -p kd-store --bench thread` first prints a table: CPU time of each operation beside a plain lower bound
//! from the same run (creating and writing a file of the same size in an equally full folder; opening and reading the
//! same files by name), so that the ratios are meaningful on any machine. Then criterion measures wall time.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench has no readers of its interface, and may panic as a test may"
)]

use criterion::{BenchmarkId, Criterion, criterion_group};
use kd_core::ids::SeatName;
use kd_core::message::{Address, Draft, Provenance, Status};
use kd_store::layout::Layout;
use kd_store::thread::{Durability, Thread};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::time::Duration;
use tempfile::TempDir;

const SIZES: [u32; 3] = [10, 1_000, 10_000];
/// Messages that fill a screen and its scrollback.
const SCREENFUL: usize = 30;
/// Appends to one copy of a thread, few enough not to change its size much.
const APPENDS: u32 = 200;

/// A thread with a number of messages of the usual size (757 bytes is the median of real use).
struct Prepared {
    _dir: TempDir,
    layout: Layout,
    thread: Thread,
}

fn prepare(messages: u32) -> Prepared {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::find_or_create(dir.path(), &|_| None)
        .unwrap()
        .layout;
    let seats: Vec<_> = ["claude", "codex", "cursor"]
        .into_iter()
        .map(|n| SeatName::new(n).unwrap())
        .collect();
    let thread = Thread::create(&layout, &seats)
        .unwrap()
        .with_durability(Durability::Buffered);
    let text = kd_store::frontmatter::format(&draft());
    for seq in 1..messages {
        fs::write(thread.path().join(format!("{seq:04}-claude.md")), &text).unwrap();
    }
    // The first append detects the other files and writes the index.
    thread.append(&draft()).unwrap();
    Prepared {
        _dir: dir,
        layout,
        thread,
    }
}

fn draft() -> Draft {
    Draft {
        turn: None,
        from: "claude".into(),
        to: Address::King,
        at: "2026-11-21T07:57:55Z".parse().unwrap(),
        status: Some(Status::Complete),
        refs: Vec::new(),
        provenance: Provenance {
            backend: Some("claude_code".into()),
            model: Some("claude-fake-1".into()),
            ..Provenance::default()
        },
        extra: BTreeMap::new(),
        body: "A line of an answer of the usual length, seventy bytes of it or so.\n".repeat(9),
    }
}

/// The lower bound of appending: one new file of the same size.
fn plain_write(folder: &std::path::Path, i: u32, text: &str) {
    let mut file = File::create_new(folder.join(format!("plain-{i}"))).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The lower bound of reading: the same files by known names.
fn plain_read(paths: &[std::path::PathBuf]) -> usize {
    paths.iter().map(|path| fs::read(path).unwrap().len()).sum()
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// Returns the milliseconds of CPU time per run.
fn cost(times: u32, mut run: impl FnMut(u32)) -> f64 {
    let begun = cpu();
    for i in 0..times {
        run(i);
    }
    (cpu() - begun).as_secs_f64() * 1000.0 / f64::from(times)
}

/// Returns the minimum of five, alternating operation and lower bound: other activity on the machine only adds time.
fn beside(mut ours: impl FnMut() -> f64, mut floor: impl FnMut() -> f64) -> (f64, f64) {
    (0..5).fold((f64::MAX, f64::MAX), |best, _| {
        (best.0.min(ours()), best.1.min(floor()))
    })
}

fn table() {
    println!("processor time, ms          messages       ours      floor   ratio");
    let row = |what: &str, size: u32, (ours, floor): (f64, f64)| {
        println!(
            "{what:<26}{size:>10}{ours:>11.4}{floor:>11.4}{:>8.1}",
            ours / floor
        );
    };
    for size in SIZES {
        let Prepared { thread, layout, .. } = &prepare(size);
        let text = kd_store::frontmatter::format(&draft());
        let paths: Vec<_> = (1..=size)
            .map(|seq| thread.path().join(format!("{seq:04}-claude.md")))
            .collect();
        let screen = &paths[paths.len().saturating_sub(SCREENFUL)..];
        row(
            "newest screenful",
            size,
            beside(
                || cost(50, |_| drop(black_box(thread.tail(SCREENFUL).unwrap()))),
                || {
                    cost(50, |_| {
                        black_box(plain_read(screen));
                    })
                },
            ),
        );
        row(
            "all",
            size,
            beside(
                || cost(3, |_| drop(black_box(thread.messages().unwrap()))),
                || {
                    cost(3, |_| {
                        black_box(plain_read(&paths));
                    })
                },
            ),
        );
        row(
            "count",
            size,
            beside(
                || {
                    cost(50, |_| {
                        black_box(thread.count().unwrap());
                    })
                },
                || {
                    cost(50, |_| {
                        black_box(fs::metadata(thread.path()).unwrap().len());
                    })
                },
            ),
        );
        row(
            "open by id, list of one",
            size,
            beside(
                || {
                    cost(50, |_| {
                        drop(Thread::open(&layout.resolve(&thread.id().0).unwrap()).unwrap())
                    })
                },
                || {
                    cost(50, |_| {
                        black_box(fs::read(thread.path().join("thread.json")).unwrap());
                    })
                },
            ),
        );
        let other = tempfile::tempdir().unwrap();
        let mut plain = 0;
        for _ in 0..size {
            plain += 1;
            plain_write(other.path(), plain, &text);
        }
        let message = draft();
        row(
            "append",
            size,
            beside(
                || {
                    cost(APPENDS, |_| {
                        drop(black_box(thread.append(&message).unwrap()))
                    })
                },
                || {
                    cost(APPENDS, |_| {
                        plain += 1;
                        plain_write(other.path(), plain, &text);
                    })
                },
            ),
        );
    }
}

fn wall(c: &mut Criterion) {
    for size in SIZES {
        let prepared = prepare(size);
        let thread = &prepared.thread;
        c.bench_with_input(BenchmarkId::new("tail", size), &size, |b, _| {
            b.iter(|| thread.tail(SCREENFUL).unwrap());
        });
        let message = draft();
        c.bench_with_input(BenchmarkId::new("append", size), &size, |b, _| {
            b.iter(|| thread.append(&message).unwrap());
        });
        if size == 10_000 {
            c.bench_with_input(BenchmarkId::new("all", size), &size, |b, _| {
                b.iter(|| thread.messages().unwrap());
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = wall
}

fn main() {
    // `cargo test --benches` only checks that it runs.
    if !std::env::args().any(|arg| arg == "--test") {
        table();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
