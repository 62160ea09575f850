//! The Agent Client Protocol, version 1: JSON-RPC, one message per line. Needs both sides of the conversation, because
//! only the client's side shows which request is the prompt.
//!
//! Agents differ: some give their messages ids and some do not, some mix warnings into the answer, some end a broken
//! turn with `end_turn`. Therefore:
//! - where some chunks have an id, chunks without one are not part of the answer;
//! - an error text is not an answer if an error follows it, or if it is the whole text of a turn with no token counts;
//! - a turn that counts no tokens has no answer;
//! - where messages repeat each other's beginning, a stream broke: only the last message counts, if it is the longest.

use super::answer::Answer;
use super::parse::{Lines, count, detail, notice, one_line, read, some, text};
use super::{Decoder, ExitSeen, blame, told};
use kd_core::{Delta, Failure, FailureKind, Finish, Usage};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const WHO: &str = "the agent";
/// Start of the failure message when a tool was refused.
pub(super) const GAVE_UP: &str = "the agent gave up when a tool was denied";
/// Prefix of the group of chunks without an id; no agent's id starts with it.
const NAMELESS: &str = "\u{0}";
/// Prefixes of warnings that agents mix into their answers.
const WARNINGS: [&str; 6] = [
    "Warning:",
    "**Warning:**",
    "**Notice:**",
    "Config warning:",
    "Model metadata for `",
    "Deprecation notice:",
];

/// Prefix of the text in which an agent says that it starts over.
const AGAIN: &str = "Info: Response was interrupted";
/// Prefix of the text in which an agent says that it stops because a tool was refused.
const STOPPED: &str = "Info: Operation cancelled by user";

/// Decoder for ACP; see the module docs.
#[derive(Default)]
pub(super) struct Acp {
    lines: Lines,
    answer: Answer,
    /// Methods of our requests by id, and whether we saw any.
    asked: BTreeMap<String, String>,
    both_sides: bool,
    /// Our unanswered prompts with their sessions; the first is this turn's.
    prompts: VecDeque<(String, Option<String>)>,
    started: bool,
    cancelled: bool,
    model: Option<String>,
    version: Option<String>,
    /// Counts the stretches of text between tools, for agents without message ids.
    stretch: u64,
    /// Groups that follow a tool call: they do not repeat earlier text.
    after_tool: BTreeSet<String>,
    tool_seen: bool,
    /// Tools already shown to the user, and the kinds of those not yet shown.
    tools: BTreeSet<String>,
    tools_bare: BTreeMap<String, String>,
    thinking: Option<String>,
    /// Cost of the agent's session, now and before this turn; known only if we saw the session begin.
    cost: Option<f64>,
    cost_before: Option<f64>,
    system_error: bool,
    /// The options that reject each requested permission.
    permissions: BTreeMap<String, BTreeSet<String>>,
    /// A tool was refused, and no text has arrived since.
    refused: bool,
    /// Notice for the user when an answer was started more than once.
    began_again: Option<Delta>,
    outcome: Option<Result<Delta, Failure>>,
}

impl Decoder for Acp {
    fn line(&mut self, line: &[u8]) -> Vec<Delta> {
        let mut out = Vec::new();
        let Some(message) = self.lines.object(line, &mut out) else {
            return out;
        };
        match message["method"].as_str() {
            Some("session/update") => self.update(&message["params"], &mut out),
            Some("session/request_permission") => {
                let call = &message["params"]["toolCall"];
                let what = some(call, "title").unwrap_or_else(|| detail(&call["rawInput"]));
                self.next_stretch();
                self.permissions.insert(
                    message["id"].to_string(),
                    rejections(&message["params"]["options"]),
                );
                out.push(notice(format!(
                    "the agent asks for permission: {}",
                    one_line(&what, 200)
                )));
            }
            Some(_) => {}
            None => {
                self.answered(&message);
                out.extend(self.began_again.take());
            }
        }
        out
    }

