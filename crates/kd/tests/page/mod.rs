//! The page of `kd serve`, by hand-written requests to the real program: access control, and the stream of a thread.
//! `tests/page/run` tests it in a browser.

mod deeds;
use crate::postgres_server;
use crate::support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::Home;

const TOKEN: &str = "0123456789abcdef";

/// A running `kd serve`.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(home: &Home, face: &str) -> Self {
        Self::of(home.kd(&["serve", "--listen", "127.0.0.1:0", face]))
    }

    fn of(mut command: std::process::Command) -> Self {
        command.env("KD_SERVE_TOKEN", TOKEN).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut url = String::new();
        let mut out = BufReader::new(child.stdout.as_mut().expect("piped"));
        out.read_line(&mut url).expect("an address");
        let address = url.trim().strip_prefix("http://").expect("http");
        let address = address.split('/').next().expect("an address").to_owned();
        Self { child, address }
    }

    fn open(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let timeout = Some(Duration::from_secs(60));
        stream.set_read_timeout(timeout).expect("set");
        let host = match headers.contains("Host:") {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        stream
    }

    /// Returns the status, head and body of a response.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let mut text = String::new();
        let mut stream = self.open(method, path, headers, body);
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).expect("a status");
        let (head, body) = text.split_once("\r\n\r\n").expect("a body");
        let status = status.parse().expect("a number");
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let headers = format!("{}Content-Type: application/json\r\n", bearer());
        let (status, _, text) = self.send("POST", path, &headers, &body.to_string());
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Reads lines of a thread's stream until `enough` accepts those so far.
    fn follow(&self, thread: &str, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let stream = self.open("GET", &format!("/page/threads/{thread}"), &bearer(), "");
        let mut lines = Vec::new();
        // A live stream sends keep-alives, so that no read reaches its own timeout.
        let end = Instant::now() + Duration::from_secs(120);
        for line in BufReader::new(stream).lines() {
            let line = line.expect("a line");
            // Other lines are the response's head and its chunk sizes.
            if let Ok(value @ Value::Object(_)) = serde_json::from_str(&line) {
                lines.push(value);
            }
            if enough(&lines) {
                return lines;
            }
            assert!(Instant::now() < end, "not enough: {lines:#?}");
        }
        panic!("the stream ended: {lines:#?}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}\r\n")
}

fn council(ann: &str) -> Home {
    let said = |text: &str| json!({"runs": [[{"text": text}]]});
    Home::scripted(&[("ann", said(ann)), ("bob", said("Tabs."))])
}

/// Returns the markup of all parts received, the newest of each.
fn page(lines: &[Value]) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for part in lines
        .iter()
        .filter_map(|line| line["parts"].as_array())
        .flatten()
    {
        let id = part["id"].as_str().expect("an id").to_owned();
        let html = part["html"].as_str().expect("markup").to_owned();
        match parts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = html,
            None => parts.push((id, html)),
        }
    }
    parts.into_iter().map(|(_, html)| html).collect()
}

