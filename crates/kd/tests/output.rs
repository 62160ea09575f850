//! `--output-schema`, through the real program with fake services that obey, reply in another form, or refuse the schema.

use crate::support;

use kd_fake::{Fake, Reply, Seen, Wire};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use support::served::{Served, bearer, events, user};
use support::{Home, Said, council, until, whole};

const QUESTION: &str = "SQLite or PostgreSQL?";
const WORDS: &str = "Take SQLite: it is one file.";
const GOOD: &str = r#"{"answer": "SQLite", "reasons": ["one file"]}"#;
const BAD: &str = r#"{"answer": "MySQL", "reasons": []}"#;
/// What a request for the value says.
const FORMATS: &str = "Write it as one JSON value";

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "answer": {"enum": ["SQLite", "PostgreSQL"]},
        "reasons": {"type": "array", "items": {"type": "string", "minLength": 3}},
    }, "required": ["answer", "reasons"], "additionalProperties": false})
}

fn has_schema(seen: &Seen) -> bool {
    let fields = ["json_schema", "responseJsonSchema", "output_config"];
    fields.iter().any(|field| seen.body.contains(field))
}

/// How a service replies to a request for the value.
type Replies = fn(&Seen) -> Reply;

const REPLIES: &[(&str, Replies, bool)] = &[
    ("it obeys", |_| Reply::words(&[GOOD]), true),
    (
        "text around it",
        |_| Reply::words(&["Sure:\n```json\n", GOOD, "\n```\nAnything else?"]),
        true,
    ),
    (
        "wrong once",
        |seen| match seen.body.contains("Your last reply was") {
            false => Reply::words(&[BAD]),
            true if seen.body.contains("MySQL") && seen.body.contains("/answer") => {
                Reply::words(&[GOOD])
            }
            true => Reply::words(&["it was not told what is wrong"]),
        },
        true,
    ),
    ("wrong always", |_| Reply::words(&[BAD]), false),
    (
        "the form is refused",
        |seen| match has_schema(seen) {
            true => Reply::Status {
                code: 400,
                headers: Vec::new(),
                body: Some(
                    json!({"error": {"message": "json_schema is not supported by this model"}})
                        .to_string(),
                ),
            },
            false => Reply::words(&[GOOD]),
        },
        true,
    ),
];

/// A reply to every stage of a deliberation.
fn staged(answer: &str) -> String {
    json!({
        "reason": "worked out", "answer": answer, "confidence": 0.8, "choice": answer,
        "A": {"rating": 7, "weakness": "w"}, "B": {"rating": 6, "weakness": "w"},
        "ranking": ["A", "B"], "recommendation": WORDS, "consensus": "It is clear.",
        "support": "Reasons.", "dissent": "none", "cites": ["A"],
    })
    .to_string()
}

/// A home with the member `ann` of a fake service, and `bob` and `cyd` that play scripts.
async fn home(wire: Wire, replies: Replies) -> (Home, Fake) {
    let fake = Fake::choosing(SocketAddr::from(([127, 0, 0, 1], 0)), move |seen, _| {
        let reply = match seen.body.contains(FORMATS) {
            true => replies(seen),
            false if has_schema(seen) => Reply::words(&[&staged("SQLite")]),
            false => Reply::words(&[WORDS]),
        };
        Some((wire, reply))
    });
    let fake = fake.await.expect("loopback");
    let (name, base) = match wire {
        Wire::Anthropic => ("anthropic", fake.url()),
        Wire::Gemini => ("gemini", fake.url()),
        _ => ("openai", format!("{}/v1", fake.url())),
    };
    let home = Home::new(&json!({}));
    let script = |name: &str, answer: &str| {
        let file = home.path().join(format!("{name}.json"));
        let run = json!([{"text": staged(answer)}, {"finish": {}}]);
        fs::write(&file, json!({"runs": vec![run; 12]}).to_string()).expect("written");
        json!({"backend": "scripted", "model": file})
    };
    let config = json!({
        "council": {"members": ["ann"], "chair": "ann"},
        "agents": {
            "ann": {"backend": "tested", "model": "m"},
            "bob": script("bob", "SQLite"),
            "cyd": script("cyd", "PostgreSQL"),
        },
        "providers": {"tested": {"wire": name, "base_url": base, "attempts": 2}},
        "deliberation": {"council": {"size": 4, "members": [
            {"model": "bob", "role": "opinion-giver"}, {"model": "cyd", "role": "opinion-giver"},
            {"model": "ann", "role": "opinion-giver"}, {"model": "ann", "role": "synthesizer"},
        ]}},
    });
    fs::write(home.config_file(), config.to_string()).expect("written");
    fs::write(home.work().join("schema.json"), schema().to_string()).expect("written");
    (home, fake)
}

