//! Gemini CLI: `gemini -o stream-json`.
//!
//! After a broken stream the program repeats its words without any sign of it, so a turn whose result is an error keeps
//! no text. This format shows neither thoughts nor the token limit.

use super::answer::Answer;
use super::parse::{Lines, count, detail, notice, one_line, some, text};
use super::{Decoder, Exit, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::Value;

const WHO: &str = "gemini";

/// Decoder for Gemini CLI; see the module docs.
#[derive(Default)]
pub(super) struct Gemini {
    lines: Lines,
    answer: Answer,
    /// Counts the stretches of text between tools.
    stretch: u64,
    trouble: Option<String>,
    outcome: Option<Result<Delta, Failure>>,
}

impl Decoder for Gemini {
    fn line(&mut self, line: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        if let Some(event) = self.lines.object(line, &mut out) {
            self.event(&event, &mut out);
        }
        out
    }

    fn over(&self) -> bool {
        self.outcome.is_some()
    }

    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            let said = self.trouble.as_deref().or(self.lines.prose.as_deref());
            let failure = blame::unfinished(WHO, exit, said);
            Err(match exit.how {
                Exit::Code(code) => match kind_of_exit(code) {
                    Some(kind) => Failure { kind, ..failure },
                    None => failure,
                },
                _ => failure,
            })
        });
        *self = Self::default();
        outcome
    }
}

impl Gemini {
    fn event(&mut self, event: &Value, out: &mut Vec<Delta>) {
        match text(event, "type") {
            "init" => out.push(Delta::Started {
                model: some(event, "model"),
                version: None,
                session: some(event, "session_id"),
            }),
            "message" if text(event, "role") == "assistant" => {
                self.answer
                    .grow(&self.stretch.to_string(), "", text(event, "content"), out);
            }
            "tool_use" => {
                self.stretch += 1;
                out.push(Delta::Tool {
                    name: text(event, "tool_name").to_owned(),
                    detail: detail(&event["parameters"]),
                });
            }
            "error" => {
                let said = one_line(text(event, "message"), 300);
                out.push(notice(said.clone()));
                self.trouble = Some(said);
            }
            "result" => self.outcome = Some(self.result(event)),
            _ => {}
        }
    }

    fn result(&mut self, event: &Value) -> Result<Delta, Failure> {
        if text(event, "status") != "success" {
            let error = &event["error"];
            let said = some(error, "message")
                .or(self.trouble.take())
                .unwrap_or_else(|| "gemini failed without a reason".into());
            return Err(blame::failure(
                &said,
                error["code"].as_u64(),
                FailureKind::Crashed,
            ));
        }
        let stats = &event["stats"];
        let usage = stats.is_object().then(|| Usage {
            input_tokens: count(stats, "input_tokens"),
            output_tokens: count(stats, "output_tokens"),
            cached_tokens: count(stats, "cached"),
            ..Usage::default()
        });
        self.answer.settle_all();
        self.answer.finish(WHO, Finish::Stop, usage)
    }
}

/// Maps the program's exit code: its own codes, or an HTTP status modulo 256.
fn kind_of_exit(code: i32) -> Option<FailureKind> {
    match code {
        41 => Some(FailureKind::Auth),
        42 | 52 | 55 => Some(FailureKind::Invalid),
        130 => Some(FailureKind::Cancelled),
        // 400 & 255 = 144; lower values are not error statuses, and 143 is a signal.
        144..=255 => blame::kind_of_status(u64::from(code.unsigned_abs()) + 256),
        _ => None,
    }
}
