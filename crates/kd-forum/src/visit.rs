//! One agent's visit to the forum, step by step. Input: the agent's answers and the results of its tool calls. Output:
//! the next request, the call to carry out, and finally how the visit ended.
//!
//! There are two ways to call tools: natively, if the service supports it, and as one JSON object per answer, which
//! every model can be constrained to. Both use [`super::tools::TOOLS`]; posts reach the agent only as data between
//! unpredictable fences, and only an answer of the agent itself can call a tool.

mod echo;
mod prompt;

pub use prompt::{Elsewhere, Scene, Thread, rules};

use super::bounds::Budget;
use super::tools::{self, Call, TOOLS, Takes};
use super::words::{Deed, Outcome, Run};
use crate::Refused;
use echo::Echo;
use kd_core::failure::Failure;
use kd_core::request::{Prompt, Request, Said, ToolCall, ToolServer, ToolSpec, ToolTalk};
use kd_core::roster::Member;
use kd_core::usage::Usage;
use serde_json::{Value, json};

/// Maximum unreadable answers before the visit ends.
const MISTAKES_MAX: u32 = 2;
/// Repetitions by a small model after which its visit counts as a skip; after each one the same request is repeated.
const ECHOES_MAX: u32 = 2;
/// Maximum characters of a small model's post: it repeats itself when it writes more.
const SMALL_BODY: usize = 320;
/// Maximum characters of a small model's title and reason.
const SMALL_LINE: usize = 80;

/// Maximum characters of the arguments of an additional server's tool, if they are text.
const ARGUMENTS_MAX: usize = 8_000;

/// The form in which an agent calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The service's native tool calls.
    Native,
    /// One JSON object per answer.
    Json,
    /// One JSON object per answer, for a small model: few tools, short texts, one action per visit.
    Small,
    /// An MCP server that the agent uses: its whole visit is one answer.
    Mcp,
}

/// The next step for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the agent.
    Ask(Box<Request>),
    /// Carry out a call; its result is passed to [`Visit::called`].
    Call {
        /// The tool.
        name: String,
        /// Its arguments, as the agent wrote them.
        arguments: Value,
    },
    /// The visit is over.
    Over(End),
}

/// The end of a visit.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The outcome; posts remain in any case.
    pub outcome: Outcome,
    /// The reason, if it did not simply act.
    pub reason: Option<String>,
    /// The action that the agent claims: the tool, and the thread.
    pub claim: Option<(String, Option<i64>)>,
    /// Tokens used, input and output.
    pub tokens: u64,
}

/// A visit in progress.
#[derive(Clone, Debug)]
pub struct Visit {
    member: Member,
    way: Way,
    limit: u32,
    calls: u32,
    acted: bool,
    mistakes: u32,
    tokens: u64,
    prompt: Prompt,
    /// Text that a small model must not repeat.
    echo: Echo,
    /// Number of times the model repeated it.
    echoes: u32,
    threads: Vec<i64>,
    /// The tool server of an agent program.
    server: Option<ToolServer>,
    /// Tools of additional servers.
    further: Vec<ToolSpec>,
    /// The conversation, for native calls.
    talk: Vec<Said>,
    /// The conversation as text, for the others.
    told: String,
    fence: String,
    /// The characters that it may still be shown.
    budget: Budget,
    /// Calls of the last answer still to be carried out.
    waiting: std::collections::VecDeque<ToolCall>,
    /// The call in progress.
    current: Option<ToolCall>,
    over: Option<End>,
}