#[test]
fn the_document_is_open_and_holds_nothing_and_all_else_needs_the_token() {
    let home = council("Spaces.");
    assert_eq!(home.run(&["ask", "A secret question?"]).code, Some(0));
    let served = Served::start(&home, "--page");
    let (status, head, text) = served.send("GET", "/", "", "");
    assert_eq!(status, 200, "{text}");
    assert!(
        head.contains("content-security-policy: default-src 'none'; script-src 'sha256-"),
        "{head}"
    );
    assert!(
        head.contains("frame-ancestors 'none'") && !head.contains("unsafe"),
        "{head}"
    );
    assert!(
        !text.contains("secret question") && !text.contains(TOKEN),
        "{text}"
    );
    for (method, path) in [
        ("GET", "/page/batches"),
        ("GET", "/page/threads"),
        ("GET", "/page/threads/x"),
        ("POST", "/page/ask"),
        ("POST", "/page/threads/x/stop"),
        ("POST", "/page/threads/x/fork"),
        ("POST", "/page/threads/x/resume"),
        ("POST", "/page/threads/x/mark"),
        ("POST", "/page/threads/x/retry"),
        ("POST", "/page/threads/x/choose"),
        ("GET", "/page/members"),
        ("POST", "/page/search"),
        ("GET", "/page/forum"),
        ("GET", "/page/forum/threads/1"),
        ("POST", "/page/forum/motions/1"),
        ("HEAD", "/page/threads"),
        ("POST", "/"),
    ] {
        assert_eq!(served.send(method, path, "", "").0, 401, "{method} {path}");
    }
    let strangers = [
        format!("Host: evil.example\r\n{}", bearer()),
        format!("Origin: http://evil.example\r\n{}", bearer()),
    ];
    for headers in strangers {
        for path in ["/", "/page/threads"] {
            assert_eq!(
                served.send("GET", path, &headers, "").0,
                403,
                "{headers} {path}"
            );
        }
    }
    let (status, _, text) = served.send("GET", "/page/threads", &bearer(), "");
    assert_eq!(status, 200);
    assert!(text.contains("A secret question?"), "{text}");
    let other = Served::start(&home, "--mcp");
    assert_eq!(
        other.send("GET", "/", "", "").0,
        401,
        "no page, no open document"
    );
}

#[test]
fn a_question_from_the_page_is_answered_and_seen_in_parts() {
    let home = council("Spaces. <script>alert(1)</script> **bold**");
    let served = Served::start(&home, "--page");
    let (status, said) = served.post(
        "/page/ask",
        &json!({"question": "Tabs or spaces?", "method": "ask"}),
    );
    assert_eq!(status, 200, "{said}");
    let thread = said["thread"].as_str().expect("a thread").to_owned();
    let done = |lines: &[Value]| {
        let page = page(lines);
        page.contains("Tabs.") && page.contains("bold</strong>")
    };
    let lines = served.follow(&thread, done);
    let text = page(&lines);
    assert!(
        text.contains("<strong>bold</strong>") && text.contains("&lt;script&gt;"),
        "{text}"
    );
    assert!(!text.contains("<script"), "{text}");
    let words: Vec<&Value> = lines.iter().map(|line| &line["words"]).collect();
    let raw = words.iter().any(|words| {
        let mut all = words.as_object().into_iter().flatten();
        all.any(|(_, words)| {
            words
                .as_str()
                .is_some_and(|w| w.contains("<script>alert(1)"))
        })
    });
    assert!(raw, "the Markdown as it was written: {words:?}");
    // It continues in the same thread, and followers see it, no matter who asked.
    let first = lines.len();
    let follower = std::thread::scope(|scope| {
        let follow = scope
            .spawn(|| served.follow(&thread, |lines| page(lines).contains("And in Makefiles?")));
        std::thread::sleep(Duration::from_millis(200));
        let go_on = home.run(&["ask", "--thread", &thread, "And in Makefiles?"]);
        assert_eq!(go_on.code, Some(0), "{}", go_on.err);
        follow.join().expect("it followed")
    });
    assert!(first > 0 && !follower.is_empty());
}

