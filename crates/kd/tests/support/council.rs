//! A council whose members are asked over HTTP at a service on loopback. Where a request asks for an answer in a form, the
//! service replies in that form, in pieces, as real services do: reviews, votes and the conclusion of a deliberation are
//! then JSON.

use super::Home;
use serde_json::{Map, Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The members, by the names of their models, and their answers.
pub(crate) const ANSWERS: &[(&str, &str)] = &[
    ("ann", "Spaces: they look the same in every editor."),
    ("bob", "Tabs, because each reader chooses their width."),
    ("cyd", "Either one, as long as a tool decides."),
];

/// Starts the service, and returns a home whose members it answers for. It ends with the test.
pub(crate) fn served() -> Home {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it listens");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    let names: Vec<&str> = ANSWERS.iter().map(|(name, _)| *name).collect();
    let agents = names.iter().map(|name| {
        let agent = json!({"backend": "svc", "model": name});
        ((*name).to_owned(), agent)
    });
    Home::new(&json!({
        "agents": agents.collect::<Map<_, _>>(),
        "council": {"members": names},
        "providers": {"svc": {"wire": "openai", "base_url": url}},
        "serve": {"models": {"vote": {"method": "deliberate", "protocol": "sample-vote", "preset": "small"}}},
    }))
}

/// Reads a request; `None` if it ended early.
fn request(stream: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let n = stream.read(&mut piece).ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&piece[..n]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length:").nth(1)?.lines().next()?;
        if body.len() >= length.trim().parse().ok()? {
            return serde_json::from_str(body).ok();
        }
    }
}

fn answer(mut stream: TcpStream) {
    let Some(request) = request(&mut stream) else {
        return;
    };
    let schema = &request["response_format"]["json_schema"]["schema"];
    let text = match schema.is_object() {
        true => instance(schema).to_string(),
        false => {
            let mut of = ANSWERS.iter().filter(|(name, _)| request["model"] == *name);
            of.next().map_or("?", |(_, text)| text).to_owned()
        }
    };
    let data = |value: Value| format!("data: {value}\n\n");
    let mut body = String::new();
    for word in text.split_inclusive(' ') {
        body += &data(json!({"choices": [{"index": 0, "delta": {"content": word}}]}));
    }
    body += &data(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    body += &data(json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}));
    body += "data: [DONE]\n\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes());
}

/// Returns the simplest value of a schema.
fn instance(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, of)| (name.clone(), instance(of)));
            Value::Object(fields.collect())
        }
        Some("array") => json!([instance(&schema["items"])]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(false),
        _ => json!("Let a tool decide."),
    }
}
