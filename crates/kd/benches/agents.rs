//! Measures what `kd` adds to an agent program: startup time, and CPU time while streaming.
//!
//! `cargo bench -p kd --bench agents` on Linux. `KINGDOM_CLI=PATH` names the program of kingdom-cli, to measure it
//! alternately with the same fake agents.
//!
//! The fake agent is called `claude` and is on the PATH. Running it alone is the baseline: it is started with the
//! prompt on stdin and read up to the first piece of text.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench may panic as a test may"
)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of starts of each program.
const ROUNDS: usize = 25;
/// Pieces in the stream whose CPU time is measured, and the time between two of them.
const PIECES: usize = 2000;
const PAUSE: Duration = Duration::from_millis(5);

fn main() {
    let stage = Stage::new();
    start(&stage, Form::Once);
    start(&stage, Form::Kept);
    stream(&stage);
}

/// The form in which the agent is asked.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// One process per question.
    Once,
    /// A process that waits for more questions: the default.
    Kept,
}

/// A home, a repository, and a fake agent on the PATH.
struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stage = Self { dir };
        for folder in ["bin", "work/.kd", ".config/kd"] {
            std::fs::create_dir_all(stage.path(folder)).unwrap();
        }
        std::fs::copy(kd_fake::fake_agent(), stage.path("bin/claude")).unwrap();
        // As `cargo install` leaves it: a file written piece by piece by a linker takes longer to map until it is
        // copied or read again from disk.
        std::fs::copy(env!("CARGO_BIN_EXE_kd"), stage.path("bin/kd")).unwrap();
        let copy = std::fs::File::open(stage.path("bin/kd")).unwrap();
        copy.sync_all().unwrap();
        let shared = json!({"agents": {"claude": {"backend": "claude_code"}}, "council": {"members": ["claude"]}});
        std::fs::write(stage.path("work/.kd/config.json"), shared.to_string()).unwrap();
        // kingdom-cli has no branch before the first commit.
        std::fs::create_dir_all(stage.path("work/.kd/branches/main")).unwrap();
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.org"];
        for line in [
            vec!["init", "-q", "-b", "main"],
            [&who[..], &["commit", "-q", "--allow-empty", "-m", "first"]].concat(),
        ] {
            let mut git = stage.command(Path::new("git"), &line);
            assert!(git.status().unwrap().success(), "git {line:?}");
        }
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes an agent that emits `pieces` pieces, pausing after each line. It supports the one-shot form or the one
    /// that stays for more questions.
    fn script(&self, form: Form, pieces: usize, pause: Duration) {
        let config = json!({"council": {"members": ["claude"], "conclude": false},
            "agents": {"claude": {"backend": "claude_code", "warm": form == Form::Kept}}});
        std::fs::write(self.path(".config/kd/config.json"), config.to_string()).unwrap();
        let piece = |text: &str| {
            json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}}})
        };
        let whole = " token".repeat(pieces);
        let mut lines: Vec<Value> = vec![
            json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}),
            json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": "m1"}}}),
        ];
        lines.extend((0..pieces).map(|_| piece(" token")));
        lines.push(json!({"type": "assistant", "message": {"id": "m1", "content": [{"type": "text", "text": whole}]}}));
        lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
            "result": whole, "session_id": "s", "usage": {"input_tokens": 1, "output_tokens": 1}}));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.path("stream.jsonl"), text).unwrap();
        let play =
            json!({"play": self.path("stream.jsonl"), "pause_micros": pause.as_micros() as u64});
        let steps = match form {
            Form::Once => json!([{"read": true}, play]),
            Form::Kept => json!([{"hear": "Which way?"}, play, {"hear": "its stdin ends"}]),
        };
        std::fs::write(self.path("bin/claude.script"), steps.to_string()).unwrap();
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    fn kd(&self) -> Command {
        self.command(&self.path("bin/kd"), &["ask", "--jsonl", "Which way?"])
    }

    fn kingdom(&self) -> Option<Command> {
        let program = std::env::var_os("KINGDOM_CLI")?;
        Some(self.command(Path::new(&program), &["council", "ask", "Which way?"]))
    }
}

