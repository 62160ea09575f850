//! Every API format with every fault, through the real program: one member's service fails, two others work.
//!
//! `cargo test -p kd --test program faults:: -- --nocapture` prints the tables; `BLESS=1` writes them to `docs/faults.md`.

use crate::support;

use kd_core::Status;
use kd_fake::{Fake, Reply, Script, Step, Wire};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Home, whole};

/// The key of the failing service. It must never be shown.
const KEY: &str = "sk-fake-9876543210fedcba";
const SHAKY: &str = "shaky";
const CALM: [&str; 2] = ["calm-one", "calm-two"];
const CALM_ANSWER: &str = "I am well: **take the simple one**.";
/// The answer of the failing service once it has recovered.
const WELL_AGAIN: &str = "Well again.";
/// Maximum attempts of one turn. The pause between two attempts is about half a second; it is not configurable.
const ATTEMPTS: usize = 2;
/// Concurrent cases; each mostly waits.
const AT_ONCE: usize = 8;

/// The member's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It answers, with the given number of bytes.
    Answers(usize),
    /// It fails: the kind, and whether it was retried.
    Fails(&'static str, bool),
}

/// One fault.
struct Fault {
    name: &'static str,
    /// `None` means that nothing listens.
    reply: Option<fn(Wire) -> Reply>,
    end: End,
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "slow stream",
        reply: Some(|_| Reply::paced(20, Duration::from_millis(20))),
        end: End::Answers(20 * 6 - 1),
    },
    Fault {
        name: "10 MiB answer",
        reply: Some(|_| {
            let mut steps = vec![Step::Text("A long answer.\n\n".repeat(1 << 10)); 640];
            steps.push(Step::Text("The end.".into()));
            steps.push(Step::End);
            Reply::Stream(steps)
        }),
        end: End::Answers(16 * (1 << 10) * 640 + 8),
    },
    Fault {
        name: "invalid UTF-8",
        reply: Some(|wire| {
            let mut event = wire.text("a@b").into_bytes();
            let at = event.iter().position(|b| *b == b'@').expect("it is there");
            event[at] = 0xFF;
            Reply::Stream(vec![
                Step::Text("So: ".into()),
                Step::Raw(event.into()),
                Step::End,
            ])
        }),
        end: End::Answers("So: a\u{FFFD}b".len()),
    },
    Fault {
        name: "a malformed event among valid ones",
        reply: Some(|_| {
            Reply::Stream(vec![
                Step::Text("one ".into()),
                Step::Raw(Arc::from(&b"data: {\"choices\": [}\n\n"[..])),
                Step::Text("two".into()),
                Step::End,
            ])
        }),
        end: End::Answers("one two".len()),
    },
    Fault {
        name: "only malformed events",
        reply: Some(|_| {
            Reply::Stream(vec![Step::Raw(
                "data: {{{\n\n".repeat(50).into_bytes().into(),
            )])
        }),
        end: End::Fails("decode", true),
    },
    Fault {
        name: "cut in the middle of the answer",
        reply: Some(|_| Reply::Stream(vec![Step::Text("half an".into()), Step::Cut])),
        end: End::Fails("decode", true),
    },
    Fault {
        name: "connection closed before the status",
        reply: Some(|_| Reply::Hangup),
        end: End::Fails("crashed", true),
    },
    Fault {
        name: "429 with retry-after: 1",
        reply: Some(|_| Reply::status_with(429, "retry-after", "1")),
        end: End::Fails("rate_limit", true),
    },
    Fault {
        name: "429 with retry-after: 86400",
        reply: Some(|_| Reply::status_with(429, "retry-after", "86400")),
        end: End::Fails("rate_limit", false),
    },
    Fault {
        name: "500",
        reply: Some(|_| Reply::status(500)),
        end: End::Fails("overloaded", true),
    },
    Fault {
        name: "529",
        reply: Some(|_| Reply::status(529)),
        end: End::Fails("overloaded", true),
    },
    Fault {
        name: "overload reported inside the stream",
        reply: Some(|_| Reply::Stream(vec![Step::Text("begun".into()), Step::Overloaded])),
        end: End::Fails("overloaded", true),
    },
    Fault {
        name: "401 that echoes the key",
        reply: Some(|wire| Reply::Status {
            code: 401,
            headers: Vec::new(),
            body: Some(wire.error_body(401, &format!("the key {KEY} is not known"))),
        }),
        end: End::Fails("auth", false),
    },
    Fault {
        name: "a web page instead of a stream",
        reply: Some(|_| Reply::Body {
            mime: "text/html".into(),
            body: Arc::from(&b"<html>log in to the network first</html>"[..]),
        }),
        end: End::Fails("invalid", false),
    },
    Fault {
        name: "the provider refuses",
        reply: Some(|_| Reply::Stream(vec![Step::Refuse])),
        end: End::Fails("refused", false),
    },
    Fault {
        name: "stalled stream",
        reply: Some(|_| Reply::Stream(vec![Step::Text("begun".into()), Step::Stall])),
        end: End::Fails("timeout", false),
    },
    Fault {
        name: "silence before the status",
        reply: Some(|_| Reply::Silence),
        end: End::Fails("timeout", false),
    },
    Fault {
        name: "no server listening (no network)",
        reply: None,
        end: End::Fails("missing", false),
    },
];