fn with_schema(home: &Home, command: &str, more: &[&str]) -> Said {
    let fixed = ["--output-schema", "schema.json", QUESTION];
    home.run(&[&[command], more, &fixed].concat())
}

/// Returns the bodies of the newest thread's messages.
fn bodies(home: &Home) -> Vec<String> {
    let thread = home.threads().pop().expect("a thread");
    let messages = whole(&thread).into_values();
    messages.map(|message| message.body.to_string()).collect()
}

fn value() -> Value {
    serde_json::from_str(GOOD).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_gets_the_value_alone_whatever_the_service_does() {
    for (name, replies, answers) in REPLIES {
        for wire in Wire::ALL {
            let (home, fake) = home(wire, *replies).await;
            let said = with_schema(&home, "ask", &[]);
            let what = format!("{name} on {wire:?}: {}{}", said.out, said.err);
            let formats = fake
                .seen()
                .into_iter()
                .filter(|seen| seen.body.contains(FORMATS));
            let formats: Vec<Seen> = formats.collect();
            assert!(has_schema(&formats[0]), "{what}");
            assert!(formats.len() <= 3, "{what}");
            let bodies = bodies(&home);
            assert_eq!(bodies[1], WORDS, "{what}");
            if *answers {
                assert_eq!(said.code, Some(0), "{what}");
                assert_eq!(said.json(), value(), "{what}");
                assert!(bodies[2].starts_with("```json\n{"), "{what}");
                let shown = home.run(&["show"]);
                assert!(shown.out.contains("as JSON"), "{}", shown.out);
            } else {
                assert_eq!((said.code, said.out.as_str()), (Some(14), ""), "{what}");
                for part in [
                    "error: the answer could not be put into the schema",
                    "cause: the reply does not match the schema: at /answer: ",
                    "kd show council-",
                ] {
                    assert!(said.err.contains(part), "{what}");
                }
                assert_eq!((bodies.len(), formats.len()), (2, 2), "{what}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_find_the_value_or_the_reason_in_the_object() {
    for command in ["ask", "think"] {
        let (home, _fake) = home(Wire::OpenAi, REPLIES[0].1).await;
        let more: &[&str] = match command {
            "think" => &[
                "--json",
                "--fast",
                "bob",
                "--rigorous",
                "ann",
                "--min-messages",
                "1",
            ],
            _ => &["--json", "--members", "bob,ann"],
        };
        let said = with_schema(&home, command, more);
        assert_eq!(said.code, Some(0), "{command}: {}{}", said.out, said.err);
        assert_eq!(said.json()["output"], value(), "{command}");
        assert_eq!(said.json().get("output_error"), None);
        let answers = said.json()["answers"].as_array().map(Vec::len);
        assert_eq!(answers, Some(2), "{}", said.out);
        // A question without a schema has no such field.
        let plain = home.run(&["ask", "--json", QUESTION]).json();
        assert_eq!(plain.get("output"), None);
    }
    let (home, _fake) = home(Wire::OpenAi, REPLIES[3].1).await;
    let said = with_schema(&home, "ask", &["--json"]);
    assert_eq!(said.code, Some(14), "{}{}", said.out, said.err);
    let (output, error) = (&said.json()["output"], &said.json()["output_error"]);
    assert_eq!((output, &error["kind"]), (&Value::Null, &json!("decode")));
    assert_eq!(said.json()["answers"][0]["text"], WORDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deliberation_is_counted_and_replayed_as_without_a_schema() {
    for (replies, code) in [(REPLIES[2].1, Some(0)), (REPLIES[3].1, Some(14))] {
        let (home, _fake) = home(Wire::OpenAi, replies).await;
        let said = with_schema(&home, "deliberate", &["--seed", "1"]);
        assert_eq!(said.code, code, "{}{}", said.out, said.err);
        match code {
            Some(0) => assert_eq!(said.json(), value()),
            _ => assert_eq!(said.out, ""),
        }
        let formatted = bodies(&home)
            .iter()
            .filter(|b| b.starts_with("```json"))
            .count();
        assert_eq!(formatted, usize::from(code == Some(0)));
        let replayed = home.run(&["replay"]);
        assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
        assert!(
            replayed.out.contains("agree byte for byte"),
            "{}",
            replayed.out
        );
        let why = home.run(&["why"]);
        assert_eq!(why.code, Some(0), "{}{}", why.out, why.err);
        let said = with_schema(&home, "deliberate", &["--seed", "1", "--json"]);
        let output = &said.json()["output"];
        assert_eq!(output.is_object(), code == Some(0), "{}", said.out);
        assert_eq!(said.json()["verdict"]["winner"], "SQLite");
        // The same answers without a schema give the same verdict; which of them is saved first does not matter.
        let plain = home.run(&["deliberate", "--seed", "1", "--json", QUESTION]);
        let told = |said: &Value| {
            let answer = said["verdict"]["answer"].as_str().expect("text");
            let (answer, rests_on) = answer.split_once("**Rests on.**").expect("sources");
            assert!(rests_on.contains("ann (#") && rests_on.contains("bob (#"));
            answer.to_owned()
        };
        assert_eq!(told(&plain.json()), told(&said.json()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deliberation_killed_while_its_answer_is_put_into_json_is_finished_later() {
    /// Whether the service answers requests for the value.
    static ANSWERS: AtomicBool = AtomicBool::new(false);
    let (home, _fake) = home(Wire::OpenAi, |_| match ANSWERS.load(Ordering::SeqCst) {
        true => Reply::words(&[GOOD]),
        false => Reply::Silence,
    })
    .await;
    let mut child = home
        .kd(&[
            "deliberate",
            "--seed",
            "1",
            "--output-schema",
            "schema.json",
            QUESTION,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let log = until("it is put into JSON", || {
        let log = home.threads().pop()?.join(".kd-events.jsonl");
        let text = fs::read_to_string(log).ok()?;
        text.contains("\"purpose\":\"format\"").then_some(text)
    });
    assert!(log.contains("\"fact\":\"concluded\""), "{log}");
    let status = home.run(&["status", "--json"]).json();
    assert_eq!(status["over"], false, "{status}");
    child.kill().expect("killed");
    child.wait().expect("it ends");
    let replayed = home.run(&["replay", "--json"]);
    let told = replayed.json();
    assert_eq!(
        (&told["difference"], &told["finished"]),
        (&Value::Null, &json!(false)),
        "{told}"
    );
    assert_eq!(told["verdict"]["winner"], "SQLite", "{told}");
    ANSWERS.store(true, Ordering::SeqCst);
    let resumed = home.run(&["deliberate", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert_eq!(resumed.json(), value());
    let values = bodies(&home)
        .into_iter()
        .filter(|body| body.starts_with("```json"));
    assert_eq!(values.count(), 1);
    let replayed = home.run(&["replay"]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.out, replayed.err);
    assert_eq!(home.run(&["status", "--json"]).json()["over"], true);
    let again = home.run(&["deliberate", "--resume"]);
    assert!(again.err.contains("has ended"), "{}", again.err);
}

#[test]
fn a_round_is_not_over_while_its_answer_is_put_into_json() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (home, _fake) = runtime.block_on(home(Wire::OpenAi, |_| Reply::Silence));
    let mut child = home
        .kd(&["ask", "--output-schema", "schema.json", QUESTION])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    until("it is put into JSON", || {
        let log = home.threads().pop()?.join(".kd-events.jsonl");
        let text = fs::read_to_string(log).ok()?;
        text.contains("\"purpose\":\"format\"").then_some(())
    });
    let over = || home.run(&["status", "--json"]).json()["over"].clone();
    assert_eq!(over(), false);
    child.kill().expect("killed");
    child.wait().expect("it ends");
    // The answer in words is there, and nobody writes.
    assert_eq!(over(), true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_schema_is_refused_before_anybody_is_asked() {
    let (home, fake) = home(Wire::OpenAi, REPLIES[0].1).await;
    let huge = format!("{{\"title\": \"{}\"}}", "x".repeat(300 << 10));
    fs::write(home.work().join("huge.json"), huge).expect("written");
    for (given, cause) in [
        ("missing.json", "cannot read the schema `missing.json`"),
        (".", "cannot read the schema `.`"),
        ("huge.json", "longer than 256 KiB"),
        ("-", "stdin belongs to the question"),
        ("{", "the schema is no JSON"),
        (r#"{"type": "text"}"#, "this is no JSON schema: at /type: "),
        (
            r#"{"$ref": "https://example.com/a.json"}"#,
            "the schema refers to `https://example.com/a.json`, and nothing is fetched",
        ),
    ] {
        for command in ["ask", "think", "deliberate"] {
            let said = home.run(&[command, "--output-schema", given, QUESTION]);
            assert_eq!(said.code, Some(2), "{given}: {}{}", said.out, said.err);
            assert!(said.err.contains(cause), "{given}: {}", said.err);
            assert!(said.err.contains("\nhelp: "), "{given}: {}", said.err);
        }
    }
    assert_eq!((fake.seen().len(), home.threads().len()), (0, 0));
    // The schema itself is fine, too.
    let said = home.run(&["ask", "--output-schema", &schema().to_string(), QUESTION]);
    assert_eq!(said.json(), value(), "{}", said.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_failures_keep_their_codes() {
    let (home, fake) = home(Wire::OpenAi, REPLIES[0].1).await;
    let said = with_schema(&home, "ask", &["--max-calls", "1"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(4), ""),
        "{}",
        said.err
    );
    assert_eq!((fake.seen().len(), bodies(&home).len()), (1, 2));
    // One more request is within the limit, a repair is not.
    let said = with_schema(&home, "ask", &["--max-calls", "2"]);
    assert_eq!((said.code, said.json()), (Some(0), value()));
    // Nobody answers, so there is nothing to put into a schema.
    let (home, fake) = self::home(Wire::OpenAi, REPLIES[0].1).await;
    drop(fake);
    let said = with_schema(&home, "ask", &[]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (Some(6), ""),
        "{}",
        said.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_on_disk_has_the_answer_in_words_and_as_json() {
    let (home, _fake) = home(Wire::OpenAi, REPLIES[0].1).await;
    let said = with_schema(&home, "ask", &["-o", "answer.md"]);
    assert_eq!(said.json(), value());
    let document = fs::read_to_string(home.work().join("answer.md")).expect("written");
    assert!(document.contains(WORDS), "{document}");
    assert!(
        document.contains("```json\n{\n  \"answer\": \"SQLite\""),
        "{document}"
    );
    let lines = with_schema(&home, "ask", &["--jsonl"]);
    let purposes = lines
        .out
        .lines()
        .filter(|line| line.contains("turn_queued") && line.contains("\"purpose\":\"format\""));
    assert_eq!(purposes.count(), 1, "{}", lines.out);
}

/// Finds a part of a reply.
type Pick = fn(&Value) -> &Value;

/// The three APIs: the path, the field of the form, and where the answer is in a complete response.
const APIS: [(&str, &str, Pick); 3] = [
    ("/v1/chat/completions", "response_format", |answer| {
        &answer["choices"][0]["message"]["content"]
    }),
    ("/v1/responses", "text", |answer| {
        let output = answer["output"].as_array().expect("items");
        let of = output.iter().find(|item| item["type"] == "message");
        &of.expect("a message")["content"][0]["text"]
    }),
    ("/v1/messages", "output_config", |answer| {
        let content = answer["content"].as_array().expect("blocks");
        let of = content.iter().find(|block| block["type"] == "text");
        &of.expect("text")["text"]
    }),
];

/// A request over an API for an answer in a schema.
fn request(path: &str, field: &str, model: &str, schema: &Value) -> Value {
    let mut request = json!({"model": model, "max_tokens": 100});
    let said = json!([user("Tabs or spaces?")]);
    let form = json!({"type": "json_schema", "name": "x", "schema": schema});
    match path {
        "/v1/responses" => request["input"] = said,
        _ => request["messages"] = said,
    }
    request[field] = match field {
        "response_format" => json!({"type": "json_schema", "json_schema": form}),
        _ => json!({"format": form}),
    };
    request
}

/// A schema of 41 short parts, each of which tries the next one twice.
fn branching() -> Value {
    let mut parts = json!({"a40": {"type": "object"}});
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        parts[format!("a{level}")] = json!({"allOf": [next, next]});
    }
    json!({"type": "object", "$defs": parts, "$ref": "#/$defs/a0"})
}

#[test]
fn pictures_are_few_and_come_without_a_schema() {
    let home = council::served();
    let served = Served::models(&home);
    let part = json!({"type": "image_url", "image_url": {"url": "https://example.org/b.png"}});
    let (path, field, _) = APIS[0];
    let send = |pictures: usize, form: Value| {
        let mut shown = vec![json!({"type": "text", "text": "What is it?"})];
        shown.extend(vec![part.clone(); pictures]);
        let asked = json!([{"role": "user", "content": shown}]);
        let request = json!({"model": "kd/ask", "messages": asked, field: form});
        served.send("POST", path, &bearer(), &request)
    };
    let (status, text) = send(1, json!({"type": "json_object"}));
    let error: Value = serde_json::from_str(&text).expect("JSON");
    assert!(status == 400 && error["error"]["param"] == field, "{text}");
    let (status, text) = send(101, Value::Null);
    assert!(status == 400 && text.contains("101 pictures"), "{text}");
    assert!(home.threads().is_empty(), "nobody was asked");
}

#[test]
fn a_served_council_answers_in_a_schema_over_every_api() {
    let home = council::served();
    let served = Served::models(&home);
    let schema = json!({"type": "object", "properties": {"choice": {"enum": ["tool", "tabs"]}}, "required": ["choice"], "additionalProperties": false});
    // The service cannot obey this one.
    let narrow = json!({"type": "object", "properties": {"choice": {"type": "string", "pattern": "^never$"}}, "required": ["choice"]});
    let remote =
        json!({"type": "object", "properties": {"choice": {"$ref": "https://example.com/x"}}});
    for (path, field, text_of) in APIS {
        for model in ["kd/ask", "kd/think", "kd/deliberate"] {
            let send = |schema: &Value| {
                let request = request(path, field, model, schema);
                served.send("POST", path, &bearer(), &request)
            };
            let (status, text) = send(&schema);
            assert_eq!(status, 200, "{path} {model}: {text}");
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(text_of(&answer), r#"{"choice":"tool"}"#, "{path} {model}");
            if path == "/v1/responses" {
                let sent = request(path, field, model, &schema);
                assert_eq!(answer["text"], sent["text"], "{answer}");
            }
            // What the members said is in the thread, too.
            let thread = answer["kd"]["thread"].as_str().expect("a thread");
            let shown = home.run(&["show", thread]).out;
            let (words, json) = shown.split_once("as JSON").expect("both");
            assert!(
                words.contains("ann") && json.contains("\"choice\": \"tool\""),
                "{shown}"
            );
        }
        let before = home.threads().len();
        let ask = |schema: &Value| {
            let request = request(path, field, "kd/ask", schema);
            served.send("POST", path, &bearer(), &request)
        };
        let (status, text) = ask(&remote);
        assert!(
            status == 400 && text.contains("nothing is fetched"),
            "{path}: {text}"
        );
        let (status, text) = ask(&branching());
        assert!(
            status == 400 && text.contains("branches too often") && text.contains(field),
            "{path}: {text}"
        );
        assert_eq!(home.threads().len(), before, "nobody was asked");
        let (status, text) = ask(&narrow);
        let why = "the answer could not be put into the schema";
        assert!(status == 502 && text.contains(why), "{path}: {text}");
        assert!(text.contains("thread council-"), "{path}: {text}");
    }
    // A stream sends the value at its end, and no words before.
    let (path, field, _) = APIS[0];
    let mut streamed = request(path, field, "kd/ask", &schema);
    streamed["stream"] = json!(true);
    let (status, text) = served.send("POST", path, &bearer(), &streamed);
    assert_eq!(status, 200, "{text}");
    let pieces = events(&text);
    let pieces = pieces
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["content"].as_str());
    assert_eq!(pieces.collect::<String>(), r#"{"choice":"tool"}"#, "{text}");
    // Any object will do.
    let mut any = request(path, field, "kd/ask", &schema);
    any[field] = json!({"type": "json_object"});
    let (status, text) = served.send("POST", path, &bearer(), &any);
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let content = answer["choices"][0]["message"]["content"].as_str();
    let content: Value = serde_json::from_str(content.expect("text")).expect("JSON");
    assert!(status == 200 && content.is_object(), "{text}");
}
