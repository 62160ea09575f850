//! Members at HTTP services that read the user's folder, through the real program. `kd-backends/tests/reads.rs` has the
//! rounds on every wire format, `kd-app` what is read.

use crate::support;

use kd_fake::{Fake, Reply, Seen, Step, Wire};
use serde_json::{Value, json};
use std::fs;
use support::{Home, Said};

/// A service, and a home with one member at it.
struct Stage {
    _runtime: tokio::runtime::Runtime,
    fake: Fake,
    home: Home,
}

impl Stage {
    /// The service answers with these replies, and then again from the first on.
    fn new(replies: Vec<Reply>, agent: Value) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let addr = ([127, 0, 0, 1], 0).into();
        let choose = move |_: &Seen, n: usize| {
            let reply = replies.get(n % replies.len())?;
            Some((Wire::OpenAi, reply.clone()))
        };
        let fake = runtime
            .block_on(Fake::choosing(addr, choose))
            .expect("it listens");
        let mut gpt = json!({"backend": "svc"});
        for (key, value) in agent.as_object().into_iter().flatten() {
            gpt[key] = value.clone();
        }
        let home = Home::new(&json!({
            "agents": {"gpt": gpt},
            "council": {"members": ["gpt"], "conclude": false},
            "providers": {"svc": {"wire": "openai", "base_url": fake.url(), "model": "m", "attempts": 1}},
        }));
        let work = home.work();
        fs::create_dir_all(work.join("src")).expect("made");
        fs::write(work.join("src/retry.rs"), "pub const RETRIES: u32 = 3;\n").expect("written");
        fs::write(work.join(".env"), "PASSWORD=wanted\n").expect("written");
        Self {
            _runtime: runtime,
            fake,
            home,
        }
    }

    fn bodies(&self) -> Vec<Value> {
        self.fake.seen().iter().map(Seen::json).collect()
    }

    /// Whether each request so far offered tools.
    fn offered(&self) -> Vec<bool> {
        let bodies = self.bodies();
        bodies
            .iter()
            .map(|body| body.get("tools").is_some())
            .collect()
    }
}

fn call(name: &str, arguments: Value) -> Step {
    Step::Calls(vec![(name.to_owned(), arguments.to_string())])
}

/// Searches, tries a file that is for nobody, and answers.
fn reading() -> Vec<Reply> {
    vec![
        Reply::Stream(vec![
            Step::Text("Let me look.".into()),
            call("search_files", json!({"pattern": "RETRIES"})),
        ]),
        Reply::Stream(vec![call("read_file", json!({"path": ".env"}))]),
        Reply::words(&["It is 3, in src/retry.rs:1."]),
    ]
}

