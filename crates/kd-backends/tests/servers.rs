//! Additional MCP servers of an agent: real programs and loopback addresses, honest and hostile. A call ends within its
//! limit with an answer that is data, or with a refusal that says what happened.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use kd_backends::Env;
use kd_backends::servers::{ANSWER_CHARS_MAX, Grant, NAME_MAX, Servers};
use kd_core::config::ServerConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "0123456789-of-the-wiki";

/// An MCP server as a Python program: `tools` and `call` are expressions, `m` is the message.
fn script(folder: &Path, before: &str, tools: &str, call: &str) -> Vec<String> {
    let file = folder.join("server.py");
    let text = format!(
        r#"
import json, os, sys, time, signal
def say(message):
    sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
{before}
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m or "method" not in m: continue
    if m["method"] == "initialize": r = {{"protocolVersion": "2025-06-18", "capabilities": {{}}, "serverInfo": {{"name": "t", "version": "1"}}}}
    elif m["method"] == "tools/list": r = {tools}
    else: r = {call}
    say({{"jsonrpc": "2.0", "id": m["id"], "result": r}})
"#
    );
    std::fs::write(&file, text).unwrap();
    vec![
        "python3".into(),
        "-I".into(),
        file.to_str().unwrap().to_owned(),
    ]
}

const TOOLS: &str = r#"{"tools": [
    {"name": "search", "description": "Finds \u001b[2J pages.", "inputSchema": {"type": "object", "$ref": "http://x", "properties": {"query": {"type": "string", "format": "x"}}, "required": ["query"]}},
    {"name": "delete", "inputSchema": {"type": "object"}}]}"#;
const ECHO: &str = r#"{"content": [{"type": "text", "text": json.dumps(m["params"])}]}"#;

fn env() -> Env {
    let path = std::env::var("PATH").unwrap();
    Env::of([
        ("PATH", path.as_str()),
        ("WIKI_KEY", KEY),
        ("OTHER_SECRET", "another-secret"),
    ])
}

fn config(command: Vec<String>, tools: &[&str]) -> ServerConfig {
    ServerConfig {
        command,
        env: vec!["WIKI_KEY".into()],
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        agents: vec!["ada".into()],
        ..ServerConfig::default()
    }
}

fn of(config: ServerConfig, agent: &str, folder: &Path) -> Servers {
    let all = BTreeMap::from([("wiki".to_owned(), config)]);
    Servers::new(Grant::all(&all, agent, &env()), folder)
}

#[tokio::test]
async fn the_allowed_tools_of_a_program_are_offered_and_called_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    // Lines that are not messages are skipped.
    let command = script(folder.path(), "print('Welcome!', flush=True)", TOOLS, ECHO);
    let mut servers = of(config(command, &["search"]), "ada", folder.path());
    let tools = servers.tools().await;
    assert_eq!(servers.faults(), []);
    assert_eq!(tools.len(), 1, "{tools:?}");
    assert_eq!(tools[0].name, "wiki__search");
    assert!(tools[0].doc.contains("pages.") && !tools[0].doc.contains('\u{1b}'));
    assert_eq!(
        tools[0].schema,
        json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]})
    );
    let called = servers
        .call("wiki__search", &json!({"query": "bees"}))
        .await;
    let called = called.unwrap();
    assert_eq!(
        (called.server.as_str(), called.tool.as_str()),
        ("wiki", "search")
    );
    assert_eq!(called.answer["success"], true, "{called:?}");
    let sent: Value = serde_json::from_str(called.answer["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        sent,
        json!({"name": "search", "arguments": {"query": "bees"}})
    );
    for refused in [
        "wiki__delete",
        "wiki__",
        "wiki__search__x",
        "wiki__run_shell",
    ] {
        assert!(servers.has(refused), "{refused}");
        let called = servers.call(refused, &json!({})).await.unwrap();
        assert_eq!(called.answer["success"], false, "{refused}: {called:?}");
        let why = called.answer["error"].as_str().unwrap();
        assert!(
            why.contains("is not allowed") && why.contains("wiki__search"),
            "{why}"
        );
    }
    for other in ["search", "read_thread", "other__search", "wik__search"] {
        assert!(servers.call(other, &json!({})).await.is_none(), "{other}");
    }
    // Another agent gets none of it.
    let other = config(script(folder.path(), "", TOOLS, ECHO), &["search"]);
    let mut other = of(other, "bob", folder.path());
    assert!(other.tools().await.is_empty() && !other.has("wiki__search"));
}

#[tokio::test]
async fn a_program_sees_only_what_was_named_and_its_key_is_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let call =
        r#"{"content": [{"type": "text", "text": json.dumps(dict(os.environ)) + os.getcwd()}]}"#;
    let tools = r#"{"tools": [{"name": "search", "description": "Key: " + os.environ["WIKI_KEY"], "inputSchema": {}}]}"#;
    let command = script(folder.path(), "", tools, call);
    let mut servers = of(config(command, &["search"]), "ada", folder.path());
    let tools = servers.tools().await;
    let answer = servers
        .call("wiki__search", &json!({}))
        .await
        .unwrap()
        .answer;
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains(r#""WIKI_KEY": "[key]""#), "{text}");
    assert!(
        !text.contains("OTHER_SECRET") && !text.contains("another-secret"),
        "{text}"
    );
    assert!(text.contains(folder.path().to_str().unwrap()), "{text}");
    assert!(!format!("{tools:?}{answer}").contains(KEY));
    let grants = Grant::all(
        &BTreeMap::from([(
            "wiki".to_owned(),
            config(vec!["python3".into()], &["search"]),
        )]),
        "ada",
        &env(),
    );
    assert!(!format!("{grants:?}").contains(KEY));
}

