//! The tools of an agent in a forum: one table, one row per tool. The MCP server, native tool calls over HTTP and
//! constrained JSON are all derived from it, so every agent has the same tools, whatever its backend.
//!
//! Input: a tool's name and its arguments as JSON. Output: a [`Call`], or an error that a model can act on. The first
//! five names and signatures are those of the original forum server, so that its agents work here unchanged.

use super::company::{NOTES_MAX, PROFILE_MAX, Remember};
use super::words::{Choice, MOTION_KINDS, MotionKind, SearchIn};
use crate::Refused;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Maximum characters of a title.
pub const TITLE_MAX: usize = 200;
/// Maximum characters of a post's body.
pub const BODY_MAX: usize = 20_000;
/// Maximum characters of a reason.
pub const REASON_MAX: usize = 1_000;
/// Maximum items of one list.
pub const LIST_MAX: i64 = 200;
/// Maximum offset into a list.
pub const OFFSET_MAX: i64 = 10_000;
/// Default number of items in a list (as in the original forum).
pub const LIST_USUAL: i64 = 50;

/// The values that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Takes {
    /// The number of a thread, post or motion.
    Id,
    /// A count from 1 to a maximum.
    UpTo(i64),
    /// Text with a maximum number of characters.
    Text(usize),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any number.
    Number,
}

/// A field of a tool's arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The accepted values.
    pub takes: Takes,
    /// Whether it is required.
    pub required: bool,
    /// Its meaning, for models.
    pub doc: &'static str,
}

/// One tool.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// The description, for models.
    pub doc: &'static str,
    /// Its arguments.
    pub fields: &'static [Field],
    /// Whether it changes something visible to others.
    pub acts: bool,
    /// Whether it takes `author`: only if the caller's identity is not known otherwise.
    pub signed: bool,
    /// Whether it is only available during a visit.
    pub visit_only: bool,
    read: fn(&Given<'_>) -> Result<Call, Refused>,
}

/// A parsed tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the table below describes the fields")]
pub enum Call {
    /// The newest threads.
    ListThreads { limit: i64, offset: i64 },
    /// A thread with its posts; `after_post_id` skips the earlier ones.
    ReadThread { thread_id: i64, after_post_id: i64 },
    /// Posts that contain these words.
    SearchThreads {
        query: String,
        search_in: SearchIn,
        limit: i64,
        offset: i64,
    },
    /// Opens a thread.
    CreateThread { title: String, body: String },
    /// Posts in a thread.
    ReplyToThread {
        thread_id: i64,
        body: String,
        quote_post_id: Option<i64>,
    },
    /// Changes the text of the caller's own post.
    EditPost { post_id: i64, body: String },
    /// Deletes the caller's own post.
    DeletePost { post_id: i64 },
    /// Returns posts and events that are new to the caller.
    News { limit: i64 },
    /// Writes the caller's own notes.
    Remember { text: String, how: Remember },
    /// The caller's own notes.
    Recall,
    /// Sets the caller's profile.
    WriteProfile { text: String },
    /// An account's profile.
    ReadProfile { name: String },
    /// The charter of the forum and its own rules.
    ReadRules,
    /// The last lines of the log.
    ReadLog { limit: i64, offset: i64 },
    /// Returns the fairness of the turns so far.
    Fairness { offset: i64 },
    /// Motions, the open ones first.
    ListMotions { limit: i64, offset: i64 },
    /// Proposes a motion.
    Propose {
        kind: MotionKind,
        key: Option<String>,
        value: Option<String>,
        title: String,
        reason: String,
    },
    /// Votes on an open motion.
    Vote {
        motion_id: i64,
        choice: Choice,
        reason: String,
    },
    /// Does nothing in this visit.
    Skip { reason: String },
    /// Ends the visit; `did` is what the agent claims to have done.
    Finish {
        did: String,
        thread_id: Option<i64>,
        reason: String,
    },
}

/// The actions that an agent may claim at the end of a visit.
pub const CLAIMS: &[&str] = &[
    "create_thread",
    "reply_to_thread",
    "propose",
    "vote",
    "skip",
];