    fn sent(&mut self, line: &[u8]) {
        self.both_sides = true;
        let Some(message) = read(line) else { return };
        let Some(method) = message["method"].as_str() else {
            self.permitted(&message);
            return;
        };
        if !message["id"].is_null() {
            self.asked
                .insert(message["id"].to_string(), method.to_owned());
        }
        match method {
            "session/prompt" => {
                let prompt = (
                    message["id"].to_string(),
                    some(&message["params"], "sessionId"),
                );
                // Prompts to other sessions of the process in the meantime are not ours to decode.
                if self
                    .prompts
                    .front()
                    .is_none_or(|(_, session)| *session == prompt.1)
                {
                    self.prompts.push_back(prompt);
                }
            }
            "session/cancel" => self.cancelled = true,
            // The session was refused because the agent is not logged in; the login follows.
            "authenticate" => self.outcome = None,
            _ => {}
        }
    }

    fn over(&self) -> bool {
        self.outcome.is_some()
    }

    fn end(&mut self, exit: &ExitSeen) -> Result<Delta, Failure> {
        let outcome = self.outcome.take().unwrap_or_else(|| {
            Err(if self.cancelled {
                Failure::new(
                    FailureKind::Cancelled,
                    "the agent did not respond to the request to stop",
                )
            } else {
                blame::unfinished_again(
                    WHO,
                    exit,
                    self.lines.prose.as_deref(),
                    self.answer.asking_again(),
                )
            })
        });
        *self = Self {
            asked: std::mem::take(&mut self.asked),
            prompts: self.prompts.drain(..).skip(1).collect(),
            both_sides: self.both_sides,
            model: self.model.take(),
            version: self.version.take(),
            cost: self.cost,
            cost_before: self.cost.filter(|_| self.cost_before.is_some()),
            ..Self::default()
        };
        outcome
    }
}

impl Acp {
    fn answered(&mut self, message: &Value) {
        let id = message["id"].to_string();
        let asked = self.asked.remove(&id);
        if asked.as_deref() == Some("session/prompt")
            && self.prompts.front().is_none_or(|(ours, _)| *ours != id)
        {
            self.prompts.retain(|(prompt, _)| *prompt != id);
            return;
        }
        let (result, error) = (&message["result"], &message["error"]);
        if error.is_object() {
            match asked.as_deref() {
                Some("initialize" | "authenticate" | "session/new" | "session/prompt") => {}
                // If one of these fails, the question would go to another model, or to an agent with write access.
                Some("session/set_mode" | "session/set_model" | "session/set_config_option") => {
                    let what = text(error, "message");
                    let said = format!("the agent refused a setting of its session: {what}");
                    self.outcome = Some(Err(Failure::new(
                        FailureKind::Invalid,
                        one_line(&said, 300),
                    )
                    .advise("check whether it knows that model")));
                    return;
                }
                None if !self.both_sides => {}
                _ => return,
            }
            self.outcome = Some(Err(failure(error)));
            return;
        }
        match asked.as_deref() {
            Some("initialize") => {
                let info = &result["agentInfo"];
                self.version = match (
                    some(info, "title").or_else(|| some(info, "name")),
                    some(info, "version"),
                ) {
                    (Some(name), Some(version)) => Some(format!("{name} {version}")),
                    (name, version) => name.or(version),
                };
            }
            Some("session/new") => {
                self.model =
                    some(&result["models"], "currentModelId").or_else(|| model_option(result));
                self.cost_before = Some(0.0);
            }
            Some("session/load" | "session/resume") => {
                self.model =
                    some(&result["models"], "currentModelId").or_else(|| model_option(result));
            }
            Some("session/prompt") => self.outcome = Some(self.stopped(result)),
            None if !self.both_sides && result["stopReason"].is_string() => {
                self.outcome = Some(self.stopped(result))
            }
            _ => {}
        }
    }

    /// Records our answer to a permission request.
    fn permitted(&mut self, message: &Value) {
        if let Some(rejections) = self.permissions.remove(&message["id"].to_string()) {
            let outcome = &message["result"]["outcome"];
            self.refused = match text(outcome, "outcome") {
                "selected" => rejections.contains(text(outcome, "optionId")),
                _ => true,
            };
        }
    }

    /// Starts a new message, for agents without message ids.
    fn next_stretch(&mut self) {
        if !self.tool_seen {
            self.tool_seen = true;
            self.stretch += 1;
        }
    }