/// Actions of hostile programs, and the errors that the agent gets.
#[rustfmt::skip]
const HOSTILE: &[(&str, &str, &str, &str, &str)] = &[
    ("ends at once", "sys.exit(3)", TOOLS, ECHO, "exit code 3"),
    ("prints junk", "print('hello', flush=True); time.sleep(1e6)", TOOLS, ECHO, "no MCP message, and did not answer within"),
    ("never answers", "time.sleep(1e6)", TOOLS, ECHO, "did not answer within"),
    ("ignores signals", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1e6)", TOOLS, ECHO, "did not answer within"),
    ("writes for ever", "while True: sys.stdout.write('x' * 65536)", TOOLS, ECHO, "more than 1 MiB"),
    ("sends notices for ever", "while True: say({'method': 'x'})", TOOLS, ECHO, "more than 1 MiB"),
    ("answers others", "while True: say({'id': 99, 'result': {}}); time.sleep(0.1)", TOOLS, ECHO, "did not answer within"),
    ("lists no tools", "", "[1]", ECHO, "lists no tools"),
    ("lists for ever", "", r#"{"tools": [], "nextCursor": "again"}"#, ECHO, "has no tool `search`"),
    ("has other tools", "", r#"{"tools": [{"name": "run_shell"}]}"#, ECHO, "has no tool `search`"),
    ("dies in a call", "", TOOLS, "os._exit(4)", "exit code 4"),
    ("hangs in a call", "", TOOLS, "time.sleep(1e6)", "did not answer within"),
    ("answers with a number", "", TOOLS, "7", "does not answer like an MCP server"),
    ("answers with deep JSON", "", TOOLS, "(sys.stdout.write('[' * 100000 + '\\n'), sys.stdout.flush(), time.sleep(1e6))", "no MCP message, and did not answer within"),
    ("answers enormously", "", TOOLS, "{'content': [{'text': 'x' * (1 << 21)}]}", "more than 1 MiB"),
    ("says that it failed", "", TOOLS, "{'isError': True, 'content': [{'text': 'no \\u001b]0;x\\u0007page'}]}", "page"),
    ("asks for a model", "say({'jsonrpc': '2.0', 'id': 1, 'method': 'sampling/createMessage'})", TOOLS, "os._exit(5)", "exit code 5"),
];

#[tokio::test]
async fn no_hostile_program_costs_more_than_its_bound() {
    for (name, before, tools, call, told) in HOSTILE {
        let folder = tempfile::tempdir().unwrap();
        let command = script(folder.path(), before, tools, call);
        let slow = told.contains("within");
        let mut servers = of(config(command, &["search"]), "ada", folder.path());
        servers = servers.within(Duration::from_secs(if slow { 2 } else { 30 }));
        let offered = servers.tools();
        let offered = tokio::time::timeout(Duration::from_secs(60), offered).await;
        assert!(offered.expect(name).len() <= 1);
        let arguments = json!({});
        for _ in 0..2 {
            let call = servers.call("wiki__search", &arguments);
            let called = tokio::time::timeout(Duration::from_secs(60), call).await;
            let answer = called.expect(name).unwrap().answer;
            let why = answer["error"].as_str().unwrap_or_default();
            assert_eq!(answer["success"], false, "{name}: {answer}");
            assert!(why.contains(told), "{name}: {answer}");
            assert!(
                why.len() < 1_000 && !why.contains('\u{1b}'),
                "{name}: {why}"
            );
        }
    }
    // Including those that obey no signal.
    kd_backends::transport::process::settle(Duration::from_secs(20));
}

#[tokio::test]
async fn a_long_answer_is_cut_and_pictures_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let call = "{'content': [{'type': 'image', 'data': 'x'}, {'text': 'é' * 50000}]}";
    let command = script(folder.path(), "", TOOLS, call);
    let mut servers = of(config(command, &["search"]), "ada", folder.path());
    let answer = servers
        .call("wiki__search", &json!([]))
        .await
        .unwrap()
        .answer;
    let text = answer["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), ANSWER_CHARS_MAX);
    assert_eq!(answer["cut_after_characters"], ANSWER_CHARS_MAX);
    assert_eq!(answer["parts_without_text_left_out"], 1);
}

#[tokio::test]
async fn a_mistake_in_the_configuration_says_what_to_type() {
    let base = |tools: &[&str]| config(vec!["python3".into()], tools);
    let long = "x".repeat(NAME_MAX);
    let address = |url: &str| ServerConfig {
        command: Vec::new(),
        url: Some(url.into()),
        ..base(&["a"])
    };
    for (config, told) in [
        (base(&[]), "forum.servers.wiki.tools"),
        (
            ServerConfig {
                command: Vec::new(),
                ..base(&["a"])
            },
            "forum.servers.wiki.command",
        ),
        (
            ServerConfig {
                url: Some("https://wiki.example".into()),
                ..base(&["a"])
            },
            "set one of",
        ),
        (
            ServerConfig {
                command: vec!["./server".into()],
                ..base(&["a"])
            },
            "absolute path",
        ),
        (
            ServerConfig {
                command: vec!["no-such-program-here".into()],
                ..base(&["a"])
            },
            "is not found",
        ),
        (
            ServerConfig {
                key_env: Some("NOT_SET".into()),
                ..address("https://wiki.example")
            },
            "NOT_SET",
        ),
        (address("http://wiki.example/mcp"), "https"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut servers = of(config, "ada", folder.path());
        assert!(servers.tools().await.is_empty());
        let faults = servers.faults();
        assert!(
            faults.len() == 1 && faults[0].1.contains(told),
            "{faults:?}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let command = script(folder.path(), "", TOOLS, ECHO);
    let mut servers = of(
        config(command, &["search", "a b", &long, "gone"]),
        "ada",
        folder.path(),
    );
    assert_eq!(servers.tools().await.len(), 1);
    let faults: Vec<String> = servers.faults().into_iter().map(|(_, why)| why).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].contains("cannot be offered") && faults[1].contains("cannot be offered"));
    assert!(faults[2].contains("offers no tool `gone`"), "{faults:?}");
}

/// Requests as received: head and message.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// Serves on loopback until the test ends.
fn serve(
    answer: impl Fn(&Value, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (seen, answer) = (Seen::default(), Arc::new(answer));
    let noted = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut head, mut line) = (String::new(), String::new());
                while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                    head.push_str(&std::mem::take(&mut line));
                }
                let length = |l: &str| {
                    l.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                };
                let mut body = vec![0; head.lines().find_map(length).unwrap_or(0)];
                reader.read_exact(&mut body).unwrap();
                let message: Value = serde_json::from_slice(&body).unwrap_or_default();
                noted.lock().unwrap().push((head, message.clone()));
                let _ = answer(&message, &mut stream);
            });
        }
    });
    (url, seen)
}

