//! An agent program that follows a script: for tests of everything that starts agents.
//!
//! The script is `--script FILE`, anywhere among the arguments, or else the file named like this program plus
//! `.script`; so a copy named `claude` with `claude.script` beside it replaces Claude Code. It is a JSON array of
//! steps, played in order; [`Step`] lists them. Other arguments are ignored, but recorded.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use kd_fake::gullible::Orders;
use rustix::process::{Pid, Signal, getpid, kill_process, setsid};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A step of a script. Each step is an object; its first known member selects the kind.
#[derive(Clone)]
enum Step {
    /// `{"ignore": ["TERM", "INT"]}`: from now on these signals do nothing.
    Ignore(Vec<String>),
    /// `{"record": PATH}`: writes arguments, environment, folder, stdin and session of this process there, as JSON.
    /// Reads stdin to its end first.
    Record(PathBuf),
    /// `{"read": true}`: reads stdin to its end.
    ReadInput,
    /// `{"hear": TEXT, "note": PATH}`: reads stdin up to a line that contains the text, and records all these lines
    /// after the id of this process; exits with success when stdin ends.
    Hear(String, Option<PathBuf>),
    /// `{"again": STEPS}`: repeats these steps forever.
    Again(Vec<Step>),
    /// `{"when": WORD, "do": STEPS}`: these steps, if the word is among the arguments.
    When(String, Vec<Step>),
    /// `{"tools": [{"name", "arguments"}], "note": PATH}`: starts the MCP server that this program was given (Claude
    /// Code's `--mcp-config`, ACP's `mcpServers`), calls these tools, and writes their names and answers as JSON there.
    /// With `"stay": true` the server is kept running forever.
    Tools(Vec<Value>, PathBuf, bool),
    /// `{"obey": DIALECT, "note": PATH}`: reads its prompt, obeys every order in it ([`Orders`]), and answers in the
    /// format of Codex or Claude Code. Appends each prompt to the note, after its length in bytes.
    Obey(String, Option<PathBuf>),
    /// `{"write": PATH}`: writes a file there.
    Write(PathBuf),
    /// `{"print": TEXT}`: writes the text to stdout, with `"$asked"` replaced by the id of the last request that it
    /// read.
    Print(String),
    /// `{"complain": TEXT}`: writes the text to stderr.
    Complain(String),
    /// `{"play": PATH, "pause_micros": N}`: writes the lines of a recording, with a pause after each.
    Play(PathBuf, Duration),
    /// `{"flood": BYTES, "line": TEXT}`: writes BYTES bytes by repeating the line; without a line, as one line that
    /// does not end.
    Flood(u64, Option<String>),
    /// `{"shell": PATH, "session": BOOL, "orphan": BOOL, "stubborn": BOOL}`: starts a sleeper in its own process group
    /// (or session), which writes its process id to the path; an orphan's parent dies at once, a stubborn one ignores
    /// SIGTERM, SIGINT and SIGHUP.
    Shell {
        path: PathBuf,
        session: bool,
        orphan: bool,
        stubborn: bool,
    },
    /// `{"sleep_millis": N}`
    Sleep(Duration),
    /// `{"hang": true}`: waits forever.
    Hang,
    /// `{"die": true}`: kills itself with SIGKILL.
    Die,
    /// `{"exit": CODE}`
    Exit(u8),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "--sleeper") {
        return sleeper(&args[1..]).await;
    }
    let steps = match script(&args) {
        Ok(steps) => steps,
        Err(error) => {
            eprintln!("fake-agent: {error}");
            return ExitCode::from(2);
        }
    };
    for step in steps {
        match play(step).await {
            Ok(None) => {}
            Ok(Some(code)) => return code,
            // The reader is gone.
            Err(_) => return ExitCode::from(141),
        }
    }
    ExitCode::SUCCESS
}

fn script(args: &[String]) -> Result<Vec<Step>, String> {
    let path = match args.iter().position(|arg| arg == "--script") {
        Some(at) => PathBuf::from(args.get(at + 1).ok_or("--script needs a file")?),
        None => {
            let mut name = std::env::current_exe()
                .map_err(|e| e.to_string())?
                .into_os_string();
            name.push(".script");
            PathBuf::from(name)
        }
    };
    let text = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let steps: Vec<Value> =
        serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    steps.iter().map(step).collect()
}

