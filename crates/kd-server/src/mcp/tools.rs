//! The tools: those that consult the council, one row each, and those of the forum, from its own table.

use super::{answer, consult, off};
use crate::kingdom::{Ask, Kingdom, Method};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest question, in bytes: what a council takes.
const QUESTION_BYTES_MAX: usize = 4 << 20;

/// A way to consult the council.
struct Row {
    name: &'static str,
    method: Method,
    doc: &'static str,
    /// What `members` means, and how many there may be.
    members: (&'static str, usize),
}

const ROWS: &[Row] = &[
    Row {
        name: "ask_council",
        method: Method::Ask,
        doc: "Put a question to a council of AI agents: every member answers by itself, and the chair concludes.",
        members: ("Who is to answer, in order; left out: the usual members.", 64),
    },
    Row {
        name: "think",
        method: Method::Think,
        doc: "Have a fast and a rigorous seat think a question through together: they check each other out of sight, and one answer comes back.",
        members: ("The fast seat and the rigorous one; left out: the usual two.", 2),
    },
    Row {
        name: "deliberate",
        method: Method::Deliberate,
        doc: "Have the council deliberate: it plans itself, its members answer, review each other and vote, and a verdict comes back with its support and dissent.",
        members: ("Who is to sit; left out: whom the plan seats.", 64),
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
}

impl Row {
    fn tool(&self) -> Tool {
        let schema = json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1, "description": "The question, with all that is needed to answer it."},
                "members": {"type": "array", "items": {"type": "string"}, "maxItems": self.members.1, "description": self.members.0},
                "thread": {"type": "string", "description": "The id of a thread to go on in; left out: a new one."},
            },
            "required": ["question"],
            "additionalProperties": false,
        });
        let mut tool = Tool::new(self.name, self.doc, object(schema));
        tool.output_schema = Some(Arc::new(object(answer::schema())));
        tool.annotations = Some(ToolAnnotations::new().read_only(false).destructive(false).open_world(true));
        tool
    }
}

/// All tools that this house has. `known` says whether the caller's name is known, so that no tool asks for it.
pub(super) fn list(kingdom: &dyn Kingdom, known: bool) -> Vec<Tool> {
    let council = ROWS.iter().filter(|row| kingdom.has(row.method));
    let _ = known;
    council.map(Row::tool).collect()
}

/// Carries a call out. An error of the protocol means that there is no such tool.
pub(super) async fn call(
    kingdom: &Arc<dyn Kingdom>,
    _caller: Option<String>,
    name: &str,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let row = ROWS.iter().find(|row| row.name == name && kingdom.has(row.method));
    let Some(row) = row else {
        let names: Vec<_> = list(kingdom.as_ref(), true).into_iter().map(|t| t.name).collect();
        return Err(ErrorData::invalid_params(
            format!("there is no tool `{name}`; tools: {}", names.join(", ")),
            None,
        ));
    };
    let given: Given = match serde_json::from_value(Value::Object(arguments)) {
        Ok(given) => given,
        Err(why) => return Ok(refused(&format!("`{name}` takes question, members and thread: {why}"))),
    };
    if given.question.trim().is_empty() {
        return Ok(refused("`question` is empty: say what is to be answered"));
    }
    if given.question.len() > QUESTION_BYTES_MAX {
        return Ok(refused("`question` is longer than 4 MiB: put the long part into a file and name it"));
    }
    if given.members.len() > row.members.1 {
        return Ok(refused(&format!("`members` may hold at most {} names", row.members.1)));
    }
    let ask = Ask {
        method: row.method,
        question: given.question,
        members: given.members,
        thread: given.thread,
    };
    match off(kingdom, move |kingdom| kingdom.ask(&ask)).await? {
        Ok(started) => Ok(consult::run(started, context).await),
        Err(why) => Ok(refused(&why.0)),
    }
}

/// The tool ran and could not do it: the caller reads why.
pub(super) fn refused(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
