//! What `kd serve` offers to those who run it, and its limits, through the real program: health, metrics, sizes.

use crate::support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use support::Home;
use support::served::{Served, TOKEN, bearer, user};

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
fn a_request_that_a_proxy_passed_on_needs_a_name_of_the_server() {
    let home = council();
    let served = Served::start(&home, &[], 3);
    for path in ["/v1/models", "/mcp", "/page/threads", "/healthz", "/"] {
        for sign in [
            "X-Forwarded-For: 203.0.113.5",
            "Forwarded: for=203.0.113.5",
            "Via: 1.1 x",
        ] {
            let headers = format!("{}{sign}\r\n", bearer());
            let (status, text) = served.send("GET", path, &headers, &Value::Null);
            assert!(
                status == 403 && text.contains("--host"),
                "{path} {sign}: {text}"
            );
        }
    }
}

#[test]
fn monitors_and_clients_of_azure_get_in_and_errors_have_the_format_of_the_caller() {
    let home = council();
    let served = Served::models(&home);
    let send =
        |method: &str, path: &str, headers: &str| served.send(method, path, headers, &Value::Null);
    assert_eq!(send("HEAD", "/healthz", ""), (200, String::new()));
    assert_eq!(send("HEAD", "/metrics", "").0, 401);
    assert_eq!(
        send("GET", "/v1/models", &format!("api-key: {TOKEN}\r\n")).0,
        200
    );
    assert_eq!(
        send("GET", "/v1/models", "api-key: 0123456789abcdeF\r\n").0,
        401
    );
    let anthropic = "anthropic-version: 2023-06-01\r\n";
    for (headers, word) in [(anthropic, "authentication_error"), ("", "invalid_api_key")] {
        let (status, text) = send("GET", "/v1/models", headers);
        assert!(status == 401 && text.contains(word), "{text}");
    }
}

#[test]
fn an_empty_name_of_a_thread_is_no_thread() {
    let home = council();
    let served = Served::start(&home, &[], 3);
    served.chat(&json!({"model": "kd/ask:ann", "messages": [user("Tabs or spaces?")]}));
    let before = home.run(&["show"]).out;
    for (path, body) in [
        (
            "/page/ask",
            json!({"question": "x", "method": "ask", "thread": ""}),
        ),
        ("/page/threads//fork", json!({})),
        ("/page/threads/%20/fork", json!({})),
    ] {
        let headers = format!("{}Content-Type: application/json\r\n", bearer());
        let (status, text) = served.send("POST", path, &headers, &body);
        assert!((400..500).contains(&status), "{path}: {status} {text}");
    }
    let (status, text) = served.send("GET", "/threads//events", &bearer(), &Value::Null);
    assert!((400..500).contains(&status), "{text}");
    assert_eq!((home.threads().len(), home.run(&["show"]).out), (1, before));
}

/// A sample of an exposition: its name, its labels, its value.
type Sample<'t> = (&'t str, Vec<(&'t str, &'t str)>, f64);

/// Reads a line of an exposition strictly, as OpenMetrics 1.0 defines it.
fn sample(line: &str) -> Option<Sample<'_>> {
    let at = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(at);
    let is_name = |name: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
        !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_part)
    };
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let mut escaped = false;
            let end = after.char_indices().find(|(_, c)| {
                let ends = !escaped && *c == '"';
                escaped = !escaped && *c == '\\';
                ends
            })?;
            labels.push((label, &after[..end.0]));
            rest = &after[end.0 + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.strip_prefix(' ')?.parse().ok()?;
    let sound = is_name(name) && labels.iter().all(|(label, _)| is_name(label));
    sound.then_some((name, labels, value))
}

/// Checks an exposition: each family is described once, before its samples, which are adjacent and differ in labels.
fn check_exposition(text: &str) {
    let body = text.strip_suffix("# EOF\n").expect("it has its end");
    let (mut family, mut kind) = ("", "");
    let mut families = std::collections::BTreeSet::new();
    let mut seen = std::collections::BTreeSet::new();
    for line in body.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            family = about.split(' ').next().expect("a name");
            assert!(families.insert(family), "{family} is described twice");
        } else if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, word) = about.split_once(' ').expect("a type");
            assert_eq!(name, family, "{line}");
            assert!(matches!(word, "counter" | "gauge"), "{line}");
            kind = word;
        } else if let Some(about) = line.strip_prefix("# UNIT ") {
            let (name, unit) = about.split_once(' ').expect("a unit");
            assert!(
                name == family && name.ends_with(&format!("_{unit}")),
                "{line}"
            );
        } else {
            let (name, labels, value) = sample(line).unwrap_or_else(|| panic!("no sample: {line}"));
            let named = match kind {
                "counter" => name.strip_suffix("_total").expect("a counter is a total"),
                _ => name,
            };
            assert_eq!(named, family, "{line}");
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert!(seen.insert((name, format!("{labels:?}"))), "twice: {line}");
        }
    }
}

