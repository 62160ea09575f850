//! The server's replies: a script of replies, each a status or a stream of steps.

use crate::wire::Wire;
use std::sync::Arc;
use std::time::Duration;

/// A step of a streaming reply.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends a piece of the answer.
    Text(String),
    /// Sends a piece of thinking.
    Thinking(String),
    /// Calls a tool of this name with this input, which ends the answer.
    Tool(String, serde_json::Value),
    /// Calls tools of these names with these arguments, which may be no JSON, all at once. Ends the answer.
    Calls(Vec<(String, String)>),
    /// Sends these bytes unchanged.
    Raw(Arc<[u8]>),
    /// Sends these bytes unchanged, including the frames of the chunked coding.
    Framed(Arc<[u8]>),
    /// Waits.
    Pause(Duration),
    /// Waits until the given time after the request: a pace that does not drift.
    Until(Duration),
    /// Ends the answer as the wire format requires: reason, usage, end marker.
    End,
    /// Ends it because the token limit was reached.
    EndAtLength,
    /// Reports in the stream that the service is overloaded, then closes it properly.
    Overloaded,
    /// Ends it because the provider declines.
    Refuse,
    /// Closes the connection in the middle of the body.
    Cut,
    /// Sends nothing more until the client disconnects.
    Stall,
}

/// The reply to one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A status with headers and a body (`None` is the wire format's own error body).
    Status {
        /// The status code.
        code: u16,
        /// Further headers.
        headers: Vec<(String, String)>,
        /// The body.
        body: Option<String>,
    },
    /// A stream of events.
    Stream(Vec<Step>),
    /// A complete body with `200` and this content type, for servers that ignore `stream`.
    Body {
        /// The content type.
        mime: String,
        /// The body.
        body: Arc<[u8]>,
    },
    /// Sends nothing, not even a status, until the client disconnects.
    Silence,
    /// Closes the connection before any status.
    Hangup,
}

impl Reply {
    /// Builds a normal answer in these pieces.
    pub fn words(pieces: &[&str]) -> Self {
        let mut steps: Vec<Step> = pieces.iter().map(|p| Step::Text((*p).to_owned())).collect();
        steps.push(Step::End);
        Reply::Stream(steps)
    }

    /// Builds an error status.
    pub fn status(code: u16) -> Self {
        Reply::Status {
            code,
            headers: Vec::new(),
            body: None,
        }
    }

    /// Builds an error status with one header.
    pub fn status_with(code: u16, header: &str, value: &str) -> Self {
        Reply::Status {
            code,
            headers: vec![(header.to_owned(), value.to_owned())],
            body: None,
        }
    }

    /// Builds `tokens` pieces at once, rendered in advance: the server costs almost nothing in benchmarks.
    pub fn flood(wire: Wire, tokens: usize) -> Self {
        let mut bytes = wire.opening();
        for _ in 0..tokens {
            bytes.push_str(&wire.text(" token"));
        }
        bytes.push_str(&wire.ending(false, ""));
        Reply::Stream(vec![Step::Raw(bytes.into_bytes().into())])
    }

    /// Like [`Reply::flood`], but each event is a separate chunk, as services send them.
    pub fn burst(wire: Wire, tokens: usize) -> Self {
        let mut bytes = String::new();
        let events = std::iter::once(wire.opening())
            .chain(std::iter::repeat_n(wire.text(" token"), tokens))
            .chain(std::iter::once(wire.ending(false, "")));
        for event in events.filter(|e| !e.is_empty()) {
            bytes.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
        }
        Reply::Stream(vec![Step::Framed(bytes.into_bytes().into())])
    }

    /// Builds `tokens` pieces: the first comes `first` after the request, each further one `every` later. Does not
    /// drift.
    pub fn steady(tokens: u32, first: Duration, every: Duration) -> Self {
        let mut steps = Vec::new();
        for token in 0..tokens {
            steps.push(Step::Until(first + every * token));
            steps.push(Step::Text(" token".into()));
        }
        steps.push(Step::End);
        Reply::Stream(steps)
    }

    /// Builds `tokens` pieces with a pause before each.
    pub fn paced(tokens: usize, pause: Duration) -> Self {
        let mut steps = Vec::with_capacity(tokens * 2 + 1);
        for _ in 0..tokens {
            steps.push(Step::Pause(pause));
            steps.push(Step::Text(" token".into()));
        }
        steps.push(Step::End);
        Reply::Stream(steps)
    }
}

/// Replies in the order of the requests; the last one repeats.
#[derive(Clone, Debug)]
pub struct Script {
    /// The server's wire format.
    pub wire: Wire,
    /// The replies; empty means `500`.
    pub replies: Vec<Reply>,
}

impl Script {
    /// Gives the same reply to every request.
    pub fn always(wire: Wire, reply: Reply) -> Self {
        Self {
            wire,
            replies: vec![reply],
        }
    }

    /// Gives these replies in order; the last one repeats.
    pub fn then(wire: Wire, replies: Vec<Reply>) -> Self {
        Self { wire, replies }
    }
}
