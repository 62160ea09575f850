//! Runs a shell line that the user typed, and returns its output as text for a message. Everything that it starts ends
//! with it, or with this process.

use crate::env::Env;
use kd_backends::dialects::Exit;
use kd_backends::transport::process::{Gentle, Running, Spec};
use kd_core::attached;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum bytes of output that are kept.
const OUTPUT_MAX: usize = 64 << 10;
/// Time after which a command is stopped.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Time limit for what is left of a command to exit after it was asked to.
const GRACE: Duration = Duration::from_millis(500);
/// Pause before asking again how a command ended.
const UNSEEN_PAUSE: Duration = Duration::from_millis(50);
/// Runs its argument with its errors among its output, as on a terminal.
const TOGETHER: &str = "exec 2>&1; exec /bin/sh -c \"$1\"";

/// The output of a shell line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The text for a message: the output in a fence.
    pub block: String,
    /// The lines of the output.
    pub lines: usize,
    /// How it ended, unless it succeeded.
    pub ended: Option<String>,
}

/// Runs a line with `/bin/sh` in the working folder, without input. Blocks; must not be called inside of a task.
///
/// # Errors
/// The shell cannot be started.
pub fn run(line: &str, env: &Env) -> io::Result<Output> {
    run_within(line, env, TIME_MAX)
}

fn run_within(line: &str, env: &Env, time_max: Duration) -> io::Result<Output> {
    let folder = env.folder().map_err(|e| io::Error::other(e.what))?;
    let text = |name: &std::ffi::OsStr| name.to_str().map(str::to_owned);
    let vars = env.vars();
    let vars = vars.filter_map(|(name, value)| Some((text(&name)?, text(&value)?)));
    let args = ["-c", TOGETHER, "sh", line];
    let spec = Spec {
        label: "a shell line".to_owned(),
        program: PathBuf::from("/bin/sh"),
        args: args.map(Into::into).to_vec(),
        env: vars.collect(),
        folder: folder.to_path_buf(),
        input: None,
        rights: None,
        tools: Vec::new(),
        gentle: Gentle::Terminate,
        grace: GRACE,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (output, ended) = runtime.block_on(async {
        let mut running = Running::start(spec)?;
        let until = Instant::now() + time_max;
        let (output, is_cut) = read(&mut running, until).await;
        let ended = match is_cut {
            true => Some("cut at 64 KiB".to_owned()),
            false => told(&mut running, until, time_max).await,
        };
        Ok::<_, io::Error>((output, ended))
    })?;
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

/// Reads the output until its end or the end of the time; also returns whether it was cut.
async fn read(running: &mut Running, until: Instant) -> (Vec<u8>, bool) {
    let mut output = Vec::new();
    loop {
        match timeout_at(until, running.read()).await {
            Ok(Ok(bytes)) if !bytes.is_empty() => output.extend_from_slice(bytes),
            _ => return (output, false),
        }
        if output.len() > OUTPUT_MAX {
            output.truncate(OUTPUT_MAX);
            return (output, true);
        }
    }
}

/// Waits for the end of the shell; says how it ended, unless it succeeded.
async fn told(running: &mut Running, until: Instant, time_max: Duration) -> Option<String> {
    while let Ok(seen) = timeout_at(until, running.exit()).await {
        return match seen.how {
            Exit::Code(0) => None,
            Exit::Code(code) => Some(format!("exit status: {code}")),
            Exit::Signal(signal) => Some(format!("signal: {signal}")),
            // It goes on, or nothing is known of its end.
            Exit::Unseen if Instant::now() < until => {
                tokio::time::sleep(UNSEEN_PAUSE).await;
                continue;
            }
            Exit::Unseen => break,
        };
    }
    Some(format!("stopped after {} s", time_max.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, time_max: Duration) -> Output {
        run_within(line, &Env::process(), time_max).expect("it runs")
    }

    #[test]
    fn output_errors_and_the_end_are_one_block() {
        let run = |line| shell(line, TIME_MAX);
        let both = run("echo one; echo two >&2");
        assert_eq!((both.lines, both.ended), (2, None));
        assert_eq!(
            both.block,
            "[attached: `output of echo one; echo two >&2`, 8 bytes]\n```\none\ntwo\n```"
        );
        let failed = run("printf no; exit 3");
        assert_eq!(failed.lines, 1);
        assert_eq!(failed.ended.as_deref(), Some("exit status: 3"));
        let failed = failed.block;
        assert!(
            failed.ends_with("```\nno\n[exit status: 3]\n```"),
            "{failed}"
        );
        let killed = run("kill -9 $$").ended;
        assert_eq!(killed.as_deref(), Some("signal: 9"));
        let silent = run("exec >/dev/null 2>&1; sleep 0.1; exit 4").ended;
        assert_eq!(silent.as_deref(), Some("exit status: 4"));
        // Nothing in the output ends the block.
        let fenced = run("printf '```\\n@all'").block;
        assert!(fenced.ends_with("````\n```\n@all\n````"), "{fenced}");
    }

    #[test]
    fn a_command_without_end_is_stopped() {
        let long = shell("yes", TIME_MAX).block;
        assert!(long.ends_with("[cut at 64 KiB]\n```"));
        let slow = shell("echo begun; sleep 600", Duration::from_millis(200)).block;
        assert!(slow.contains("begun\n[stopped after 0 s]"), "{slow}");
        // A background process keeps the output open.
        let left = shell("sleep 600 & echo done", TIME_MAX).block;
        assert!(left.contains("done\n"), "{left}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_command_leaves_in_its_own_session_is_stopped() {
        let left = shell("setsid sleep 600 > /dev/null 2>&1 & echo $!", TIME_MAX);
        let pid = left.block.lines().nth(2).expect("a number").to_owned();
        assert!(pid.parse::<u32>().is_ok(), "{}", left.block);
        let until = std::time::Instant::now() + TIME_MAX;
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return;
            }
            assert!(std::time::Instant::now() < until, "it goes on: {stat}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
