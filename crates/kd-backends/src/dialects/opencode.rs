//! opencode: `opencode run --format json`. Parts arrive complete, never in pieces.
//!
//! The program has no terminal event of a turn: a step that ended with `stop` is a success if nothing follows it, so
//! the end of the stream decides. A rejected permission ends the turn with no answer and exit code 0.

use super::answer::Answer;
use super::parse::{Lines, count, detail, notice, one_line, some, text};
use super::{Decoder, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::Value;
use std::time::Duration;

const WHO: &str = "opencode";
/// Start of the failure message when a tool was refused.
pub(super) const GAVE_UP: &str = "opencode gave up: it may not use";

/// Decoder for opencode; see the module docs.
#[derive(Default)]
pub(super) struct Opencode {
    lines: Lines,
    answer: Answer,
    started: bool,
    /// The message of the running step.
    step: Option<String>,
    /// The reason that the last step gave for its end.
    reason: Option<String>,
    usage: Option<Usage>,
    rejected: Option<String>,
    trouble: Option<Failure>,
}

impl Decoder for Opencode {
    fn line(&mut self, line: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        if let Some(event) = self.lines.object(line, &mut out) {
            self.event(&event, &mut out);
        }
        out
    }

    /// Never true before the stream ends; see the module docs.
    fn over(&self) -> bool {
        false
    }

    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        let mut turn = std::mem::take(self);
        if let Some(failure) = turn.trouble {
            return Err(failure);
        }
        match (turn.reason.as_deref(), turn.rejected) {
            (Some("stop"), _) => turn.answer.finish(WHO, Finish::Stop, turn.usage),
            (Some("length"), _) => turn.answer.finish(WHO, Finish::Length, turn.usage),
            (Some("content-filter"), _) => Err(Failure::new(
                FailureKind::Refused,
                "the provider filtered the answer",
            )),
            (_, Some(tool)) => Err(
                Failure::new(FailureKind::Invalid, format!("{GAVE_UP} {tool}")).advise(
                    "allow the tool in opencode's own configuration, or ask with `--writable`",
                ),
            ),
            (_, None) => Err(blame::unfinished_again(
                WHO,
                exit,
                turn.lines.prose.as_deref(),
                turn.answer.asking_again(),
            )),
        }
    }
}

impl Opencode {
    fn event(&mut self, event: &Value, out: &mut Vec<Delta>) {
        if !self.started && event["sessionID"].is_string() {
            self.started = true;
            out.push(Delta::Started {
                model: None,
                version: None,
                session: some(event, "sessionID"),
            });
        }
        let part = &event["part"];
        let message = text(part, "messageID");
        match text(event, "type") {
            "step_start" => {
                // The same step starts again without having ended: its connection broke.
                if self.step.as_deref() == Some(message) {
                    let why = Failure::new(
                        FailureKind::Crashed,
                        "the stream of the provider was cut off",
                    );
                    self.answer.retry(None, Duration::ZERO, why, out);
                }
                self.step = Some(message.to_owned());
                self.reason = None;
            }
            "text" => {
                let key = text(part, "id");
                self.answer.settle(message, key, text(part, "text"), out);
                // The part is complete, but its step may still be retried.
                self.answer.unsettle(|_, k| k == key);
            }
            "reasoning" => self.answer.think_anew(text(part, "text"), out),
            "tool_use" => self.tool(part, out),
            "step_finish" => {
                self.step = None;
                self.reason = some(part, "reason");
                self.answer.settle_all();
                self.count(part);
            }
            "error" => self.trouble = Some(failure(&event["error"])),
            _ => {}
        }
    }

    fn tool(&mut self, part: &Value, out: &mut Vec<Delta>) {
        let (name, state) = (text(part, "tool"), &part["state"]);
        out.push(Delta::Tool {
            name: name.to_owned(),
            detail: detail(&state["input"]),
        });
        let error = text(state, "error");
        if error.contains("rejected permission") {
            self.rejected = Some(name.to_owned());
            out.push(notice(format!(
                "opencode may not use {name}: {}",
                one_line(error, 200)
            )));
        }
    }

    /// Adds a step's usage.
    fn count(&mut self, part: &Value) {
        let tokens = &part["tokens"];
        if !tokens.is_object() {
            return;
        }
        let cached = count(&tokens["cache"], "read");
        let thinking = count(tokens, "reasoning");
        self.usage.get_or_insert_default().add(&Usage {
            input_tokens: count(tokens, "input") + cached + count(&tokens["cache"], "write"),
            output_tokens: count(tokens, "output") + thinking,
            cached_tokens: cached,
            thinking_tokens: thinking,
            cost_usd: part["cost"].as_f64(),
            ..Usage::default()
        });
    }
}

/// Converts a typed opencode error.
fn failure(error: &Value) -> Failure {
    let (name, data) = (text(error, "name"), &error["data"]);
    let said = some(data, "message")
        .or_else(|| some(error, "message"))
        .unwrap_or_else(|| format!("opencode failed ({name})"));
    let typed = match name {
        "ProviderAuthError" => Some(FailureKind::Auth),
        "ContextOverflowError" | "MessageOutputLengthError" | "ProviderModelNotFoundError" => {
            Some(FailureKind::Invalid)
        }
        "MessageAbortedError" => Some(FailureKind::Cancelled),
        _ => None,
    };
    let mut failure = blame::failure(&said, data["statusCode"].as_u64(), FailureKind::Crashed);
    failure.kind = typed.unwrap_or(failure.kind);
    let wait = text(&data["responseHeaders"], "retry-after")
        .parse::<u64>()
        .ok();
    failure.retry_after = wait.map(Duration::from_secs);
    failure
}
