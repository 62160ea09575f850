//! A client of MCP servers: over HTTP, and as a program on stdin and stdout.
//!
//! Input: a method and its parameters. Output: its result as JSON. What the other side sends is data: its size and time are
//! bounded, requests of its own are not carried out, and nothing that it says starts or reaches anything else.

pub(crate) mod http;
pub(crate) mod program;

use kd_core::clean::{clean_line, clean_text};
use kd_core::{Failure, FailureKind};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Maximum bytes of one answer.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum time for one call, however slowly the answer comes.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(30);
/// The version of the protocol that is spoken.
const PROTOCOL: &str = "2025-06-18";
/// Maximum characters of what the other side says about an error.
const ERROR_CHARS: usize = 300;

/// The other side, for errors.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// What it is: `the server `wiki``.
    pub(crate) what: String,
    /// The section of its settings.
    pub(crate) setting: String,
    /// What to do where the token is not accepted.
    pub(crate) on_auth: String,
    /// What to do where an answer is too long.
    pub(crate) on_size: String,
}

impl Peer {
    pub(crate) fn failure(&self, kind: FailureKind, what: &str) -> Failure {
        Failure::new(kind, format!("{} {what}", self.what))
    }

    fn too_long(&self) -> Failure {
        let what = format!("sends more than {} MiB", ANSWER_BYTES_MAX >> 20);
        self.failure(FailureKind::Decode, &what)
            .advise(self.on_size.clone())
    }

    fn not_mcp(&self) -> Failure {
        self.failure(FailureKind::Decode, "does not answer as an MCP server does")
    }

    pub(crate) fn too_late(&self, limit: Duration) -> Failure {
        let what = format!("did not answer within {} s", limit.as_secs_f32());
        self.failure(FailureKind::Timeout, &what)
    }

    /// The result of a message, or the error that it holds.
    fn result(&self, mut message: Value) -> Result<Value, Failure> {
        if let Some(error) = message.get("error") {
            let said = error["message"].as_str().unwrap_or("an error");
            let said = clean_line(said, ERROR_CHARS);
            return Err(self.failure(FailureKind::Refused, &format!("refuses: {said}")));
        }
        Ok(message["result"].take())
    }
}

/// A request with its number.
fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The parameters of the greeting: this client can do nothing for a server.
fn greeting() -> Value {
    let client = json!({"name": "kd", "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
}

/// The notice after the greeting.
fn greeted() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// Whether this is the answer to a request. A request of the other side has numbers of its own.
fn answers(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

/// The same JSON without control characters in texts and names.
pub(crate) fn cleaned(value: Value) -> Value {
    each_text(value, &|text| clean_text(text).into_owned())
}

/// The same JSON without a secret, in texts and names: a server that repeats its key would hand it on to whoever reads the
/// answer. Clean it first: a character in the middle of the secret would hide it.
pub(crate) fn without(value: Value, secret: &str) -> Value {
    match secret {
        "" => value,
        secret => each_text(value, &|text| text.replace(secret, "[token]")),
    }
}

/// The same JSON with each text and name changed so.
pub(crate) fn each_text(value: Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(&text).into(),
        Value::Array(items) => items.into_iter().map(|v| each_text(v, change)).collect(),
        Value::Object(fields) => {
            let one = |(name, value): (String, Value)| (change(&name), each_text(value, change));
            Value::Object(fields.into_iter().map(one).collect::<Map<_, _>>())
        }
        other => other,
    }
}
