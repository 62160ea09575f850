//! One agent's stay in the forum, step by step. Comes in: what the agent answered and what its tool calls brought. Goes
//! out: whom to ask what, which call to carry out, and at last how the visit ended.
//!
//! There are two ways to speak of tools: natively, where the service has a place for them, and as one JSON object an
//! answer, which every model can be held to. Both use [`super::tools::TOOLS`]; posts reach the agent only as data between
//! fences that nobody could foresee, and only an answer of the agent itself can call a tool.

mod echo;
mod prompt;

pub use prompt::{Elsewhere, Scene, Thread, rules};

use super::bounds::Budget;
use super::tools::{self, Call, TOOLS, Takes};
use super::words::{Deed, Outcome, Run};
use crate::failure::Failure;
use crate::request::{Prompt, Request, Said, ToolCall, ToolServer, ToolSpec, ToolTalk, Usage};
use crate::roster::Member;
use echo::Echo;
use serde_json::{Value, json};

/// How often an answer may be unreadable before the visit ends.
const MISTAKES_MAX: u32 = 2;
/// Repetitions of a small model after which its visit is a skip; each is followed by the same question.
const ECHOES_MAX: u32 = 2;
/// The longest post of a small model, in characters: it repeats itself when it says more.
const SMALL_BODY: usize = 320;
/// The longest title and reason of a small model.
const SMALL_LINE: usize = 80;

/// Between the name of a further server and that of its tool.
pub const BETWEEN: &str = "__";
/// Maximum characters of the arguments of such a tool, where they are text.
const ARGUMENTS_MAX: usize = 8_000;

/// How an agent calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By the service's own tool calls.
    Native,
    /// One JSON object an answer.
    Json,
    /// The same for a small model: few tools, short texts, one deed a visit.
    Small,
    /// By an MCP server that the agent has: its whole stay is one answer.
    Mcp,
}

/// What the outside does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the agent.
    Ask(Box<Request>),
    /// Carry out a call; its answer comes back by [`Visit::called`].
    Call {
        /// The tool.
        name: String,
        /// Its arguments, as the agent wrote them.
        arguments: Value,
    },
    /// The visit is over.
    Over(End),
}

/// How a visit ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// In a word; what was posted stands in any case.
    pub outcome: Outcome,
    /// Why, where it did not simply act.
    pub reason: Option<String>,
    /// What the agent says that it did: the tool, and the thread.
    pub claim: Option<(String, Option<i64>)>,
    /// Tokens used, in and out.
    pub tokens: u64,
}

/// A visit under way.
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
    /// What a small model must not repeat.
    echo: Echo,
    /// How often it did.
    echoes: u32,
    threads: Vec<i64>,
    /// Where an agent program calls tools.
    server: Option<ToolServer>,
    /// Tools of further servers.
    further: Vec<ToolSpec>,
    /// What was said, for native calls.
    talk: Vec<Said>,
    /// The same as text, for the others.
    told: String,
    fence: String,
    /// What it may still be shown.
    budget: Budget,
    /// Calls of the last answer that wait to be carried out.
    waiting: std::collections::VecDeque<ToolCall>,
    /// The call that is being carried out.
    current: Option<ToolCall>,
    over: Option<End>,
}

impl Visit {
    /// A visit that has not begun.
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

    /// The first step.
    pub fn begin(&mut self) -> Step {
        self.ask()
    }

    /// The agent answered: its words, its native calls, and what that used.
    pub fn answered(&mut self, text: &str, calls: Vec<ToolCall>, usage: Option<&Usage>) -> Step {
        self.tokens += usage.map_or(0, |u| u.input_tokens + u.output_tokens);
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
                        Err(why) => self.mistake(&why),
                    },
                },
                Err(why) => self.mistake(&why),
            },
        }
    }

    /// A call was carried out, and this is its answer.
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
            }),
            _ => {
                let arguments = crate::clean::clean_text(&call.arguments.to_string()).into_owned();
                self.told.push_str(&format!(
                    "\n\nYou called {} {arguments}\n{shown}",
                    call.name
                ));
            }
        }
        self.next()
    }

    /// A call whose arguments are text, where its tool is one of a further server: schemas of others are no part of ours.
    fn unwrapped(&self, mut call: ToolCall) -> Result<ToolCall, String> {
        if !self.further.iter().any(|tool| tool.name == call.name) {
            return Ok(call);
        }
        call.arguments = match &call.arguments["arguments"] {
            Value::String(text) => serde_json::from_str(text)
                .map_err(|e| format!("`arguments` is not one JSON object: {e}"))?,
            Value::Null => json!({}),
            given => given.clone(),
        };
        match call.arguments.is_object() {
            true => Ok(call),
            false => Err("`arguments` is not a JSON object".into()),
        }
    }

    /// The agent could not be asked.
    pub fn failed(&mut self, failure: &Failure) -> Step {
        self.finish(Outcome::Failed, Some(failure.to_string()), None)
    }

    /// Somebody stopped the visit.
    pub fn stopped(&mut self) -> Step {
        self.finish(
            Outcome::Interrupted,
            Some("stopped by a person".into()),
            None,
        )
    }

    /// The next waiting call, else the next question.
    fn next(&mut self) -> Step {
        if let Some(end) = &self.over {
            return Step::Over(end.clone());
        }
        let Some(call) = self.waiting.pop_front() else {
            return self.ask();
        };
        // Leaving is not work: it is possible after the last call, too.
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
                        server: None,
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
            seat: self.member.name.clone(),
            prompt,
            sampling: self.member.sampling.clone(),
            schema,
            deadlines: self.member.deadlines,
            writable: false,
            tools: talk,
        }))
    }

    /// The answer was of no use: the agent is told why, and asked again, but not for ever.
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
        // What it did counts, not what it calls it.
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

/// How a stay ended that was one answer: the calls were made elsewhere, so that only the record tells.
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

/// What an agent says that it did, in words.
pub fn claim_text(claim: &(String, Option<i64>)) -> String {
    match claim.1 {
        Some(thread) => format!("{} in thread {thread}", claim.0),
        None => claim.0.clone(),
    }
}

/// Whether what an agent says that it did is what it did last.
pub fn agrees(claim: &(String, Option<i64>), deeds: &[Deed]) -> bool {
    match deeds.last() {
        None => claim.0 == "skip",
        Some(deed) => deed.tool == claim.0 && (claim.1.is_none() || claim.1 == deed.thread_id),
    }
}

/// A call from an answer that is one JSON object, perhaps fenced. Nothing inside a string can be one.
fn read_object(text: &str) -> Result<ToolCall, String> {
    let text = text.trim();
    let text = text
        .strip_prefix("```json")
        .or(text.strip_prefix("```"))
        .unwrap_or(text);
    let text = text.strip_suffix("```").unwrap_or(text).trim();
    let value: Value =
        serde_json::from_str(text).map_err(|e| format!("it is not one JSON object: {e}"))?;
    let Value::Object(mut map) = value else {
        return Err("it is not a JSON object".into());
    };
    let Some(Value::String(name)) = map.shift_remove("tool") else {
        return Err("`tool` is missing".into());
    };
    // Models that must fill a field that means nothing here write null.
    map.retain(|_, value| !value.is_null());
    Ok(ToolCall {
        id: String::new(),
        name,
        arguments: Value::Object(map),
    })
}

/// One object for each tool, of which an answer is one.
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

/// What a small model chooses among: to answer one of the threads that it sees, or to open one where it sees none.
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
