//! Several front ends on one thread at once, through the real program: the terminal chat, the page, a client of MCP and
//! clients of the council as a model. Any of them speaks, and all see the same events in the order of the thread's log.

use crate::support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use support::served::{Served, bearer, named, user};
use support::{Home, until};

/// A stream that is read in the background.
#[derive(Clone)]
struct Feed(Arc<Mutex<String>>);

impl Feed {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let feed = Self(text.clone());
        std::thread::spawn(move || {
            let mut from = BufReader::new(stream);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let read = String::from_utf8_lossy(&line).into_owned();
                text.lock().expect("no panic").push_str(&read);
                line.clear();
            }
        });
        feed
    }

    fn text(&self) -> String {
        self.0.lock().expect("no panic").clone()
    }
}

/// A server with all its faces, and a thread.
struct Stage {
    served: Served,
    home: Home,
}

impl Stage {
    fn new() -> Self {
        let said = |text: &str| json!({"runs": [[{"text": text}]]});
        let home = Home::scripted(&[
            ("ann", said("Spaces.\n\nVOTE: Spaces")),
            ("bob", said("Tabs.\n\nVOTE: Spaces")),
        ]);
        let served = Served::start(&home, &[], 3);
        Self { served, home }
    }

    fn get(&self, path: &str) -> TcpStream {
        self.served.open("GET", path, &bearer(), &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let headers = format!("{}Content-Type: application/json\r\n", bearer());
        let (status, text) = self.served.send("POST", path, &headers, body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Asks in the page; returns the thread.
    fn page(&self, question: &str, thread: Option<&str>, method: &str) -> String {
        let body = json!({"question": question, "method": method, "thread": thread});
        let asked = self.post("/page/ask", &body);
        asked["thread"].as_str().expect("a thread").to_owned()
    }

    fn log(&self, thread: &str) -> PathBuf {
        let threads = self.home.threads();
        let of = |path: &&PathBuf| path.file_name().is_some_and(|name| name == thread);
        let folder = threads.iter().find(of).expect("its folder");
        folder.join(".kd-events.jsonl")
    }

    /// The events of a thread's log, and where each ends.
    fn events(&self, thread: &str) -> Vec<(u64, Value)> {
        let text = std::fs::read_to_string(self.log(thread)).unwrap_or_default();
        let mut end = 0;
        let line = |line: &str| {
            end += line.len() as u64;
            let event: Value = serde_json::from_str(line).expect("JSON");
            (end, event)
        };
        text.split_inclusive('\n').map(line).collect()
    }

    /// Waits until this number of rounds of a thread is over.
    fn rounds(&self, thread: &str, rounds: usize) {
        until("the rounds are over", || {
            let events = self.events(thread);
            let over = events
                .iter()
                .filter(|(_, event)| kind(event) == "floor_yielded");
            (over.count() >= rounds).then_some(())
        });
    }
}

fn kind(event: &Value) -> &str {
    event["event"]
        .as_str()
        .or(event["type"].as_str())
        .unwrap_or_default()
}

/// A chat in a terminal's place.
struct Chat {
    child: Child,
    typed: ChildStdin,
    shown: Feed,
}

impl Chat {
    fn open(home: &Home, thread: &str) -> Self {
        let mut command = home.kd(&["chat", "--plain", thread]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        Self {
            typed: child.stdin.take().expect("piped"),
            shown: Feed::of(child.stdout.take().expect("piped")),
            child,
        }
    }

    fn say(&mut self, text: &str) {
        writeln!(self.typed, "{text}").expect("it reads");
    }

    fn leave(mut self) {
        drop(self.typed);
        self.child.wait().expect("it ends");
    }
}

/// A session of MCP over HTTP that follows a thread.
struct Mcp<'s> {
    stage: &'s Stage,
    headers: String,
    told: Feed,
}

impl<'s> Mcp<'s> {
    fn open(stage: &'s Stage) -> Self {
        let plain = format!(
            "{}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            bearer()
        );
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        let mut stream = stage.served.open("POST", "/mcp", &plain, &hello);
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let session = text.lines().find_map(|line| {
            let line = line.to_ascii_lowercase();
            Some(line.strip_prefix("mcp-session-id: ")?.to_owned())
        });
        let session = session.expect("a session");
        let headers =
            format!("{plain}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        stage.served.send("POST", "/mcp", &headers, &ready);
        let stream = stage.served.open("GET", "/mcp", &headers, &Value::Null);
        let told = Feed::of(stream);
        until("the stream begins", || {
            told.text().contains("200 OK").then_some(())
        });
        Self {
            stage,
            headers,
            told,
        }
    }

    fn call(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let (_, text) = self
            .stage
            .served
            .send("POST", "/mcp", &self.headers, &message);
        let mut answers = text.lines().rev().filter_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            let value: Value = serde_json::from_str(line).ok()?;
            (value["id"] == 2).then_some(value)
        });
        answers
            .next()
            .unwrap_or_else(|| panic!("no answer: {text}"))
    }

    fn events(&self, thread: &str, after: u64) -> Vec<(u64, Value)> {
        let uri = format!("kd://thread/{thread}/events?after={after}");
        let read = self.call("resources/read", json!({ "uri": uri }));
        let text = read["result"]["contents"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{read}"));
        let line = |line: &str| {
            let value: Value = serde_json::from_str(line).expect("JSON");
            (value["id"].as_u64().expect("an id"), value["event"].clone())
        };
        text.lines().map(line).collect()
    }
}

/// The events of a stream of `/threads/ID/events`.
fn streamed(text: &str) -> Vec<(u64, Value)> {
    let mut lines = text.lines();
    let mut events = Vec::new();
    while let Some(line) = lines.next() {
        let Some(id) = line.strip_prefix("id: ") else {
            continue;
        };
        let Some(data) = lines.next().and_then(|line| line.strip_prefix("data: ")) else {
            break;
        };
        let Ok(event) = serde_json::from_str(data) else {
            break;
        };
        events.push((id.parse().expect("a number"), event));
    }
    events
}

/// Whether the parts of a text come in this order, where each first occurs.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let places: Vec<Option<usize>> = parts.iter().map(|part| text.find(part)).collect();
    places.iter().all(Option::is_some) && places.is_sorted()
}

const QUESTIONS: [&str; 5] = [
    "First, from the page?",
    "Second, from the chat?",
    "Third, from a program?",
    "Fourth, from an agent?",
    "Fifth, from the page?",
];

#[test]
fn all_faces_of_a_thread_see_the_same_events_in_one_order_and_any_may_speak() {
    let stage = Stage::new();
    let thread = stage.page(QUESTIONS[0], None, "ask");
    stage.rounds(&thread, 1);
    let stream = Feed::of(stage.get(&format!("/threads/{thread}/events")));
    let page = Feed::of(stage.get(&format!("/page/threads/{thread}")));
    let mut chat = Chat::open(&stage.home, &thread);
    let mcp = Mcp::open(&stage);
    let uri = format!("kd://thread/{thread}/events");
    let followed = mcp.call("resources/subscribe", json!({ "uri": uri }));
    assert!(followed["result"].is_object(), "{followed}");
    until("the chat and the page show the thread", || {
        let both = chat.shown.text().contains(QUESTIONS[0]) && page.text().contains(QUESTIONS[0]);
        both.then_some(())
    });

    chat.say(QUESTIONS[1]);
    stage.rounds(&thread, 2);
    let request = json!({"model": format!("kd/ask@{thread}"), "messages": [user(QUESTIONS[2])]});
    let (status, answer) = stage.served.chat(&request);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["kd"]["thread"], thread.as_str());
    let answer = mcp.call(
        "tools/call",
        json!({"name": "ask_council", "arguments": {"question": QUESTIONS[3], "thread": thread}}),
    );
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["thread"], thread.as_str(), "{answer}");
    let same = stage.page(QUESTIONS[4], Some(&thread), "ask");
    assert_eq!(same, thread);
    stage.rounds(&thread, 5);

