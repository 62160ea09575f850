//! What went wrong, for people and for scripts: what happened, why, and what to do next.

use crate::exit::Exit;
use std::fmt;
use std::io::{self, Write};

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

    /// Says it: to stderr in words, or to stdout as JSON where that can be written.
    pub(crate) fn report(&self, json: bool) {
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
        let _ = write!(io::stderr(), "{self}");
    }
}

const CLOSED_PIPE: &str = "closed_pipe";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = |label: &str, text: &str| {
            for (i, line) in crate::render::clean::text(text).lines().enumerate() {
                if i == 0 {
                    writeln!(f, "{label}: {line}")?;
                } else {
                    writeln!(f, "{:width$}  {line}", "", width = label.len())?;
                }
            }
            Ok(())
        };
        lines("error", &self.what)?;
        if let Some(why) = &self.why {
            lines("why", why)?;
        }
        if let Some(next) = &self.next {
            lines("next", next)?;
        }
        Ok(())
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
}