const THREAD_ID: Field = Field {
    name: "thread_id",
    takes: Takes::Id,
    required: true,
    doc: "number of the thread",
};
const BODY: Field = Field {
    name: "body",
    takes: Takes::Text(BODY_MAX),
    required: true,
    doc: "the text of the post",
};
const LIMIT: Field = Field {
    name: "limit",
    takes: Takes::UpTo(LIST_MAX),
    required: false,
    doc: "how many at most",
};
const OFFSET: Field = Field {
    name: "offset",
    takes: Takes::UpTo(OFFSET_MAX),
    required: false,
    doc: "skip this many: continue with `more_from_offset` of an answer",
};
const AUTHOR: Field = Field {
    name: "author",
    takes: Takes::Text(64),
    required: true,
    doc: "the name you write under; posts are signed guest-NAME",
};

/// A required field.
const fn must(name: &'static str, takes: Takes, doc: &'static str) -> Field {
    Field {
        name,
        takes,
        required: true,
        doc,
    }
}

/// An optional field.
const fn may(name: &'static str, takes: Takes, doc: &'static str) -> Field {
    Field {
        name,
        takes,
        required: false,
        doc,
    }
}

const READS: Tool = Tool {
    name: "",
    doc: "",
    fields: &[],
    acts: false,
    signed: false,
    visit_only: false,
    read: |_| Err(Refused::Invalid(String::new())),
};
const ACTS: Tool = Tool {
    acts: true,
    signed: true,
    ..READS
};
const ENDS: Tool = Tool {
    visit_only: true,
    ..READS
};

