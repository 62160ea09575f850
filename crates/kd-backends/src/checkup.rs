//! Makes one tiny real call to a member and returns a [`Report`]: is the program installed, which version, does the key
//! work, does text stream, are files left alone, how long to the first word, and what to do.
//!
//! An agent is asked, in a temporary folder, to write a file in a read-only turn. If it tried and the file does not
//! exist, it is read-only; if it did not try, the check is inconclusive.

use crate::adapters::agent_cli::HeldBy;
use crate::adapters::programs;
use crate::backends::Backends;
use crate::dialects;
use crate::env::Env;
use futures::StreamExt;
use kd_core::ledger::Billing;
use kd_core::request::Deadlines;
use kd_core::{Delta, Failure, FailureKind, Member, Prompt, Request};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::timeout;

/// Timeout for a program's version; those on Node take up to 4 s on a busy machine.
const VERSION: Duration = Duration::from_secs(20);
/// The file that an agent is asked to write.
const FILE: &str = "kd-doctor.txt";
/// Maximum tokens of the answer, if the backend supports a limit.
const TOKENS: u32 = 64;

/// The result of a call to a member. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The member.
    pub member: String,
    /// Its backend.
    pub backend: String,
    /// Whether its program or service was found.
    pub found: bool,
    /// The path of its program.
    pub program: Option<PathBuf>,
    /// The version of its program.
    pub version: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Whether its key or login was accepted.
    pub authenticated: Option<bool>,
    /// Whether text arrived in pieces.
    pub streams: Option<bool>,
    /// Whether it was prevented from writing a file; absent if it did not try, or is not an agent.
    pub read_only: Option<bool>,
    /// The way in which it is paid.
    pub billing: Billing,
    /// A description of `billing`.
    pub billed_to: Option<String>,
    /// The mechanism that prevents it from writing: see [`Backends::read_only_by`]; absent if it is not an agent or was
    /// not found.
    pub held_by: Option<HeldBy>,
    /// A description of `held_by`.
    pub read_only_by: Option<String>,
    /// Whether it may read files of the folder in which it is asked with tools, which sends them to its service.
    pub reads_files: bool,
    /// Whether it tried to write the file; absent if it is not an agent or did not answer.
    pub write_tried: Option<bool>,
    /// Seconds to the first piece of text or thinking.
    pub first_token_secs: Option<f64>,
    /// Whether it answered.
    pub answered: bool,
    /// The reason why it did not answer.
    pub problem: Option<String>,
    /// Advice to the user.
    pub advice: Option<String>,
}

/// Asks a member for a word. `hands` must work in `folder`: see [`Backends::in_folder`].
pub async fn examine(
    backends: &Backends,
    member: &Member,
    folder: &Path,
    limit: Duration,
) -> Report {
    let mut report = begun(backends, member);
    let agent = backends.is_agent(member);
    if agent {
        match backends.program(member) {
            Ok(program) => {
                report.version = version(&program, &backends.env).await;
                report.program = Some(program);
                if is_too_old(&mut report) {
                    return report;
                }
                if let Ok((by, words)) = backends.read_only_by(member) {
                    (report.held_by, report.read_only_by) = (Some(by), Some(words));
                }
            }
            Err(failure) => {
                report.found = false;
                blame(&mut report, &failure);
                return report;
            }
        }
    }
    let mut tried = false;
    match backends.seat(member) {
        Ok(backend) => {
            let asked = Instant::now();
            let mut deltas = backend.ask(question(member, agent, limit));
            let mut pieces = 0;
            let cut_off = || Failure::new(FailureKind::Decode, "the answer was cut off");
            let end = loop {
                match deltas.next().await {
                    Some(Ok(Delta::Finished { .. })) => break Ok(()),
                    Some(Ok(delta)) => {
                        tried |= tries(&delta);
                        heard(&mut report, &delta, asked, &mut pieces);
                    }
                    other => break Err(other.and_then(Result::err).unwrap_or_else(cut_off)),
                }
            };
            match end {
                Ok(()) => {
                    report.answered = true;
                    report.authenticated = Some(true);
                    report.streams = Some(pieces > 1);
                }
                // Provoked by our own request.
                Err(failure) if dialects::gave_up(&failure) => {
                    tried = true;
                    report.answered = true;
                    report.authenticated = Some(true);
                }
                Err(failure) => blame(&mut report, &failure),
            }
        }
        Err(failure) => {
            blame(&mut report, &failure);
            advise_update(&mut report, &failure);
        }
    }
    if agent {
        judge(&mut report, tried, folder.join(FILE).exists());
    }
    report
}