impl Visit {
    /// Creates a visit that has not begun.
    pub fn new(member: Member, way: Way, scene: &Scene) -> Self {
        let mut budget = Budget::default();
        let prompt = prompt::prompt(&member, way, scene, &mut budget);
        let shown = scene.news.iter().flat_map(|fresh| &fresh.posts);
        let echo = match way {
            Way::Small => Echo::of(
                &format!("{}\n{}", prompt.rules, prompt.turn),
                shown.map(|post| post.body.as_str()),
            ),
            _ => Echo::default(),
        };
        Self {
            echo,
            echoes: 0,
            limit: scene.settings.max_tool_calls,
            threads: scene.news.iter().map(|fresh| fresh.thread.id).collect(),
            fence: scene.fence.clone(),
            server: scene.server.clone(),
            further: scene.further.clone(),
            member,
            way,
            calls: 0,
            acted: false,
            mistakes: 0,
            tokens: 0,
            prompt,
            budget,
            talk: Vec::new(),
            told: String::new(),
            waiting: std::collections::VecDeque::new(),
            current: None,
            over: None,
        }
    }

    /// Returns the first step.
    pub fn begin(&mut self) -> Step {
        self.ask()
    }

    /// Handles an answer of the agent: its text, its native calls, and its usage.
    pub fn answered(&mut self, text: &str, calls: Vec<ToolCall>, usage: Option<&Usage>) -> Step {
        self.tokens = self.tokens.saturating_add(usage.map_or(0, Usage::tokens));
        match self.way {
            Way::Native => {
                self.talk.push(Said::Agent {
                    text: text.to_owned(),
                    calls: calls.clone(),
                });
                if calls.is_empty() {
                    return self.end(None, None);
                }
                self.waiting = calls.into();
                self.next()
            }
            Way::Mcp => self.end(None, None),
            Way::Json | Way::Small => match read_object(text) {
                Ok(call) => match self.echo.find(&call.arguments) {
                    Some(_) if self.echoes < ECHOES_MAX => {
                        self.echoes += 1;
                        self.ask()
                    }
                    Some(why) => self.end(Some(why.into()), Some(("skip".into(), None))),
                    None => match self.unwrapped(call) {
                        Ok(call) => {
                            self.waiting.push_back(call);
                            self.next()
                        }
                        Err(why) => self.mistake(&why.to_string()),
                    },
                },
                Err(why) => self.mistake(&why.to_string()),
            },
        }
    }

    /// Handles the result of a call.
    pub fn called(&mut self, answer: &Value) -> Step {
        let Some(call) = self.current.take() else {
            return self.next();
        };
        let good = answer["success"] == true;
        if good {
            let read = tools::read(&call.name, &call.arguments);
            match &read {
                Ok(Call::Skip { reason }) => {
                    return self.end(Some(reason.clone()), Some(("skip".into(), None)));
                }
                Ok(Call::Finish {
                    did,
                    thread_id,
                    reason,
                }) => {
                    let skipped = did == "skip";
                    return self.end(
                        skipped.then(|| reason.clone()),
                        Some((did.clone(), *thread_id)),
                    );
                }
                Ok(call) if call.acts() => {
                    self.acted = true;
                    if self.way == Way::Small {
                        return self.end(None, None);
                    }
                }
                _ => {}
            }
        } else if self.way == Way::Small {
            return self.mistake(answer["error"].as_str().unwrap_or("refused"));
        }
        let shown = self.budget.result(&call.name, answer, &self.fence);
        match self.way {
            Way::Native => self.talk.push(Said::Tool {
                id: call.id,
                name: call.name,
                result: shown,
                failed: false,
            }),
            _ => {
                let arguments =
                    kd_core::clean::clean_text(&call.arguments.to_string()).into_owned();
                self.told.push_str(&format!(
                    "\n\nYou called {} {arguments}\n{shown}",
                    call.name
                ));
            }
        }
        self.next()
    }

    /// Unwraps text arguments of an additional server's tool: the schemas of other servers are not part of the
    /// forum's.
    fn unwrapped(&self, mut call: ToolCall) -> Result<ToolCall, Refused> {
        if !self.further.iter().any(|tool| tool.name == call.name) {
            return Ok(call);
        }
        call.arguments = match &call.arguments["arguments"] {
            Value::String(text) => serde_json::from_str(text).map_err(|e| {
                Refused::invalid(format!("`arguments` is not one JSON object: {e}"))
            })?,
            Value::Null => json!({}),
            given => given.clone(),
        };
        match call.arguments.is_object() {
            true => Ok(call),
            false => Err(Refused::invalid("`arguments` is not a JSON object")),
        }
    }

