//! `--async`: runs the round in a separate process and session, so that it outlives the terminal.
//!
//! The question is passed in an unnamed file, never as an argument. The round's output goes to a log in `.kd`; members'
//! messages are in the thread, as usual.

use crate::args::ask::Ask;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::background::{is_completed, last_line, newest_message, open_log};
use kd_app::threads::{Layout, Thread, Watch};
use kd_core::{Op, Roster, SeatName};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for saving the question.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval at which to check whether the process died early, which changes no file.
const LOOK: Duration = Duration::from_millis(100);

/// Starts the round and returns once its question is on disk.
pub(super) fn start(
    args: &Ask,
    op: &Op,
    roster: &Roster,
    layout: &Layout,
    thread: &Thread,
) -> Result<Exit, Error> {
    let Op::Say { body, to } = op else {
        return Err(Error::usage(
            "only questions can be asked in the background",
        ));
    };
    let log = layout.background_log(thread.id());
    let seen = newest_message(thread)?;
    let watch = Watch::new(thread.path())?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments(args, roster, thread, &to.to_string()))
        .stdin(question(body)?)
        .stdout(open_log(&log)?)
        .stderr(open_log(&log)?)
        .spawn()?;
    let until = Instant::now() + PATIENCE;
    while newest_message(thread)? <= seen {
        if let Some(status) = child.try_wait()? {
            // A short round can start and end between two checks; its log may end with a notice.
            if newest_message(thread)? > seen || is_completed(&log) {
                break;
            }
            return Err(died(&log, status.code()));
        }
        if Instant::now() >= until {
            break;
        }
        watch.wait(LOOK);
    }
    told(args, thread, &child, &log)?;
    Ok(Exit::Done)
}

/// Builds the command line of the background process.
fn arguments(args: &Ask, roster: &Roster, thread: &Thread, to: &str) -> Vec<String> {
    let members = roster.members();
    let names: Vec<&str> = members.iter().map(|m| SeatName::as_str(&m.name)).collect();
    let mut line = vec!["ask".to_owned(), "--jsonl".into(), "--quiet".into()];
    let mut option = |name: &str, value: String| line.extend([name.to_owned(), value]);
    option("--thread", thread.id().0.clone());
    option("--address", to.to_owned());
    option("--members", names.join(","));
    if let Some(timeout) = args.timeout {
        option("--timeout", format!("{}s", timeout.as_secs()));
    }
    if let Some(wanted) = args.tools.tools {
        option("--tools", wanted.word().to_owned());
    }
    if let Some(model) = &args.model.model {
        option("--model", model.clone());
    }
    if let Some(temperature) = args.model.temperature {
        option("--temperature", temperature.to_string());
    }
    if let Some(tokens) = args.model.max_tokens {
        option("--max-tokens", tokens.to_string());
    }
    if let Some(usd) = args.spending.max_usd {
        option("--max-usd", usd.to_string());
    }
    if let Some(calls) = args.spending.max_calls {
        option("--max-calls", calls.to_string());
    }
    if let Some(tokens) = args.spending.max_total_tokens {
        option("--max-total-tokens", tokens.to_string());
    }
    if let Some(seed) = args.model.seed {
        option("--seed", seed.to_string());
    }
    for (flag, wanted) in [
        ("--offline", args.model.offline),
        ("--writable", args.writable),
        ("--no-conclude", args.no_conclude),
        ("--allow-secrets", args.privacy.allow_secrets),
        ("--private", args.privacy.private),
    ] {
        if wanted {
            line.push(flag.to_owned());
        }
    }
    line.push("-".to_owned());
    line
}

/// Writes the question to an unnamed file and seeks to its start.
fn question(body: &str) -> io::Result<Stdio> {
    let mut file = tempfile::tempfile()?;
    file.write_all(body.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Explains why a round ended before its question was on disk.
fn died(log: &Path, code: Option<i32>) -> Error {
    let why = match last_line(log) {
        line if line.is_empty() => "it printed nothing".to_owned(),
        line => line,
    };
    let what = match code {
        Some(code) => format!("the background round exited with code {code} before it started"),
        None => "the background round was killed before it started".to_owned(),
    };
    Error::new("background", Exit::Error, what)
        .because(why)
        .next(format!("its log is {}", log.display()))
}

fn told(args: &Ask, thread: &Thread, child: &Child, log: &Path) -> Result<(), Error> {
    let mut out = crate::out::stdout().lock();
    if args.output.is_json() {
        let object = serde_json::json!({
            "v": kd_core::formats::BACKGROUND.version,
            "thread_id": thread.id(),
            "pid": child.id(),
            "log": log,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    writeln!(out, "{}", thread.id())?;
    if !args.output.quiet {
        let mut err = crate::out::stderr().lock();
        writeln!(
            err,
            "asked in the background; it continues when this terminal is closed"
        )?;
        writeln!(err, "follow it: kd council watch {}", thread.id())?;
        writeln!(err, "its log:   {}", log.display())?;
    }
    Ok(())
}
