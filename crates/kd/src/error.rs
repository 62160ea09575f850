//! What went wrong, for people and for scripts: what happened, why, and what to do next.

use crate::exit::Exit;
use crate::render::wrap::wrap;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

/// A command could not be done.
#[derive(Debug)]
pub(crate) struct Error {
    /// One word for scripts, for example `usage`, `no_thread`, `no_model`.
    pub(crate) kind: &'static str,
    /// What happened, in one sentence.
    pub(crate) what: String,
    /// Why, where there is more to say: the causes, one a line.
    pub(crate) why: Option<String>,
    /// What to do next.
    pub(crate) next: Option<String>,
    /// The code to leave with.
    pub(crate) exit: Exit,
}

impl Error {
    /// An error of a kind.
    pub(crate) fn new(kind: &'static str, exit: Exit, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            why: None,
            next: None,
            exit,
        }
    }

    /// The command line is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new("usage", Exit::Usage, what)
    }

    /// The same with a reason.
    #[must_use]
    pub(crate) fn because(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// The same with advice.
    #[must_use]
    pub(crate) fn next(mut self, next: impl fmt::Display) -> Self {
        self.next = Some(next.to_string());
        self
    }

    /// The same in one line.
    pub(crate) fn as_line(&self) -> String {
        let parts = [Some(&self.what), self.why.as_ref(), self.next.as_ref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join("; ")
    }

    /// Whether the reader of our output has gone: nothing is wrong, and nobody is left to tell.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == CLOSED_PIPE
    }

    /// Writes it: to stderr as text, wrapped at `columns` where stderr is a terminal, or to stdout as JSON where that can
    /// be written.
    pub(crate) fn report(&self, json: bool, columns: Option<usize>) {
        if json {
            let object = serde_json::json!({"error": {
                "kind": self.kind,
                "message": self.what,
                "why": self.why,
                "hint": self.next,
                "code": self.exit as u8,
            }});
            if writeln!(io::stdout(), "{object}").is_ok() {
                return;
            }
        }
        // When even this cannot be written there is nobody to tell.
        let _ = write!(io::stderr(), "{}", self.text(columns));
    }

    /// The text for people. A command to type stays in one line, whatever its length, so that it can be copied.
    fn text(&self, columns: Option<usize>) -> String {
        let mut out = String::new();
        let parts = [
            ("error", Some(&self.what)),
            ("why", self.why.as_ref()),
            ("next", self.next.as_ref()),
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
                    wrap(line, room)
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

/// Columns for the text of an error on the narrowest of terminals.
const ROOM_MIN: usize = 20;

const CLOSED_PIPE: &str = "closed_pipe";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

impl From<io::Error> for Error {
    /// An error of writing results; other I/O names its file itself.
    fn from(e: io::Error) -> Self {
        if e.kind() == io::ErrorKind::BrokenPipe {
            return Error::new(CLOSED_PIPE, Exit::Done, "nobody reads any more");
        }
        Error::new("io", Exit::Error, "the output could not be written").because(e)
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
            "error: no member is named `gpt`\nwhy: members: claude\n     codex\nnext: kd ask --to claude\n"
        );
    }

    #[test]
    fn a_narrow_terminal_breaks_lines_between_words_and_no_command() {
        let command = "kd config set agents.claude.model claude-opus --user";
        let error = Error::usage("the council of this folder has a member without a model")
            .because(format!("nothing names one; type\n{command}"))
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
            let most = columns.max(ROOM_MIN + "error: ".len());
            for line in text.lines().filter(|line| !line.contains(command)) {
                assert!(line.chars().count() <= most, "{columns}: {line}");
            }
        }
        assert_eq!(error.text(Some(200)), error.to_string());
    }
}
