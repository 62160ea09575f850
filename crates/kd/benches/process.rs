//! Measures the program's startup: `kd --help`, `kd council list`, and the time from exec to the first streamed text.
//!
//! `cargo bench -p kd --bench process`
//!
//! Spawns the release binary like a shell, in a temporary home, alternating with baselines: `/bin/true`, an empty Rust
//! program, and one that makes the same calls over raw sockets and prints the result (this program, started again with
//! `nothing`, `floor` or, for the fake server, `serve`). Prints medians and minimums of the rounds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench may panic as a test may"
)]

use kd_fake::{Fake, Reply, Script, Wire};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Number of starts of each program.
const ROUNDS: usize = 25;
/// Threads in the listed project.
const THREADS: usize = 10;
/// Members that answer.
const MEMBERS: [&str; 3] = ["ada", "bob", "cid"];

fn main() {
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve"] => serve(),
        ["floor", url] => floor(url),
        ["nothing"] => {}
        _ => {
            let stage = Stage::new();
            start_up(&stage);
            first_text(&stage);
        }
    }
}

fn start_up(stage: &Stage) {
    let project = stage.dir.path().join("listed");
    stage.make_project(&project);
    for _ in 0..THREADS {
        let done = stage.ask(&project).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
    let mut programs = [
        ("/bin/true", Command::new("/bin/true")),
        ("an empty Rust program", stage.this(&["nothing"])),
        ("kd --help", stage.kd(&project, &["--help"])),
        ("kd --version", stage.kd(&project, &["--version"])),
        (
            "kd council list, 10 threads",
            stage.kd(&project, &["council", "list"]),
        ),
        ("kd config check", stage.kd(&project, &["config", "check"])),
    ];
    println!("\nstart-up: exec to exit (goal: 10 ms, 15 MB)");
    header();
    let mut runs = vec![Vec::new(); programs.len()];
    for _ in 0..ROUNDS {
        for ((_, command), runs) in programs.iter_mut().zip(&mut runs) {
            let began = Instant::now();
            let child = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let cost = wait(child.spawn().unwrap());
            runs.push(Run {
                wall: began.elapsed(),
                ..cost
            });
        }
    }
    for ((name, _), runs) in programs.iter().zip(&runs) {
        row(name, runs);
    }
}

fn first_text(stage: &Stage) {
    let project = stage.dir.path().join("asked");
    stage.make_project(&project);
    println!("\nexec to the first streamed text on stdout, server without delay (goal: 12 ms)");
    header();
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(until_text(stage.this(&["floor", &stage.server.url])));
        ours.push(until_text(stage.ask(&project)));
    }
    row("raw sockets, no files", &floors);
    row("kd ask --jsonl, 3 members, thread saved", &ours);
}

/// A program run.
#[derive(Clone, Copy, Debug)]
struct Run {
    wall: Duration,
    cpu: Duration,
    peak_mb: f64,
}

fn header() {
    println!(
        "{:<42}{:>11}{:>11}{:>9}{:>9}",
        "", "median ms", "least ms", "CPU ms", "peak MB"
    );
}

fn row(name: &str, runs: &[Run]) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{name:<42}{:>11.2}{:>11.2}{:>9.2}{:>9.1}",
        median(runs.iter().map(|r| ms(r.wall)).collect()),
        runs.iter().map(|r| ms(r.wall)).fold(f64::MAX, f64::min),
        median(runs.iter().map(|r| ms(r.cpu)).collect()),
        median(runs.iter().map(|r| r.peak_mb).collect()),
    );
}

/// Starts a program and reads its stdout to the end; measures the time until a line contains text of the model.
fn until_text(mut command: Command) -> Run {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut came) = (String::new(), None);
    while out.read_line(&mut line).unwrap() > 0 {
        if came.is_none() && line.contains(" token") {
            came = Some(began.elapsed());
        }
        line.clear();
    }
    Run {
        wall: came.expect("text came"),
        ..wait(child)
    }
}

/// Waits for a child and returns its total usage. The caller measures the wall time.
#[allow(
    unsafe_code,
    reason = "the standard library waits without asking for the use of resources"
)]
fn wait(child: Child) -> Run {
    let id = child.id().cast_signed();
    // SAFETY: both are plain data for which all zeros is a valid value, and they outlive the call; we own the child,
    // and nothing else waits for it (`Child` does not, when it is dropped).
    let (status, used) = unsafe {
        let mut status = 0;
        let mut used: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(id, &raw mut status, 0, &raw mut used), id);
        (status, used)
    };
    assert_eq!(status, 0, "it succeeds");
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs()) + Duration::from_micros(t.tv_usec as u64)
    };
    // Linux counts kilobytes, macOS bytes.
    let unit = if cfg!(target_os = "macos") {
        1.0
    } else {
        1024.0
    };
    Run {
        wall: Duration::ZERO,
        cpu: time(used.ru_utime) + time(used.ru_stime),
        peak_mb: used.ru_maxrss as f64 * unit / 1024.0 / 1024.0,
    }
}

/// A home folder, and a server for its members.
struct Stage {
    dir: tempfile::TempDir,
    server: Server,
}

impl Stage {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            server: Server::start(),
        }
    }

    /// Creates a folder with a configuration whose members use the fake server.
    fn make_project(&self, project: &Path) {
        let agents: serde_json::Map<_, _> = MEMBERS
            .iter()
            .map(|name| {
                let agent = serde_json::json!({"backend": "svc", "model": "fake-1"});
                ((*name).to_owned(), agent)
            })
            .collect();
        let config = serde_json::json!({
            "council": {"members": MEMBERS, "conclude": false},
            "providers": {"svc": {"wire": "openai", "base_url": self.server.url}},
            "agents": agents,
        });
        std::fs::create_dir_all(project.join(".kd")).unwrap();
        let own = self.dir.path().join(".config/kd");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("config.json"), config.to_string()).unwrap();
    }

    fn kd(&self, project: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kd"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.dir.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(project);
        command
    }

    fn ask(&self, project: &Path) -> Command {
        self.kd(project, &["ask", "--jsonl", "Which way?"])
    }

    fn this(&self, args: &[&str]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(args).env_clear();
        command
    }
}

/// The fake server in a separate process.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Prints the address and serves until stdin ends.
fn serve() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = Script::always(Wire::OpenAi, Reply::burst(Wire::OpenAi, 20));
    let fake = runtime.block_on(Fake::start(script)).unwrap();
    println!("{}", fake.url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Makes the same calls over raw sockets, one after another, and prints the result.
fn floor(url: &str) {
    let address = url.trim_start_matches("http://");
    let body =
        r#"{"model":"fake-1","messages":[{"role":"user","content":"Which way?"}],"stream":true}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut sockets: Vec<TcpStream> = MEMBERS
        .iter()
        .map(|_| {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(request.as_bytes()).unwrap();
            socket
        })
        .collect();
    let mut bytes = vec![0; 16 << 10];
    let mut out = std::io::stdout().lock();
    for socket in &mut sockets {
        let mut tail = Vec::new();
        while !tail.ends_with(b"0\r\n\r\n") {
            let n = socket.read(&mut bytes).unwrap();
            assert!(n > 0, "the server ends the transfer first");
            out.write_all(&bytes[..n]).unwrap();
            out.flush().unwrap();
            tail.extend_from_slice(&bytes[..n]);
        }
    }
}