/// The result of one run of the program.
struct Seen {
    /// `answers`, or the kind of failure, with the number of attempts if several.
    outcome: String,
    exit: i32,
    /// The reason for the failure, and the advice.
    words: Option<(String, String)>,
}

/// The working services, one per API.
struct Calm(Vec<Fake>);

impl Calm {
    async fn start() -> Self {
        let mut fakes = Vec::new();
        for wire in Wire::ALL {
            let reply = Reply::words(&["I am well: ", "**take the simple one**", "."]);
            fakes.push(
                Fake::start(Script::always(wire, reply))
                    .await
                    .expect("loopback"),
            );
        }
        Self(fakes)
    }
}

fn word(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAi => "openai",
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
        Wire::Responses => unreachable!("only programs speak it"),
    }
}

/// The time limit of a member that answers. It may also be silent for longer: on busy cores reading 10 MiB takes seconds.
const PATIENT: u32 = 240;

/// Creates a home with the failing member and two working ones, each on one of the other two APIs.
fn home(wire: Wire, url: &str, calm: &Calm, secs: u32) -> Home {
    let others: Vec<usize> = (0..Wire::ALL.len())
        .filter(|i| Wire::ALL[*i] != wire)
        .collect();
    let idle = if secs == PATIENT { 60 } else { 3 };
    let mut agents =
        json!({SHAKY: {"backend": "shaky-service", "model": "fake-1", "timeout": secs}});
    let mut providers = json!({"shaky-service": {
        "wire": word(wire), "base_url": url, "key_env": "SHAKY_KEY", "attempts": ATTEMPTS,
    }});
    for (name, i) in CALM.iter().zip(others) {
        let service = format!("{name}-service");
        agents[name] = json!({"backend": service, "model": "fake-1"});
        providers[service] = json!({"wire": word(Wire::ALL[i]), "base_url": calm.0[i].url()});
    }
    Home::new(&json!({
        "council": {"members": [SHAKY, CALM[0], CALM[1]], "conclude": false, "idle_secs": idle},
        "agents": agents,
        "providers": providers,
    }))
}