#[test]
fn a_wrong_body_is_refused_with_its_field_and_what_it_must_be() {
    let home = council("Spaces.");
    let served = Served::start(&home, "--page");
    for (path, body, why) in [
        ("ask", json!({"method": "ask"}), "`question` is missing"),
        (
            "ask",
            json!({"question": 7, "method": "ask"}),
            "`question` must be a text",
        ),
        (
            "ask",
            json!({"question": "x", "method": 7}),
            "`method` must be a text",
        ),
        (
            "ask",
            json!({"question": "x", "method": "ask", "members": [{}]}),
            "`members[0]` must be a text",
        ),
        (
            "search",
            json!({"skip": -1}),
            "`skip` must be a whole number, 0 or greater",
        ),
        ("search", json!({"words": []}), "`words` must be a text"),
        ("search", json!([]), "it must be a JSON object"),
        (
            "threads/x/stop",
            json!({"seat": 7}),
            "`seat` must be a text",
        ),
        (
            "threads/x/fork",
            json!({"before": "2"}),
            "`before` must be a whole number, 0 or greater",
        ),
        (
            "threads/x/fork",
            json!({"stage": 2}),
            "`stage` must be a text",
        ),
        (
            "threads/x/resume",
            json!({"a": 1}),
            "`a` is not known: no field is",
        ),
        ("threads/x/retry", json!({}), "`seat` is missing"),
        (
            "threads/x/retry",
            json!({"seat": ["ann"]}),
            "`seat` must be a text",
        ),
        ("threads/x/choose", json!({}), "`seat` is missing"),
        (
            "threads/x/choose",
            json!({"seat": "ann", "x": 1}),
            "`x` is not known; known are `seat`",
        ),
        (
            "threads/x/mark",
            json!({"mark": 1}),
            "`mark` must be a text",
        ),
        ("forum/threads", json!({"title": "x"}), "`body` is missing"),
        (
            "forum/threads/1",
            json!({"body": "x", "quote": "y"}),
            "`quote` must be a whole number",
        ),
        (
            "forum/motions",
            json!({"what": "x", "reason": true}),
            "`reason` must be a text",
        ),
        ("forum/motions/1", json!({}), "`decision` is missing"),
        (
            "forum/motions/1",
            json!({"decision": "pass"}),
            "`decision` must be `vote`, `confirm` or `refuse`",
        ),
        (
            "forum/motions/1",
            json!({"decision": "vote"}),
            "`choice` is missing",
        ),
        (
            "forum/motions/1",
            json!({"decision": "vote", "choice": 1}),
            "`choice` must be a text",
        ),
        (
            "forum/motions/1",
            json!({"decision": "confirm", "reason": "x"}),
            "a confirmation has no `choice` and no `reason`",
        ),
        (
            "forum/motions/1",
            json!({"decision": "refuse"}),
            "`reason` is missing",
        ),
    ] {
        let (status, said) = served.post(&format!("/page/{path}"), &body);
        assert_eq!(
            (status, &said["error"]),
            (400, &json!(why)),
            "{path} {body}: {said}"
        );
    }
    let json = bearer() + "Content-Type: application/json\r\n";
    for (headers, body, status, why) in [
        (
            &json,
            "",
            400,
            "the body is empty; it must be a JSON object",
        ),
        (
            &json,
            "{",
            400,
            "it is not JSON: it ends too early at line 1, column 1",
        ),
        (
            &bearer(),
            "{}",
            415,
            "a request has the header `Content-Type: application/json`",
        ),
    ] {
        let (got, _, text) = served.send("POST", "/page/search", headers, body);
        let said: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((got, &said["error"]), (status, &json!(why)), "{body}");
    }
}