    // The chat has heard of the last answers too; then nothing more is written.
    for (face, feed) in [("chat", &chat.shown), ("page", &page)] {
        until("everybody sees the last question", || {
            feed.text().contains(QUESTIONS[4]).then_some(())
        });
        let text = feed.text();
        assert!(in_order(&text, &QUESTIONS), "{face}: {text}");
    }
    chat.leave();
    let log = stage.events(&thread);
    let last = log.last().expect("events").0;
    until("the stream is complete", || {
        let seen = streamed(&stream.text());
        (seen.last().map(|(end, _)| *end) == Some(last)).then_some(())
    });
    assert_eq!(streamed(&stream.text()), log);
    assert_eq!(mcp.events(&thread, 0), log);
    let told = mcp.told.text().matches(&uri).count();
    assert!(told >= 4, "{told}: {}", mcp.told.text());
    // A reader that comes back continues after what it has.
    let middle = log[log.len() / 2].0;
    let rest: Vec<_> = log
        .iter()
        .filter(|(end, _)| *end > middle)
        .cloned()
        .collect();
    assert_eq!(mcp.events(&thread, middle), rest);
    let again = Feed::of(stage.get(&format!("/threads/{thread}/events?after={middle}")));
    until("the rest comes", || {
        (streamed(&again.text()).len() == rest.len()).then_some(())
    });
    assert_eq!(streamed(&again.text()), rest);
    // Each message was added once, by its author, in the order of their numbers.
    let added = log
        .iter()
        .filter(|(_, event)| kind(event) == "message_added");
    let own = added.filter(|(_, event)| event["found"] != true);
    let numbers: Vec<u64> = own
        .filter_map(|(_, event)| event["message"]["seq"].as_u64())
        .collect();
    let count = numbers.len() as u64;
    assert!(count >= 15, "{log:#?}");
    assert_eq!(numbers, (1..=count).collect::<Vec<u64>>(), "{log:#?}");
    assert_eq!(stage.home.run(&["fsck"]).code, Some(0));
}

