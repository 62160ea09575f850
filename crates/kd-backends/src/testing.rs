//! Helpers for this crate's unit tests.

use crate::Backend;
use futures::StreamExt;
use kd_core::request::Deadlines;
use kd_core::{Delta, Failure, Prompt, Request, Sampling, SeatName};

/// Builds a request whose history is this question.
pub(crate) fn request(question: &str) -> Request {
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: SeatName::new("ada").unwrap(),
        prompt: Prompt {
            history: question.into(),
            ..Prompt::default()
        },
        sampling: Sampling::default(),
        schema: None,
        deadlines: Deadlines::default(),
        writable: false,
        tools: None,
    }
}

/// Runs a request to its end; returns the final text, and the last delta or the failure.
pub(crate) async fn run(
    backend: &dyn Backend,
    request: Request,
) -> (String, Result<Delta, Failure>) {
    let mut deltas = backend.ask(request);
    let mut text = String::new();
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text { text: piece }) => text.push_str(&piece),
            Ok(Delta::Retrying { .. }) => text.clear(),
            Ok(end @ Delta::Finished { .. }) => return (text, Ok(end)),
            Ok(_) => {}
            Err(failure) => return (text, Err(failure)),
        }
    }
    panic!("the stream ended with neither Finished nor Err, after {text:?}");
}
