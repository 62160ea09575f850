//! Codex: `codex app-server`, JSON-RPC without its version field. Needs both sides of the conversation, because only
//! the client's side shows which thread and turn are ours.
//!
//! Text is kept by item. After a retry the words come again as a new item, and the old one never completes: items that
//! are incomplete when the turn ends do not count.

use super::answer::Answer;
use super::codex_exec::{RETRY, attempt, tool};
use super::parse::{Lines, count, notice, one_line, read, some, text};
use super::{Decoder, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const WHO: &str = "codex";

/// Decoder for `codex app-server`; see the module docs.
#[derive(Default)]
pub(super) struct CodexApp {
    lines: Lines,
    answer: Answer,
    /// Methods of our requests by id.
    asked: BTreeMap<String, String>,
    thread: Option<String>,
    model: Option<String>,
    version: Option<String>,
    tools: BTreeSet<String>,
    /// The thread whose tokens were counted last.
    counted_thread: Option<String>,
    /// Tokens of that thread so far, and before this turn.
    total: Usage,
    before: Usage,
    counted: bool,
    /// Whether our turn has started and not ended.
    running: bool,
    trouble: Option<Failure>,
    outcome: Option<Result<Delta, Failure>>,
}

impl Decoder for CodexApp {
    fn line(&mut self, line: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        if let Some(message) = self.lines.object(line, &mut out) {
            match message["method"].as_str() {
                Some(method) => self.told(method, &message, &mut out),
                None => self.answered(&message),
            }
        }
        out
    }

    fn sent(&mut self, line: &[u8]) {
        let Some(message) = read(line) else { return };
        let Some(method) = message["method"].as_str() else {
            return;
        };
        // A persistent thread is never asked a question; the caller handles its response.
        let root = method == "thread/start" && message["params"]["ephemeral"] == false;
        if !message["id"].is_null() && !root {
            self.asked
                .insert(message["id"].to_string(), method.to_owned());
        }
        // Questions to other threads of the process in the meantime are not ours to decode.
        if method == "turn/start" && !self.running {
            self.running = true;
            let asked = some(&message["params"], "threadId").or(self.thread.take());
            if asked != self.counted_thread {
                // Each thread counts from zero.
                self.total = Usage::default();
            }
            self.thread = asked;
            self.before = self.total;
        }
    }

    fn over(&self) -> bool {
        self.outcome.is_some()
    }

    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            Err(match self.trouble.take() {
                Some(failure) => failure,
                None => blame::unfinished_again(
                    WHO,
                    exit,
                    self.lines.prose.as_deref(),
                    self.answer.asking_again(),
                ),
            })
        });
        *self = Self {
            asked: std::mem::take(&mut self.asked),
            thread: self.thread.take(),
            model: self.model.take(),
            version: self.version.take(),
            counted_thread: self.counted_thread.take(),
            total: self.total,
            before: self.total,
            ..Self::default()
        };
        outcome
    }
}

impl CodexApp {
    fn answered(&mut self, message: &Value) {
        let asked = self.asked.remove(&message["id"].to_string());
        let (result, error) = (&message["result"], &message["error"]);
        if error.is_object() {
            // Codex's own words decide the kind, not the ones we add.
            let failure = blame::failure(text(error, "message"), None, FailureKind::Invalid);
            let said = format!("codex rejects the request: {}", failure.message);
            let failure = Failure {
                message: said,
                ..failure
            };
            match asked.as_deref() {
                Some("initialize" | "thread/start" | "thread/resume" | "turn/start") => {
                    self.outcome = Some(Err(failure))
                }
                Some(_) => {}
                None => self.trouble = Some(failure),
            }
            return;
        }
        match asked.as_deref() {
            Some("initialize") => {
                self.version = text(result, "userAgent")
                    .split_once('/')
                    .and_then(|(_, rest)| rest.split_whitespace().next())
                    .map(str::to_owned);
            }
            Some("thread/start" | "thread/resume" | "thread/fork") if !self.running => {
                self.thread = some(&result["thread"], "id");
                self.model = some(result, "model").or_else(|| some(&result["thread"], "model"));
            }
            _ => {}
        }
    }

