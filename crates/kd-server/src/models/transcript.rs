//! A conversation in any API's format, reduced to who said what.

use super::fault::{Fault, NAME_CHARS_MAX};
use super::picture::{self, is_picture};
use kd_core::clean::clean_line;
use kd_core::request::Picture;
use serde_json::Value;

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Instructions of the client.
    System,
    /// The user.
    User,
    /// The model: an earlier answer of this server.
    Assistant,
    /// The result of a tool call.
    Tool,
}

impl Role {
    /// Returns its name, the same in every API.
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// Parses a name; some have several spellings.
    pub(super) fn read(name: &str, param: &'static str) -> Result<Self, Fault> {
        match name {
            "system" | "developer" => Ok(Role::System),
            "user" => Ok(Role::User),
            "assistant" => Ok(Role::Assistant),
            "tool" | "function" => Ok(Role::Tool),
            other => {
                let role = clean_line(other, NAME_CHARS_MAX);
                Err(Fault::invalid(
                    Some(param),
                    format!("there is no role `{role}`"),
                ))
            }
        }
    }
}

/// A message of the transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) role: Role,
    pub(super) text: String,
    /// The speaker's name, if the client gives one.
    pub(super) name: Option<String>,
}

impl Message {
    pub(super) fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            name: None,
        }
    }
}

/// A request's conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Transcript {
    pub(super) model: String,
    pub(super) messages: Vec<Message>,
    /// The ID of the answer that this request continues (OpenAI Responses).
    pub(super) previous: Option<String>,
    /// The field of the request that holds the messages, once checked.
    pub(super) param: &'static str,
}

impl Transcript {
    /// Checks that the conversation ends with a question. `param` is the field that holds it. Instructions after the
    /// question, which some clients add, come before it.
    pub(super) fn check(mut self, param: &'static str) -> Result<Self, Fault> {
        self.param = param;
        let is_system = |message: &&Message| message.role == Role::System;
        let after = self.messages.iter().rev().take_while(is_system).count();
        if let Some(at) = self.messages.len().checked_sub(after + 1) {
            self.messages[at..].rotate_left(1);
        }
        let why = match self.messages.last() {
            None => format!("`{param}` is empty"),
            Some(last) if !matches!(last.role, Role::User | Role::Tool) => {
                "the last message must be the user's: it is the question".to_owned()
            }
            Some(last) if last.role == Role::User && last.text.trim().is_empty() => {
                "the last message is empty: it is the question".to_owned()
            }
            Some(_) => return Ok(self),
        };
        Err(Fault::invalid(Some(param), why))
    }
}

/// The content of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) pictures: Vec<Picture>,
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pictures: Vec::new(),
        }
    }
}

impl Content {
    /// Returns the text, and pictures in words.
    pub(super) fn in_words(mut self) -> String {
        for picture in &self.pictures {
            add_line(&mut self.text, &picture.words());
        }
        self.text
    }
}

/// Reads parts: texts of the given kinds, and pictures.
///
/// # Errors
/// For all other kinds: audio, files.
pub(super) fn content_of(
    parts: &[Value],
    kinds: &[&str],
    param: &'static str,
) -> Result<Content, Fault> {
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for part in parts {
        let kind = part["type"].as_str().unwrap_or_default();
        if kinds.contains(&kind) {
            let text = part["text"].as_str().or(part["refusal"].as_str());
            texts.push(text.unwrap_or_default());
        } else if is_picture(kind) {
            pictures.push(picture::read(part, param)?);
        } else {
            return Err(unread(kind, param));
        }
    }
    Ok(Content {
        text: texts.join("\n"),
        pictures,
    })
}

/// Returns the error for a part that no member can read.
pub(super) fn unread(kind: &str, param: &'static str) -> Fault {
    let kind = clean_line(kind, NAME_CHARS_MAX);
    let why = format!("the council reads text and pictures, not `{kind}`");
    Fault::invalid(Some(param), why)
}

/// Formats a tool call of an earlier answer as text.
pub(super) fn called(name: &str, arguments: &str) -> String {
    format!("[called {name} with {arguments}]")
}

/// Adds a line to a text.
pub(super) fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_after_the_question_come_before_it() {
        use Role::{Assistant, System, User};
        let checked = |roles: &[Role]| {
            let messages = roles.iter().map(|role| Message::new(*role, "x"));
            let transcript = Transcript {
                messages: messages.collect(),
                ..Transcript::default()
            };
            let checked = transcript.check("messages").ok()?;
            Some(checked.messages.iter().map(|m| m.role).collect::<Vec<_>>())
        };
        for (roles, expected) in [
            (
                &[User, System, System][..],
                Some(vec![System, System, User]),
            ),
            (&[System, User], Some(vec![System, User])),
            (
                &[User, Assistant, User, System],
                Some(vec![User, Assistant, System, User]),
            ),
            (&[System], None),
            (&[User, Assistant, System], None),
            (&[], None),
        ] {
            assert_eq!(checked(roles), expected, "{roles:?}");
        }
    }
}