#[test]
fn metrics_tell_of_batches_and_are_valid() {
    let home = council();
    let failing = [
        "batch",
        "run",
        "q.txt",
        "-m",
        "eve",
        "-o",
        "failed.jsonl",
        "--pause=1s",
        "-q",
    ];
    std::fs::write(home.work().join("q.txt"), "One?\nTwo?\n").expect("written");
    let run = ["batch", "run", "q.txt", "-m", "ann", "-o", "r.jsonl", "-q"];
    assert_eq!(home.run(&run).code, Some(0));
    let id = home.run(&["batch", "status", "--json"]).json()["id"].clone();
    let id = id.as_str().expect("an id");
    // A key that was refused stops the batch: its questions wait.
    assert_ne!(home.run(&failing).code, Some(0));
    let served = Served::models(&home);
    for _ in 0..2 {
        let (status, text) = served.send("GET", "/metrics", &bearer(), &Value::Null);
        assert_eq!(status, 200);
        check_exposition(&text);
        for line in [
            format!("kd_batch_questions{{batch=\"{id}\",state=\"answered\"}} 2"),
            format!("kd_batch_questions{{batch=\"{id}\",state=\"failed\"}} 0"),
            format!("kd_batch_running{{batch=\"{id}\"}} 0"),
            format!("kd_batch_calls{{batch=\"{id}\"}} 2"),
            format!("kd_batch_cost_usd{{batch=\"{id}\"}} 0.0"),
            "state=\"waiting\"} 2".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
        assert!(!text.contains("One?"), "{text}");
    }
    for bad in [
        "# HELP a b\n# TYPE a gauge\na{x=\"1} 2\n# EOF\n",
        "# HELP a b\n# TYPE a gauge\na 1\na 1\n# EOF\n",
        "# HELP a b\n# TYPE a counter\na 1\n# EOF\n",
        "# HELP a b\n# TYPE a gauge\na 1\n",
    ] {
        assert!(
            std::panic::catch_unwind(|| check_exposition(bad)).is_err(),
            "{bad}"
        );
    }
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
    // A declared length is enough: nothing of the body is sent.
    let answer = raw(&served, &head("Content-Length: 99999999999\r\n"), b"");
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
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

#[test]
fn other_machines_are_served_under_stated_names_and_get_no_agent_program() {
    let home = Home::scripted(&[("ann", json!({"runs": [[{"text": "Yes."}]]}))]);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(home.config_file()).expect("read")).expect("JSON");
    config["agents"]["own"] = json!({"backend": "command", "command": ["cat"]});
    config["council"] = json!({"members": ["ann", "own", "claude"], "chair": "claude"});
    config["think"] = json!({"fast": "own", "rigorous": "ann"});
    config["serve"] =
        json!({"models": {"decide": {"method": "deliberate", "members": ["ann", "own"]}}});
    std::fs::write(home.config_file(), config.to_string()).expect("written");
    let mut command = home.kd(&[
        "serve",
        "--models",
        "--page",
        "--listen",
        "0.0.0.0:0",
        "--host",
        "kd.example.org",
        "--host",
        "10.0.0.7:443",
    ]);
    command.env("KD_SERVE_TOKEN", TOKEN);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut url = String::new();
    let out = child.stdout.as_mut().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut url).expect("a line");
    let port = url
        .strip_prefix("http://kd.example.org:")
        .expect("its name");
    let port = port.split('/').next().expect("a port").to_owned();
    let address = format!("127.0.0.1:{port}");
    let send = |host: &str, more: &str, model: Option<&str>| -> (u16, String) {
        let (line, body) = match model {
            None => ("GET /v1/models", String::new()),
            Some(model) => {
                let body =
                    json!({"model": model, "messages": [{"role": "user", "content": "So?"}]});
                ("POST /v1/chat/completions", body.to_string())
            }
        };
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n{more}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).expect("a status");
        (status.parse().expect("a number"), text)
    };
    let with_port = format!("kd.example.org:{port}");
    for (host, more, status) in [
        ("kd.example.org", "", 200),
        (with_port.as_str(), "", 200),
        (address.as_str(), "", 200),
        ("10.0.0.7:443", "", 200),
        ("10.0.0.7", "", 403),
        ("0.0.0.0", "", 403),
        ("evil.example", "", 403),
        ("kd.example.org.evil.example", "", 403),
        ("kd.example.org", "Origin: https://kd.example.org\r\n", 200),
        ("kd.example.org", "Origin: https://evil.example\r\n", 403),
        ("kd.example.org", "Origin: null\r\n", 403),
        ("kd.example.org", "X-Forwarded-For: 203.0.113.5\r\n", 200),
    ] {
        let (got, text) = send(host, more, None);
        assert_eq!(got, status, "{host} {more}: {text}");
    }
    // Defaults leave programs out; a request that names one gets an error that says so.
    let (status, text) = send("kd.example.org", "", Some("kd/ask"));
    assert!(status == 200 && !text.contains("claude"), "{text}");
    for model in [
        "kd/ask:claude",
        "kd/think:ann,codex",
        "kd/deliberate:gemini,ann,ann",
        "kd/ask:own",
        "kd/decide",
    ] {
        let (status, text) = send("kd.example.org", "", Some(model));
        assert_eq!(status, 422, "{model}: {text}");
        assert!(
            text.contains("not offered to other machines"),
            "{model}: {text}"
        );
    }
    // The error names neither the folder nor its other threads.
    let (status, text) = send("kd.example.org", "", Some("kd/ask@nope"));
    assert!(
        status == 422 && text.contains("there is no thread `nope`"),
        "{text}"
    );
    let folder = home.path().to_str().expect("text").to_owned();
    assert!(
        !text.contains(&folder) && !text.contains("council-"),
        "{text}"
    );
    let thread = home.threads()[0].file_name().expect("a name").to_owned();
    let thread = thread.to_str().expect("text");
    let mark = format!(
        "POST /page/threads/{thread}/mark HTTP/1.1\r\nHost: kd.example.org\r\nConnection: close\r\n{}Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{{\"mark\":\"right\"}}",
        bearer()
    );
    let mut stream = TcpStream::connect(&address).expect("it listens");
    stream.write_all(mark.as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    assert!(
        text.starts_with("HTTP/1.1 422") && text.contains("cannot be given from other machines"),
        "{text}"
    );
    let health = |at: &str| home.run(&["serve", "--health", "--listen", at]);
    assert_eq!(health(&format!("0.0.0.0:{port}")).out, "ok\n");
    let _ = child.kill();
    let mut told = String::new();
    let err = child.stderr.as_mut().expect("piped");
    err.read_to_string(&mut told).expect("text");
    let _ = child.wait();
    assert!(
        told.contains("claude, own") && told.contains("no TLS"),
        "{told}"
    );
    let gone = health(&address);
    assert!(
        gone.code == Some(1) && gone.err.contains("no server answers"),
        "{}",
        gone.err
    );
}

