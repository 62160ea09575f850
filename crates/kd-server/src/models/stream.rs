//! An answer as a stream: its progress, its text as it arrives, and at the end the rest of the text.

use super::fault::Fault;
use super::kept::Held;
use super::{Call, Wire};
use crate::answer::{Answer, Told};
use crate::consult::Running;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use std::convert::Infallible;
use std::time::Duration;

/// Maximum silence of a stream: clients and proxies close silent ones.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Bytes of events from which on they are written, even if more are ready.
const TOGETHER_BYTES: usize = 16 << 10;

/// A stream in progress.
pub(super) struct Streamed {
    pub(super) call: Call,
    pub(super) wire: Box<dyn Wire>,
    pub(super) running: Running,
    /// The answer as sent.
    pub(super) sent: String,
    /// Whether that is void: the complete answer follows at the end.
    pub(super) void: bool,
    pub(super) over: bool,
    pub(super) held: Held,
}

impl Streamed {
    /// Returns the answer as server-sent events. When the client disconnects, the stream is dropped and the council
    /// interrupted.
    pub(super) fn response(mut self) -> Response {
        let begin = self.wire.begin(&self.call);
        let rest = stream::unfold(self, |mut state| async move {
            let events = state.next().await?;
            Some((events, state))
        });
        let events = stream::once(async move { begin }).chain(rest);
        let body = Body::from_stream(events.map(Ok::<_, Infallible>));
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (StatusCode::OK, headers, body).into_response()
    }

    /// Waits for the next event, and returns it with all other events that are ready: each result is written to the
    /// client separately. `None` after the last.
    async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        let told = tokio::time::timeout(SIGN_OF_LIFE, self.running.told.recv()).await;
        Some(match told {
            Err(_) => self.wire.quiet(&self.call),
            Ok(Some(told)) => {
                let mut events = self.events(told);
                while events.len() < TOGETHER_BYTES
                    && let Ok(more) = self.running.told.try_recv()
                {
                    events += &self.events(more);
                }
                events
            }
            Ok(None) => {
                self.over = true;
                self.last().await
            }
        })
    }

    /// Returns the events of a piece of progress.
    fn events(&mut self, told: Told) -> String {
        match told {
            Told::Void => {
                self.void |= !self.sent.is_empty();
                self.wire.quiet(&self.call)
            }
            Told::Text(_) if self.void => self.wire.quiet(&self.call),
            Told::Text(text) => {
                self.sent.push_str(&text);
                self.wire.text(&self.call, &text)
            }
            Told::Line(line) => self.wire.thought(&self.call, &format!("{line}\n")),
        }
    }

    /// Returns the text that remains to be sent at the end.
    async fn last(&mut self) -> String {
        let fault = match self.running.end().await {
            Ok(answer) if answer.is_answer() => return self.end(&answer),
            Ok(answer) => Fault::unanswered(&answer),
            Err(why) => Fault::from(why),
        };
        self.held.put_back();
        self.wire.fail(&self.call, &fault)
    }

    /// Returns the unsent rest of the answer and the ending.
    fn end(&mut self, answer: &Answer) -> String {
        let content = answer.content();
        let rest = match unsent(&content, &self.sent).filter(|_| !self.void) {
            Some(rest) => rest.to_owned(),
            // An attempt broke off after it had begun: the final answer follows.
            None => format!("\n\n*(interrupted; the answer:)*\n\n{content}"),
        };
        self.sent.push_str(&rest);
        let id = self.wire.goes_on_by(&self.call);
        self.held.remember(answer, &self.sent, id.as_deref());
        let mut out = String::new();
        if !rest.is_empty() {
            out += &self.wire.text(&self.call, &rest);
        }
        out += &self.wire.end(&self.call, answer, &self.sent);
        self.held
            .remember_items(self.wire.items(&self.call, answer));
        out
    }
}

/// Returns the rest of the answer after the sent text; `None` if the answer begins differently. White space at both
/// ends is removed from it, but not from the sent text.
fn unsent<'a>(answer: &'a str, sent: &str) -> Option<&'a str> {
    let (answer, sent) = (answer.trim_start(), sent.trim_start());
    let rest = answer.strip_prefix(sent);
    rest.or_else(|| answer.strip_prefix(sent.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_at_the_ends_of_streamed_text_do_not_repeat_the_answer() {
        for (answer, sent, rest) in [
            ("Go.", "Go", Some(".")),
            ("Go.", " Go.", Some("")),
            ("Go.", "\n Go.\n\n", Some("")),
            ("Go.\n\nNow.", "Go.\n", Some("\nNow.")),
            ("Go.\n\nNow.", " Go. ", Some("\n\nNow.")),
            ("Go.", "", Some("Go.")),
            ("Go.", " ", Some("Go.")),
            ("Go.", "Stay.", None),
        ] {
            assert_eq!(unsent(answer, sent), rest, "{answer:?} after {sent:?}");
        }
    }
}