fn step(value: &Value) -> Result<Step, String> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let number = |key: &str| value[key].as_u64();
    let on = |key: &str| value[key] == true;
    Ok(if let Some(names) = value["ignore"].as_array() {
        Step::Ignore(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    } else if let Some(path) = text("record") {
        Step::Record(path.into())
    } else if let Some(word) = text("hear") {
        Step::Hear(word, text("note").map(PathBuf::from))
    } else if let Some(inner) = value["again"].as_array() {
        Step::Again(inner.iter().map(step).collect::<Result<_, _>>()?)
    } else if let Some(word) = text("when") {
        let inner = value["do"].as_array().into_iter().flatten();
        Step::When(word, inner.map(step).collect::<Result<_, _>>()?)
    } else if let Some(calls) = value["tools"].as_array() {
        let note = text("note").ok_or("`tools` needs a `note`")?;
        Step::Tools(calls.clone(), note.into(), on("stay"))
    } else if let Some(dialect) = text("obey") {
        Step::Obey(dialect, text("note").map(PathBuf::from))
    } else if let Some(path) = text("write") {
        Step::Write(path.into())
    } else if on("read") {
        Step::ReadInput
    } else if let Some(text) = text("print") {
        Step::Print(text)
    } else if let Some(text) = text("complain") {
        Step::Complain(text)
    } else if let Some(path) = text("play") {
        Step::Play(
            path.into(),
            Duration::from_micros(number("pause_micros").unwrap_or(0)),
        )
    } else if let Some(bytes) = number("flood") {
        Step::Flood(bytes, text("line"))
    } else if let Some(path) = text("shell") {
        Step::Shell {
            path: path.into(),
            session: on("session"),
            orphan: on("orphan"),
            stubborn: on("stubborn"),
        }
    } else if let Some(millis) = number("sleep_millis") {
        Step::Sleep(Duration::from_millis(millis))
    } else if on("hang") {
        Step::Hang
    } else if on("die") {
        Step::Die
    } else if let Some(code) = number("exit") {
        Step::Exit(u8::try_from(code).unwrap_or(u8::MAX))
    } else {
        return Err(format!("unknown step {value}"));
    })
}