    /// Handles a failed request to the agent.
    pub fn failed(&mut self, failure: &Failure) -> Step {
        self.finish(Outcome::Failed, Some(failure.to_string()), None)
    }

    /// Ends the visit because it was stopped.
    pub fn stopped(&mut self) -> Step {
        self.finish(
            Outcome::Interrupted,
            Some("stopped by a person".into()),
            None,
        )
    }

    /// Returns the next pending call; if there is none, the next request.
    fn next(&mut self) -> Step {
        if let Some(end) = &self.over {
            return Step::Over(end.clone());
        }
        let Some(call) = self.waiting.pop_front() else {
            return self.ask();
        };
        // Leaving does not count as a call: it is possible after the last one, too.
        if !tools::leaves(&call.name, &call.arguments) {
            if self.calls == self.limit {
                let why = over_the_limit(self.limit);
                return self.finish(Outcome::LimitExceeded, Some(why), None);
            }
            self.calls += 1;
        }
        let step = Step::Call {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        };
        self.current = Some(call);
        step
    }

    fn ask(&mut self) -> Step {
        if let Some(end) = &self.over {
            return Step::Over(end.clone());
        }
        let mut prompt = self.prompt.clone();
        prompt.history = format!("{}{}", prompt.history, self.told).into();
        let (schema, talk) = match self.way {
            Way::Native => {
                let tools = TOOLS.iter().map(|tool| ToolSpec {
                    name: tool.name.to_owned(),
                    doc: tool.doc.to_owned(),
                    schema: tool.schema(false),
                });
                (
                    None,
                    Some(Box::new(ToolTalk {
                        tools: tools.chain(self.further.iter().cloned()).collect(),
                        said: self.talk.clone(),
                        ..ToolTalk::default()
                    })),
                )
            }
            Way::Json => (Some(schema(&self.further)), None),
            Way::Small => (Some(small_schema(&self.threads)), None),
            Way::Mcp => {
                let talk = ToolTalk {
                    server: self.server.clone(),
                    ..ToolTalk::default()
                };
                (None, Some(Box::new(talk)))
            }
        };
        Step::Ask(Box::new(Request {
            attachments: Vec::new(),
            schema_of_user: false,
            reads: false,
            seat: self.member.name.clone(),
            prompt,
            sampling: self.member.sampling.clone(),
            schema,
            deadlines: self.member.deadlines,
            writable: false,
            tools: talk,
        }))
    }

    /// Handles an unusable answer: asks again with the reason, up to a limit.
    fn mistake(&mut self, why: &str) -> Step {
        self.mistakes += 1;
        if self.mistakes > MISTAKES_MAX {
            return self.finish(
                Outcome::Failed,
                Some(format!("its answers could not be used: {why}")),
                None,
            );
        }
        self.told
            .push_str(&format!("\n\nYour last answer could not be used: {why}."));
        self.ask()
    }

    fn end(&mut self, reason: Option<String>, claim: Option<(String, Option<i64>)>) -> Step {
        // The agent's actions count, not its claim.
        if self.acted || self.way == Way::Mcp {
            return self.finish(Outcome::Acted, None, claim);
        }
        let reason = reason
            .filter(|r| !r.is_empty())
            .unwrap_or_else(|| "said nothing".into());
        self.finish(Outcome::Skipped, Some(reason), claim)
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        reason: Option<String>,
        claim: Option<(String, Option<i64>)>,
    ) -> Step {
        let end = End {
            outcome,
            reason,
            claim,
            tokens: self.tokens,
        };
        self.over = Some(end.clone());
        Step::Over(end)
    }
}

/// Returns the end of a visit that was a single answer. The calls were made in another process, so the result comes
/// from the record.
pub fn by_record(end: End, run: &Run, limit: u32) -> End {
    if end.outcome != Outcome::Acted {
        return end;
    }
    let (outcome, reason) = if run.calls > i64::from(limit) {
        (Outcome::LimitExceeded, Some(over_the_limit(limit)))
    } else if run.deeds.is_empty() {
        let said = run.reason.clone();
        (
            Outcome::Skipped,
            Some(said.unwrap_or_else(|| "said nothing".into())),
        )
    } else {
        (Outcome::Acted, None)
    };
    End {
        outcome,
        reason,
        ..end
    }
}

