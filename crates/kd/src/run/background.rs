//! `--async`: runs the round in a separate process and session, so that it outlives the terminal.
//!
//! The question is passed in an unnamed file, never as an argument. The round's output goes to a log in `.kd`; members'
//! messages are in the thread, as usual.

use crate::args::ask::Ask;
use crate::error::Error;
use crate::exit::Exit;
use kd_core::{Event, Op, Record, Roster, SeatName};
use kd_store::{Layout, Thread, Watch, beneath, bounds};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for saving the question.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval between checks whether the process died before that, which changes no file.
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
    let seen = last(thread)?;
    let watch = Watch::new(thread.path())?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments(args, roster, thread, &to.to_string()))
        .stdin(question(body)?)
        .stdout(open(&log)?)
        .stderr(open(&log)?)
        .spawn()?;
    let until = Instant::now() + PATIENCE;
    while last(thread)? <= seen {
        if let Some(status) = child.try_wait()? {
            // A short round can start and end between two checks.
            if ran(&log) {
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

fn open(log: &Path) -> Result<File, Error> {
    Ok(beneath::append(log)?)
}

/// Returns the number of the newest message.
fn last(thread: &Thread) -> Result<u32, Error> {
    let newest = thread.tail(1)?.messages;
    Ok(newest.last().map_or(0, |m| m.seq))
}

/// Returns the last line of a log; empty if there is none.
fn last_line(log: &Path) -> String {
    let (end, _) = beneath::read_end(log, bounds::LOG_END).unwrap_or_default();
    let end = String::from_utf8_lossy(&end);
    end.lines().last().unwrap_or_default().to_owned()
}

/// Returns whether a round whose process exited was completed.
fn ran(log: &Path) -> bool {
    let record = serde_json::from_str::<Record>(&last_line(log));
    record.is_ok_and(|record| matches!(record.event, Event::FloorYielded { .. }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_ended_between_two_looks_has_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let yielded = r#"{"v":1,"seq":9,"ts":"2026-01-01T00:00:00Z","thread":"council-3e2c","event":"floor_yielded","outcome":"complete","usage":{"input_tokens":0,"output_tokens":0}}"#;
        for (text, ran_to_its_end) in [
            (format!("{yielded}\n"), true),
            ("error: there is no model\n".to_owned(), false),
            (format!("{yielded}\nerror: there is no model\n"), false),
            (String::new(), false),
        ] {
            std::fs::write(&log, &text).expect("written");
            assert_eq!(ran(&log), ran_to_its_end, "{text}");
        }
    }
}