#[test]
fn a_name_is_needed_beyond_this_machine_and_no_pattern_is_one() {
    let home = Home::scripted(&[]);
    for (args, words) in [
        (&["--listen", "0.0.0.0:0"][..], "--host"),
        (&["--listen", "[::]:0"], "--host"),
        (&["--host", "*"], "a host name has letters"),
        (
            &["--host", "http://kd.example.org"],
            "a host name has letters",
        ),
        (&["--health", "--models"], "cannot be used with"),
    ] {
        let said = home.run(&[&["serve"], args].concat());
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.err);
        assert!(said.err.contains(words), "{args:?}: {}", said.err);
    }
}

#[test]
fn many_clients_at_once_and_many_followers_are_all_answered() {
    let slow = json!({"runs": [[{"sleep_ms": 1500}, {"text": "Yes."}]]});
    let home = Home::scripted(&[("ann", slow)]);
    let served = &Served::start(&home, &[], 3);
    let body = &json!({"model": "kd/ask", "messages": [user("So?")]});
    let chats = |count: usize| -> Vec<u16> {
        std::thread::scope(|scope| {
            let ask = || served.chat(body).0;
            let all: Vec<_> = (0..count).map(|_| scope.spawn(ask)).collect();
            all.into_iter()
                .map(|one| one.join().expect("an answer"))
                .collect()
        })
    };
    assert_eq!(chats(128), [200; 128]);
    let thread = home.threads()[0].file_name().expect("a name").to_owned();
    let thread = thread.to_str().expect("text");
    let paths = [
        format!("/threads/{thread}/events"),
        format!("/page/threads/{thread}"),
    ];
    let mut followers = Vec::new();
    for n in 0..70 {
        let mut stream = served.open("GET", &paths[n % 2], &bearer(), &Value::Null);
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("a status");
        let status = if n < 64 {
            "HTTP/1.1 200"
        } else {
            "HTTP/1.1 429"
        };
        assert_eq!(String::from_utf8_lossy(&head), status, "{n}");
        followers.push(stream);
    }
    let mut refused = String::new();
    followers[69].read_to_string(&mut refused).expect("text");
    assert!(
        refused.contains("retry-after: 2\r\n") && refused.contains("close one"),
        "{refused}"
    );
    assert_eq!(served.send("GET", "/healthz", "", &Value::Null).0, 200);
    assert_eq!(chats(5), [200; 5]);
    drop(followers);
}

#[test]
fn a_body_for_mcp_that_is_no_message_is_answered_as_json_rpc_has_it() {
    let home = council();
    let served = Served::start(&home, &["--mcp"], 1);
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("no JSON", -32700),
        ("\u{0}", -32700),
        ("[]", -32600),
        ("\"x\"", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1}", -32600),
    ] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
            served.address(),
            bearer(),
            body.len()
        );
        let answer = raw(&served, &head, body.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400"), "{body}: {answer}");
        let (_, text) = answer.split_once("\r\n\r\n").expect("a body");
        let error: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{text}"
        );
    }
}