    fn told(&mut self, method: &str, message: &Value, out: &mut Vec<Delta>) {
        let params = &message["params"];
        // Notifications of several threads interleave; only our thread counts.
        let whose = params["threadId"].as_str();
        if let (Some(whose), Some(ours)) = (whose, &self.thread)
            && whose != ours
        {
            return;
        }
        let item = text(params, "itemId");
        match method {
            "turn/started" => {
                if self.thread.is_none() {
                    self.thread = whose.map(str::to_owned);
                }
                out.push(Delta::Started {
                    model: self.model.clone(),
                    version: self.version.clone(),
                    session: self.thread.clone(),
                });
            }
            "item/agentMessage/delta" => self.answer.grow(item, "", text(params, "delta"), out),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.answer.think(text(params, "delta"), out);
            }
            "item/reasoning/summaryPartAdded" => self.answer.think_anew("", out),
            "item/started" => self.item(&params["item"], false, out),
            "item/completed" => self.item(&params["item"], true, out),
            "thread/tokenUsage/updated" => {
                self.counted_thread = whose.map(str::to_owned).or(self.thread.clone());
                self.count(&params["tokenUsage"]["total"]);
            }
            "error" => self.error(params, out),
            "warning" | "guardianWarning" => {
                out.push(notice(one_line(text(params, "message"), 300)))
            }
            "turn/completed" => self.completed(&params["turn"]),
            _ if !message["id"].is_null() && method.ends_with("requestApproval") => {
                let said = one_line(
                    &some(params, "command")
                        .or_else(|| some(params, "reason"))
                        .unwrap_or_default(),
                    200,
                );
                out.push(notice(format!("codex asks for permission: {said}")));
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Value, completed: bool, out: &mut Vec<Delta>) {
        let id = text(item, "id");
        match text(item, "type") {
            "agentMessage" if completed => self.answer.settle(id, "", text(item, "text"), out),
            "agentMessage" | "reasoning" | "userMessage" | "hookPrompt" | "plan"
            | "contextCompaction" | "" => {}
            kind => {
                if self.tools.insert(id.to_owned()) {
                    out.push(tool(kind, item));
                }
            }
        }
    }

    fn error(&mut self, params: &Value, out: &mut Vec<Delta>) {
        let failure = failure(&params["error"]);
        if params["willRetry"] == true {
            let attempt = text(&params["error"], "message")
                .strip_prefix(RETRY)
                .and_then(attempt);
            self.answer.retry(attempt, Duration::ZERO, failure, out);
        } else {
            self.trouble = Some(failure);
        }
    }

    fn completed(&mut self, turn: &Value) {
        self.outcome = Some(match text(turn, "status") {
            "completed" => {
                let usage = self.counted.then(|| Usage {
                    input_tokens: self
                        .total
                        .input_tokens
                        .saturating_sub(self.before.input_tokens),
                    output_tokens: self
                        .total
                        .output_tokens
                        .saturating_sub(self.before.output_tokens),
                    cached_tokens: self
                        .total
                        .cached_tokens
                        .saturating_sub(self.before.cached_tokens),
                    thinking_tokens: self
                        .total
                        .thinking_tokens
                        .saturating_sub(self.before.thinking_tokens),
                    cost_usd: None,
                    ..Usage::default()
                });
                self.answer.finish(WHO, Finish::Stop, usage)
            }
            "interrupted" => Err(Failure::new(
                FailureKind::Cancelled,
                "codex was interrupted",
            )),
            _ if turn["error"].is_object() => Err(failure(&turn["error"])),
            status => Err(self.trouble.take().unwrap_or_else(|| {
                Failure::new(
                    FailureKind::Crashed,
                    format!("codex ended its turn with `{}`", one_line(status, 40)),
                )
            })),
        });
    }

    /// Updates the token count from the thread's total.
    fn count(&mut self, total: &Value) {
        self.counted = true;
        self.total = Usage {
            input_tokens: count(total, "inputTokens"),
            output_tokens: count(total, "outputTokens"),
            cached_tokens: count(total, "cachedInputTokens"),
            thinking_tokens: count(total, "reasoningOutputTokens"),
            cost_usd: None,
            ..Usage::default()
        };
    }
}

/// Converts a typed Codex error: a word, or an object with one key that holds the HTTP status.
fn failure(error: &Value) -> Failure {
    let info = &error["codexErrorInfo"];
    let (word, status) = match info {
        Value::String(word) => (word.as_str(), None),
        Value::Object(members) => match members.iter().next() {
            Some((word, inner)) => (word.as_str(), inner["httpStatusCode"].as_u64()),
            None => ("", None),
        },
        _ => ("", None),
    };
    let said = match (text(error, "message"), text(error, "additionalDetails")) {
        (message, "") => message.to_owned(),
        (message, details) if message.starts_with(RETRY) => details.to_owned(),
        (message, details) => format!("{message} ({details})"),
    };
    let typed = match word {
        "unauthorized" => Some(FailureKind::Auth),
        "usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded" => {
            Some(FailureKind::RateLimit)
        }
        "serverOverloaded"
        | "internalServerError"
        | "flexUnavailable"
        | "policyCapacityUnavailable" => Some(FailureKind::Overloaded),
        "contextWindowExceeded"
        | "modelNotFound"
        | "badRequest"
        | "tooManyDenials"
        | "activeTurnNotSteerable" => Some(FailureKind::Invalid),
        "cyberPolicy" | "misalignmentPolicyViolation" | "inferenceHookDenied" => {
            Some(FailureKind::Refused)
        }
        _ => None,
    };
    let failure = blame::failure(&said, status, FailureKind::Crashed);
    Failure {
        kind: typed.unwrap_or(failure.kind),
        ..failure
    }
}
