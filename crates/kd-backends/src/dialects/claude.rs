//! Claude Code: `claude -p --output-format stream-json --verbose --include-partial-messages`, and the same events with
//! `--input-format stream-json`, where one process serves many turns.
//!
//! Live text arrives in `stream_event`s and is confirmed by `assistant` lines, one per finished block. After a broken
//! stream the words come again under a new message id, so unconfirmed blocks are void as soon as another message
//! begins. The `result` line is terminal. Its `subtype` is `success` even when the API failed, and its text is only the
//! last block, so neither is trusted alone; but it confirms that block where no `assistant` line did.

use super::answer::Answer;
use super::parse::{Lines, count, detail, notice, one_line, some, text};
use super::{Decoder, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::Value;
use std::time::Duration;

const WHO: &str = "claude";
/// The model name on messages that the program wrote itself.
const SYNTHETIC: &str = "<synthetic>";

/// Decoder for Claude Code; see the module docs.
#[derive(Default)]
pub(super) struct Claude {
    lines: Lines,
    answer: Answer,
    /// The message being streamed.
    message: String,
    /// Whether the current message arrived in pieces.
    streamed: bool,
    /// The program's message instead of an answer, and its error word.
    trouble: Option<(String, String)>,
    outcome: Option<Result<Delta, Failure>>,
    /// Price of the earlier turns of this process.
    cost_before: f64,
    /// The conversation is being cleared (`/clear`): output up to that command's own result is not an answer.
    resetting: bool,
}

impl Decoder for Claude {
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
        let outcome = self
            .outcome
            .take()
            .unwrap_or_else(|| match self.trouble.take() {
                Some((said, word)) => Err(blame::failure(
                    &said,
                    None,
                    kind_of_word(&word).unwrap_or(FailureKind::Decode),
                )),
                None => Err(blame::unfinished_again(
                    WHO,
                    exit,
                    self.lines.prose.as_deref(),
                    self.answer.asking_again(),
                )),
            });
        *self = Self {
            cost_before: self.cost_before,
            ..Self::default()
        };
        outcome
    }
}

impl Claude {
    fn event(&mut self, event: &Value, out: &mut Vec<Delta>) {
        // Output of the agent's subagents is not the agent's own.
        let ours = event["parent_tool_use_id"].is_null();
        if self.resetting {
            self.resetting = text(event, "type") != "result";
            return;
        }
        match text(event, "type") {
            "conversation_reset" => {
                self.resetting = true;
                self.cost_before = 0.0;
            }
            "system" => self.system(event, out),
            "stream_event" if ours => {
                self.streaming(&event["event"], &event["abandoned_blocks"], out)
            }
            "assistant" if ours => self.assistant(event, out),
            "control_request" if text(&event["request"], "subtype") == "can_use_tool" => {
                let tool = text(&event["request"], "tool_name");
                out.push(notice(format!(
                    "claude asks to use {tool}: {}",
                    detail(&event["request"]["input"])
                )));
            }
            "result" => self.result(event),
            _ => {}
        }
    }

    fn system(&mut self, event: &Value, out: &mut Vec<Delta>) {
        match text(event, "subtype") {
            "init" => out.push(Delta::Started {
                model: some(event, "model"),
                version: some(event, "claude_code_version"),
                session: some(event, "session_id"),
            }),
            "api_retry" => {
                let status = event["error_status"].as_u64();
                let word = text(event, "error");
                let kind = status
                    .and_then(blame::kind_of_status)
                    .or_else(|| kind_of_word(word))
                    .unwrap_or(FailureKind::Crashed);
                let said = match status {
                    Some(status) => format!("the API answered {status} ({word})"),
                    None => format!("the connection to the API was lost ({word})"),
                };
                let attempt = event["attempt"]
                    .as_u64()
                    .and_then(|n| u32::try_from(n).ok());
                let after = Duration::from_millis(count(event, "retry_delay_ms"));
                self.answer
                    .retry(attempt, after, Failure::new(kind, said), out);
            }
            "permission_denied" => {
                let said = one_line(text(event, "message"), 200);
                out.push(notice(format!(
                    "claude may not use {}: {said}",
                    text(event, "tool_name")
                )));
            }
            _ => {}
        }
    }

    fn streaming(&mut self, event: &Value, abandoned: &Value, out: &mut Vec<Delta>) {
        let index = count(event, "index").to_string();
        match text(event, "type") {
            "message_start" => {
                self.message = text(&event["message"], "id").to_owned();
                self.streamed = true;
                self.drop_halves(out);
            }
            "content_block_start" if text(&event["content_block"], "type") == "thinking" => {
                self.answer
                    .think_anew(text(&event["content_block"], "thinking"), out);
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                match text(delta, "type") {
                    "text_delta" => {
                        self.answer
                            .grow(&self.message, &index, text(delta, "text"), out)
                    }
                    "thinking_delta" => self.answer.think(text(delta, "thinking"), out),
                    _ => {}
                }
            }
            "message_stop" if abandoned.is_object() => {
                let from = count(abandoned, "from_block_index");
                let message = &self.message;
                self.answer.unsettle(|group, key| {
                    group == message && key.parse::<u64>().is_ok_and(|n| n >= from)
                });
            }
            _ => {}
        }
    }

    /// Drops blocks that were never confirmed when another message begins: their stream broke.
    fn drop_halves(&mut self, out: &mut Vec<Delta>) {
        if self.answer.has_halves() {
            let why = Failure::new(FailureKind::Crashed, "the stream of the API was cut off");
            self.answer.retry(None, Duration::ZERO, why, out);
        }
    }