fn start(stage: &Stage, form: Form) {
    stage.script(form, 20, Duration::ZERO);
    let (mut alone, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut agent = stage.command(&stage.path("bin/claude"), &[]);
        alone.push(run(agent.stdin(Stdio::piped())));
        ours.push(run(&mut stage.kd()));
        // kingdom-cli supports only one form.
        let kingdom = stage.kingdom().filter(|_| form == Form::Once);
        theirs.extend(kingdom.map(|mut kingdom| run(&mut kingdom)));
    }
    let form = match form {
        Form::Once => "one process for each question",
        Form::Kept => "kept running, the default",
    };
    println!("\nstart, {form}: exec to the first text, and to the end (ms, medians of {ROUNDS})");
    row("the fake agent alone", &alone, &alone);
    row("kd ask", &ours, &alone);
    if !theirs.is_empty() {
        row("kingdom-cli council ask", &theirs, &alone);
    }
}

fn stream(stage: &Stage) {
    stage.script(Form::Once, PIECES, PAUSE);
    println!(
        "\nstreaming {PIECES} pieces, one each {PAUSE:?}: own processor time, without the agent's (goal: 1 %)"
    );
    let mut programs = vec![("kd ask", stage.kd())];
    programs.extend(stage.kingdom().map(|k| ("kingdom-cli council ask", k)));
    for (name, mut command) in programs {
        let ran = run(&mut command);
        let told = |what: &str, cpu: Duration, wall: Duration| {
            println!(
                "{name:<26}{what:<22}{:>8.1} ms of {:>5.1} s = {:.2} %",
                cpu.as_secs_f64() * 1e3,
                wall.as_secs_f64(),
                cpu.as_secs_f64() / wall.as_secs_f64() * 100.0
            );
        };
        told("from start to end", ran.cpu, ran.end);
        // A program that prints everything at the end does not stream.
        if let (Some((first, before)), Some((last, after))) = (ran.words.first(), ran.words.last())
            && *last > *first + Duration::from_secs(1)
        {
            told(
                "while words come",
                after.saturating_sub(*before),
                *last - *first,
            );
        }
    }
}

/// One run of a program.
struct Run {
    first: Option<Duration>,
    /// The times at which text arrived, and the CPU time used by then.
    words: Vec<(Duration, Duration)>,
    end: Duration,
    cpu: Duration,
}

fn run(command: &mut Command) -> Run {
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(b"Which way?").unwrap();
    }
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut words) = (String::new(), Vec::new());
    while out.read_line(&mut line).unwrap() > 0 {
        if line.contains(" token") && !line.contains("message_added") {
            words.push((began.elapsed(), of_threads(&child)));
        }
        line.clear();
    }
    let first = words.first().map(|(at, _)| *at);
    // It has closed its output and may still be waiting for the agent; the counters of a dead process stay readable
    // until it is waited for.
    let end = began.elapsed();
    let cpu = spent(&child);
    assert!(child.wait().unwrap().success(), "it succeeds");
    Run {
        first,
        words,
        end,
        cpu,
    }
}

/// Returns the CPU time of a process's live threads.
fn of_threads(child: &Child) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
    let spent = tasks.into_iter().flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Returns the CPU time of the process itself, as counted by the kernel.
fn spent(child: &Child) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    let after = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
    let fields: Vec<u64> = after
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    // Ticks of 10 ms.
    Duration::from_millis(fields.iter().sum::<u64>() * 10)
}

fn row(name: &str, runs: &[Run], floor: &[Run]) {
    let median = |pick: fn(&Run) -> Option<Duration>, runs: &[Run]| {
        let mut all: Vec<f64> = runs
            .iter()
            .filter_map(|run| Some(pick(run)?.as_secs_f64() * 1e3))
            .collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (first, end) = (
        median(|run| run.first, runs),
        median(|run| Some(run.end), runs),
    );
    let above = first - median(|run| run.first, floor);
    println!("{name:<32}{first:>8.1}{end:>8.1}   {above:>+6.1} above the agent (goal: 5)");
}
