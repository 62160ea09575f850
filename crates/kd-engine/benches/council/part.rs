//! One measured part in its own process: a number of questions, some of them concurrent, run by `ours` or `floor`.
//!
//! Takes command-line words; prints one line of figures to stdout.

use crate::floor::Floor;
use crate::house::House;
use crate::served;
use futures::stream::{self, StreamExt};
use kd_core::event::Outcome;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The implementation measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Ours,
    Floor,
    /// A client of `kd serve`, whose address is given: the figures are the client's.
    Client,
}

impl Who {
    fn word(self) -> &'static str {
        match self {
            Who::Ours => "ours",
            Who::Floor => "floor",
            Who::Client => "client",
        }
    }
}

/// The size of one run: members of a council, questions at once, and questions in all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) members: usize,
    pub(crate) at_once: usize,
    pub(crate) questions: usize,
}

/// The measurements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// CPU time of the process per question, in milliseconds.
    pub(crate) cpu_ms: f64,
    /// Median wall time per question, in milliseconds.
    pub(crate) wall_ms: f64,
    /// Questions per second.
    pub(crate) per_second: f64,
    /// Peak resident memory in megabytes; 0 where the system does not report it.
    pub(crate) peak_mb: f64,
    /// Questions that every member answered.
    pub(crate) whole: usize,
    /// Questions that no member answered.
    pub(crate) lost: usize,
}

impl Figures {
    /// The median of each figure of several runs.
    pub(crate) fn median(runs: &[Figures]) -> Figures {
        let of = |pick: fn(&Figures) -> f64| median(runs.iter().map(pick).collect());
        Figures {
            cpu_ms: of(|f| f.cpu_ms),
            wall_ms: of(|f| f.wall_ms),
            per_second: of(|f| f.per_second),
            peak_mb: of(|f| f.peak_mb),
            whole: runs.iter().map(|f| f.whole).min().unwrap_or(0),
            lost: runs.iter().map(|f| f.lost).max().unwrap_or(0),
        }
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures a part in a new process.
pub(crate) fn spawn(who: Who, part: Part, url: &str) -> Figures {
    let numbers = [part.members, part.at_once, part.questions].map(|n| n.to_string());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["part", who.word(), url])
        .args(numbers)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "a part failed");
    let line = String::from_utf8(output.stdout).unwrap();
    let mut words = line.split_whitespace();
    let mut next = || words.next().unwrap().parse::<f64>().unwrap();
    Figures {
        cpu_ms: next(),
        wall_ms: next(),
        per_second: next(),
        peak_mb: next(),
        whole: next() as usize,
        lost: next() as usize,
    }
}

/// `part ours|floor|client URL MEMBERS AT_ONCE QUESTIONS`
pub(crate) fn run(args: &[&str]) {
    let [who, url, members, at_once, questions] = args else {
        panic!("part ours|floor|client URL MEMBERS AT_ONCE QUESTIONS");
    };
    let part = Part {
        members: members.parse().unwrap(),
        at_once: at_once.parse().unwrap(),
        questions: questions.parse().unwrap(),
    };
    let figures = match *who {
        "ours" => ours(url, part),
        // One call is one question, of which the server makes calls to all members.
        "client" => floor(&served::client(url), 1, part),
        _ => floor(&Floor::new(url), part.members, part),
    };
    println!(
        "{} {} {} {} {} {}",
        figures.cpu_ms,
        figures.wall_ms,
        figures.per_second,
        figures.peak_mb,
        figures.whole,
        figures.lost
    );
}

fn ours(url: &str, part: Part) -> Figures {
    // As many threads as in the program: see `kd_app::Runtime`.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let house = House::new(url);
    let all = async move {
        measure(part, || {
            let question = tokio::spawn(house.clone().question(part.members));
            async move {
                match question.await.unwrap() {
                    Outcome::Complete => Ended::Whole,
                    Outcome::Partial => Ended::Partial,
                    _ => Ended::Lost,
                }
            }
        })
        .await
    };
    runtime.block_on(async { tokio::spawn(all).await.unwrap() })
}

fn floor(floor: &Floor, calls: usize, part: Part) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measure(part, || {
        let floor = floor.clone();
        async move {
            let text = floor.question(calls).await.unwrap();
            assert!(text > part.members * 100, "the answers are there");
            Ended::Whole
        }
    }))
}

enum Ended {
    Whole,
    Partial,
    Lost,
}

async fn measure<F: Future<Output = Ended>>(part: Part, ask: impl Fn() -> F) -> Figures {
    // Warm-up round, not counted: connections, first memory pages, lazy statics.
    drop(burst(part, part.at_once, &ask).await);
    let (began, before) = (Instant::now(), cpu());
    let ended = burst(part, part.questions, &ask).await;
    let (cpu, wall) = (cpu() - before, began.elapsed());
    let count = |is: fn(&Ended) -> bool| ended.iter().filter(|(e, _)| is(e)).count();
    Figures {
        cpu_ms: cpu.as_secs_f64() * 1e3 / part.questions as f64,
        wall_ms: median(ended.iter().map(|(_, t)| t.as_secs_f64() * 1e3).collect()),
        per_second: part.questions as f64 / wall.as_secs_f64(),
        peak_mb: peak_mb("self").unwrap_or(0.0),
        whole: count(|e| matches!(e, Ended::Whole)),
        lost: count(|e| matches!(e, Ended::Lost)),
    }
}

async fn burst<F: Future<Output = Ended>>(
    part: Part,
    questions: usize,
    ask: &impl Fn() -> F,
) -> Vec<(Ended, Duration)> {
    stream::iter(0..questions)
        .map(|_| async {
            let began = Instant::now();
            (ask().await, began.elapsed())
        })
        .buffer_unordered(part.at_once)
        .collect()
        .await
}

/// CPU time of this process so far, all threads.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Peak resident memory of a process, in megabytes.
pub(crate) fn peak_mb(process: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
