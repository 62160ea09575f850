//! The programs of this crate. Scripts in `tests/` run them after `cargo test`, which builds them for this test.
#![allow(missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts `kd-fake` with these arguments, sends one request, and returns its answer up to the line that contains `last`.
fn answer(args: &[&str], path: &str, last: &str) -> String {
    let mut server = Command::new(env!("CARGO_BIN_EXE_kd-fake"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("kd-fake starts");
    let mut url = String::new();
    BufReader::new(server.stdout.take().expect("piped"))
        .read_line(&mut url)
        .expect("an address");
    let host = url.trim().strip_prefix("http://").expect("http");
    let mut stream = TcpStream::connect(host).expect("it listens");
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Which?"}]}"#;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    // The connection stays open.
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("set");
    let mut answer = String::new();
    let mut lines = BufReader::new(stream);
    while !answer.lines().any(|line| line.contains(last)) {
        let read = lines.read_line(&mut answer).expect("the last line");
        assert!(read > 0, "{answer}");
    }
    drop(server.stdin.take());
    assert!(server.wait().expect("it ends").success());
    answer
}

#[test]
fn kd_fake_serves_a_wire_until_its_stdin_ends() {
    let said = answer(&["openai", "3"], "/v1/chat/completions", "[DONE]");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[test]
fn kd_fake_serves_the_cases_of_agent_programs() {
    answer(&["models"], "/500.claude-1/v1/messages", "HTTP/1.1 500");
}

#[test]
fn kd_fake_shows_its_usage() {
    for args in [
        &[][..],
        &["telnet"],
        &["openai"],
        &["openai", "many"],
        &["openai", "3", "long"],
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_kd-fake"))
            .args(args)
            .output()
            .expect("kd-fake starts");
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).starts_with("usage: kd-fake "));
    }
}

#[test]
fn fake_agent_plays_its_script() {
    let dir = std::env::temp_dir().join(format!("kd-fake-programs-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("made");
    let script = dir.join("script");
    std::fs::write(&script, r#"[{"print": "hello"}, {"exit": 7}]"#).expect("written");
    let ran = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
        .arg("--script")
        .arg(&script)
        .output()
        .expect("fake-agent starts");
    std::fs::remove_dir_all(&dir).expect("removed");
    assert_eq!(ran.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "hello");
}