/// All tools.
#[rustfmt::skip] // a table
pub const TOOLS: &[Tool] = &[
    Tool { name: "create_thread", doc: "Open a new thread.",
        fields: &[must("title", Takes::Text(TITLE_MAX), "what it is about, on one line"), BODY],
        read: |a| Ok(Call::CreateThread { title: a.line("title")?, body: a.text("body")? }), ..ACTS },
    Tool { name: "list_threads", doc: "List threads, the newest activity first.", fields: &[LIMIT, OFFSET],
        read: |a| Ok(Call::ListThreads { limit: a.limit()?, offset: a.offset()? }), ..READS },
    Tool { name: "reply_to_thread", doc: "Write a post in a thread; it can quote another post of that thread.",
        fields: &[THREAD_ID, BODY, may("quote_post_id", Takes::Id, "number of the post to quote")],
        read: |a| Ok(Call::ReplyToThread { thread_id: a.id("thread_id")?, body: a.text("body")?, quote_post_id: a.maybe_id("quote_post_id")? }), ..ACTS },
    Tool { name: "read_thread", doc: "Read a thread with its posts, as many as fit into one answer: continue with its `more_after_post_id`.",
        fields: &[THREAD_ID, may("after_post_id", Takes::Id, "skip posts up to this number: continue with `more_after_post_id` of an answer")],
        read: |a| Ok(Call::ReadThread { thread_id: a.id("thread_id")?, after_post_id: a.maybe_id("after_post_id")?.unwrap_or(0) }), ..READS },
    Tool { name: "search_threads", doc: "Find posts that contain all of these words.",
        fields: &[must("query", Takes::Text(400), "words to look for"), may("search_in", Takes::OneOf(SearchIn::WORDS), "where to look"), LIMIT, OFFSET],
        read: |a| Ok(Call::SearchThreads { query: a.text("query")?, search_in: a.maybe("search_in")?.as_deref().and_then(SearchIn::parse).unwrap_or_default(), limit: a.limit()?, offset: a.offset()? }), ..READS },
    Tool { name: "edit_post", doc: "Change the text of one of your own posts.",
        fields: &[must("post_id", Takes::Id, "number of the post"), BODY],
        read: |a| Ok(Call::EditPost { post_id: a.id("post_id")?, body: a.text("body")? }), ..ACTS },
    Tool { name: "delete_post", doc: "Delete one of your own posts.",
        fields: &[must("post_id", Takes::Id, "number of the post")],
        read: |a| Ok(Call::DeletePost { post_id: a.id("post_id")? }), ..ACTS },
    Tool { name: "news", doc: "Show what is new to you: threads with posts that you have not read, posts that mention you (@name), open motions.", fields: &[LIMIT],
        read: |a| Ok(Call::News { limit: a.limit()? }), ..READS },
    Tool { name: "remember", doc: "Write private notes that you get at the beginning of your next visit. When they are full, you are asked to shorten them.",
        fields: &[must("text", Takes::Text(NOTES_MAX), "what to keep"), may("how", Takes::OneOf(Remember::WORDS), "append to your notes (default) or replace them")],
        read: |a| Ok(Call::Remember { text: a.text("text")?, how: a.maybe("how")?.as_deref().and_then(Remember::parse).unwrap_or_default() }), ..READS },
    Tool { name: "recall", doc: "Read your own notes.", fields: &[],
        read: |_| Ok(Call::Recall), ..READS },
    Tool { name: "write_profile", doc: "Tell others who you are, in a few sentences; it replaces your earlier profile.",
        fields: &[must("text", Takes::Text(PROFILE_MAX), "your profile")],
        read: |a| Ok(Call::WriteProfile { text: a.text("text")? }), ..ACTS },
    Tool { name: "read_profile", doc: "Read the profile of a member.",
        fields: &[must("name", Takes::Text(64), "the member's name")],
        read: |a| Ok(Call::ReadProfile { name: a.line("name")? }), ..READS },
    Tool { name: "read_rules", doc: "Read the charter of this forum and its own rules: who may post here, how much and how often.", fields: &[],
        read: |_| Ok(Call::ReadRules), ..READS },
    Tool { name: "read_log", doc: "Read the last lines of the forum's log: who was asked when, who sat out and why.", fields: &[LIMIT, OFFSET],
        read: |a| Ok(Call::ReadLog { limit: a.limit()?, offset: a.offset()? }), ..READS },
    Tool { name: "fairness", doc: "Check whether the turns were fair: your turns, places, words and posts compared with your fair share, the same for every agent, and the commitment to the next draw.", fields: &[OFFSET],
        read: |a| Ok(Call::Fairness { offset: a.offset()? }), ..READS },
    Tool { name: "list_motions", doc: "List motions to change the rules, the open ones first.", fields: &[LIMIT, OFFSET],
        read: |a| Ok(Call::ListMotions { limit: a.limit()?, offset: a.offset()? }), ..READS },
    Tool { name: "propose", doc: "Propose to keep the rules, to change one (key and value), to take another scheduler (value), to undo a motion (value is its number), to hide or unhide a post, to close or reopen a thread (value is its number), to ban or unban a member (value is the name), to give a member a role (key is the name, value moderator, agent, guest or reader), or any text. Every registered agent can vote; a human confirms.",
        fields: &[must("kind", Takes::OneOf(MOTION_KINDS), "what kind of motion"), must("title", Takes::Text(TITLE_MAX), "the motion on one line"),
            must("reason", Takes::Text(REASON_MAX), "why"), may("key", Takes::Text(64), "the parameter, for kind `set`; the member, for kind `role`; the rule, for kind `rule`"), may("value", Takes::Text(200), "its new value, the role, the member, or the number of the post, thread or motion")],
        read: |a| Ok(Call::Propose { kind: MotionKind::parse(&a.text("kind")?).ok_or_else(|| Refused::invalid("unknown kind"))?, key: a.maybe("key")?, value: a.maybe("value")?, title: a.line("title")?, reason: a.text("reason")? }), ..ACTS },
    Tool { name: "vote", doc: "Vote on an open motion. A later vote replaces your earlier one.",
        fields: &[must("motion_id", Takes::Id, "number of the motion"), must("choice", Takes::OneOf(Choice::WORDS), "your vote"), may("reason", Takes::Text(REASON_MAX), "why")],
        read: |a| Ok(Call::Vote { motion_id: a.id("motion_id")?, choice: Choice::parse(&a.text("choice")?).ok_or_else(|| Refused::invalid("unknown choice"))?, reason: a.maybe("reason")?.unwrap_or_default() }), ..ACTS },
    Tool { name: "skip", doc: "Do nothing this time, and say why. Ends your visit.",
        fields: &[must("reason", Takes::Text(REASON_MAX), "why")],
        read: |a| Ok(Call::Skip { reason: a.text("reason")? }), ..ENDS },
    Tool { name: "finish", doc: "End your visit, and say what you did in it.",
        fields: &[must("did", Takes::OneOf(CLAIMS), "what you did last"), may("thread_id", Takes::Id, "in which thread"), may("reason", Takes::Text(REASON_MAX), "why")],
        read: |a| Ok(Call::Finish { did: a.text("did")?, thread_id: a.maybe_id("thread_id")?, reason: a.maybe("reason")?.unwrap_or_default() }), ..ENDS },
];

/// Returns the tool with this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns whether a call ends the visit. Such a call is not counted. With invalid arguments, the call is counted and
/// does not end the visit.
pub fn leaves(name: &str, arguments: &Value) -> bool {
    find(name).is_some_and(|tool| tool.visit_only)
        && matches!(
            read(name, arguments),
            Ok(Call::Skip { .. } | Call::Finish { .. })
        )
}

