//! The tools: one row for each tool that consults the council, and the tools of the forum from the forum's table.

use super::app::{self, Presenter};
use super::{Server, object, off};
use crate::answer;
use crate::answer::Told;
use crate::identity::Caller;
use kd_app::Started;
use kd_app::host::{Host, Method, PlanChoice, Query};
use kd_core::SeatName;
use kd_core::names::{GUEST, READER};
use kd_core::planner::presets;
use kd_core::request::ToolSpec;
use kd_forum::account::Proof;
use kd_forum::tools::{self as forum, Tool as ForumTool};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The argument that names the caller, where it is not known otherwise.
const AUTHOR: &str = "author";
/// Maximum bytes of a question, as accepted by a council.
const QUESTION_BYTES_MAX: usize = 4 << 20;

/// A way to consult the council.
struct Row {
    name: &'static str,
    method: Method,
    doc: &'static str,
    /// The meaning of `members` and their maximum number.
    members: (&'static str, usize),
}

const ROWS: &[Row] = &[
    Row {
        name: "ask_council",
        method: Method::Ask,
        doc: "Ask a council of AI agents a question: every member answers independently, and the chair concludes.",
        members: (
            "The members to ask, in order; default: the configured members.",
            64,
        ),
    },
    Row {
        name: "think",
        method: Method::Think,
        doc: "Have a fast and a rigorous member debate a question: they check each other in private, and return one answer.",
        members: (
            "The fast member and the rigorous one; default: the configured two.",
            2,
        ),
    },
    Row {
        name: "deliberate",
        method: Method::Deliberate,
        doc: "Have the council deliberate: it makes a plan, its members answer, review each other and vote, and it returns a verdict with its support and dissent.",
        members: ("The members; default: those of the plan.", 64),
    },
];

/// The arguments of a consultation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    question: String,
    #[serde(default)]
    members: Vec<String>,
    #[serde(default)]
    thread: Option<String>,
    #[serde(default)]
    preset: Option<String>,
}

impl Row {
    fn tool(&self) -> Tool {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "description": "The question, with everything needed to answer it."},
                "members": {"type": "array", "items": {"type": "string"}, "maxItems": self.members.1, "description": self.members.0},
                "thread": {"type": "string", "description": "The id of a thread to continue; default: a new thread."},
            },
            "required": ["question"],
            "additionalProperties": false,
        });
        if self.method == Method::Deliberate {
            let names: Vec<&str> = presets::PRESETS.iter().map(|p| p.name).collect();
            schema["properties"]["preset"] = json!({"type": "string", "enum": names, "description": "The members and how they decide; default: as configured, or by the question."});
        }
        let mut tool = Tool::new(self.name, self.doc, object(schema));
        tool.meta = Some(app::meta());
        tool.output_schema = Some(Arc::new(object(answer::schema())));
        tool.annotations = Some(
            ToolAnnotations::new()
                .read_only(false)
                .destructive(false)
                .open_world(true),
        );
        tool
    }
}

/// Returns the forum tools available here.
fn forum_tools(host: &dyn Host) -> impl Iterator<Item = &'static ForumTool> {
    let visit = host.is_visit();
    forum::TOOLS
        .iter()
        .filter(move |tool| visit || !tool.visit_only)
}

/// Lists all tools of this host. `known` says whether the caller's name is known, so that no tool asks for it.
pub(super) fn list(host: &dyn Host, known: bool) -> Vec<Tool> {
    let council = ROWS.iter().filter(|row| host.has(row.method));
    let forum = forum_tools(host).map(|row| {
        let mut tool = Tool::new(row.name, row.doc, object(row.schema(!known)));
        let hints = ToolAnnotations::new()
            .read_only(!row.acts)
            .open_world(false);
        tool.annotations = Some(hints.destructive(row.name == "delete_post"));
        tool
    });
    council.map(Row::tool).chain(forum).collect()
}

