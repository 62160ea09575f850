//! What `kd serve` offers to those who run it, and its limits, through the real program: health, metrics, sizes.

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use support::Home;
use support::served::{Served, bearer, user};

fn council() -> Home {
    let said = |text: &str| json!({"runs": [[{"text": text}]]});
    let failure = json!({"kind": "auth", "message": "the key was refused"});
    Home::scripted(&[
        ("ann", said("Spaces.")),
        ("eve", json!({"runs": [[{"fail": failure}]]})),
    ])
}

/// Sends bytes, and returns what comes back until the connection is closed.
fn raw(served: &Served, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(served.address()).expect("it listens");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn health_needs_no_token_and_metrics_do() {
    let home = council();
    let served = Served::models(&home);
    let get = |path: &str, headers: &str| served.send("GET", path, headers, &Value::Null);
    assert_eq!(get("/healthz", ""), (200, "ok\n".to_owned()));
    assert_eq!(
        served.send("POST", "/healthz", &bearer(), &Value::Null).0,
        405
    );
    assert_eq!(served.send("POST", "/healthz", "", &Value::Null).0, 401);
    assert_eq!(get("/healthz", "Origin: http://evil.example\r\n").0, 403);
    assert_eq!(get("/metrics", "").0, 401);
    let ask = |model: &str| {
        served
            .chat(&json!({"model": model, "messages": [user("Tabs or spaces?")]}))
            .0
    };
    assert_eq!(
        (ask("kd/ask:ann"), ask("kd/ask:ann,eve"), ask("kd/ask:eve")),
        (200, 200, 502)
    );
    let (status, text) = get("/metrics", &bearer());
    assert_eq!(status, 200);
    for line in [
        "kd_councils_total{outcome=\"complete\"} 1",
        "kd_councils_total{outcome=\"partial\"} 1",
        "kd_councils_total{outcome=\"failed\"} 1",
        "kd_councils_running 0",
        "kd_http_requests_total{status=\"401\"} 2",
        "kd_http_requests_total{status=\"502\"} 1",
        "kd_tokens_total{member=\"ann\",direction=\"output\"} ",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("Spaces"), "{text}");
}

#[test]
fn what_is_too_large_is_refused_and_the_server_goes_on() {
    let home = council();
    let served = Served::models(&home);
    let host = served.address();
    let head = |more: &str| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}{more}\r\n",
            bearer()
        )
    };
    let large = vec![b' '; (8 << 20) + 1];
    let answer = raw(
        &served,
        &head(&format!("Content-Length: {}\r\n", large.len())),
        &large,
    );
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413"),
        "{answer}"
    );
    let answer = raw(
        &served,
        &head(&format!("X-Large: {}\r\n", "x".repeat(80 << 10))),
        b"",
    );
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    let answer = raw(&served, &head(&many), b"");
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer}"
    );
    let deep = "[".repeat(100_000);
    let answer = raw(
        &served,
        &head(&format!("Content-Length: {}\r\n", deep.len())),
        deep.as_bytes(),
    );
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(served.send("GET", "/healthz", "", &Value::Null).0, 200);
    assert_eq!(home.threads().len(), 0, "nobody was asked");
}