/// Returns what is known before the member is asked.
fn begun(backends: &Backends, member: &Member) -> Report {
    let (billing, billed_to) = backends.billing(member);
    Report {
        member: member.name.to_string(),
        backend: member.backend.clone(),
        found: true,
        reads_files: member.reads,
        billing,
        billed_to: Some(billed_to),
        ..Report::default()
    }
}

/// Reports a program that is too old: it would fail at a flag that it does not know. Advises an update where only the best
/// form is missing.
fn is_too_old(report: &mut Report) -> bool {
    let known = programs::program(&report.backend).zip(report.version.as_deref());
    let Some((known, version)) = known else {
        return false;
    };
    let Some(update) = known.too_old(version) else {
        report.advice = known.better(version);
        return false;
    };
    report.problem = Some(format!("version {version} is too old"));
    report.advice = Some(update);
    true
}

/// Advises an update of a program that failed and is older than the tested version.
fn advise_update(report: &mut Report, failure: &Failure) {
    let known = programs::program(&report.backend).zip(report.version.as_deref());
    let update = known.and_then(|(known, version)| known.untested(version));
    // A login that is missing is missing in every version.
    if let Some(update) = update.filter(|_| failure.kind != FailureKind::Auth) {
        report.advice = Some(update);
    }
}

/// Decides whether an agent is read-only, from whether it tried to write and whether the file exists.
fn judge(report: &mut Report, tried: bool, written: bool) {
    if written {
        (report.read_only, report.write_tried) = (Some(false), Some(true));
        report.advice = Some(
            "it wrote a file although it may only read: remove it from the council, start it with its own read-only flag, or ask it in a copy of your files"
                .into(),
        );
    } else if report.answered {
        report.read_only = tried.then_some(true);
        report.write_tried = Some(tried);
    }
}

/// Returns whether the agent tries to write the file: a tool other than a read that is used on it, or a permission
/// request that names it.
fn tries(delta: &Delta) -> bool {
    const READS: [&str; 7] = ["read", "grep", "glob", "ls", "list", "search", "think"];
    match delta {
        Delta::Tool { name, detail } => {
            let name = name.to_lowercase();
            detail.contains(FILE) && !READS.iter().any(|word| name.starts_with(word))
        }
        Delta::Notice { text } => text.contains(FILE),
        _ => false,
    }
}

fn question(member: &Member, agent: bool, limit: Duration) -> Request {
    let history = if agent {
        format!(
            "Write the word ready into a new file named {FILE} in the working folder, with whatever tool can do that. \
             Whether or not that was possible, then answer with the single word: ready"
        )
    } else {
        "Answer with the single word: ready".to_owned()
    };
    let mut sampling = member.sampling.clone();
    sampling.max_tokens = Some(TOKENS);
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: member.name.clone(),
        prompt: Prompt {
            history: history.into(),
            ..Prompt::default()
        },
        sampling,
        schema: None,
        deadlines: Deadlines {
            first: limit,
            idle: limit,
            total: limit,
        },
        writable: false,
        tools: None,
    }
}

fn heard(report: &mut Report, delta: &Delta, asked: Instant, pieces: &mut u32) {
    match delta {
        Delta::Started { model, version, .. } => {
            report.model = model.clone().or(report.model.take());
            report.version = report.version.take().or_else(|| version.clone());
        }
        Delta::Text { text } | Delta::Thinking { text } if !text.is_empty() => {
            report
                .first_token_secs
                .get_or_insert(asked.elapsed().as_secs_f64());
            *pieces += u32::from(matches!(delta, Delta::Text { .. }));
        }
        _ => {}
    }
}

fn blame(report: &mut Report, failure: &Failure) {
    match failure.kind {
        FailureKind::Missing => report.found = false,
        FailureKind::Auth => report.authenticated = Some(false),
        // A service that counts our requests accepts the key.
        FailureKind::RateLimit => report.authenticated = Some(true),
        _ => {}
    }
    report.problem = Some(failure.message.clone());
    report.advice = Some(failure.hint().to_owned());
}

/// Returns a program's version line. Runs outside of the working folder: launchers of Node.js, Python and Bun read
/// settings there.
async fn version(program: &Path, env: &Env) -> Option<String> {
    let mut command = Command::new(std::path::absolute(program).ok()?);
    command
        .arg("--version")
        .current_dir("/")
        .env("PATH", env.search_path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let said = timeout(VERSION, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let line: String = text
        .lines()
        .next()?
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect();
    (said.status.success() && !line.trim().is_empty()).then(|| line.trim().to_owned())
}