/// Asks once and checks what must hold in every case; `secs` is the time limit of the failing member's turn.
fn ask(wire: Wire, url: &str, calm: &Calm, secs: u32) -> (Seen, Value) {
    let home = home(wire, url, calm, secs);
    let output = home
        .kd(&["ask", "--json", "Which one?"])
        .env("SHAKY_KEY", KEY)
        .output()
        .expect("it runs");
    let said = support::Said::of(output);
    let round = said.json();
    let answer = |name: &str| {
        let answers = round["answers"].as_array().expect("answers");
        answers
            .iter()
            .find(|a| a["member"] == name)
            .unwrap_or_else(|| panic!("{name} is missing: {round}"))
    };
    let [thread] = home.threads().try_into().expect("one thread");
    let disk = whole(&thread);
    assert_eq!(disk.len(), 4, "the question and a file for each member");
    for name in CALM {
        assert_eq!(answer(name)["text"], CALM_ANSWER, "{}", said.err);
        let message = disk.values().find(|m| m.from == name).expect("its file");
        assert_eq!(
            (message.body.as_str(), message.status),
            (CALM_ANSWER, Some(Status::Complete))
        );
    }
    assert_no_key(home.path(), &[&said.out, &said.err]);

    let shaky = answer(SHAKY).clone();
    let file = disk.values().find(|m| m.from == SHAKY).expect("its file");
    let words = shaky["error"].is_object().then(|| {
        let text = |key: &str| shaky["error"][key].as_str().expect("text").to_owned();
        (text("message"), text("hint"))
    });
    let outcome = match &words {
        None => {
            assert_eq!(file.status, Some(Status::Complete));
            assert_eq!(shaky["text"], file.body.as_str());
            "answers".to_owned()
        }
        Some((message, hint)) => {
            assert_ne!(file.status, Some(Status::Complete));
            assert!(!message.is_empty() && !hint.is_empty(), "it teaches");
            format!("`{}`", shaky["error"]["kind"].as_str().expect("a kind"))
        }
    };
    let seen = Seen {
        outcome,
        exit: said.code.expect("an exit code"),
        words,
    };
    (seen, shaky)
}

/// Asserts that the key appears neither in output nor in any file.
fn assert_no_key(folder: &Path, said: &[&str]) {
    for text in said {
        assert!(!text.contains(KEY), "{text}");
    }
    for item in std::fs::read_dir(folder).expect("a folder") {
        let path = item.expect("entry").path();
        if path.is_dir() {
            assert_no_key(&path, &[]);
        } else {
            let bytes = std::fs::read(&path).expect("read");
            assert!(
                !String::from_utf8_lossy(&bytes).contains(KEY),
                "{}",
                path.display()
            );
        }
    }
}

/// Removes what differs between machines: the port, and the system's error numbers.
fn anywhere(text: &str, address: &str) -> String {
    let text = text.replace(address, "127.0.0.1:PORT");
    match text.split_once(" (os error ") {
        Some((before, after)) => {
            format!(
                "{before}{}",
                after
                    .trim_start_matches(|c: char| c.is_ascii_digit())
                    .replacen(')', "", 1)
            )
        }
        None => text,
    }
}

/// Runs one fault on one API: permanently, and once only.
async fn case(fault: &Fault, wire: Wire, calm: &Calm) -> (Seen, Option<String>) {
    // A time limit for this member only, so that a slow machine fails no other.
    let secs = match fault.end {
        End::Answers(_) => PATIENT,
        End::Fails(..) if fault.name.starts_with("silence") => 2,
        End::Fails(..) => 120,
    };
    let label = format!("{} on {}", fault.name, word(wire));
    let Some(reply) = fault.reply else {
        // A recently free port.
        let gone = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|l| l.local_addr())
            .expect("a port");
        let (mut seen, _) = ask(wire, &format!("http://{gone}"), calm, secs);
        assert_eq!(
            (seen.outcome.as_str(), seen.exit),
            ("`missing`", 5),
            "{label}"
        );
        if let Some((message, hint)) = &mut seen.words {
            for text in [message, hint] {
                *text = anywhere(text, &gone.to_string());
            }
        }
        return (seen, None);
    };
    let fake = Fake::start(Script::always(wire, reply(wire)))
        .await
        .expect("loopback");
    let (mut seen, shaky) = ask(wire, &fake.url(), calm, secs);
    let attempts = fake.seen().len();
    if let Some((message, hint)) = &mut seen.words {
        for text in [message, hint] {
            *text = anywhere(text, fake.url().trim_start_matches("http://"));
        }
    }
    let (kind, again) = match fault.end {
        End::Answers(bytes) => {
            assert_eq!(
                (seen.outcome.as_str(), seen.exit),
                ("answers", 0),
                "{label}"
            );
            let text = shaky["text"].as_str().expect("text");
            assert_eq!(text.trim().len(), bytes, "{label}");
            assert_eq!(attempts, 1, "{label}");
            return (seen, None);
        }
        End::Fails(kind, again) => (kind, again),
    };
    assert_eq!(
        (seen.outcome.as_str(), seen.exit),
        (format!("`{kind}`").as_str(), 5),
        "{label}"
    );
    assert_eq!(attempts, if again { ATTEMPTS } else { 1 }, "{label}");
    if again {
        let _ = write!(seen.outcome, " after {attempts} attempts");
    }

    let replies = vec![reply(wire), Reply::words(&["Well ", "again."])];
    let fake = Fake::start(Script::then(wire, replies))
        .await
        .expect("loopback");
    let (once, shaky) = ask(wire, &fake.url(), calm, secs);
    if again {
        assert_eq!(
            (once.outcome.as_str(), once.exit),
            ("answers", 0),
            "{label}"
        );
        assert_eq!(
            shaky["text"], WELL_AGAIN,
            "{label}: nothing of the failed attempt"
        );
    } else {
        assert_eq!(once.exit, 5, "{label}");
    }
    (seen, Some(once.outcome))
}