#[expect(clippy::too_many_lines, reason = "one match over the steps")]
async fn play(step: Step) -> std::io::Result<Option<ExitCode>> {
    let mut stdout = std::io::stdout().lock();
    match step {
        Step::Hear(word, note) => {
            if !hear(&word, note.as_deref())? {
                return Ok(Some(ExitCode::SUCCESS));
            }
        }
        Step::Again(steps) => loop {
            for step in &steps {
                if let Some(code) = Box::pin(play(step.clone())).await? {
                    return Ok(Some(code));
                }
            }
        },
        Step::When(word, steps) => {
            if std::env::args().any(|arg| arg == word) {
                for step in steps {
                    if let Some(code) = Box::pin(play(step)).await? {
                        return Ok(Some(code));
                    }
                }
            }
        }
        Step::Tools(calls, note, stay) => {
            let server = tools(&calls, &note)?;
            if stay {
                std::future::pending::<()>().await;
            }
            server.end()?;
        }
        Step::Obey(dialect, prompts) => obey(&mut stdout, &dialect, prompts.as_deref())?,
        Step::Write(path) => std::fs::write(path, "written by the fake agent\n")?,
        Step::Ignore(names) => ignore(&names),
        Step::Record(path) => record(&path)?,
        Step::ReadInput => drop(input()?),
        Step::Print(text) => {
            let asked = ASKED.lock().map(|id| id.to_string()).unwrap_or_default();
            stdout.write_all(text.replace(r#""$asked""#, &asked).as_bytes())?;
            stdout.flush()?;
        }
        Step::Complain(text) => std::io::stderr().write_all(text.as_bytes())?,
        Step::Play(path, pause) => {
            for line in std::fs::read(path)?.split_inclusive(|byte| *byte == b'\n') {
                stdout.write_all(line)?;
                stdout.flush()?;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
        }
        Step::Flood(bytes, line) => {
            let piece = line.map_or_else(
                || vec![b'x'; 64 * 1024],
                |line| {
                    let line = line + "\n";
                    line.repeat(1 + 64 * 1024 / line.len()).into_bytes()
                },
            );
            let mut written = 0;
            while written < bytes {
                stdout.write_all(&piece)?;
                written += piece.len() as u64;
            }
            stdout.flush()?;
        }
        Step::Shell {
            path,
            session,
            orphan,
            stubborn,
        } => shell(&path, session, orphan, stubborn)?,
        Step::Sleep(time) => tokio::time::sleep(time).await,
        Step::Hang => std::future::pending().await,
        Step::Die => {
            kill_process(getpid(), Signal::KILL)?;
        }
        Step::Exit(code) => return Ok(Some(ExitCode::from(code))),
    }
    Ok(None)
}

/// Installs handlers that do nothing: these signals no longer end this process.
fn ignore(names: &[String]) {
    for name in names {
        let kind = match name.as_str() {
            "TERM" => SignalKind::terminate(),
            "INT" => SignalKind::interrupt(),
            _ => SignalKind::hangup(),
        };
        // The handler stays when the listener is dropped.
        drop(signal(kind));
    }
}

/// Reads lines up to one that contains the word; returns false at the end of stdin.
fn hear(word: &str, note: Option<&Path>) -> std::io::Result<bool> {
    let mut line = String::new();
    loop {
        line.clear();
        if std::io::stdin().read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let message = serde_json::from_str::<Value>(&line).unwrap_or_default();
        if message["method"].is_string()
            && !message["id"].is_null()
            && let Ok(mut asked) = ASKED.lock()
        {
            *asked = message["id"].clone();
        }
        if line.contains("\"mcpServers\"") {
            let _ = OFFERED.set(line.clone());
        }
        if let Some(path) = note {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            write!(file, "{} {line}", getpid().as_raw_nonzero())?;
        }
        if line.contains(word) {
            return Ok(true);
        }
    }
}

/// The id of the last request that it read.
static ASKED: std::sync::Mutex<Value> = std::sync::Mutex::new(Value::Null);
/// The message of an ACP client that names its servers.
static OFFERED: std::sync::OnceLock<String> = std::sync::OnceLock::new();

/// Returns program and arguments of the MCP server that this program was given.
fn server() -> Option<(String, Vec<String>)> {
    let args: Vec<String> = std::env::args().collect();
    let config = args.iter().position(|arg| arg == "--mcp-config");
    let server = match config.and_then(|at| args.get(at + 1)) {
        Some(text) => {
            let config: Value = serde_json::from_str(text).ok()?;
            config["mcpServers"].as_object()?.values().next()?.clone()
        }
        None => {
            let offered: Value = serde_json::from_str(OFFERED.get()?).ok()?;
            offered["params"]["mcpServers"][0].clone()
        }
    };
    let words = server["args"].as_array()?.iter();
    let words = words.filter_map(|word| word.as_str().map(str::to_owned));
    Some((server["command"].as_str()?.to_owned(), words.collect()))
}

/// Talks to the server like a real agent: `initialize`, the tool list, the calls.
fn tools(calls: &[Value], note: &Path) -> std::io::Result<Server> {
    let (program, args) = server().ok_or_else(|| std::io::Error::other("no server was named"))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    };
    let mut output = std::io::BufReader::new(output);
    let mut number = 0;
    let mut ask = |method: &str, params: Value| -> std::io::Result<Value> {
        number += 1;
        let request = json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params});
        writeln!(input, "{request}")?;
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == number {
                if method == "initialize" {
                    writeln!(
                        input,
                        r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
                    )?;
                }
                return Ok(answer["result"].clone());
            }
        }
    };
    let us = json!({"name": "fake-agent", "version": "1"});
    ask(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us}),
    )?;
    let listed = ask("tools/list", json!({}))?;
    let names: Vec<&Value> = listed["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|t| &t["name"])
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        let answer = ask("tools/call", call.clone())?;
        // On a visit the answer is between two lines with a word that no post can know.
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        answers.push(match lines[..] {
            [first, json, last] if first.starts_with('#') && last.ends_with("# end") => {
                serde_json::from_str(json)?
            }
            _ => answer["structuredContent"].clone(),
        });
    }
    std::fs::write(
        note,
        json!({"names": names, "answers": answers}).to_string(),
    )?;
    Ok(Server { child, input })
}

