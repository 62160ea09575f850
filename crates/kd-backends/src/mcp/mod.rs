//! A client for MCP servers, over HTTP and over stdin and stdout of a program.
//!
//! Input: a method and its parameters. Output: its result as JSON. Everything the server sends is data: its size and
//! time are limited, its own requests are not carried out, and nothing it says starts or contacts anything else.

pub(crate) mod http;
pub(crate) mod program;

use kd_core::clean::{clean_line, clean_text};
use kd_core::{Failure, FailureKind};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Maximum bytes of one answer.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum time for one call, however slowly the answer arrives.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(30);
/// The MCP version that is used.
const PROTOCOL: &str = "2025-06-18";
/// Maximum characters of a server's error message.
const ERROR_CHARS: usize = 300;

/// Describes the server, for error messages.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The description for errors: `the server `wiki``.
    pub(crate) what: String,
    /// The section of its settings.
    pub(crate) setting: String,
    /// Help text if the token is rejected.
    pub(crate) on_auth: String,
    /// Help text if an answer is too long.
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
        self.failure(FailureKind::Decode, "does not answer like an MCP server")
    }

    pub(crate) fn too_late(&self, limit: Duration) -> Failure {
        let what = format!("did not answer within {} s", limit.as_secs_f32());
        self.failure(FailureKind::Timeout, &what)
    }

    /// Returns the result of a message, or the error it contains.
    fn result(&self, mut message: Value) -> Result<Value, Failure> {
        if let Some(error) = message.get("error") {
            let said = error["message"].as_str().unwrap_or("an error");
            let said = clean_line(said, ERROR_CHARS);
            return Err(self.failure(FailureKind::Refused, &format!("refuses: {said}")));
        }
        Ok(message["result"].take())
    }
}

/// Builds a request with this id.
fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Builds the parameters of `initialize`: this client offers the server no capabilities.
fn greeting() -> Value {
    let client = json!({"name": "kd", "version": env!("CARGO_PKG_VERSION")});
    json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client})
}

/// Builds the notification after `initialize`.
fn greeted() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// Returns whether this is the response to a request. The server's own requests have separate ids.
fn answers(message: &Value, id: u64) -> bool {
    message["id"] == id && message.get("method").is_none()
}

/// Removes control characters from all texts and names in the JSON.
pub(crate) fn cleaned(value: Value) -> Value {
    each_text(value, &|text| clean_text(text).into_owned())
}

/// Removes a secret from all texts and names in the JSON: a server that repeats its key would leak it to readers of the
/// answer. Call [`cleaned`] first: a control character inside the secret would hide it.
pub(crate) fn without(value: Value, secret: &str) -> Value {
    match secret {
        "" => value,
        secret => each_text(value, &|text| text.replace(secret, "[token]")),
    }
}

/// Applies a function to each text and name in the JSON.
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
