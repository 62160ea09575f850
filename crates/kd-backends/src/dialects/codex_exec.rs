//! Codex: `codex exec --json`. Messages arrive complete, never in pieces.
//!
//! `item.completed` with an item of type `error` is a warning; a top-level `error` that begins with `Reconnecting...`
//! is a retry; only `turn.failed` is failure and only `turn.completed` is success.

use super::answer::Answer;
use super::parse::{Lines, count, detail, notice, one_line, some, text};
use super::{Decoder, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const WHO: &str = "codex";
/// Prefix of a retry message, followed by `n/m` or by the event that Codex waits for.
pub(super) const RETRY: &str = "Reconnecting...";

/// Decoder for `codex exec`; see the module docs.
#[derive(Default)]
pub(super) struct CodexExec {
    lines: Lines,
    answer: Answer,
    tools: BTreeSet<String>,
    /// The last error outside a failed turn.
    trouble: Option<String>,
    outcome: Option<Result<Delta, Failure>>,
}

impl Decoder for CodexExec {
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
            Err(blame::unfinished_again(
                WHO,
                exit,
                said,
                self.answer.asking_again(),
            ))
        });
        *self = Self::default();
        outcome
    }
}

impl CodexExec {
    fn event(&mut self, event: &Value, out: &mut Vec<Delta>) {
        match text(event, "type") {
            "thread.started" => out.push(Delta::Started {
                model: None,
                version: None,
                session: some(event, "thread_id"),
            }),
            "item.started" | "item.updated" => self.item(&event["item"], false, out),
            "item.completed" => self.item(&event["item"], true, out),
            "error" => {
                let said = text(event, "message");
                match said.strip_prefix(RETRY) {
                    Some(rest) => {
                        self.answer
                            .retry(attempt(rest), Duration::ZERO, reconnecting(rest), out)
                    }
                    None => self.trouble = Some(said.to_owned()),
                }
            }
            "turn.completed" => {
                let stated = &event["usage"];
                let usage = stated.is_object().then(|| Usage {
                    input_tokens: count(stated, "input_tokens"),
                    output_tokens: count(stated, "output_tokens"),
                    cached_tokens: count(stated, "cached_input_tokens"),
                    thinking_tokens: count(stated, "reasoning_output_tokens"),
                    cost_usd: None,
                    ..Usage::default()
                });
                self.outcome = Some(self.answer.finish(WHO, Finish::Stop, usage));
            }
            "turn.failed" => {
                let said = some(&event["error"], "message").or(self.trouble.take());
                let said = said.unwrap_or_else(|| "codex gave up without a reason".into());
                self.outcome = Some(Err(blame::failure(&said, None, FailureKind::Crashed)));
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Value, completed: bool, out: &mut Vec<Delta>) {
        let id = text(item, "id");
        match text(item, "type") {
            "agent_message" if completed => self.answer.settle(id, "", text(item, "text"), out),
            "reasoning" if completed => self.answer.think_anew(text(item, "text"), out),
            "error" if completed => out.push(notice(one_line(text(item, "message"), 300))),
            "agent_message" | "reasoning" | "error" | "todo_list" => {}
            kind => {
                if self.tools.insert(id.to_owned()) {
                    out.push(tool(kind, item));
                }
            }
        }
    }
}

/// Builds the delta for a tool item: its type is the name, except for MCP tools, which have their own.
pub(super) fn tool(kind: &str, item: &Value) -> Delta {
    let named = some(item, "tool").map(|tool| match some(item, "server") {
        Some(server) => format!("{server}.{tool}"),
        None => tool,
    });
    let changes = item["changes"].as_array().map(|changes| {
        let paths: Vec<&str> = changes.iter().map(|change| text(change, "path")).collect();
        json!({ "path": paths.join(", ") })
    });
    let input = match (&named, &changes) {
        (_, Some(changes)) => changes,
        (Some(_), None) => &item["arguments"],
        (None, None) => item,
    };
    Delta::Tool {
        name: named.unwrap_or_else(|| kind.to_owned()),
        detail: detail(input),
    }
}

/// Parses the number of a retry: `1/5 (…)`.
pub(super) fn attempt(rest: &str) -> Option<u32> {
    rest.trim_start().split('/').next()?.parse().ok()
}

/// Returns why Codex reconnects: the text in parentheses.
fn reconnecting(rest: &str) -> Failure {
    let why = match (rest.find('('), rest.rfind(')')) {
        (Some(from), Some(to)) if from < to => &rest[from + 1..to],
        _ => rest.trim(),
    };
    blame::failure(
        if why.is_empty() {
            "connecting again"
        } else {
            why
        },
        None,
        FailureKind::Crashed,
    )
}
