//! The same councils through one `kd serve`, beside the run in process, and the time that it adds to the first token.
//!
//! Takes the path of the program, which runs unchanged in its own home folder. Clients ask it over OpenAI's API.

use crate::floor::Floor;
use crate::part::{self, Part, Who, median};
use crate::server::Server;
use crate::{Kind, NINE};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Pairs of runs, and the factor of their standard error for a 95 % interval (Student's t, 8 degrees of freedom).
const PAIRS: usize = 9;
const T_95: f64 = 2.306;
/// Calls of each kind whose first token is timed.
const CALLS: usize = 301;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Ticks of processor time per second in `/proc`, the same on all architectures.
const TICKS: f64 = 100.0;

/// The cost of one run.
#[derive(Clone, Copy)]
struct Cost {
    /// CPU time per question.
    cpu_ms: f64,
    peak_mb: f64,
}

/// Through `kd serve`, and in process.
type Pair = (Cost, Cost);

/// A running `kd serve` whose members ask a fake service.
struct Served {
    child: Child,
    url: String,
    _home: TempDir,
}

impl Served {
    fn start(kd: &Path, service: &str, members: usize) -> Self {
        let home = TempDir::new().unwrap();
        let names: Vec<String> = (1..=members).map(|n| format!("m{n}")).collect();
        let agents: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (name.clone(), json!({"backend": "svc", "model": "fake-1"})))
            .collect();
        let config = json!({
            "providers": {"svc": {"wire": "openai", "base_url": service}},
            "agents": agents,
            // As in process.
            "council": {"members": names, "auto_messages": 0, "conclude": false},
        });
        let folder = home.path().join(".config/kd");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let work = home.path().join("work");
        std::fs::create_dir_all(work.join(".kd")).unwrap();
        let mut child = Command::new(kd)
            .args(["serve", "--models", "--listen", "127.0.0.1:0"])
            .current_dir(work)
            .env("HOME", home.path())
            .env("KD_SERVE_TOKEN", TOKEN)
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut url).unwrap();
        let url = url.trim().trim_end_matches("/v1").to_owned();
        Self {
            child,
            url,
            _home: home,
        }
    }

    /// Processor time of all its threads so far, in milliseconds.
    fn cpu_ms(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields = stat.rsplit(") ").next().unwrap().split_whitespace();
        let fields: Vec<&str> = fields.collect();
        let ticks: f64 = [11, 12]
            .map(|at| fields[at].parse::<f64>().unwrap())
            .iter()
            .sum();
        ticks / TICKS * 1000.0
    }

    /// Peak resident memory so far, in megabytes.
    fn peak_mb(&self) -> f64 {
        part::peak_mb(&self.child.id().to_string()).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a client of `kd serve` at an address.
pub(crate) fn client(url: &str) -> Floor {
    Floor::asking(url, "kd/ask", &format!("authorization: Bearer {TOKEN}\r\n"))
}

/// Returns the mean of values between the ends of its 95 % interval.
fn interval(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = T_95 * (variance / n).sqrt();
    (mean - half, mean, mean + half)
}

/// The same councils through `kd serve` and in process.
pub(crate) fn load(kd: &Path) {
    println!(
        "\n128 councils at once through one kd serve, 9 members x 100 tokens, {PAIRS} pairs (goal: 10 % more CPU and 8 MB more than in process)"
    );
    let service = Server::start(Kind::Burst100);
    let part = Part {
        members: NINE,
        at_once: 128,
        questions: 640,
    };
    let (mut rows, mut floors) = (Vec::<Pair>::new(), Vec::new());
    for pair in 0..PAIRS {
        let served = || {
            let server = Served::start(kd, &service.url, NINE);
            // Not counted, as in process: connections, first memory pages, lazy statics.
            let warm = Part {
                questions: part.at_once,
                ..part
            };
            part::spawn(Who::Client, warm, &server.url);
            let before = server.cpu_ms();
            let client = part::spawn(Who::Client, part, &server.url);
            let questions = (part.questions + part.at_once) as f64;
            assert_eq!(client.lost, 0, "an answer was lost");
            Cost {
                cpu_ms: (server.cpu_ms() - before) / questions,
                peak_mb: server.peak_mb(),
            }
        };
        let in_process = || {
            let figures = part::spawn(Who::Ours, part, &service.url);
            assert_eq!(figures.whole, part.questions, "all members answered");
            Cost {
                cpu_ms: figures.cpu_ms,
                peak_mb: figures.peak_mb,
            }
        };
        // Which one goes first alternates.
        let (ours, process) = match pair % 2 {
            0 => {
                let ours = served();
                (ours, in_process())
            }
            _ => {
                let process = in_process();
                (served(), process)
            }
        };
        floors.push(part::spawn(Who::Floor, part, &service.url));
        rows.push((ours, process));
    }
    let of = |pick: fn(&Pair) -> f64| median(rows.iter().map(pick).collect());
    let floor = part::Figures::median(&floors);
    println!(
        "{:<40}{:>10}{:>12}{:>10}",
        "", "kd serve", "in process", "floor"
    );
    println!(
        "{:<40}{:>10.2}{:>12.2}{:>10.2}",
        "CPU ms per question",
        of(|r| r.0.cpu_ms),
        of(|r| r.1.cpu_ms),
        floor.cpu_ms
    );
    println!(
        "{:<40}{:>10.0}{:>12.0}{:>10.0}",
        "questions per CPU-second",
        1000.0 / of(|r| r.0.cpu_ms),
        1000.0 / of(|r| r.1.cpu_ms),
        1000.0 / floor.cpu_ms
    );
    println!(
        "{:<40}{:>10.1}{:>12.1}{:>10.1}",
        "peak MB",
        of(|r| r.0.peak_mb),
        of(|r| r.1.peak_mb),
        floor.peak_mb
    );
    let ratios: Vec<f64> = rows
        .iter()
        .map(|(s, p)| (s.cpu_ms / p.cpu_ms).ln())
        .collect();
    let (low, mean, high) = interval(&ratios);
    println!(
        "CPU, kd serve / in process: {:.3} (95 %: {:.3} to {:.3})",
        mean.exp(),
        low.exp(),
        high.exp()
    );
    let more: Vec<f64> = rows.iter().map(|(s, p)| s.peak_mb - p.peak_mb).collect();
    let (low, mean, high) = interval(&more);
    println!("peak MB, kd serve - in process: {mean:.1} (95 %: {low:.1} to {high:.1})");
}

/// Returns the median of differences and an interval of 95 % around it, by ranks.
fn ranked(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let middle = (values.len() - 1) as f64 / 2.0;
    let half = 0.98 * (values.len() as f64).sqrt();
    let at = |rank: f64| values[rank.round() as usize];
    (at(middle - half), at(middle), at(middle + half))
}

/// The time that `kd serve` adds to the first token.
pub(crate) fn first_token(kd: &Path) {
    println!("\nadded to the first token, one member, ms, {CALLS} calls each (goal: 5)");
    let service = Server::start(Kind::Soon);
    let relay = Server::relaying(&service.url);
    let server = Served::start(kd, &service.url, 1);
    let ways = [
        Floor::new(&service.url),
        Floor::new(&relay.url),
        client(&server.url),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut rows: Vec<[f64; 3]> = Vec::new();
    runtime.block_on(async {
        for call in 0..CALLS + 10 {
            let mut row = [0.0; 3];
            // Each goes first in turn.
            for at in [0, 1, 2].map(|at| (at + call) % 3) {
                let heard = ways[at].call().await.unwrap();
                let first = heard.first.expect("the answer has text");
                assert!(heard.text.contains(" token".repeat(9).trim()));
                row[at] = first.as_secs_f64() * 1e3;
            }
            // The first calls open connections.
            if call >= 10 {
                rows.push(row);
            }
        }
    });
    let direct = median(rows.iter().map(|row| row[0]).collect());
    println!("{:<34}{direct:>8.2}", "direct, ms to the first token");
    for (at, what) in [(1, "a relay of bytes (floor)"), (2, "kd serve")] {
        let (low, middle, high) = ranked(rows.iter().map(|row| row[at] - row[0]).collect());
        println!("added by {what:<25}{middle:>8.2} (95 %: {low:.2} to {high:.2})");
    }
}