#[test]
fn what_the_page_may_not_do_is_refused_with_the_reason() {
    let home = council("Spaces.");
    let served = Served::start(&home, "--page");
    for (path, body, status, why) in [
        (
            "/page/ask",
            json!({"question": " ", "method": "ask"}),
            400,
            "empty",
        ),
        (
            "/page/ask",
            json!({"question": "x", "method": "fork"}),
            400,
            "`method` must be `ask`, `think` or `deliberate`",
        ),
        (
            "/page/ask",
            json!({"question": "x", "method": "ask", "run": "rm"}),
            400,
            "run",
        ),
        (
            "/page/ask",
            json!({"question": "x", "method": "ask", "thread": "../x"}),
            422,
            "../x",
        ),
        (
            "/page/ask",
            json!({"question": "x", "method": "ask", "members": ["zoe"]}),
            422,
            "zoe",
        ),
        (
            "/page/threads/x/stop",
            json!({}),
            409,
            "is not asking anyone",
        ),
        ("/page/threads/x/stop", json!({"seat": "../x"}), 400, ""),
        ("/page/threads/x/resume", json!({}), 422, "no thread"),
        (
            "/page/threads/x/mark",
            json!({"mark": "right"}),
            422,
            "no thread",
        ),
        (
            "/page/threads/x/mark",
            json!({"mark": " "}),
            400,
            "a mark is",
        ),
        ("/page/threads/x/mark", json!({}), 400, "mark"),
        (
            "/page/threads/x/resume",
            json!({"question": "y"}),
            400,
            "question",
        ),
    ] {
        let (got, said) = served.post(path, &body);
        assert_eq!(got, status, "{path} {body}: {said}");
        let error = said["error"].as_str().expect("a reason");
        assert!(error.contains(why), "{path} {body}: {error}");
    }
    let (status, _, text) = served.send("GET", "/page/threads/nowhere", &bearer(), "");
    assert_eq!(status, 404, "{text}");
    assert!(text.contains("nowhere"), "{text}");
    // GET changes nothing.
    assert_eq!(served.send("GET", "/page/ask", &bearer(), "").0, 405);
    for path in ["stop", "fork", "resume", "mark", "retry", "choose"] {
        let path = format!("/page/threads/x/{path}");
        assert_eq!(served.send("GET", &path, &bearer(), "").0, 405, "{path}");
    }
}