    fn update(&mut self, params: &Value, out: &mut Vec<Delta>) {
        // A loaded session replays its history before the prompt, and updates of several sessions interleave.
        let whose = params["sessionId"].as_str();
        let ours = match self.prompts.front() {
            Some((_, session)) => session.is_none() || session.as_deref() == whose,
            None => !self.both_sides,
        };
        if !ours {
            return;
        }
        if !self.started {
            self.started = true;
            out.push(Delta::Started {
                model: self.model.clone(),
                version: self.version.clone(),
                session: whose.map(str::to_owned),
            });
        }
        let update = &params["update"];
        match text(update, "sessionUpdate") {
            "agent_message_chunk" => self.chunk(update, out),
            "agent_thought_chunk" => {
                let id = text(update, "messageId");
                let piece = text(&update["content"], "text");
                if self.thinking.as_deref() == Some(id) {
                    self.answer.think(piece, out);
                } else {
                    self.thinking = Some(id.to_owned());
                    self.answer.think_anew(piece.trim_start_matches('\n'), out);
                }
            }
            "tool_call" | "tool_call_update" => self.tool(update, out),
            "usage_update" => {
                // One request to the model is complete.
                self.stretch += 1;
                let cost = &update["cost"];
                if text(cost, "currency") == "USD" {
                    self.cost = cost["amount"].as_f64().or(self.cost);
                }
                self.model = some(&update["_meta"], "_claude/model").or(self.model.take());
            }
            "session_info_update" => self.codex(&update["_meta"]["codex"], out),
            "notice" => {
                let said = some(update, "message")
                    .or_else(|| some(&update["content"], "text"))
                    .unwrap_or_default();
                out.push(notice(one_line(&said, 300)));
            }
            _ => {}
        }
    }

    fn chunk(&mut self, update: &Value, out: &mut Vec<Delta>) {
        let piece = text(&update["content"], "text");
        if piece.trim_start().starts_with(STOPPED) {
            out.push(notice(one_line(piece, 300)));
            return;
        }
        if piece.trim_start().starts_with(AGAIN) {
            let why = blame::failure(piece.trim(), None, FailureKind::Crashed);
            self.answer.retry(None, std::time::Duration::ZERO, why, out);
            self.stretch += 1;
            return;
        }
        let group = match some(update, "messageId") {
            Some(id) => id,
            None if WARNINGS.iter().any(|warning| piece.starts_with(warning)) => {
                out.push(notice(one_line(piece, 300)));
                return;
            }
            None if self.has_named() => {
                out.push(notice(one_line(piece, 300)));
                return;
            }
            None => format!("{NAMELESS}{}", self.stretch),
        };
        self.refused = false;
        if std::mem::take(&mut self.tool_seen) {
            self.after_tool.insert(group.clone());
        }
        self.answer.grow(&group, "", piece, out);
    }

    /// Returns whether this agent's messages have ids.
    fn has_named(&self) -> bool {
        self.answer
            .groups()
            .iter()
            .any(|(group, _)| !group.starts_with(NAMELESS))
    }

    /// Shows a tool once, as soon as its target is known.
    fn tool(&mut self, update: &Value, out: &mut Vec<Delta>) {
        self.next_stretch();
        let id = text(update, "toolCallId");
        if self.tools.contains(id) {
            return;
        }
        let title = text(update, "title");
        let kind = some(update, "kind").or_else(|| self.tools_bare.get(id).cloned());
        let name = kind.unwrap_or_else(|| one_line(title, 40));
        let input = &update["rawInput"];
        let telling = [
            "command",
            "path",
            "file_path",
            "filePath",
            "query",
            "url",
            "pattern",
        ];
        let last = matches!(text(update, "status"), "completed" | "failed");
        let detail = if telling.iter().any(|key| !input[*key].is_null()) {
            detail(input)
        } else {
            one_line(title, 160)
        };
        let first_words = text(update, "sessionUpdate") == "tool_call"
            && !telling.iter().any(|key| !input[*key].is_null());
        if (first_words || detail.is_empty()) && !last {
            self.tools_bare.insert(id.to_owned(), name);
            return;
        }
        self.tools.insert(id.to_owned());
        out.push(Delta::Tool { name, detail });
    }

    /// Reads what Codex's adapter reports in its own field: retries, and turns that failed although they end with
    /// `end_turn`.
    fn codex(&mut self, said: &Value, out: &mut Vec<Delta>) {
        if text(&said["threadStatus"], "type") == "systemError" {
            self.system_error = true;
        }
        let error = &said["error"];
        if error["willRetry"] == true {
            let why = some(error, "additionalDetails")
                .or_else(|| some(error, "message"))
                .unwrap_or_default();
            let failure = blame::failure(&why, None, FailureKind::Crashed);
            let attempt = text(error, "message")
                .strip_prefix(super::codex_exec::RETRY)
                .and_then(super::codex_exec::attempt);
            self.answer
                .retry(attempt, std::time::Duration::ZERO, failure, out);
        }
    }