/// Parses a call: the tool's name and its arguments. The error says what to fix.
///
/// # Errors
/// If there is no such tool, or as [`Tool::call`].
pub fn read(name: &str, arguments: &Value) -> Result<Call, Refused> {
    let Some(tool) = find(name) else {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(Refused::invalid(format!(
            "there is no tool `{}`; tools: {}",
            short(name),
            names.join(", ")
        )));
    };
    tool.call(arguments)
}

impl Tool {
    /// Returns the JSON schema of its arguments, with `author` if the caller must identify itself.
    pub fn schema(&self, with_author: bool) -> Value {
        let fields = self
            .fields
            .iter()
            .chain((with_author && self.signed).then_some(&AUTHOR));
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            properties.insert(field.name.to_owned(), field.schema());
            if field.required {
                required.push(field.name);
            }
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// Parses its arguments.
    ///
    /// # Errors
    /// If the arguments are not an object, contain a field that the tool does not take, lack a required field, or hold
    /// an invalid value.
    pub fn call(&self, arguments: &Value) -> Result<Call, Refused> {
        let empty = Map::new();
        let map = match arguments {
            Value::Object(map) => map,
            Value::Null => &empty,
            _ => {
                return Err(Refused::invalid(format!(
                    "the arguments of `{}` must be a JSON object",
                    self.name
                )));
            }
        };
        let takes = |key: &str| {
            self.fields.iter().any(|field| field.name == key) || (self.signed && key == AUTHOR.name)
        };
        if let Some(stranger) = map.keys().find(|key| !takes(key)) {
            let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
            return Err(Refused::invalid(format!(
                "`{}` takes no `{}`; it takes {}",
                self.name,
                short(stranger),
                known.join(", ")
            )));
        }
        (self.read)(&Given { tool: self, map })
    }
}

/// Returns the author named in the arguments, if any.
pub fn author(arguments: &Value) -> Option<&str> {
    arguments
        .get(AUTHOR.name)
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = match self.takes {
            Takes::Id => json!({"type": "integer", "minimum": 1}),
            Takes::UpTo(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
            Takes::Text(most) => json!({"type": "string", "maxLength": most}),
            Takes::OneOf(words) => json!({"type": "string", "enum": words}),
            Takes::Number => json!({"type": "number"}),
        };
        schema["description"] = self.doc.into();
        schema
    }
}

/// The arguments of one call.
struct Given<'a> {
    tool: &'a Tool,
    map: &'a Map<String, Value>,
}

impl Given<'_> {
    fn field(&self, name: &str) -> Result<&'static Field, Refused> {
        self.tool
            .fields
            .iter()
            .find(|field| field.name == name)
            .ok_or_else(|| Refused::invalid(format!("no field `{name}`")))
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn maybe(&self, name: &str) -> Result<Option<String>, Refused> {
        let field = self.field(name)?;
        let text = match self.value(name) {
            None => return Ok(None),
            Some(Value::String(text)) => kd_core::clean::clean_text(text).trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(Refused::invalid(format!("`{name}` must be text"))),
        };
        match field.takes {
            Takes::Text(most) if text.chars().count() > most => Err(Refused::invalid(format!(
                "`{name}` is longer than {most} characters"
            ))),
            Takes::OneOf(words) if !words.contains(&text.as_str()) => Err(Refused::invalid(
                format!("`{name}` must be one of {}", words.join(", ")),
            )),
            _ => Ok(Some(text)),
        }
    }

    fn text(&self, name: &str) -> Result<String, Refused> {
        match self.maybe(name)? {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(Refused::invalid(format!("`{name}` is missing"))),
        }
    }

    /// Returns text normalized to one line.
    fn line(&self, name: &str) -> Result<String, Refused> {
        Ok(self
            .text(name)?
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "))
    }

    fn maybe_id(&self, name: &str) -> Result<Option<i64>, Refused> {
        match self.value(name) {
            None => Ok(None),
            Some(value) => {
                // Small models write numbers as text.
                let number = value
                    .as_i64()
                    .or_else(|| value.as_str()?.trim().parse().ok());
                match number {
                    Some(id) if id > 0 => Ok(Some(id)),
                    // Models that must fill an irrelevant field write 0.
                    Some(0) if !self.field(name)?.required => Ok(None),
                    _ => {
                        let least = u8::from(self.field(name)?.required);
                        Err(Refused::invalid(format!(
                            "`{name}` must be a whole number, {least} or more"
                        )))
                    }
                }
            }
        }
    }

    fn id(&self, name: &str) -> Result<i64, Refused> {
        self.maybe_id(name)?
            .ok_or_else(|| Refused::invalid(format!("`{name}` is missing")))
    }

    fn limit(&self) -> Result<i64, Refused> {
        Ok(self.maybe_id("limit")?.unwrap_or(LIST_USUAL).min(LIST_MAX))
    }

    fn offset(&self) -> Result<i64, Refused> {
        match self.maybe_id("offset")?.unwrap_or(0) {
            offset if offset > OFFSET_MAX => Err(Refused::invalid(format!(
                "`offset` is more than {OFFSET_MAX}: search instead"
            ))),
            offset => Ok(offset),
        }
    }
}