/// Renders the tables of `docs/faults.md`.
fn tables(rows: &[(usize, Wire, Seen, Option<String>)]) -> String {
    let mut text = String::from(
        "| fault | openai | anthropic | gemini | the same, only once | exit code | the two others |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let of = |fault: usize, wire: Wire| {
        rows.iter()
            .find(|(f, w, ..)| (*f, *w) == (fault, wire))
            .expect("a row for each wire and fault")
    };
    for (i, fault) in FAULTS.iter().enumerate() {
        let cells: Vec<_> = Wire::ALL.iter().map(|wire| of(i, *wire)).collect();
        let mut once: Vec<&str> = cells
            .iter()
            .map(|c| c.3.as_deref().unwrap_or("–"))
            .collect();
        once.dedup();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | answer, on disk |",
            fault.name,
            cells[0].2.outcome,
            cells[1].2.outcome,
            cells[2].2.outcome,
            once.join(", "),
            cells[0].2.exit,
        );
    }
    text.push_str("\n| fault | what you read | what to do next |\n|---|---|---|\n");
    for (i, fault) in FAULTS.iter().enumerate() {
        if let Some((message, hint)) = &of(i, Wire::OpenAi).2.words {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                fault.name,
                cell(message),
                cell(hint)
            );
        }
    }
    text
}

#[test]
fn one_failing_member_never_takes_the_others_along() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let calm = runtime.block_on(Calm::start());
    let jobs = Mutex::new(
        (0..FAULTS.len()).flat_map(|fault| Wire::ALL.iter().map(move |wire| (fault, *wire))),
    );
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((fault, wire)) = jobs.lock().expect("nobody panicked").next() else {
                        break;
                    };
                    let (seen, once) = runtime.block_on(case(&FAULTS[fault], wire, &calm));
                    let row = (fault, wire, seen, once);
                    done.lock().expect("nobody panicked").push(row);
                }
            });
        }
    });
    let tables = tables(&done.into_inner().expect("nobody panicked"));
    println!("{tables}");
    the_manual_says(&tables);
}

fn the_manual_says(tables: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    let there = std::fs::read_to_string(&file).expect("the manual");
    let (begin, end) = ("<!-- faults: made by a test -->\n", "<!-- faults: end -->");
    let from = there.find(begin).expect("the mark stands there") + begin.len();
    let to = there.find(end).expect("the end mark stands there");
    let mut made = there.clone();
    made.replace_range(from..to, &format!("\n{tables}\n"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &made).expect("written");
    } else {
        assert!(
            there == made,
            "docs/faults.md is not what the program does; run this test with BLESS=1"
        );
    }
}