    /// Reads the response to our prompt.
    fn stopped(&mut self, result: &Value) -> Result<Delta, Failure> {
        let finish = finish(result)?;
        if self.cancelled {
            return Err(Failure::new(
                FailureKind::Cancelled,
                "the agent was interrupted",
            ));
        }
        if self.system_error {
            return Err(blame::failure(
                &self.answer.text(),
                None,
                FailureKind::Crashed,
            ));
        }
        if self.refused {
            return Err(Failure::new(FailureKind::Invalid, GAVE_UP)
                .advise("ask with `--writable`, or ask for something that needs no such tool"));
        }
        let usage = self.usage(result);
        if usage.is_some_and(|u| u.input_tokens == 0 && u.output_tokens == 0) {
            return Err(Failure::new(
                FailureKind::Decode,
                "the agent ended its turn and reported no tokens: the connection to its model was lost, or the question is too long for it",
            ));
        }
        if usage.is_none_or(|used| used.output_tokens == 0)
            && let Some(failure) = told::told_as_text(&self.answer.text())
        {
            return Err(failure);
        }
        self.answer.settle_all();
        if self.has_named() {
            self.answer.keep(|group| !group.starts_with(NAMELESS));
        }
        if let Some(last) = self.repeated()? {
            self.began_again = Some(notice(
                "the agent lost its connection and restarted its answer",
            ));
            self.answer.keep(|group| group == last);
        }
        if !self.has_named() {
            let text = self.answer.text();
            if let Some(from) = begun_again(&text) {
                self.began_again = Some(notice(
                    "the agent repeated the start of its answer, as it does after a lost connection; it is kept once",
                ));
                return self
                    .answer
                    .finish_with(WHO, text[from..].to_owned(), finish, usage);
            }
        }
        self.answer.finish(WHO, finish, usage)
    }

    /// Returns the last message, if consecutive messages without a tool call between them begin with the same words.
    ///
    /// # Errors
    /// The later message ends before the earlier one did: text is missing.
    fn repeated(&self) -> Result<Option<String>, Failure> {
        let groups = self.answer.groups();
        let mut repeats = false;
        for pair in groups.windows(2) {
            let ((_, before), (group, after)) = (&pair[0], &pair[1]);
            if self.after_tool.contains(*group) {
                continue;
            }
            repeats |= after.starts_with(before.as_str());
            if before.len() > after.len() && before.starts_with(after.as_str()) {
                return Err(Failure::new(
                    FailureKind::Crashed,
                    "the agent lost its connection, and its second attempt ended before the first had",
                ));
            }
        }
        let last = groups.last().filter(|_| repeats);
        Ok(last.map(|(group, _)| (*group).to_owned()))
    }

    fn usage(&self, result: &Value) -> Option<Usage> {
        let cost_usd = match (self.cost, self.cost_before) {
            (Some(cost), Some(before)) => Some((cost - before).max(0.0)),
            _ => None,
        };
        let stated = &result["usage"];
        let quota = &result["_meta"]["quota"]["token_count"];
        let usage = if stated.is_object() {
            let (output, total) = (count(stated, "outputTokens"), count(stated, "totalTokens"));
            // Some agents count cached tokens as input and some do not; the total always includes them.
            let input = count(stated, "inputTokens").max(total.saturating_sub(output));
            Usage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: count(stated, "cachedReadTokens"),
                thinking_tokens: count(stated, "thoughtTokens"),
                cost_usd,
                ..Usage::default()
            }
        } else if quota.is_object() {
            Usage {
                input_tokens: count(quota, "input_tokens"),
                output_tokens: count(quota, "output_tokens"),
                cost_usd,
                ..Usage::default()
            }
        } else {
            return None;
        };
        Some(usage)
    }
}

