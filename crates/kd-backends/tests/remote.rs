//! Tests against a hostile or broken forum on another machine: the call fails in bounded time and memory, the token
//! goes to no other address, and the answer is treated as data.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use kd_backends::Env;
use kd_backends::remote::{ANSWER_BYTES_MAX, RemoteForum};
use kd_core::FailureKind;
use kd_core::config::RemoteConfig;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef-alice";

/// A server's response to a message: everything at once, or a stream that the closure writes until it fails.
type Answer = fn(&Value, &mut TcpStream, &str) -> std::io::Result<()>;

/// Requests as received: head and message.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

fn reply(stream: &mut TcpStream, head: &str, body: &str) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn result(message: &Value, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// Answers `initialize` like a real server.
fn greet(message: &Value, stream: &mut TcpStream) -> Option<std::io::Result<()>> {
    match message["method"].as_str()? {
        "initialize" => Some(reply(
            stream,
            "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1",
            &result(message, json!({})),
        )),
        "notifications/initialized" => Some(reply(stream, "202 Accepted", "")),
        _ => None,
    }
}

fn said(message: &Value, stream: &mut TcpStream, answer: &Value) -> std::io::Result<()> {
    let body = result(message, json!({"structuredContent": answer}));
    reply(stream, "200 OK\r\nContent-Type: application/json", &body)
}

/// Serves on loopback until the test ends; `other` is an address for redirects.
fn serve(answer: Answer, other: String) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let seen = Seen::default();
    let noted = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (noted, other) = (Arc::clone(&noted), other.clone());
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut head, mut line) = (String::new(), String::new());
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    head.push_str(&std::mem::take(&mut line));
                }
                let length = head.lines().find_map(|l| {
                    l.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                });
                let mut body = vec![0; length.unwrap_or(0)];
                reader.read_exact(&mut body).unwrap();
                let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                noted.lock().unwrap().push((head, message.clone()));
                let _ = answer(&message, &mut stream, &other);
            });
        }
    });
    (url, seen)
}

async fn open(url: &str) -> Result<RemoteForum, kd_core::Failure> {
    let config = RemoteConfig {
        url: Some(url.to_owned()),
        key_env: Some("LAB".into()),
        ..RemoteConfig::default()
    };
    RemoteForum::open("lab", &config, &Env::of([("LAB", TOKEN)])).await
}

