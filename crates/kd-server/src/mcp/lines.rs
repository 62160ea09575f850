//! Limits the line length of MCP over stdio.
//!
//! The SDK silently drops a line that is too long, and its caller waits forever. [`Lines`] replaces it by a short
//! message with the same ID, so that the call is answered with an error. The same is done with a call whose `params` are
//! no object and no list: the SDK answers it without its ID.

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Maximum bytes of a message, as over HTTP.
pub(crate) const LINE_BYTES_MAX: usize = 8 << 20;
/// The method of the message that replaces a long one.
pub(crate) const TOO_LONG: &str = "kd/too-long";
/// The method of the message that replaces one whose parameters are no object.
pub(crate) const BAD_PARAMS: &str = "kd/bad-params";
/// What is wrong with such a message.
pub(crate) const PARAMS_WRONG: &str = "`params` must be an object";
/// JSON that is not a message: the SDK answers it as an invalid request without an ID.
const NO_MESSAGE: &str = r#"{"jsonrpc":"2.0"}"#;
/// Bytes per read.
const CHUNK: usize = 16 << 10;
/// Maximum bytes of a message ID.
const ID_BYTES_MAX: usize = 128;

/// A reader with limited line length.
pub(crate) struct Lines<R> {
    inner: R,
    max: usize,
    /// The line so far, while short enough.
    line: Vec<u8>,
    /// Scans the line for its ID.
    id: IdScan,
    /// Whether the line is too long: its rest is dropped.
    long: bool,
    /// Bytes ready to be read, starting at `at`.
    ready: Vec<u8>,
    at: usize,
    /// Whether a message has been passed on: only then may a long one be replaced.
    greeted: bool,
}

impl<R> Lines<R> {
    pub(crate) fn new(inner: R, max: usize) -> Self {
        Self {
            inner,
            max,
            line: Vec::new(),
            id: IdScan::default(),
            long: false,
            ready: Vec::new(),
            at: 0,
            greeted: false,
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|b| *b == b'\n') {
            self.id.scan(piece);
            if !self.long && self.line.len() + piece.len() <= self.max {
                self.line.extend_from_slice(piece);
            } else {
                self.long = true;
                self.line = Vec::new();
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// Lets a message be replaced even if it is the first.
    pub(crate) fn replacing_the_first(self) -> Self {
        Self {
            greeted: true,
            ..self
        }
    }

    /// Returns whether the line is neither blank nor JSON.
    fn is_text(&self) -> bool {
        !self.line.trim_ascii().is_empty()
            && serde_json::from_slice::<IgnoredAny>(&self.line).is_err()
    }

    /// Passes on a message with another method, under the ID of a line.
    fn replace(&mut self, id: Option<serde_json::Value>, method: &str) {
        let message = match id.filter(|_| self.greeted) {
            Some(id) => {
                serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string()
            }
            None => NO_MESSAGE.to_owned(),
        };
        self.ready.extend_from_slice(message.as_bytes());
        self.ready.push(b'\n');
    }

    fn end_line(&mut self) {
        let id = std::mem::take(&mut self.id).found();
        if std::mem::take(&mut self.long) {
            self.replace(id, TOO_LONG);
        } else if let Some(id) = id
            && has_bad_params(&self.line)
        {
            self.line.clear();
            self.replace(Some(id), BAD_PARAMS);
        } else if self.is_text() {
            // The SDK silently skips lines that are not JSON.
            self.line.clear();
            self.ready.extend_from_slice(NO_MESSAGE.as_bytes());
            self.ready.push(b'\n');
        } else {
            self.greeted |= !self.line.trim_ascii().is_empty();
            self.ready.append(&mut self.line);
        }
    }
}

/// Returns whether a message is a call whose parameters are no object, no list and not `null`.
fn has_bad_params(message: &[u8]) -> bool {
    serde_json::from_slice::<Called>(message).is_ok_and(|called| !called.params.0)
}

/// Returns the ID of a call whose parameters cannot be any.
pub(crate) fn with_bad_params(message: &[u8]) -> Option<serde_json::Value> {
    let mut id = IdScan::default();
    id.scan(message);
    id.found().filter(|_| has_bad_params(message))
}

/// A call, as far as its parameters tell.
#[derive(Deserialize)]
struct Called {
    #[serde(rename = "method")]
    _method: IgnoredAny,
    params: Params,
}

/// Whether parameters have a form that a call may have.
struct Params(bool);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Params(false))
    }
}