/// Lists the tools of additional servers for a visiting agent.
pub(super) async fn further(host: &Arc<dyn Host>) -> Result<Vec<Tool>, ErrorData> {
    if !host.is_visit() {
        return Ok(Vec::new());
    }
    let tools = off(host, |host| host.further_tools()).await?;
    let tool = |spec: ToolSpec| {
        let mut tool = Tool::new(spec.name, spec.doc, object(spec.schema));
        tool.annotations = Some(ToolAnnotations::new().open_world(true));
        tool
    };
    Ok(tools.into_iter().map(tool).collect())
}

/// Runs a call. A protocol error means that there is no such tool.
pub(super) async fn call(
    server: &Server,
    caller: Option<Caller>,
    name: &str,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if let Some(row) = ROWS
        .iter()
        .find(|row| row.name == name && server.host.has(row.method))
    {
        return ask(server, row, arguments, context).await;
    }
    if let Some(tool) = forum_tools(server.host.as_ref()).find(|tool| tool.name == name) {
        let answer = post(&server.host, tool, caller, arguments).await;
        if tool.acts {
            server.news.wake();
        }
        return answer.map(Into::into);
    }
    if server.host.has_further(name)
        && let Some(caller) = caller
    {
        let arguments = Value::Object(arguments);
        let answer = carry(&server.host, name.to_owned(), caller, arguments).await;
        return answer.map(Into::into);
    }
    let names: Vec<_> = list(server.host.as_ref(), true)
        .into_iter()
        .map(|t| t.name)
        .collect();
    Err(ErrorData::invalid_params(
        format!("there is no tool `{name}`; tools: {}", names.join(", ")),
        None,
    ))
}

/// Asks the council. A deliberation is a task for clients that know tasks.
async fn ask(
    server: &Server,
    row: &Row,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let query = match query(row, arguments) {
        Ok(query) => query,
        Err(why) => return Ok(refused(&why).into()),
    };
    // In the request itself: clients name the extension in older handshakes too, and read no tasks there.
    let knows_tasks = context
        .meta
        .client_capabilities()
        .is_some_and(|client| client.supports_tasks());
    let started = off(&server.host, move |host| host.ask(&query)).await?;
    match started {
        Err(why) => Ok(refused(&why.0).into()),
        Ok(started) if knows_tasks && row.method == Method::Deliberate => {
            let owner = super::task_owner(context);
            let running = server.running.start(started);
            let task = server
                .tasks
                .begin(owner, running, Presenter::new(&server.host, context))?;
            Ok(CallToolResponse::Task(task))
        }
        Ok(started) => Ok(consult(server, started, context).await.into()),
    }
}

/// Reads the arguments of a consultation.
fn query(row: &Row, arguments: JsonObject) -> Result<Query, String> {
    let given: Given = serde_json::from_value(Value::Object(arguments))
        .map_err(|why| format!("`{}` takes question, members and thread: {why}", row.name))?;
    if given.question.trim().is_empty() {
        return Err("`question` is empty: say what is to be answered".into());
    }
    if given.question.len() > QUESTION_BYTES_MAX {
        let why = "`question` is longer than 4 MiB: put the long part into a file and name it";
        return Err(why.into());
    }
    if given.members.len() > row.members.1 {
        return Err(format!(
            "`members` may hold at most {} names",
            row.members.1
        ));
    }
    if given.preset.is_some() && row.method != Method::Deliberate {
        return Err("`preset` is an argument of `deliberate`".into());
    }
    Ok(Query {
        method: row.method,
        question: given.question,
        members: given.members,
        thread: given.thread,
        plan: PlanChoice {
            preset: given.preset,
            protocol: None,
        },
        output: None,
    })
}