#[test]
fn a_thread_is_forked_in_the_page_and_shown_as_a_tree() {
    let home = council("Spaces.");
    assert_eq!(home.run(&["ask", "-q", "Tabs?"]).code, Some(0));
    let name = |thread: &std::path::Path| {
        let name = thread.file_name().expect("a name");
        name.to_string_lossy().into_owned()
    };
    let source = name(&home.threads()[0]);
    let current = home.run(&["show", "--json"]).json()["thread_id"].clone();
    let served = Served::start(&home, "--page");
    let at = format!("/page/threads/{source}/fork");
    let (status, made) = served.post(&at, &json!({"before": 3}));
    assert_eq!(status, 200, "{made}");
    let fork = made["thread"].as_str().expect("an id").to_owned();
    assert_eq!(home.threads().len(), 2);
    // The current thread of the terminal stays.
    assert_eq!(home.run(&["show", "--json"]).json()["thread_id"], current);

    let (_, _, listed) = served.send("GET", "/page/threads", &bearer(), "");
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let listed = listed["threads"].as_array().expect("a list");
    let row = listed.iter().find(|t| t["id"] == *fork).expect("the fork");
    assert_eq!(
        row["fork"],
        json!({"of": source, "left": "before message 3"})
    );
    let row = listed.iter().find(|t| t["id"] == *source).expect("it");
    assert_eq!(row["fork"], Value::Null);

    let lines = served.follow(&fork, |lines| !lines.is_empty());
    let page = page(&lines);
    assert!(page.contains("class=\"tree\""), "{page}");
    assert!(
        page.contains(&format!("href=\"?thread={source}\"")),
        "{page}"
    );
    assert!(
        page.contains(&format!("aria-current=\"page\">{fork}<")),
        "{page}"
    );

    for (wanted, status, told) in [
        (json!({"before": 9}), 422, "has no message 9"),
        (json!({"before": 1}), 422, "comes before message 1"),
        (json!({"stage": "review"}), 422, "no deliberation"),
        (json!({"before": 2, "stage": "review"}), 400, "not both"),
        (json!({"before": -1}), 400, "before"),
        (json!({"other": 1}), 400, "other"),
    ] {
        let (got, said) = served.post(&at, &wanted);
        assert_eq!(got, status, "{wanted}: {said}");
        let said = said["error"].as_str().unwrap_or_default();
        assert!(said.contains(told), "{wanted}: {said}");
    }
    let (status, _) = served.post("/page/threads/council-none/fork", &json!({}));
    assert_eq!(status, 422);
    assert_eq!(home.threads().len(), 2);
    let (status, made) = served.post(&at, &json!({}));
    assert_eq!((status, home.threads().len()), (200, 3), "{made}");
    // The tree as one file: each fork leads to its place in it.
    let said = home.run(&["export", &source, "--tree", "-o", "tree.html"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let text = std::fs::read_to_string(home.work().join("tree.html")).expect("written");
    assert_eq!(text.matches("class=\"tree\"").count(), 3);
    assert!(text.contains("href=\"#t2-said\"") && text.contains("href=\"#t3-said\""));
    assert!(!text.contains("href=\"?thread="));
}

/// A reply that fits every stage of a deliberation.
fn decides() -> Value {
    let reply = json!({
        "reason": "so", "answer": "yes", "confidence": 0.8, "choice": "yes", "ranking": ["A", "B"],
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "recommendation": "Do it.", "cites": ["A"],
    });
    json!({"runs": [[{"text": reply.to_string()}]]})
}

#[test]
fn a_fork_at_a_stage_is_resumed_in_the_page_or_refused_with_the_reason() {
    let home = Home::scripted(&[("ann", decides()), ("bob", decides()), ("cyd", decides())]);
    let asked = [
        "deliberate",
        "-q",
        "--answer",
        "yes-no",
        "--protocol",
        "council",
        "Is it safe?",
    ];
    assert_eq!(home.run(&asked).code, Some(0));
    let source = home.threads()[0]
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let fork = |served: &Served| {
        let at = format!("/page/threads/{source}/fork");
        let (status, made) = served.post(&at, &json!({"stage": "review"}));
        assert_eq!(status, 200, "{made}");
        made["thread"].as_str().expect("an id").to_owned()
    };
    let post = |served: &Served, thread: &str, what: &str| {
        served.post(&format!("/page/threads/{thread}/{what}"), &json!({}))
    };
    let refused = |served: &Served, thread: &str, why: &str| {
        let (status, said) = post(served, thread, "resume");
        assert_eq!(status, 422, "{said}");
        let error = said["error"].as_str().expect("a reason");
        assert!(error.contains(why), "{why}: {error}");
    };
    let served = Served::start(&home, "--page");
    refused(&served, &source, "its deliberation has ended");
    refused(&served, "..%2fx", "../x");

    // The page shows the command, to which the script adds a button, and so does a file.
    let first = fork(&served);
    let lines = served.follow(&first, |lines| !lines.is_empty());
    let shown =
        format!("<span data-resume=\"\"><code>kd deliberate --resume {first}</code></span>");
    assert!(page(&lines).contains(&shown), "{}", page(&lines));
    let exported = home.run(&["export", &first, "-o", "fork.html"]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let text = std::fs::read_to_string(home.work().join("fork.html")).expect("written");
    assert!(text.contains(&shown) && !text.contains("<button"));

    let (status, said) = post(&served, &first, "resume");
    assert_eq!((status, &said["thread"]), (200, &json!(first)));
    let ended = |lines: &[Value]| {
        let page = page(lines);
        page.contains("Decided again") && !page.contains("data-resume")
    };
    let text = page(&served.follow(&first, ended));
    assert!(text.contains("agree byte for byte"), "{text}");
    let again = home.run(&["replay", &first]);
    assert!(
        again.out.contains("agree byte for byte"),
        "{}{}",
        again.out,
        again.err
    );
    refused(&served, &first, "its deliberation has ended");
    drop(served);

    // A member hangs: it runs already. Stopped, it has ended.
    std::fs::write(home.path().join("bob.json"), r#"{"runs": [["hang"]]}"#).expect("written");
    let served = Served::start(&home, "--page");
    let second = fork(&served);
    assert_eq!(post(&served, &second, "resume").0, 200);
    refused(
        &served,
        &second,
        "another session continues the deliberation",
    );
    assert_eq!(post(&served, &second, "stop").0, 200);
    served.follow(&second, ended);
    drop(served);

    // The settings changed since: a limit that the plan exceeds, or a member that is gone.
    std::fs::write(home.path().join("bob.json"), decides().to_string()).expect("written");
    let text = std::fs::read_to_string(home.config_file()).expect("settings");
    let config: Value = serde_json::from_str(&text).expect("JSON");
    let mut limited = config.clone();
    limited["deliberation"]["maxCalls"] = json!(2);
    let mut without = config.clone();
    let agents = without["agents"].as_object_mut().expect("agents");
    agents.remove("bob");
    without["council"]["members"] = json!(["ann", "cyd"]);
    for (config, why) in [(limited, "your settings allow 2"), (without, "bob")] {
        std::fs::write(home.config_file(), config.to_string()).expect("written");
        let served = Served::start(&home, "--page");
        refused(&served, &fork(&served), why);
    }
}

#[test]
fn a_verdict_is_marked_in_the_page_and_no_other_message_is() {
    let home = Home::scripted(&[("ann", decides()), ("bob", decides())]);
    let asked = [
        "deliberate",
        "-q",
        "--answer",
        "yes-no",
        "--protocol",
        "vote",
        "Is it safe?",
    ];
    assert_eq!(home.run(&asked).code, Some(0));
    let id = |at: usize| {
        home.threads()[at]
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let thread = id(0);
    let served = Served::start(&home, "--page");
    let text = page(&served.follow(&thread, |lines| !lines.is_empty()));
    assert!(
        text.contains("data-mark") && text.contains(&format!("kd mark {thread} right")),
        "{text}"
    );
    let path = format!("/page/threads/{thread}/mark");
    for (word, told) in [
        ("right", "is right; you have 1 mark"),
        ("no", "is wrong (was right)"),
    ] {
        let (status, said) = served.post(&path, &json!({"mark": word}));
        assert_eq!(status, 200, "{said}");
        assert!(
            said["marked"]
                .as_str()
                .is_some_and(|line| line.contains(told)),
            "{said}"
        );
    }
    let (status, said) = served.post(&path, &json!({"mark": "perhaps so"}));
    assert_eq!(status, 422, "{said}");
    assert_eq!(home.run(&["ask", "-q", "Hello?"]).code, Some(0));
    let other = if id(0) == thread { id(1) } else { id(0) };
    let text = page(&served.follow(&other, |lines| !lines.is_empty()));
    assert!(!text.contains("data-mark"), "{text}");
    let (status, said) = served.post(
        &format!("/page/threads/{other}/mark"),
        &json!({"mark": "right"}),
    );
    assert_eq!(
        (
            status,
            said["error"]
                .as_str()
                .is_some_and(|e| e.contains("nothing to mark"))
        ),
        (422, true),
        "{said}"
    );
    let marks = home.run(&["marks", "--json"]).json();
    assert_eq!(marks["marks"].as_array().map(Vec::len), Some(1), "{marks}");
}

#[test]
fn the_page_shows_batches_and_changes_none() {
    let home = council("Yes.");
    let served = Served::start(&home, "--page");
    let read = || {
        let (status, _, text) = served.send("GET", "/page/batches", &bearer(), "");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        (status, value)
    };
    let (status, none) = read();
    assert_eq!((status, none["batches"].clone()), (200, json!([])));
    let hint = none["html"].as_str().expect("markup");
    assert!(hint.contains("kd batch run"), "{hint}");
    let name = "<img src=x onerror=alert(1)>.txt";
    std::fs::write(home.work().join(name), "One?\nTwo?\n").expect("written");
    let said = home.run(&["batch", "run", name, "-o", "r.jsonl", "-q"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let (_, one) = read();
    let html = one["html"].as_str().expect("markup");
    assert!(html.contains("2 of 2") && html.contains("over"), "{html}");
    assert!(!html.contains("<img") && !html.contains("One?"), "{html}");
    assert_eq!(one["batches"][0]["states"]["answered"], 2, "{one:#}");
    assert_eq!(served.post("/page/batches", &json!({})).0, 405);
}

/// A process that ends with the test.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_page_and_the_metrics_show_a_fleet() {
    let Some(url) = postgres_server::postgres_schema() else {
        return;
    };
    // The password is not needed, and must be seen nowhere.
    let url = url.replace("//kd@", "//kd:pass-word@");
    let home = council("Yes.");
    let kd = |args: &[&str]| {
        let mut command = home.kd(args);
        command.env("KD_BATCH_STORE", &url);
        command
    };
    let served = Served::of(kd(&["serve", "--listen", "127.0.0.1:0", "--page"]));
    let read = |path: &str| {
        let (status, _, text) = served.send("GET", path, &bearer(), "");
        assert_eq!(status, 200, "{text}");
        assert!(!text.contains("pass-word"), "{text}");
        text
    };
    let page = || serde_json::from_str::<Value>(&read("/page/batches")).expect("JSON");
    let html = |page: &Value| page["html"].as_str().expect("markup").to_owned();
    let empty = page();
    assert_eq!(
        empty["fleet"]["batches"],
        json!([]),
        "no table yet: {empty:#}"
    );
    assert!(html(&empty).contains("kd worker --store URL"), "{empty:#}");
    std::fs::write(home.work().join("q.txt"), "One?\nTwo?\n").expect("written");
    let worker = ["worker", "--name", "far", "--lease", "30s", "-q"];
    let worker = Worker(kd(&worker).spawn().expect("it starts"));
    let run = [
        "batch",
        "run",
        "q.txt",
        "-o",
        "r.jsonl",
        "-q",
        "--concurrency=0",
    ];
    let said = kd(&run).output().expect("it runs");
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let full = support::until("the view is fresh", || {
        let page = page();
        (page["fleet"]["batches"][0]["states"]["answered"] == 2).then_some(page)
    });
    let fleet = &full["fleet"];
    assert_eq!(fleet["trouble"], Value::Null, "{full:#}");
    let name = fleet["workers"][0]["name"].as_str().expect("a name");
    assert!(name.starts_with("far-"), "{full:#}");
    let text = html(&full);
    for part in [name, "2 of 2", "over", "idle"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("One?"), "{text}");
    let id = fleet["batches"][0]["id"].as_str().expect("an id");
    let metrics = read("/metrics");
    for line in [
        format!("kd_batch_questions{{batch=\"{id}\",state=\"answered\"}} 2"),
        "kd_fleet_workers{state=\"idle\"} 1".to_owned(),
        format!("kd_fleet_worker_questions{{worker=\"{name}\"}} 0"),
        format!("kd_fleet_worker_silent_seconds{{worker=\"{name}\"}} "),
        format!("kd_batch_refusals{{batch=\"{id}\"}} 0"),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    let up = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("kd_fleet_up{"));
        line.expect("it tells").rsplit(' ').next() == Some("1")
    };
    assert!(up(&metrics), "{metrics}");
    let listed = kd(&["worker", "list"]).output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.starts_with(&format!("{name}: idle")), "{listed}");
    drop(worker);
    // A database that is away is a sentence, and the other pages do not wait for it. A folder names no database.
    let away = ["serve", "--listen", "127.0.0.1:0", "--page", "--store"];
    let store = "postgresql://kd:pass-word@127.0.0.1:1/kd";
    let served = Served::of(home.kd(&[&away[..], &[store]].concat()));
    let (status, _, text) = served.send("GET", "/page/batches", &bearer(), "");
    assert_eq!(status, 200, "{text}");
    assert!(
        text.contains("cannot be opened") && !text.contains("pass-word"),
        "{text}"
    );
    assert_eq!(served.send("GET", "/page/threads", &bearer(), "").0, 200);
    let (status, _, text) = served.send("GET", "/metrics", &bearer(), "");
    assert!(
        status == 200 && !up(&text) && !text.contains("pass-word"),
        "{text}"
    );
    assert!(
        !text.contains("kd_fleet_workers{"),
        "an old count is none: {text}"
    );
}