fn over_the_limit(limit: u32) -> String {
    format!("tool call limit exceeded ({limit} a visit)")
}

/// Describes what an agent claims to have done.
pub fn claim_text(claim: &(String, Option<i64>)) -> String {
    match claim.1 {
        Some(thread) => format!("{} in thread {thread}", claim.0),
        None => claim.0.clone(),
    }
}

/// Returns whether an agent's claim matches its last action.
pub fn agrees(claim: &(String, Option<i64>), deeds: &[Deed]) -> bool {
    match deeds.last() {
        None => claim.0 == "skip",
        Some(deed) => deed.tool == claim.0 && (claim.1.is_none() || claim.1 == deed.thread_id),
    }
}

/// Parses a call from an answer that is one JSON object, possibly fenced. Text inside strings never counts as a call.
fn read_object(text: &str) -> Result<ToolCall, Refused> {
    let text = text.trim();
    let text = text
        .strip_prefix("```json")
        .or(text.strip_prefix("```"))
        .unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    let value: Value = serde_json::from_str(text)
        .map_err(|e| Refused::invalid(format!("it is not one JSON object: {e}")))?;
    let Value::Object(mut map) = value else {
        return Err(Refused::invalid("it is not a JSON object"));
    };
    let Some(Value::String(name)) = map.shift_remove("tool") else {
        return Err(Refused::invalid("`tool` is missing"));
    };
    // Models that must fill an irrelevant field write null.
    map.retain(|_, value| !value.is_null());
    Ok(ToolCall {
        id: String::new(),
        name,
        arguments: Value::Object(map),
        ..ToolCall::default()
    })
}

/// Returns a schema with one object per tool, of which an answer is one.
fn schema(further: &[ToolSpec]) -> Value {
    let own = TOOLS
        .iter()
        .map(|tool| with_name(tool.schema(false), tool.name));
    let text = json!({"type": "string", "maxLength": ARGUMENTS_MAX});
    let further = further.iter().map(|tool| {
        let wrapped = json!({"type": "object", "properties": {"arguments": text}, "required": ["arguments"],
            "additionalProperties": false});
        with_name(wrapped, &tool.name)
    });
    json!({"anyOf": own.chain(further).collect::<Vec<_>>()})
}

fn with_name(mut schema: Value, name: &str) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert("tool".into(), json!({"type": "string", "enum": [name]}));
    if let Some(own) = schema["properties"].as_object() {
        properties.extend(own.clone());
    }
    schema["properties"] = Value::Object(properties);
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, "tool".into());
    }
    schema
}

/// Returns a small model's choices: to answer one of the threads shown, or to open one if none are shown.
fn small_schema(threads: &[i64]) -> Value {
    let small = |name: &str, fields: &[&str]| {
        let tool = tools::find(name).map_or(json!({}), |tool| {
            let mut schema = tool.schema(false);
            let mut properties = serde_json::Map::new();
            for field in tool
                .fields
                .iter()
                .filter(|field| fields.contains(&field.name))
            {
                let most = if field.name == "body" {
                    SMALL_BODY
                } else {
                    SMALL_LINE
                };
                let shape = match field.takes {
                    Takes::Id => json!({"type": "integer", "enum": threads}),
                    _ => json!({"type": "string", "minLength": 8, "maxLength": most}),
                };
                properties.insert(field.name.to_owned(), shape);
            }
            schema["properties"] = Value::Object(properties);
            schema["required"] = json!(fields);
            schema
        });
        with_name(tool, name)
    };
    if threads.is_empty() {
        return small("create_thread", &["title", "body"]);
    }
    small("reply_to_thread", &["thread_id", "body"])
}

#[cfg(test)]
mod tests;