/// Runs a session to its end, or until the caller cancels or disconnects; sends progress on request.
async fn consult(
    server: &Server,
    started: Started,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let token = context.meta.get_progress_token();
    let mut running = server.running.start(started);
    let mut progress = 0.0;
    loop {
        let told = tokio::select! {
            told = running.told.recv() => told,
            () = context.ct.cancelled() => {
                running.stop();
                break;
            }
        };
        let Some(told) = told else { break };
        if let (Told::Line(line), Some(token)) = (told, &token) {
            progress += 1.0;
            let told = ProgressNotificationParam::new(token.clone(), progress).with_message(line);
            // A disconnected caller gets no progress; disconnects are handled elsewhere.
            let _ = context.peer.notify_progress(told).await;
        }
    }
    match running.end().await {
        Ok(answer) => Presenter::new(&server.host, context).present(&answer).await,
        Err(why) => refused(&why.to_string()),
    }
}

/// The visible actions open to a caller without a name.
const FOR_GUESTS: &[&str] = &["create_thread", "reply_to_thread"];

/// Runs a forum tool under the caller's name. A caller without one is a guest: the `author` argument names it, prefixed
/// so that it cannot be mistaken for an agent or a user.
async fn post(
    host: &Arc<dyn Host>,
    tool: &'static ForumTool,
    caller: Option<Caller>,
    mut arguments: JsonObject,
) -> Result<CallToolResult, ErrorData> {
    let named = arguments.remove(AUTHOR);
    let named = named.as_ref().and_then(Value::as_str).map(str::trim);
    if caller.is_none() && tool.acts && !FOR_GUESTS.contains(&tool.name) {
        return Ok(posted(failure(&format!(
            "`{}` is not for guests: start the server with `--as NAME`, or use a token with a name",
            tool.name
        ))));
    }
    let nobody = |name| Caller {
        name,
        proof: Proof::Nothing,
    };
    let author = match (caller, named.filter(|name| !name.is_empty())) {
        (Some(caller), _) => caller,
        (None, Some(named)) => match guest(named) {
            Ok(author) => nobody(author),
            Err(why) => return Ok(posted(failure(&why))),
        },
        (None, None) if tool.signed => {
            return Ok(posted(failure(
                "`author` is missing: say under which name you write",
            )));
        }
        (None, None) => nobody(READER.to_owned()),
    };
    carry(host, tool.name.to_owned(), author, Value::Object(arguments)).await
}

/// Runs a call and fences its answer during a visit.
async fn carry(
    host: &Arc<dyn Host>,
    tool: String,
    caller: Caller,
    arguments: Value,
) -> Result<CallToolResult, ErrorData> {
    let called = tool.clone();
    let done = off(host, move |host| {
        let Caller { name, proof } = caller;
        host.forum(&name, proof, &called, &arguments)
    });
    let answer = match done.await? {
        Ok(answer) => answer,
        Err(why) => failure(&why.0),
    };
    Ok(match host.shown(&tool, &answer) {
        Some(text) => fenced(answer, text),
        None => posted(answer),
    })
}

/// Returns a tool's answer during a visit: only as text, between the fences that the visit's prompt names.
fn fenced(answer: Value, text: String) -> CallToolResult {
    let mut result = posted(json!({"success": answer["success"]}));
    result.content = vec![ContentBlock::text(text)];
    result.structured_content = None;
    result
}

/// Returns the name under which a guest posts.
fn guest(named: &str) -> Result<String, String> {
    let name = format!("{GUEST}{}", named.strip_prefix(GUEST).unwrap_or(named));
    let name = SeatName::writer(name).map_err(|why| format!("`author` is no name: {why}"))?;
    Ok(name.into())
}

/// Returns a failure in the format of the forum's tools.
fn failure(why: &str) -> Value {
    json!({"success": false, "error": why})
}

/// Returns a forum tool's answer as text and JSON.
fn posted(answer: Value) -> CallToolResult {
    let failed = answer.get("success") == Some(&Value::Bool(false));
    let content = vec![ContentBlock::text(answer.to_string())];
    let mut result = if failed {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = Some(answer);
    result
}

/// Returns a tool error: the tool ran but failed, and the caller reads why.
pub(super) fn refused(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}
