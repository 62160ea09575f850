//! An MCP server that is a program: one JSON message per line, on its stdin and stdout.
//!
//! It runs in an empty folder, gets only the given variables, and is stopped with everything it started when this is
//! dropped or this process is killed (see [`crate::transport::process`]).

use super::{ANSWER_BYTES_MAX, CALL_LIMIT, Peer, answers, greeted, greeting, request};
use crate::dialects::Exit;
use crate::transport::lines::{Line, Lines};
use crate::transport::process::{Gentle, Running, Spec};
use kd_core::{Failure, FailureKind};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Time limit for a server to exit after a signal.
const GRACE: Duration = Duration::from_millis(2000);

/// The program to start, with its arguments and environment.
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// The complete environment.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    /// Its name among the processes of this run.
    pub(crate) label: String,
}

/// A running server program.
pub(crate) struct Program {
    peer: Peer,
    running: Running,
    lines: Lines,
    calls: u64,
    /// Whether it printed lines that are not messages. They are skipped: many programs print a greeting.
    is_talkative: bool,
    pub(crate) limit: Duration,
}

impl Program {
    /// Starts the program. Must be called inside a runtime.
    pub(crate) fn start(peer: Peer, start: Start) -> Result<Self, Failure> {
        let spec = Spec {
            label: start.label,
            program: start.program,
            args: start.args.into_iter().map(Into::into).collect(),
            env: start.env,
            folder: start.folder,
            input: None,
            rights: None,
            tools: Vec::new(),
            gentle: Gentle::Terminate,
            grace: GRACE,
        };
        let running = Running::converse(spec).map_err(|error| {
            let what = format!("cannot be started: {error}");
            let advice = format!("correct `{}.command`", peer.setting);
            peer.failure(FailureKind::Missing, &what).advise(advice)
        })?;
        Ok(Self {
            peer,
            running,
            lines: Lines::with_max(ANSWER_BYTES_MAX),
            calls: 0,
            is_talkative: false,
            limit: CALL_LIMIT,
        })
    }

    /// Opens the session.
    pub(crate) async fn greet(&mut self) -> Result<(), Failure> {
        self.request("initialize", &greeting()).await?;
        self.say(&greeted());
        Ok(())
    }

    /// Sends a request and returns its result.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let limit = self.limit;
        self.calls += 1;
        let id = self.calls;
        self.say(&request(id, method, params));
        let message = match tokio::time::timeout(limit, self.read(id)).await {
            Ok(message) => message?,
            Err(_) if self.is_talkative => {
                let what = format!(
                    "prints text that is no MCP message, and did not answer within {} s",
                    limit.as_secs_f32()
                );
                return Err(self.peer.failure(FailureKind::Timeout, &what));
            }
            Err(_) => return Err(self.peer.too_late(limit)),
        };
        self.peer.result(message)
    }

    fn say(&self, message: &Value) {
        self.running.say(format!("{message}\n").into_bytes());
    }

    /// Reads the message with this id.
    async fn read(&mut self, id: u64) -> Result<Value, Failure> {
        let mut came = 0;
        loop {
            let chunk = self.running.read().await;
            let chunk = chunk.map(<[u8]>::to_vec).unwrap_or_default();
            if chunk.is_empty() {
                return Err(self.ended().await);
            }
            came += chunk.len();
            let (mut found, mut is_long) = (None, false);
            let mut pings = Vec::new();
            let is_talkative = &mut self.is_talkative;
            self.lines.push(&chunk, |line| match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => match serde_json::from_slice::<Value>(line) {
                    Ok(message) if answers(&message, id) => found = Some(message),
                    Ok(message) if message["method"] == "ping" => pings.push(message["id"].clone()),
                    Ok(message) if message.is_object() => {}
                    _ => *is_talkative = true,
                },
                Line::TooLong(_) => is_long = true,
            });
            for id in pings {
                self.say(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
            }
            match found {
                Some(message) => return Ok(message),
                None if is_long || came > ANSWER_BYTES_MAX => return Err(self.peer.too_long()),
                None => {}
            }
        }
    }

    async fn ended(&mut self) -> Failure {
        let how = match self.running.exit().await.how {
            Exit::Code(code) => format!("ended with exit code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
            Exit::Unseen => "closed its output".to_owned(),
        };
        let advice = format!(
            "run the command of `{}.command` in a terminal: it should wait for input",
            self.peer.setting
        );
        self.peer.failure(FailureKind::Crashed, &how).advise(advice)
    }
}
