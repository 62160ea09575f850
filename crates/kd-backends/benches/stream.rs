//! Measures the cost of a streamed token in this crate: CPU time of this process for answers of a fake server in
//! another process, compared with a bare reqwest reader of the same bytes in the same run.
//!
//! `cargo build --release -p kd-fake && cargo bench -p kd-backends --bench stream [-- PATH_OF_KD_FAKE]`
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    missing_docs
)]

use futures::StreamExt;
use kd_backends::{Backends, Env, Options};
use kd_core::config::{Config, ProviderConfig, Wire};
use kd_core::request::Deadlines;
use kd_core::{Delta, Member, Prompt, Request, Sampling, SeatName};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TOKENS: usize = 1000;
const ROUNDS: usize = 5;

/// The fake server; it exits when its stdin closes.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &PathBuf, wire: &str, pause: &str) -> Self {
        let mut child = Command::new(program)
            .args([wire, &TOKENS.to_string(), pause])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| {
                panic!(
                    "{}: {e}; `cargo build --release -p kd-fake` makes it",
                    program.display()
                )
            });
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn main() {
    // `cargo bench` adds `--bench`.
    let given = std::env::args()
        .skip(1)
        .find(|a| !a.starts_with('-'))
        .map(PathBuf::from);
    let program = given.unwrap_or_else(|| {
        // target/release/deps/stream-… → target/release/kd-fake
        let here = std::env::current_exe().unwrap();
        here.parent()
            .and_then(|p| p.parent())
            .unwrap()
            .join("kd-fake")
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    println!("CPU ms per {TOKENS} tokens (median of {ROUNDS})");
    println!(
        "{:<12}{:<24}{:>8}{:>8}{:>8}",
        "wire", "server", "bare", "kd", "ratio"
    );
    for (name, wire) in [
        ("openai", Wire::OpenAi),
        ("anthropic", Wire::Anthropic),
        ("gemini", Wire::Gemini),
    ] {
        for (mode, pause, answers) in [("all at once", "0", 200), ("a token each 50 µs", "50", 5)]
        {
            let server = Server::start(&program, name, pause);
            let (bare, ours) = runtime.block_on(measure(&server.url, wire, answers));
            println!(
                "{name:<12}{mode:<24}{bare:>8.3}{ours:>8.3}{:>8.1}",
                ours / bare
            );
        }
    }
}

/// Measures CPU milliseconds per answer: the bare reader's and ours.
async fn measure(url: &str, wire: Wire, answers: usize) -> (f64, f64) {
    let provider = ProviderConfig {
        wire,
        base_url: Some(url.to_owned()),
        ..ProviderConfig::default()
    };
    let config = Config {
        providers: [("svc".to_owned(), provider)].into(),
        ..Config::default()
    };
    let backends = Backends::new(
        &config,
        Options {
            env: Env::of([("A", "b")]),
            ..Options::default()
        },
    );
    let seat = backends.seat(&member()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let before = cpu();
        for _ in 0..answers {
            let mut response = client
                .post(format!("{url}/v1/x"))
                .body("{}")
                .send()
                .await
                .unwrap();
            let mut bytes = 0;
            while let Some(chunk) = response.chunk().await.unwrap() {
                bytes += chunk.len();
            }
            assert!(bytes > TOKENS * 20);
        }
        let between = cpu();
        for _ in 0..answers {
            let mut deltas = seat.ask(request());
            let (mut length, mut whole) = (0, false);
            while let Some(delta) = deltas.next().await {
                match delta.unwrap() {
                    Delta::Text { text } => length += text.len(),
                    Delta::Finished { .. } => whole = true,
                    _ => {}
                }
            }
            assert!(whole && length == TOKENS * " token".len());
        }
        let per = |time: Duration| time.as_secs_f64() * 1e3 / answers as f64;
        bare.push(per(between - before));
        ours.push(per(cpu() - between));
    }
    // The first round is a warm-up.
    (median(&mut bare[1..]), median(&mut ours[1..]))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the CPU time of this process so far.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

fn member() -> Member {
    Member {
        model: Some("fake-1".into()),
        ..Member::new(SeatName::new("ada").unwrap(), "svc")
    }
}

fn request() -> Request {
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: SeatName::new("ada").unwrap(),
        prompt: Prompt {
            history: "Why?".into(),
            ..Prompt::default()
        },
        sampling: Sampling::default(),
        schema: None,
        deadlines: Deadlines::default(),
        writable: false,
        tools: None,
    }
}