/// Returns where a text repeats everything before it: an agent without message ids does this after a broken stream. A
/// stream breaks in the middle of a sentence; repeated whole sentences, fewer words than `WORDS_MIN`, or the same few
/// words over and over may be intended.
fn begun_again(text: &str) -> Option<usize> {
    const WORDS_MIN: usize = 4;
    let mut from = 0;
    while let Some(more) = text[from..]
        .match_indices(' ')
        .map(|(at, _)| at + 1)
        .skip(WORDS_MIN - 1)
        .filter(|at| broken_off(&text[from..from + at]))
        .find(|at| text[from + at..].starts_with(&text[from..from + at]))
    {
        from += more;
    }
    (from > 0).then_some(from)
}

/// Returns whether a text ends in the middle of a sentence and is more than a few repeated words.
fn broken_off(text: &str) -> bool {
    let words: BTreeSet<&str> = text.split_whitespace().collect();
    text.trim_end().ends_with(char::is_alphanumeric) && words.len() >= 3
}

/// Returns the options of a permission request that reject it.
fn rejections(options: &Value) -> BTreeSet<String> {
    let options = options.as_array().into_iter().flatten();
    options
        .filter(|option| text(option, "kind").starts_with("reject"))
        .filter_map(|option| some(option, "optionId"))
        .collect()
}

/// Returns the current model from a session's options.
fn model_option(result: &Value) -> Option<String> {
    let options = result["configOptions"].as_array()?;
    some(
        options
            .iter()
            .find(|option| text(option, "id") == "model")?,
        "currentValue",
    )
}

/// Converts a JSON-RPC error; its `data` may contain details.
fn failure(error: &Value) -> Failure {
    let data = &error["data"];
    let code = error["code"].as_i64().unwrap_or(0);
    // Agents use different fields of `data` for the message.
    let said = some(data, "message")
        .or_else(|| some(data, "details"))
        .or_else(|| data.as_str().map(str::to_owned));
    let message = match (said, text(error, "message")) {
        (Some(inner), "Internal error" | "") => inner,
        (Some(inner), message) if !message.contains(&inner) => format!("{message}: {inner}"),
        (_, message) => message.trim_start_matches("Internal error: ").to_owned(),
    };
    let typed = match (text(data, "errorKind"), code) {
        ("authentication_failed", _) | (_, -32000) => Some(FailureKind::Auth),
        ("rate_limit", _) => Some(FailureKind::RateLimit),
        ("overloaded" | "server_error", _) => Some(FailureKind::Overloaded),
        ("invalid_request" | "model_not_found" | "max_output_tokens" | "prompt_too_long", _) => {
            Some(FailureKind::Invalid)
        }
        (_, -32002 | -32600 | -32601 | -32602) => Some(FailureKind::Invalid),
        _ => None,
    };
    // Gemini uses the HTTP status as the code.
    let status = u64::try_from(code)
        .ok()
        .filter(|code| (400..600).contains(code));
    let failure = blame::failure(&message, status, FailureKind::Crashed);
    Failure {
        kind: typed.unwrap_or(failure.kind),
        ..failure
    }
}

/// Returns why the agent ended its turn.
///
/// # Errors
/// It did not answer.
fn finish(result: &Value) -> Result<Finish, Failure> {
    match text(result, "stopReason") {
        "end_turn" => Ok(Finish::Stop),
        "max_tokens" => Ok(Finish::Length),
        "cancelled" => Err(Failure::new(
            FailureKind::Cancelled,
            "the agent was interrupted",
        )),
        "refusal" => Err(Failure::new(
            FailureKind::Refused,
            "the agent or its provider declined to answer",
        )),
        "max_turn_requests" => Err(Failure::new(
            FailureKind::Invalid,
            "the agent used up its requests for one turn",
        )
        .advise("ask a narrower question")),
        other => {
            let other = one_line(other, 40);
            Err(Failure::new(
                FailureKind::Decode,
                format!("the agent stopped for an unknown reason: {other}"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::begun_again;

    #[test]
    fn a_beginning_that_is_repeated_is_found_however_often() {
        let begun = |text| begun_again(text).map(|at| &text[at..]);
        assert_eq!(
            begun("one two three four one two three four five"),
            Some("one two three four five")
        );
        assert_eq!(
            begun("a b c d e a b c d e a b c d e f"),
            Some("a b c d e f")
        );
        for text in [
            "Row, row, row your boat. Row, row, row your boat. Gently",
            "very very very very very very very very good",
            "no, no, it is not so",
            "one two three four",
            "",
            "a b a b c",
        ] {
            assert_eq!(begun(text), None, "{text}");
        }
    }
}
