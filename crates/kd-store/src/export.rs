//! A thread as one document: Markdown for people, JSON for programs.

use crate::meta::Meta;
use kd_core::message::{Address, Message, Status};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The version of the JSON form.
const FORMAT: u32 = 1;

/// The thread as Markdown: a title, then a section for each message.
pub fn markdown(meta: &Meta, messages: &[Message]) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}\n", meta.id);
    if let Some(created) = &meta.created_at {
        let _ = writeln!(out, "- opened: {}", one_line(created));
    }
    let _ = writeln!(out, "- members: {}", one_line(&meta.members.join(", ")));
    let _ = writeln!(out, "- messages: {}", messages.len());
    for message in messages {
        let _ = write!(
            out,
            "\n---\n\n## {} · {}",
            message.seq,
            one_line(&message.from)
        );
        if !matches!(message.to, Address::All | Address::King) {
            let _ = write!(out, " → {}", message.to);
        }
        if let Some(status) = message.status.filter(|s| *s != Status::Complete) {
            let _ = write!(out, " · {}", status.as_str());
        }
        let _ = write!(out, "\n\n*{}", message.at.strftime("%Y-%m-%d %H:%M:%S UTC"));
        if let Some(model) = &message.provenance.model {
            let _ = write!(out, " · {}", one_line(model));
        }
        out.push_str("*\n\n");
        out.push_str(&message.body);
        out.push('\n');
        if let Some(fence) = open_fence(&message.body) {
            // An answer that was cut inside a code block must not swallow those after it.
            let _ = writeln!(out, "{fence}");
        }
    }
    out
}

/// The thread as JSON: its meta and all messages.
pub fn json(meta: &Meta, messages: &[Message]) -> Value {
    json!({ "v": FORMAT, "thread": meta, "messages": messages })
}

/// A value from a header as it may stand in a line of Markdown: what would begin markup is escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '#' | '!' => line.extend(['\\', c]),
            c if c.is_control() => line.push(' '),
            c => line.push(c),
        }
    }
    line
}

/// The fence that would close the body's last open code block.
fn open_fence(body: &str) -> Option<String> {
    let mut open: Option<String> = None;
    for line in body.lines() {
        let text = line.trim_start();
        // Four spaces make an indented block, in which a fence means nothing.
        if line.len() - text.len() > 3 {
            continue;
        }
        let Some(mark) = text.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            continue;
        };
        let fence: String = text.chars().take_while(|c| *c == mark).collect();
        let rest = &text[fence.len()..];
        match &open {
            None if fence.len() >= 3 && !(mark == '`' && rest.contains('`')) => open = Some(fence),
            Some(begun) if fence.starts_with(begun.as_str()) && rest.trim().is_empty() => {
                open = None
            }
            _ => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_block_left_open_is_closed() {
        assert_eq!(open_fence("a\n```rust\nx"), Some("```".into()));
        assert_eq!(open_fence("```rust\nx\n```\n"), None);
        assert_eq!(open_fence("~~~~\n```\n~~~"), Some("~~~~".into()));
        assert_eq!(open_fence("    ```\ninline ``` here\n```a`b"), None);
    }
}