#[test]
fn a_question_of_the_page_goes_on_in_the_chat_is_concluded_by_a_program_and_replayed() {
    let stage = Stage::new();
    let thread = stage.page("Tabs or spaces?", None, "ask");
    stage.rounds(&thread, 1);
    let mut chat = Chat::open(&stage.home, &thread);
    chat.say("And in Makefiles?");
    stage.rounds(&thread, 2);
    chat.leave();
    // The program speaks the Responses API, streamed.
    let request = json!({"model": format!("kd/deliberate@{thread}"), "stream": true, "input": "Tabs or spaces? Choose one."});
    let (status, text) = stage
        .served
        .send("POST", "/v1/responses", &bearer(), &request);
    assert_eq!(status, 200, "{text}");
    let events = named(&text);
    let last = events.last().expect("an end");
    assert_eq!(last["type"], "response.completed", "{text}");
    assert_eq!(last["response"]["kd"]["thread"], thread.as_str());
    let shown = stage.home.run(&["show", "--all", &thread]).out;
    let said = ["Tabs or spaces?", "And in Makefiles?", "Choose one."];
    assert!(in_order(&shown, &said), "{shown}");
    let replayed = stage.home.run(&["replay", &thread]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
    assert_eq!(stage.home.threads().len(), 1);
    assert_eq!(stage.home.run(&["fsck"]).code, Some(0));
}

#[test]
fn what_is_no_thread_or_no_event_is_refused_in_words() {
    let stage = Stage::new();
    let thread = stage.page("Tabs or spaces?", None, "ask");
    stage.rounds(&thread, 1);
    for (path, status) in [
        ("/threads/nope/events".to_owned(), 404),
        ("/threads/..%2F..%2Fetc/events".to_owned(), 404),
        (format!("/threads/{thread}/events?after=x"), 400),
        (format!("/threads/{thread}/events?after=99999999"), 410),
        // No event ends there.
        (format!("/threads/{thread}/events?after=7"), 410),
        (format!("/threads/{thread}/events?x=1&after=7"), 410),
    ] {
        let (got, body) = stage.served.send("GET", &path, &bearer(), &Value::Null);
        assert_eq!(got, status, "{path}: {body}");
    }
    let path = format!("/threads/{thread}/events");
    assert_eq!(stage.served.send("GET", &path, "", &Value::Null).0, 401);
    let request = json!({"model": "kd/ask@nope", "messages": [user("x")]});
    let (status, answer) = stage.served.chat(&request);
    assert_eq!(status, 422, "{answer}");
    let mcp = Mcp::open(&stage);
    for uri in [
        "kd://thread/nope",
        "kd://thread/nope/events",
        "kd://thread/x/events?after=y",
        "kd://else/x",
    ] {
        let refused = mcp.call("resources/subscribe", json!({ "uri": uri }));
        assert!(refused["error"]["message"].is_string(), "{uri}: {refused}");
    }
    // Each followed thread costs; a session has a few.
    let uri = |n: usize| format!("kd://thread/{thread}/events?after={n}");
    let follow = |n| mcp.call("resources/subscribe", json!({"uri": uri(n)}));
    assert!((0..16).all(|n| follow(n)["result"].is_object()));
    assert!(follow(16)["error"].is_object());
    let ended = mcp.call("resources/unsubscribe", json!({"uri": uri(3)}));
    assert!(ended["result"].is_object(), "{ended}");
    assert!(follow(16)["result"].is_object());
}