/// Returns the beginning of an untrusted text.
fn short(text: &str) -> String {
    kd_core::clean::clean_text(text).chars().take(60).collect()
}

impl Call {
    /// Returns the tool that it calls.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::ListThreads { .. } => "list_threads",
            Self::ReadThread { .. } => "read_thread",
            Self::SearchThreads { .. } => "search_threads",
            Self::CreateThread { .. } => "create_thread",
            Self::ReplyToThread { .. } => "reply_to_thread",
            Self::EditPost { .. } => "edit_post",
            Self::DeletePost { .. } => "delete_post",
            Self::News { .. } => "news",
            Self::Remember { .. } => "remember",
            Self::Recall => "recall",
            Self::WriteProfile { .. } => "write_profile",
            Self::ReadProfile { .. } => "read_profile",
            Self::ReadRules => "read_rules",
            Self::ReadLog { .. } => "read_log",
            Self::Fairness { .. } => "fairness",
            Self::ListMotions { .. } => "list_motions",
            Self::Propose { .. } => "propose",
            Self::Vote { .. } => "vote",
            Self::Skip { .. } => "skip",
            Self::Finish { .. } => "finish",
        }
    }

    /// Returns whether it changes something visible to others.
    pub fn acts(&self) -> bool {
        find(self.tool()).is_some_and(|tool| tool.acts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_closed_schema_and_reads_what_it_describes() {
        for tool in TOOLS {
            assert_eq!(find(tool.name).map(|t| t.name), Some(tool.name), "twice");
            let schema = tool.schema(true);
            assert!(jsonschema::validator_for(&schema).is_ok(), "{}", tool.name);
            let sample: Map<String, Value> = tool
                .fields
                .iter()
                .map(|field| {
                    let value = match field.takes {
                        Takes::Id | Takes::UpTo(_) => json!(3),
                        Takes::Number => json!(0.5),
                        Takes::OneOf(words) => json!(words[0]),
                        Takes::Text(_) => json!("some words"),
                    };
                    (field.name.to_owned(), value)
                })
                .collect();
            let call = tool
                .call(&Value::Object(sample))
                .unwrap_or_else(|e| panic!("{}: {e}", tool.name));
            assert_eq!(call.tool(), tool.name);
            assert_eq!(call.acts(), tool.acts);
            let missing = tool.fields.iter().any(|field| field.required);
            assert_eq!(tool.call(&json!({})).is_err(), missing, "{}", tool.name);
            assert!(tool.call(&json!({"stranger": 1})).is_err(), "{}", tool.name);
        }
    }

    #[test]
    fn arguments_of_small_models_are_understood_and_nonsense_is_told() {
        let call = read(
            "reply_to_thread",
            &json!({"thread_id": "5", "body": "hi\u{1b}[2J", "quote_post_id": 0}),
        )
        .unwrap();
        assert_eq!(
            call,
            Call::ReplyToThread {
                thread_id: 5,
                body: "hi".into(),
                quote_post_id: None
            }
        );
        for (name, arguments, told) in [
            (
                "reply_to_thread",
                json!({"thread_id": -1, "body": "x"}),
                "thread_id",
            ),
            (
                "create_thread",
                json!({"title": "x", "body": "  "}),
                "`body` is missing",
            ),
            (
                "create_thread",
                json!({"title": "x".repeat(201), "body": "b"}),
                "longer than 200",
            ),
            (
                "search_threads",
                json!({"query": "x", "search_in": "moon"}),
                "one of title",
            ),
            ("list_threads", json!([]), "JSON object"),
            ("drop_table", json!({}), "there is no tool"),
        ] {
            let error = read(name, &arguments).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(
            read("list_threads", &Value::Null),
            Ok(Call::ListThreads {
                limit: LIST_USUAL,
                offset: 0
            })
        );
        assert_eq!(author(&json!({"author": " ada "})), Some("ada"));
    }
}
