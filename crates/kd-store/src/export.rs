//! A thread as one document: Markdown for people, JSON for programs.

use crate::meta::Meta;
use kd_core::clean::clean_line;
use kd_core::formats::EXPORT;
use kd_core::markdown::{embed, escape_line};
use kd_core::message::{Address, Message, Status};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Messages are second-level headings; headings inside messages start below that.
const LEVEL: usize = 2;
/// Maximum length of a title in characters.
const TITLE_CHARS: usize = 80;

/// Renders the thread as Markdown: a title, then a section for each message. No message body can look like a section:
/// see [`kd_core::markdown::embed`].
pub fn markdown(meta: &Meta, messages: &[Message]) -> String {
    let mut out = head(meta, messages.len(), messages.first());
    messages.iter().for_each(|message| out += &section(message));
    out
}

/// Renders the title, the beginning of the first message, and the thread's metadata.
pub fn head(meta: &Meta, messages: usize, first: Option<&Message>) -> String {
    let mut out = String::new();
    let title = first.and_then(|message| title(&message.body));
    let title = title.unwrap_or_else(|| meta.id.to_string());
    let _ = writeln!(out, "# {}\n", escape_line(&title));
    let _ = writeln!(out, "- thread: {}", meta.id);
    if let Some(created) = &meta.created_at {
        let _ = writeln!(out, "- opened: {}", escape_line(created));
    }
    let _ = writeln!(out, "- members: {}", escape_line(&meta.members.join(", ")));
    let _ = writeln!(out, "- messages: {messages}");
    if meta.is_private() {
        out.push_str("- private: asks only members on this machine\n");
    }
    if let Some(fork) = meta.lineage() {
        let origin = format!("{} {}", fork.of, fork.words());
        let _ = writeln!(out, "- fork of: {}", escape_line(&origin));
    }
    out
}

/// Returns the first non-empty line of a text, shortened to a title.
fn title(text: &str) -> Option<String> {
    let mut lines = text.lines().map(|line| line.trim_start_matches(['#', ' ']));
    let line = lines.find(|line| !line.trim().is_empty())?;
    Some(clean_line(line, TITLE_CHARS))
}

/// Renders a message as a section.
pub fn section(message: &Message) -> String {
    let mut out = format!(
        "\n---\n\n## {} · {}",
        message.seq,
        escape_line(&message.from)
    );
    if !matches!(message.to, Address::All | Address::King) {
        let _ = write!(out, " → {}", escape_line(&message.to.to_string()));
    }
    if let Some(status) = message.status.filter(|s| *s != Status::Complete) {
        let _ = write!(out, " · {}", status.as_str());
    }
    let _ = write!(out, "\n\n*{}", message.at.strftime("%Y-%m-%d %H:%M:%S UTC"));
    if let Some(model) = &message.provenance.model {
        let _ = write!(out, " · {}", escape_line(model));
    }
    out.push_str("*\n\n");
    let body = embed(&message.shown(), LEVEL);
    if !body.trim().is_empty() {
        let _ = writeln!(out, "{}", body.trim_end());
    }
    if let Some(reason) = message.reason() {
        let _ = writeln!(out, "\n*Error: {}*", escape_line(&reason));
    }
    out
}

/// Returns the thread as JSON: its metadata and all messages.
pub fn json(meta: &Meta, messages: &[Message]) -> Value {
    json!({ "v": EXPORT.version, "thread": meta, "messages": messages })
}