fn succeeded(said: &Said) {
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

#[test]
fn a_member_reads_the_folder_only_where_the_user_said_so() {
    let stage = Stage::new(vec![Reply::words(&["ok"])], json!({}));
    succeeded(&stage.home.run(&["ask", "Where?"]));
    succeeded(&stage.home.run(&["ask", "--tools", "none", "Where?"]));
    assert_eq!(stage.offered(), [false, false]);
    let said = stage.home.run(&["ask", "--tools", "read", "Where?"]);
    succeeded(&said);
    let line = "may read files here: gpt (sends them to svc)";
    assert!(said.err.contains(line), "{}", said.err);
    assert_eq!(stage.offered()[2..], [true]);
    let stage = Stage::new(vec![Reply::words(&["ok"])], json!({"tools": "read"}));
    succeeded(&stage.home.run(&["ask", "Where?"]));
    succeeded(&stage.home.run(&["ask", "--tools", "none", "Where?"]));
    succeeded(
        &stage
            .home
            .run(&["think", "-m", "gpt,gpt", "--max-messages", "1", "Where?"]),
    );
    let offered = stage.offered();
    assert_eq!(offered[..2], [true, false]);
    assert!(
        offered.len() > 2 && offered[2..].iter().all(|offers| *offers),
        "{offered:?}"
    );
    // A folder cannot turn it on.
    let stage = Stage::new(vec![Reply::words(&["ok"])], json!({}));
    let folder = stage.home.work().join(".kd");
    fs::create_dir_all(&folder).expect("made");
    fs::write(
        folder.join("config.json"),
        r#"{"agents": {"gpt": {"tools": "read"}}}"#,
    )
    .expect("written");
    let said = stage.home.run(&["ask", "Where?"]);
    assert_eq!(stage.offered(), [false], "{}", said.err);
    stage.home.trust();
    succeeded(&stage.home.run(&["ask", "Where?"]));
    assert_eq!(stage.offered(), [false, true]);
}

#[test]
fn calls_are_shown_counted_and_in_the_log_and_results_are_not() {
    let stage = Stage::new(reading(), json!({"tools": "read"}));
    let said = stage
        .home
        .run(&["ask", "--jsonl", "Where is the retry limit?"]);
    succeeded(&said);
    let events: Vec<Value> = said
        .out
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let tools: Vec<&Value> = events
        .iter()
        .map(|event| &event["delta"])
        .filter(|delta| delta["kind"] == "tool")
        .collect();
    assert_eq!(tools.len(), 2, "{}", said.out);
    assert_eq!(tools[0]["name"], "search_files");
    let detail = tools[0]["detail"].as_str().expect("a text");
    assert!(
        detail.starts_with("`RETRIES` in . (") && detail.ends_with(" bytes)"),
        "{detail}"
    );
    let detail = tools[1]["detail"].as_str().expect("a text");
    assert!(
        detail.starts_with(".env: .env is not for members"),
        "{detail}"
    );
    let finished = events
        .iter()
        .find(|event| event["event"] == "turn_finished")
        .expect("an end");
    assert_eq!(
        (&finished["tools"], &finished["usage"]["repeats"]),
        (&json!(2), &json!(2))
    );
    let sent = stage.bodies()[2].to_string();
    assert!(
        sent.contains("src/retry.rs:1: pub const RETRIES: u32 = 3;"),
        "{sent}"
    );
    assert!(!sent.contains("wanted"), "{sent}");
    // The thread has the answer, and no result.
    let thread = stage.home.threads().pop().expect("a thread");
    let message = fs::read_to_string(thread.join("0002-gpt.md")).expect("a message");
    assert!(
        message.ends_with("Let me look.\n\nIt is 3, in src/retry.rs:1.\n"),
        "{message}"
    );
    for entry in fs::read_dir(&thread).expect("listed").flatten() {
        let text = fs::read(entry.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("pub const RETRIES"), "{:?}", entry.path());
    }
    let log = fs::read_to_string(thread.join(".kd-events.jsonl")).expect("a log");
    assert!(log.contains("\"tools\":2"), "{log}");
}

#[test]
fn a_chat_shows_calls_and_who_may_read() {
    let stage = Stage::new(reading(), json!({}));
    let command = stage.home.kd(&["chat", "--plain", "--tools", "read"]);
    let said = Said::fed(command, "Where?\n/quit\n");
    succeeded(&said);
    let all = format!("{}{}", said.out, said.err);
    for line in [
        "may read files here: gpt (sends them to svc)",
        "gpt: uses search_files `RETRIES` in . (",
        "It is 3, in src/retry.rs:1.",
    ] {
        assert!(all.contains(line), "{all}");
    }
}

#[test]
fn the_limit_of_calls_counts_every_round() {
    let stage = Stage::new(vec![reading()[0].clone(), Reply::words(&["ok"])], json!({}));
    let args = ["ask", "--tools", "read", "--max-calls", "2", "Where?"];
    let said = stage.home.run(&args);
    succeeded(&said);
    assert_eq!(
        stage.offered(),
        [true, false],
        "the last call is for the answer"
    );
}

#[test]
fn deliberations_offer_tools_for_opinions_and_say_so_before() {
    let ballot = json!({"answer": "yes", "reason": "It is so.", "confidence": 0.9});
    let stage = Stage::new(vec![Reply::words(&[&ballot.to_string()])], json!({}));
    let ask = [
        "deliberate",
        "--tools",
        "read",
        "-m",
        "gpt",
        "--answer",
        "yes-no",
    ];
    let said = stage
        .home
        .run(&[&ask[..], &["--dry-run", "Is it 3?"]].concat());
    succeeded(&said);
    let note = said.out.replace("\n ", "");
    assert!(
        note.contains("(sends them to svc)") && note.contains("up to 8 more calls"),
        "{}",
        said.out
    );
    let said = stage.home.run(&[&ask[..], &["Is it 3?"]].concat());
    let offered = stage.offered();
    assert!(offered.contains(&true), "{}{}", said.out, said.err);
    let last = stage.bodies().pop().expect("asked");
    assert!(
        last.get("tools").is_none(),
        "the conclusion is without tools"
    );
}

/// A question that was asked without tools is not asked again with them.
#[test]
fn asking_again_and_finishing_offer_tools_only_if_the_user_says_so_again() {
    let busy = Reply::Status {
        code: 503,
        headers: Vec::new(),
        body: None,
    };
    let stage = Stage::new(vec![busy], json!({"tools": "read"}));
    stage.home.run(&["ask", "--tools", "none", "Where?"]);
    stage.home.run(&["council", "retry"]);
    let said = stage.home.run(&["council", "retry", "--tools", "read"]);
    assert_eq!(stage.offered(), [false, false, true], "{}", said.err);

    let ballot = json!({"answer": "yes", "reason": "It is so.", "confidence": 0.9});
    let stage = Stage::new(
        vec![Reply::words(&[&ballot.to_string()])],
        json!({"tools": "read"}),
    );
    let ask = [
        "deliberate",
        "--tools",
        "none",
        "-m",
        "gpt",
        "--answer",
        "yes-no",
        "Is it 3?",
    ];
    succeeded(&stage.home.run(&ask));
    for (more, offers) in [(&[][..], false), (&["--tools", "read"], true)] {
        let before = stage.offered().len();
        succeeded(&stage.home.run(&["fork", "--stage", "opinions"]));
        let said = stage
            .home
            .run(&[&["deliberate", "--resume"], more].concat());
        succeeded(&said);
        let offered = &stage.offered()[before..];
        assert!(
            !offered.is_empty() && offered.contains(&true) == offers,
            "{offered:?}"
        );
        assert_eq!(
            said.err.contains("may read files here: gpt"),
            offers,
            "{}",
            said.err
        );
    }
}

#[test]
fn doctor_names_who_may_read() {
    let stage = Stage::new(vec![Reply::words(&["ok"])], json!({"tools": "read"}));
    let said = stage.home.run(&["doctor"]);
    let line = "may read files here: gpt; what it reads is sent to svc";
    assert!(said.out.contains(line), "{}", said.out);
    let said = stage.home.run(&["doctor", "--json"]);
    assert_eq!(said.json()[0]["reads_files"], true, "{}", said.out);
    assert_eq!(
        stage.offered(),
        [false, false],
        "its own question needs no files"
    );
}

/// A thread of a batch has no tools, whatever the settings say: its replies are kept, and files change.
#[test]
fn a_batch_is_asked_without_tools() {
    let stage = Stage::new(vec![Reply::words(&["ok"])], json!({"tools": "read"}));
    let work = stage.home.work();
    fs::write(
        work.join("q.jsonl"),
        "{\"id\": \"1\", \"question\": \"Where?\"}\n",
    )
    .expect("written");
    let said = stage
        .home
        .run(&["batch", "run", "q.jsonl", "-o", "r.jsonl"]);
    succeeded(&said);
    assert_eq!(stage.offered(), [false]);
}