fn reply(stream: &mut TcpStream, head: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_server_at_an_address_gets_its_token_and_nobody_else_does() {
    let (other, strangers) = serve(|_, stream| reply(stream, "200 OK", "{}"));
    let (url, seen) = serve(move |m, stream| {
        let result = match m["method"].as_str() {
            Some("initialize") => json!({}),
            Some("tools/list") => json!({"tools": [{"name": "search"}, {"name": "away"}]}),
            Some("tools/call") if m["params"]["name"] == "away" => {
                return reply(
                    stream,
                    &format!("307 Temporary Redirect\r\nLocation: {other}"),
                    "",
                );
            }
            Some("tools/call") => {
                json!({"content": [{"type": "text", "text": format!("you said {KEY}")}]})
            }
            _ => return reply(stream, "202 Accepted", ""),
        };
        let body = json!({"jsonrpc": "2.0", "id": m["id"], "result": result}).to_string();
        reply(stream, "200 OK\r\nContent-Type: application/json", &body)
    });
    let folder = tempfile::tempdir().unwrap();
    let config = ServerConfig {
        command: Vec::new(),
        url: Some(url),
        key_env: Some("WIKI_KEY".into()),
        ..config(Vec::new(), &["search", "away"])
    };
    let mut servers = of(config, "ada", folder.path());
    assert_eq!(servers.tools().await.len(), 2);
    let answer = servers
        .call("wiki__search", &json!({"q": 1}))
        .await
        .unwrap()
        .answer;
    assert_eq!(answer, json!({"success": true, "text": "you said [token]"}));
    let away = servers.call("wiki__away", &json!({})).await.unwrap().answer;
    assert!(
        away["error"].as_str().unwrap().contains("redirects"),
        "{away}"
    );
    // A refused call does not end the server.
    let again = servers
        .call("wiki__search", &json!({}))
        .await
        .unwrap()
        .answer;
    assert_eq!(again["success"], true);
    assert!(strangers.lock().unwrap().is_empty());
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter()
            .all(|(head, _)| head.contains(&format!("Bearer {KEY}")))
    );
}

#[tokio::test]
async fn a_program_ends_with_its_visit() {
    let folder = tempfile::tempdir().unwrap();
    let before = "open('pid', 'w').write(str(os.getpid()))";
    let command = script(folder.path(), before, TOOLS, ECHO);
    let mut servers = of(config(command, &["search"]), "ada", folder.path());
    assert!(
        !folder.path().join("pid").exists(),
        "nothing is started unasked"
    );
    assert_eq!(servers.tools().await.len(), 1);
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let is_there = || Path::new("/proc").join(&pid).exists();
    assert!(is_there());
    drop(servers);
    kd_backends::transport::process::settle(Duration::from_secs(10));
    assert!(!is_there());
}
