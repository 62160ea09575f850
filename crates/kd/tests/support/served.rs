//! A running `kd serve`, and hand-written requests to it.

use super::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

pub(crate) const TOKEN: &str = "0123456789abcdef";

/// A running `kd serve`.
pub(crate) struct Served {
    pub(crate) child: Child,
    /// Its addresses, one per line.
    pub(crate) urls: Vec<String>,
}

impl Served {
    pub(crate) fn start(home: &Home, args: &[&str], lines: usize) -> Self {
        Self::start_at(home, "127.0.0.1:0", args, lines)
    }

    /// Starts it on an address.
    pub(crate) fn start_at(home: &Home, listen: &str, args: &[&str], lines: usize) -> Self {
        let mut command = home.kd(&[&["serve", "--listen", listen], args].concat());
        command.env("KD_SERVE_TOKEN", TOKEN).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let out = BufReader::new(child.stdout.as_mut().expect("piped"));
        let urls = out.lines().take(lines).map(|line| line.expect("a line"));
        let urls = urls.collect();
        Self { child, urls }
    }

    pub(crate) fn models(home: &Home) -> Self {
        Self::start(home, &["--models"], 1)
    }

    pub(crate) fn address(&self) -> &str {
        let url = self.urls[0].strip_prefix("http://").expect("http");
        url.split('/').next().expect("an address")
    }

    /// Opens a request.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &str, body: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).expect("it listens");
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address(),
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    /// Returns the status and body of a response.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &Value,
    ) -> (u16, String) {
        let mut text = String::new();
        let mut stream = self.open(method, path, headers, body);
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).expect("a status");
        let body = text.split_once("\r\n\r\n").expect("a body").1;
        (status.parse().expect("a number"), body.to_owned())
    }

    pub(crate) fn chat(&self, body: &Value) -> (u16, Value) {
        let (status, text) = self.send("POST", "/v1/chat/completions", &bearer(), body);
        (status, serde_json::from_str(&text).expect("JSON"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

/// Returns the named events of a stream; each name is also in its data.
pub(crate) fn named(text: &str) -> Vec<Value> {
    let mut lines = text.lines();
    let mut events = Vec::new();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("event: ") else {
            continue;
        };
        let data = lines.next().and_then(|line| line.strip_prefix("data: "));
        let data: Value = serde_json::from_str(data.expect("data")).expect("JSON");
        assert_eq!(data["type"], name, "{text}");
        events.push(data);
    }
    events
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Returns the objects of an event stream, without the required end marker.
pub(crate) fn events(text: &str) -> Vec<Value> {
    // The body is in HTTP chunks; its data lines are complete.
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut data: Vec<&str> = data.collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}
