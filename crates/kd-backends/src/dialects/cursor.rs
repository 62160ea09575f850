//! Cursor: `agent -p --output-format stream-json --stream-partial-output`, according to its documentation.
//!
//! With partial output, an `assistant` line with `timestamp_ms` and without `model_call_id` is a piece; one with both
//! repeats the text before a tool call; one with neither repeats the text at the end. Without partial output every
//! `assistant` line is a complete stretch of text. Plan limits arrive as a bare line that is not JSON, with no result.

use super::answer::Answer;
use super::parse::{Lines, detail, one_line, some, text};
use super::{Decoder, ExitSeen, blame};
use kd_core::{Delta, Failure, FailureKind, Finish};
use serde_json::Value;

const WHO: &str = "cursor";

/// Decoder for Cursor; see the module docs.
#[derive(Default)]
pub(super) struct Cursor {
    lines: Lines,
    answer: Answer,
    /// Counts the stretches of text between tools.
    stretch: u64,
    /// Whether text arrives in pieces.
    pieces: bool,
    outcome: Option<Result<Delta, Failure>>,
}

impl Decoder for Cursor {
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
            .unwrap_or_else(|| Err(blame::unfinished(WHO, exit, self.lines.prose.as_deref())));
        *self = Self::default();
        outcome
    }
}

impl Cursor {
    fn event(&mut self, event: &Value, out: &mut Vec<Delta>) {
        match (text(event, "type"), text(event, "subtype")) {
            ("system", "init") => out.push(Delta::Started {
                model: some(event, "model"),
                version: None,
                session: some(event, "session_id"),
            }),
            ("assistant", _) => self.assistant(event, out),
            ("thinking", "delta") => self.answer.think(text(event, "text"), out),
            ("tool_call", "started") => {
                self.stretch += 1;
                out.push(tool(&event["tool_call"]));
            }
            ("result", subtype) => self.outcome = Some(self.result(event, subtype)),
            _ => {}
        }
    }

    fn assistant(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let blocks = event["message"]["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let said: String = blocks.iter().map(|block| text(block, "text")).collect();
        let (timed, called) = (
            !event["timestamp_ms"].is_null(),
            !event["model_call_id"].is_null(),
        );
        let stretch = self.stretch.to_string();
        if timed && !called {
            self.pieces = true;
            self.answer.grow(&stretch, "", &said, out);
        } else if !self.pieces {
            self.answer.settle_next(&stretch, &said, out);
        } else if called || !same_words(&said, &self.answer.text()) {
            // A flush repeats the streamed stretch, and wins where the two differ.
            let last = self
                .answer
                .groups()
                .pop()
                .map(|(group, _)| group.to_owned());
            let whole = self.answer.text();
            match said.strip_prefix(whole.as_str()) {
                // The last flush may repeat the whole answer.
                Some(rest) if !called && !whole.is_empty() => {
                    self.answer.grow(&stretch, "", rest, out)
                }
                _ => self
                    .answer
                    .settle(last.as_deref().unwrap_or(&stretch), "", &said, out),
            }
        }
    }

    fn result(&mut self, event: &Value, subtype: &str) -> Result<Delta, Failure> {
        let stated = text(event, "result");
        if subtype != "success" || event["is_error"] == true {
            let said = [stated, text(event, "error"), text(event, "message")]
                .into_iter()
                .find(|s| !s.is_empty());
            let said = said.map_or_else(
                || format!("cursor ended its turn with `{}`", one_line(subtype, 40)),
                str::to_owned,
            );
            return Err(blame::failure(&said, None, FailureKind::Crashed));
        }
        self.answer.settle_all();
        let ours = self.answer.text();
        // The result joins the stretches without a gap; it wins only where it says more than was streamed.
        let longer = words(stated).count() > words(&ours).count();
        let text = if longer { stated.to_owned() } else { ours };
        self.answer.finish_with(WHO, text, Finish::Stop, None)
    }
}

/// Builds the delta for a tool call: an object whose only key is the tool's name.
fn tool(call: &Value) -> Delta {
    let member = call
        .as_object()
        .and_then(|members| members.iter().find(|(_, inner)| inner.is_object()));
    let (key, inner) = member.map_or(("tool", &Value::Null), |(key, inner)| (key.as_str(), inner));
    let name = some(inner, "name").unwrap_or_else(|| key.trim_end_matches("ToolCall").to_owned());
    let input = if inner["args"].is_null() {
        &inner["arguments"]
    } else {
        &inner["args"]
    };
    Delta::Tool {
        name,
        detail: detail(input),
    }
}

/// Returns a text's characters without whitespace.
fn words(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !c.is_whitespace())
}

fn same_words(a: &str, b: &str) -> bool {
    words(a).eq(words(b))
}
