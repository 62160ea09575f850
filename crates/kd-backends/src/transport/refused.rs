//! Refusals of tools that a request can do without: most models that call no tools are known only by their refusal.

use kd_core::{Failure, Request, SeatName};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Models that refused tools, while the process runs.
#[derive(Debug, Default)]
pub(crate) struct RefusedTools(Mutex<BTreeSet<String>>);

impl RefusedTools {
    /// Returns whether a model refused tools.
    pub(crate) fn has(&self, model: &str) -> bool {
        let models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.contains(model)
    }

    /// Adds a model; returns whether it is new.
    pub(crate) fn add(&self, model: &str) -> bool {
        let mut models = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        models.insert(model.to_owned())
    }
}

/// Returns whether a request offers tools that it can do without, and nothing was said about them yet.
pub(crate) fn offers_optional(request: &Request) -> bool {
    let talk = request.tools.as_deref();
    talk.is_some_and(|talk| talk.optional && talk.said.is_empty())
}

/// Returns whether an error is about tools, given that the request offers some. llama.cpp reports it as a failure of its
/// own.
pub(crate) fn refuses_tools(code: u16, body: &str) -> bool {
    let lower = body.to_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    match code {
        // The error counts the tokens of the tools too.
        _ if is_too_long(&lower) => false,
        400 | 404 | 422 | 501 => names(&["tool", "function"]),
        500 => names(&["--jinja"]),
        _ => false,
    }
}

/// Returns whether an error says that a request is too long for the model.
pub(crate) fn is_too_long(words: &str) -> bool {
    let lower = words.to_lowercase();
    [
        "context_length",
        "context length",
        "maximum context",
        "context size",
        "context window",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// Tells the user that a member answers without tools.
pub(crate) fn no_tools(seat: &SeatName, failure: &Failure) -> String {
    let why = &failure.message;
    format!("{seat} answers without reading files: its model takes no tools ({why})")
}