/// An MCP server that runs as long as its input is open.
struct Server {
    child: std::process::Child,
    input: std::process::ChildStdin,
}

impl Server {
    fn end(mut self) -> std::io::Result<()> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}

/// Does what the prompt orders, as far as the system allows, and answers.
fn obey(stdout: &mut impl Write, dialect: &str, prompts: Option<&Path>) -> std::io::Result<()> {
    let prompt = String::from_utf8_lossy(&input()?).into_owned();
    if let Some(path) = prompts {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)?;
        writeln!(file, "{}\n{prompt}", prompt.len())?;
    }
    let orders = Orders::read(&prompt);
    // Skips what the system forbids, and goes on.
    for path in &orders.write {
        let _ = std::fs::write(path, "written by the gullible agent\n");
    }
    for command in &orders.run {
        let _ = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .output();
    }
    if !orders.tools.is_empty() {
        let note =
            prompts.map_or_else(|| PathBuf::from("/dev/null"), |p| p.with_extension("tools"));
        let _ = tools(&orders.tools, &note);
    }
    let text = orders.answer(&prompt);
    let lines = match dialect {
        "claude" => vec![
            json!({"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1", "tools": []}),
            json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s",
                "usage": {"input_tokens": 3, "output_tokens": 2}}),
        ],
        _ => vec![
            json!({"type": "thread.started", "thread_id": "t-1"}),
            json!({"type": "turn.started"}),
            json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}}),
            json!({"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}}),
        ],
    };
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()
}

fn input() -> std::io::Result<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input)?;
    Ok(input)
}

fn record(path: &Path) -> std::io::Result<()> {
    let input = input()?;
    let number = |pid: rustix::io::Result<Pid>| pid.ok().map(|pid| pid.as_raw_nonzero().get());
    let seen = json!({
        "args": std::env::args().skip(1).collect::<Vec<_>>(),
        "env": std::env::vars().collect::<std::collections::BTreeMap<_, _>>(),
        "folder": std::env::current_dir()?,
        "stdin_bytes": input.len(),
        "stdin": String::from_utf8_lossy(&input[..input.len().min(4096)]),
        "pid": number(Ok(getpid())),
        "session": number(rustix::process::getsid(None)),
        "group": number(Ok(rustix::process::getpgrp())),
    });
    std::fs::write(path, seen.to_string())
}

/// Starts a sleeper and waits until it has reported its process id.
fn shell(path: &Path, session: bool, orphan: bool, stubborn: bool) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--sleeper")
        .arg(path)
        .arg(if session { "session" } else { "group" });
    command
        .arg(if stubborn { "stubborn" } else { "mild" })
        .arg(if orphan { "orphan" } else { "child" });
    command.stdin(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    if orphan {
        child.wait()?;
    }
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// `--sleeper PATH group|session mild|stubborn child|orphan`: sleeps for ten minutes, longer than any test.
async fn sleeper(args: &[String]) -> ExitCode {
    let [path, leads, manner, birth] = args else {
        return ExitCode::from(2);
    };
    if birth == "orphan" {
        // A child continues; this process is the parent that dies.
        let Ok(own) = std::env::current_exe() else {
            return ExitCode::from(2);
        };
        let mut command = Command::new(own);
        command
            .args(["--sleeper", path, leads, manner, "child"])
            .stdin(Stdio::null())
            .process_group(0);
        return command
            .spawn()
            .map_or(ExitCode::from(2), |_| ExitCode::SUCCESS);
    }
    if leads == "session" && setsid().is_err() {
        // A group leader cannot start a session, but its child can.
        let Ok(own) = std::env::current_exe() else {
            return ExitCode::from(2);
        };
        let mut command = Command::new(own);
        let spawned = command
            .args(["--sleeper", path, leads, manner, "child"])
            .stdin(Stdio::null())
            .spawn();
        return match spawned.map(|mut child| child.wait()) {
            Ok(_) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        };
    }
    if manner == "stubborn" {
        ignore(&["TERM".into(), "INT".into(), "HUP".into()]);
    }
    let part = PathBuf::from(path).with_extension("part");
    let said = std::fs::write(&part, getpid().as_raw_nonzero().to_string())
        .and_then(|()| std::fs::rename(&part, path));
    if said.is_err() {
        return ExitCode::from(2);
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    ExitCode::SUCCESS
}