impl<'de> Visitor<'de> for Params {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Params(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Params, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Params(true))
    }

    fn visit_unit<E>(self) -> Result<Params, E> {
        Ok(Params(true))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Params, E> {
        Ok(Params(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Params, E> {
        Ok(Params(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Params, E> {
        Ok(Params(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Params, E> {
        Ok(Params(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Params, E> {
        Ok(Params(false))
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.at == this.ready.len() {
            this.ready.clear();
            this.at = 0;
            let mut bytes = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut bytes);
            std::task::ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.take(chunk.filled());
        }
        let some = (this.ready.len() - this.at).min(out.remaining());
        out.put_slice(&this.ready[this.at..this.at + some]);
        this.at += some;
        Poll::Ready(Ok(()))
    }
}

/// Finds the value of the key `id` in an object that arrives byte by byte, in bounded memory.
#[derive(Default)]
struct IdScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last string or other token at the top level, truncated at the limit.
    token: Vec<u8>,
    /// Whether the string before the last colon was `id`: the next token is its value.
    is_id: bool,
    id: Option<serde_json::Value>,
}

impl IdScan {
    fn scan(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.push(b);
        }
    }

    fn push(&mut self, b: u8) {
        if self.in_string {
            self.keep(b);
            match b {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match b {
            b'"' => {
                self.in_string = true;
                self.start();
                self.keep(b);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.start();
                self.is_id = false;
            }
            b':' if self.depth == 1 => {
                self.is_id = self.token == b"\"id\"";
                self.token.clear();
            }
            b',' | b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                if b != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
            }
            b if b.is_ascii_whitespace() => {}
            b => self.keep(b),
        }
    }

    fn start(&mut self) {
        if self.depth <= 1 {
            self.token.clear();
        }
    }

    fn keep(&mut self, b: u8) {
        if self.depth == 1 && self.token.len() <= ID_BYTES_MAX {
            self.token.push(b);
        }
    }

    fn end_value(&mut self) {
        if std::mem::take(&mut self.is_id) && self.token.len() <= ID_BYTES_MAX {
            let value = serde_json::from_slice::<serde_json::Value>(&self.token).ok();
            self.id = value.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
        }
        self.token.clear();
    }

    fn found(self) -> Option<serde_json::Value> {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(text: &str, max: usize) -> String {
        let mut out = String::new();
        let mut lines = Lines::new(text.as_bytes(), max);
        lines.read_to_string(&mut out).await.unwrap();
        out
    }

    #[tokio::test]
    async fn a_long_line_is_replaced_and_the_next_comes_through() {
        let hello = "{\"id\":0}\n";
        let long = "x".repeat(100_000);
        for (head, tail, id) in [
            (r#"{"id":7,"params":""#, "\"}", "7"),
            (
                r#"{"params":[{"id":1,"x":""#,
                r#""}],"id":"a\"b"}"#,
                r#""a\"b""#,
            ),
            (
                r#"{"method":"id","params":{"id":3,"q":""#,
                "\"} , \"id\" : -4 }",
                "-4",
            ),
        ] {
            let said = read(&format!("{hello}{head}{long}{tail}\n{hello}"), 1000).await;
            let expected = format!(
                "{hello}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{TOO_LONG}\"}}\n{hello}"
            );
            assert_eq!(said, expected, "{head}");
        }
        for bad in [
            format!("{long}\n"),
            format!("{{\"id\":[1],\"x\":\"{long}\"}}\n"),
            format!("{{\"x\":\"{long}\",\"id\":\"{long}\"}}\n"),
            format!("{{\"x\":\"\\\"id\\\":5,{long}\"}}\n"),
        ] {
            let said = read(&format!("{hello}{bad}{hello}"), 1000).await;
            assert_eq!(said, format!("{hello}{{\"jsonrpc\":\"2.0\"}}\n{hello}"));
        }
        for bad in ["{bad", "hello", "{\"id\":1} x", "\u{feff}{}"] {
            let said = read(&format!("{hello}\n{bad}\n{hello}"), 1000).await;
            assert_eq!(said, format!("{hello}\n{NO_MESSAGE}\n{hello}"), "{bad}");
        }
        // Nothing may precede the handshake.
        let said = read(&format!("{{\"id\":1,\"x\":\"{long}\"}}\n{hello}"), 1000).await;
        assert_eq!(said, format!("{{\"jsonrpc\":\"2.0\"}}\n{hello}"));
        assert_eq!(read(&hello.repeat(50), 1000).await, hello.repeat(50));
    }

    #[tokio::test]
    async fn a_call_with_parameters_of_no_form_is_replaced_under_its_id() {
        let hello = "{\"id\":0}\n";
        for params in ["7", "-1", "0.5", "\"x\"", "true"] {
            for (id, replaced) in [("3", true), ("\"a\"", true), ("null", false)] {
                let call = format!("{{\"id\":{id},\"method\":\"x\",\"params\":{params}}}\n");
                let other =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{BAD_PARAMS}\"}}\n");
                let passed = if replaced { &other } else { &call };
                let said = read(&format!("{hello}{call}"), 1000).await;
                assert_eq!(said, format!("{hello}{passed}"));
                let first = Lines::new(call.as_bytes(), 1000).replacing_the_first();
                let mut said = String::new();
                { first }.read_to_string(&mut said).await.unwrap();
                assert_eq!(said, *passed);
                let found = with_bad_params(call.as_bytes());
                assert_eq!(
                    found.map(|id| id.to_string()),
                    replaced.then(|| id.to_owned())
                );
            }
        }
        for sound in [
            "{\"id\":1,\"method\":\"x\"}\n",
            "{\"id\":1,\"method\":\"x\",\"params\":null}\n",
            "{\"id\":1,\"method\":\"x\",\"params\":{\"a\":1}}\n",
            "{\"id\":1,\"method\":\"x\",\"params\":[2]}\n",
            "{\"method\":\"note\",\"params\":7}\n",
            "{\"id\":1,\"result\":7}\n",
        ] {
            assert_eq!(
                read(&format!("{hello}{sound}"), 1000).await,
                format!("{hello}{sound}")
            );
        }
    }

    #[tokio::test]
    async fn a_line_without_an_end_takes_no_more_memory_than_the_bound() {
        let endless = tokio::io::repeat(b'x').take(50 << 20);
        let mut lines = Lines::new(endless, LINE_BYTES_MAX);
        let mut out = Vec::new();
        lines.read_to_end(&mut out).await.unwrap();
        assert!(out.is_empty() && lines.line.capacity() == 0 && lines.id.token.len() < 200);
    }
}
