//! Errors for people and scripts: what happened, why, and what to do next.

use crate::exit::Exit;
use crate::render::wrap::fold;
use kd_app::UserError;
use std::fmt::{self, Write as _};
use std::io::Write as _;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct Error {
    /// One word for scripts, such as `usage`, `no_thread` or `no_model`.
    pub(crate) kind: &'static str,
    /// The error, in one sentence.
    pub(crate) what: String,
    /// The causes, one per line, where there is more to say.
    pub(crate) why: Option<String>,
    /// Advice: the next step.
    pub(crate) next: Option<String>,
    /// The exit code.
    pub(crate) exit: Exit,
}

impl Error {
    /// Creates an error of a kind.
    pub(crate) fn new(kind: &'static str, exit: Exit, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: None,
            next: None,
            exit,
        }
    }

    /// Creates an error about the command line.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, what)
    }

    /// Adds a cause.
    #[must_use]
    pub(crate) fn because(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn next(mut self, next: impl fmt::Display) -> Self {
        self.next = Some(next.to_string());
        self
    }

    /// Formats the error as one line.
    pub(crate) fn as_line(&self) -> String {
        let parts = [Some(&self.what), self.why.as_ref(), self.next.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join("; ")
    }

    /// Returns whether stdout was closed by its reader: nothing is wrong, and there is nowhere to report it.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == CLOSED_PIPE
    }

    /// Writes the error: to stderr as text, wrapped at `columns` where stderr is a terminal, or to stdout as JSON if
    /// that is writable.
    pub(crate) fn report(&self, json: bool, columns: Option<usize>) {
        if json {
            let object = serde_json::json!({"error": {
                "kind": self.kind,
                "message": self.what,
                "why": self.why,
                "hint": self.next,
                "code": self.exit as u8,
            }});
            if writeln!(crate::out::stdout(), "{object}").is_ok() {
                return;
            }
        }
        // If even this cannot be written, there is nowhere to report it.
        let _ = write!(crate::out::stderr(), "{}", self.text(columns));
    }

    /// Formats the text for people. A command to type stays on one line of any length, so that it can be copied.
    fn text(&self, columns: Option<usize>) -> String {
        let mut out = String::new();
        let parts = [
            ("error", Some(&self.what)),
            ("cause", self.why.as_ref()),
            ("help", self.next.as_ref()),
        ];
        for (label, text) in parts {
            let Some(text) = text else { continue };
            let indent = label.len() + 2;
            let room = columns.map_or(usize::MAX, |columns| {
                columns.saturating_sub(indent).max(ROOM_MIN)
            });
            let mut label = format!("{label}: ");
            for line in crate::render::clean::text(text).lines() {
                let pieces = if line.starts_with("kd ") {
                    vec![line.to_owned()]
                } else {
                    fold(line, room, 0)
                };
                for piece in pieces {
                    let _ = writeln!(out, "{label:indent$}{piece}");
                    label.clear();
                }
            }
        }
        out
    }
}

/// Minimum columns for error text, even on a narrow terminal.
const ROOM_MIN: usize = 20;

const CLOSED_PIPE: &str = "closed_pipe";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

/// The errors of kd-app, and the errors of lower layers, which kd-app describes.
impl<E: Into<UserError>> From<E> for Error {
    fn from(error: E) -> Self {
        let error = error.into();
        Error {
            kind: error.kind.word(),
            what: error.what,
            why: error.why,
            next: error.next,
            exit: error.kind.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_teaches_and_never_carries_escapes() {
        let error = Error::usage("no member is named `gpt\u{1b}[2J`")
            .because("members: claude\ncodex")
            .next("kd ask --to claude");
        assert_eq!(
            error.to_string(),
            "error: no member is named `gpt`\ncause: members: claude\n       codex\nhelp: kd ask --to claude\n"
        );
    }

    #[test]
    fn a_narrow_terminal_breaks_lines_between_words_and_no_command() {
        let command = "kd config set agents.claude.model claude-opus --user";
        let path = "/home/ada/projects/kingdom/.kd/branches/main/threads/council-37c4/0001-king.md";
        let error = Error::usage("the council of this folder has a member without a model")
            .because(format!("nothing in {path} names one; type\n{command}"))
            .next(command);
        for columns in [1, 24, 40, 80] {
            let text = error.text(Some(columns));
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&text), words(&error.to_string()), "{text}");
            assert_eq!(text.matches(command).count(), 2, "{text}");
            assert_eq!(
                text.matches(path).count(),
                1,
                "a path is not broken: {text}"
            );
            let most = columns.max(ROOM_MIN + "error: ".len());
            for line in text
                .lines()
                .filter(|line| !line.contains(command) && !line.contains(path))
            {
                assert!(line.chars().count() <= most, "{columns}: {line}");
            }
        }
        assert_eq!(error.text(Some(200)), error.to_string());
    }
}
