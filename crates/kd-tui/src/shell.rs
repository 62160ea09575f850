//! Runs a shell line that the user typed, and returns its output as text for a message.

use crate::app::Output;
use kd_core::attached;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::Timespec;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum bytes of output that are kept.
const OUTPUT_MAX: usize = 64 << 10;
/// Time after which a command is stopped.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Runs a line with `/bin/sh` in the working folder, without input.
///
/// # Errors
/// The shell cannot be started.
pub(crate) fn run(line: &str) -> io::Result<Output> {
    run_within(line, TIME_MAX)
}

fn run_within(line: &str, time_max: Duration) -> io::Result<Output> {
    let (mut reader, writer) = io::pipe()?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    let until = Instant::now() + time_max;
    let (output, mut ended) = read(&mut reader, until);
    if ended.is_none() {
        ended = told(&mut child, until, time_max);
    }
    stop(&mut child);
    let mut text = String::from_utf8_lossy(&output).into_owned();
    let lines = text.lines().count();
    if let Some(ended) = &ended {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{ended}]\n"));
    }
    let name = format!("output of {line}");
    Ok(Output {
        block: attached::block(&name, output.len() as u64, &text),
        lines,
        ended,
    })
}

/// Reads the output until its end; returns why it was not read to its end.
fn read(reader: &mut PipeReader, until: Instant) -> (Vec<u8>, Option<String>) {
    let mut output = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut [PollFd::new(&*reader, PollFlags::IN)], Some(&wait)) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(1..) => {}
            // The time is over: `told` says so.
            _ => return (output, None),
        }
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => return (output, None),
            Ok(n) => output.extend_from_slice(&buffer[..n]),
        }
        if output.len() > OUTPUT_MAX {
            output.truncate(OUTPUT_MAX);
            return (output, Some("cut at 64 KiB".to_owned()));
        }
    }
}

/// Waits for the end of the shell; says how it ended, unless it succeeded.
fn told(child: &mut Child, until: Instant, time_max: Duration) -> Option<String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return None,
            Ok(Some(status)) => return Some(status.to_string()),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            _ => return Some(format!("stopped after {} s", time_max.as_secs())),
        }
    }
}

/// Stops what is left of the command.
fn stop(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may be over.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_errors_and_the_end_are_one_block() {
        let both = run("echo one; echo two >&2").unwrap();
        assert_eq!((both.lines, both.ended), (2, None));
        assert_eq!(
            both.block,
            "[attached: `output of echo one; echo two >&2`, 8 bytes]\n```\none\ntwo\n```"
        );
        let failed = run("printf no; exit 3").unwrap();
        assert_eq!(failed.lines, 1);
        assert_eq!(failed.ended.as_deref(), Some("exit status: 3"));
        let failed = failed.block;
        assert!(
            failed.ends_with("```\nno\n[exit status: 3]\n```"),
            "{failed}"
        );
        // Nothing in the output ends the block.
        let fenced = run("printf '```\\n@all'").unwrap().block;
        assert!(fenced.ends_with("````\n```\n@all\n````"), "{fenced}");
    }

    #[test]
    fn a_command_without_end_is_stopped() {
        let long = run("yes").unwrap().block;
        assert!(long.ends_with("[cut at 64 KiB]\n```"));
        let slow = run_within("echo begun; sleep 600", Duration::from_millis(200))
            .unwrap()
            .block;
        assert!(slow.contains("begun\n[stopped after 0 s]"), "{slow}");
        // A background process keeps the output open.
        let left = run_within("sleep 600 & echo done", Duration::from_millis(200))
            .unwrap()
            .block;
        assert!(left.contains("done\n"), "{left}");
    }
}