#[tokio::test]
async fn a_forum_is_called_with_the_token_and_its_answer_is_clean() {
    let (url, seen) = serve(
        |message, stream, _| match greet(message, stream) {
            Some(done) => done,
            None => {
                let body = result(
                    message,
                    json!({"structuredContent": {"success": true, "a\u{1b}[2J": ["\u{1b}]0;x\u{7}b\u{202e}"]}}),
                );
                // A request of the server precedes it, with its own id.
                let events = format!(
                    ": hi\nid: 0\ndata:\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\n\ndata: {body}\n\n"
                );
                reply(stream, "200 OK\r\nContent-Type: text/event-stream", &events)
            }
        },
        String::new(),
    );
    let mut forum = open(&url).await.unwrap();
    let answer = forum.call("news", &json!({"limit": 3})).await.unwrap();
    assert_eq!(answer["success"], true);
    let text = answer.to_string();
    assert!(
        !text.contains('\u{1b}') && !text.contains("u001b") && text.contains('b'),
        "{text}"
    );
    let seen = seen.lock().unwrap();
    let methods: Vec<_> = seen
        .iter()
        .map(|(_, m)| m["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "tools/call"]
    );
    assert!(
        seen.iter()
            .all(|(head, _)| head.contains(&format!("Bearer {TOKEN}")))
    );
    assert!(
        seen[2].0.to_lowercase().contains("mcp-session-id: s1"),
        "{}",
        seen[2].0
    );
    assert_eq!(
        seen[2].1["params"],
        json!({"name": "news", "arguments": {"limit": 3}})
    );
    assert!(!format!("{forum:?}").contains(TOKEN));
}

#[tokio::test]
async fn no_hostile_answer_costs_more_than_its_bound() {
    let (other, strangers) = serve(|_, stream, _| reply(stream, "200 OK", "{}"), String::new());
    #[rustfmt::skip]
    let attacks: &[(&str, Answer, FailureKind)] = &[
        ("a huge body", |m, s, _| greet(m, s).unwrap_or_else(|| {
            let text = "x".repeat(ANSWER_BYTES_MAX + 1);
            said(m, s, &json!({"success": true, "text": text}))
        }), FailureKind::Decode),
        ("an endless stream", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
            loop { s.write_all(&[b'x'; 4096])?; }
        }), FailureKind::Decode),
        ("a stream in small pieces", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let pieces = "10\r\nxxxxxxxxxxxxxxxx\r\n".repeat(1_000);
            loop { s.write_all(pieces.as_bytes())?; }
        }), FailureKind::Decode),
        ("endless headers", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\n")?;
            loop { write!(s, "X: {}\r\n", "x".repeat(4_000))?; }
        }), FailureKind::Overloaded),
        ("endless events of others", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
            loop { s.write_all(b"data: {\"id\": 99, \"result\": {}}\n\n")?; }
        }), FailureKind::Decode),
        ("silence", |m, s, _| greet(m, s).unwrap_or_else(|| {
            s.read(&mut [0]).map(drop)
        }), FailureKind::Timeout),
        ("a drop now and then", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")?;
            loop { s.write_all(b" ")?; std::thread::yield_now(); std::thread::park_timeout(Duration::from_millis(20)); }
        }), FailureKind::Timeout),
        ("a redirect", |m, s, other| {
            let _ = m;
            reply(s, &format!("307 Temporary Redirect\r\nLocation: {other}"), "")
        }, FailureKind::Refused),
        ("a redirect of a call", |m, s, other| greet(m, s).unwrap_or_else(|| {
            reply(s, &format!("302 Found\r\nLocation: {other}"), "")
        }), FailureKind::Refused),
        ("no JSON", |m, s, _| greet(m, s).unwrap_or_else(|| reply(s, "200 OK", "<html>")), FailureKind::Decode),
        ("deep JSON", |m, s, _| greet(m, s).unwrap_or_else(|| reply(s, "200 OK", &"[".repeat(100_000))), FailureKind::Decode),
        ("deep JSON as text", |m, s, _| greet(m, s).unwrap_or_else(|| {
            let body = result(m, json!({"content": [{"type": "text", "text": "[".repeat(100_000)}]}));
            reply(s, "200 OK", &body)
        }), FailureKind::Decode),
        ("tools and requests that the server adds", |m, s, _| greet(m, s).unwrap_or_else(|| {
            let tools = json!({"tools": [{"name": "run_shell", "inputSchema": {"type": "object"}}]});
            let asks = json!({"jsonrpc": "2.0", "id": m["id"], "method": "sampling/createMessage", "params": {}});
            let body = format!("data: {asks}\n\ndata: {}\n\n", result(m, tools));
            reply(s, "200 OK\r\nContent-Type: text/event-stream", &body)
        }), FailureKind::Decode),
        ("another number", |m, s, _| greet(m, s).unwrap_or_else(|| {
            reply(s, "200 OK", &json!({"id": 77, "result": {"structuredContent": {"success": true}}}).to_string())
        }), FailureKind::Decode),
        ("no object", |m, s, _| greet(m, s).unwrap_or_else(|| said(m, s, &json!([1]))), FailureKind::Decode),
        ("no success", |m, s, _| greet(m, s).unwrap_or_else(|| said(m, s, &json!({"success": "yes"}))), FailureKind::Decode),
        ("an error with an escape", |m, s, _| greet(m, s).unwrap_or_else(|| {
            reply(s, "200 OK", &json!({"id": m["id"], "error": {"message": "\u{1b}[2J".repeat(9_000)}}).to_string())
        }), FailureKind::Refused),
        ("sessions that end", |m, s, _| greet(m, s).unwrap_or_else(|| reply(s, "404 Not Found", "")), FailureKind::Refused),
        ("nothing there", |_, s, _| reply(s, "404 Not Found", ""), FailureKind::Missing),
        ("no such token", |_, s, _| reply(s, "401 Unauthorized", ""), FailureKind::Auth),
        ("broken off", |m, s, _| greet(m, s).unwrap_or_else(|| {
            write!(s, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{{").map(drop)
        }), FailureKind::Overloaded),
        ("no HTTP", |_, s, _| s.write_all(b"hello\r\n"), FailureKind::Overloaded),
    ];
    for (name, attack, kind) in attacks {
        let (url, seen) = serve(*attack, other.clone());
        let mut forum = open(&url).await.unwrap();
        if *kind == FailureKind::Timeout {
            forum = forum.within(Duration::from_secs(1));
        }
        let arguments = json!({});
        let call = forum.call("list_threads", &arguments);
        // Without this limit a hanging call would wait forever.
        let bounded = tokio::time::timeout(Duration::from_secs(60), call).await;
        let why = bounded.expect(name).expect_err(name);
        assert_eq!(why.kind, *kind, "{name}: {why}");
        let told = why.to_string();
        assert!(
            told.len() < 1_000 && !told.contains('\u{1b}') && !told.contains(TOKEN),
            "{name}: {told}"
        );
        let seen = seen.lock().unwrap();
        let known = ["initialize", "notifications/initialized", "tools/call"];
        let asked =
            |(_, m): &(String, Value)| m["method"].as_str().is_some_and(|m| known.contains(&m));
        // An expired session is opened once more, and nothing else is requested.
        assert!(
            seen.len() <= 6 && seen.iter().all(asked),
            "{name}: {seen:?}"
        );
    }
    assert!(
        strangers.lock().unwrap().is_empty(),
        "no redirect is followed"
    );
}

#[tokio::test]
async fn a_token_goes_to_https_and_to_this_machine_alone() {
    for (url, safe) in [
        ("https://forum.example/mcp", true),
        ("http://127.0.0.1:7717/mcp", true),
        ("http://localhost:7717/mcp", true),
        ("http://[::1]:7717/mcp", true),
        ("http://forum.example/mcp", false),
        ("http://127.0.0.1.forum.example/mcp", false),
        ("http://localhost@forum.example/mcp", false),
        ("http://10.0.0.1/mcp", false),
        ("ftp://127.0.0.1/mcp", false),
        ("file:///etc/passwd", false),
        ("", false),
    ] {
        assert_eq!(open(url).await.is_ok(), safe, "{url}");
    }
    let config = RemoteConfig {
        url: Some("https://forum.example/mcp".into()),
        key_env: Some("LAB".into()),
        ..RemoteConfig::default()
    };
    let none = RemoteForum::open("lab", &config, &Env::of([("OTHER", "x")])).await;
    assert_eq!(none.unwrap_err().kind, FailureKind::Auth);
}

#[tokio::test]
async fn a_server_that_repeats_the_token_gets_it_to_nobody() {
    let (url, _) = serve(
        |message, stream, _| match greet(message, stream) {
            Some(done) => done,
            None if message["params"]["name"] == "news" => {
                let split = TOKEN.replace('-', "\u{0}-");
                let answer = json!({"success": true, TOKEN: [format!("Bearer {TOKEN}"), split]});
                said(message, stream, &answer)
            }
            None => {
                let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": 1, "message": format!("no {TOKEN}")}});
                reply(
                    stream,
                    "200 OK\r\nContent-Type: application/json",
                    &error.to_string(),
                )
            }
        },
        String::new(),
    );
    let mut forum = open(&url).await.unwrap();
    let answer = forum.call("news", &json!({})).await.unwrap().to_string();
    assert!(
        !answer.contains(TOKEN) && answer.matches("[token]").count() == 3,
        "{answer}"
    );
    let error = forum.call("read_log", &json!({})).await.unwrap_err();
    assert!(error.message.ends_with("no [token]"), "{error}");
}