    fn assistant(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let message = &event["message"];
        let blocks = message["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let synthetic =
            event["is_api_error_message"] == true || text(message, "model") == SYNTHETIC;
        if synthetic {
            let said: Vec<&str> = blocks.iter().map(|block| text(block, "text")).collect();
            self.trouble = Some((said.join(" "), text(event, "error").to_owned()));
            return;
        }
        let id = text(message, "id");
        if id != self.message {
            self.message = id.to_owned();
            self.streamed = false;
            self.drop_halves(out);
        }
        for block in blocks {
            match text(block, "type") {
                "text" => self.answer.settle_next(id, text(block, "text"), out),
                "thinking" if !self.streamed => {
                    self.answer.think_anew(text(block, "thinking"), out)
                }
                "tool_use" | "server_tool_use" => out.push(Delta::Tool {
                    name: text(block, "name").to_owned(),
                    detail: detail(&block["input"]),
                }),
                _ => {}
            }
        }
    }

    fn result(&mut self, event: &Value) {
        let usage = self.usage(event);
        let reason = text(event, "terminal_reason");
        let good = event["is_error"] == false
            && text(event, "subtype") == "success"
            && (reason == "completed" || event["terminal_reason"].is_null());
        self.outcome = Some(if good {
            let finish = match text(event, "stop_reason") {
                "max_tokens" => Finish::Length,
                _ => Finish::Stop,
            };
            // Confirms the last block where no `assistant` line did.
            self.answer.settle_last(text(event, "result"));
            self.answer.drop_halves();
            if self.answer.is_empty() {
                // Nothing valid was streamed: answers of the program's own commands, and structured ones, appear only
                // here.
                let text = match (text(event, "result"), &event["structured_output"]) {
                    ("", Value::Null) => String::new(),
                    ("", structured) => structured.to_string(),
                    (result, _) => result.to_owned(),
                };
                self.answer.finish_with(WHO, text, finish, usage)
            } else {
                self.answer.finish(WHO, finish, usage)
            }
        } else {
            let failure = self.failed(event, reason);
            Err(match failure.kind {
                // The turn ended normally: its token counts are complete.
                FailureKind::Limit => failure.after(usage.as_ref()),
                _ => failure,
            })
        });
    }

    fn failed(&mut self, event: &Value, reason: &str) -> Failure {
        let (trouble, word) = self.trouble.take().unwrap_or_default();
        let errors: Vec<&str> = event["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let said = match some(event, "result") {
            Some(said) => said,
            None if !trouble.is_empty() => trouble,
            None => errors.join("; "),
        };
        let subtype = text(event, "subtype");
        let limit = |what: &str, advice: &str| {
            Failure::new(FailureKind::Invalid, format!("claude: {what}")).advise(advice)
        };
        match (reason, subtype) {
            ("aborted_streaming" | "aborted_tools", _) => {
                Failure::new(FailureKind::Cancelled, "claude was interrupted")
            }
            ("max_turns", _) | (_, "error_max_turns") => limit(
                &said,
                "allow more turns of tools, or ask a narrower question",
            ),
            // The budget is `kd`'s own limit, passed to the program.
            ("budget_exhausted", _) | (_, "error_max_budget_usd") => {
                Failure::new(FailureKind::Limit, format!("claude: {said}"))
                    .advise("raise the cost limit (`limits.usd`), or ask fewer members")
            }
            _ if text(event, "stop_reason") == "refusal" => {
                Failure::new(FailureKind::Refused, one_line(&said, 400))
            }
            _ if word == "max_output_tokens" || text(event, "api_error") == "max_output_tokens" => {
                limit(&said, "ask for a shorter answer")
            }
            _ => {
                let kind = match event["api_error_status"].as_u64() {
                    Some(status) => blame::kind_of_status(status),
                    None if text(event, "api_error") == "connection_failed" => {
                        Some(FailureKind::Crashed)
                    }
                    None => kind_of_word(&word),
                };
                let said = if said.is_empty() {
                    format!("claude ended its turn with `{subtype}` ({reason})")
                } else {
                    said
                };
                let kind = kind.or_else(|| blame::kind(&said, None));
                let kind = kind.unwrap_or(match subtype {
                    "error_during_execution" => FailureKind::Invalid,
                    _ => FailureKind::Crashed,
                });
                Failure {
                    kind,
                    ..blame::failure(&said, None, kind)
                }
            }
        }
    }

    /// Returns this turn's tokens and price; the program states the price of all turns so far.
    fn usage(&mut self, event: &Value) -> Option<Usage> {
        let stated = event["usage"].as_object().map(|_| &event["usage"])?;
        let cost = event["total_cost_usd"].as_f64().map(|total| {
            let cost = (total - self.cost_before).max(0.0);
            self.cost_before = total;
            cost
        });
        let cached = count(stated, "cache_read_input_tokens");
        Some(Usage {
            input_tokens: count(stated, "input_tokens")
                + count(stated, "cache_creation_input_tokens")
                + cached,
            output_tokens: count(stated, "output_tokens"),
            cached_tokens: cached,
            thinking_tokens: count(&stated["output_tokens_details"], "thinking_tokens"),
            cost_usd: cost,
            ..Usage::default()
        })
    }
}

/// Maps the program's error word to a failure kind.
fn kind_of_word(word: &str) -> Option<FailureKind> {
    Some(match word {
        "authentication_failed" | "oauth_org_not_allowed" | "billing_error" => FailureKind::Auth,
        "rate_limit" => FailureKind::RateLimit,
        "overloaded" | "server_error" => FailureKind::Overloaded,
        "invalid_request" | "model_not_found" | "max_output_tokens" => FailureKind::Invalid,
        _ => return None,
    })
}
