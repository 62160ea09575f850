//! Members at a service that read the user's folder, on every wire format. The folder is faked here; `kd-app` tests the
//! real one.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Heard, KEY, hear, member, provider, request};
use futures::StreamExt;
use kd_backends::backends::Reader;
use kd_backends::folder::{Bounds, FolderReader, Ran};
use kd_backends::guard::ROUNDS_MAX;
use kd_backends::{Backend, Backends, Env, Options};
use kd_core::config::{Config, LimitsConfig, ProviderConfig};
use kd_core::prompt::folder::FolderCall;
use kd_core::request::ToolTalk;
use kd_core::{Delta, FailureKind, Member, Request};
use kd_fake::{Fake, Reply, Script, Step, Wire};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// One test for each wire format and case.
macro_rules! on_every_wire {
    ($($case:ident),* $(,)?) => {
        mod openai { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::OpenAi).await; })* }
        mod anthropic { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::Anthropic).await; })* }
        mod gemini { $(#[tokio::test] async fn $case() { super::$case(kd_fake::Wire::Gemini).await; })* }
    };
}

on_every_wire!(
    results_go_back_and_the_answer_follows,
    calls_at_once_are_all_made_and_too_many_are_not,
    wrong_calls_are_answered_with_the_reason_in_a_form_that_services_take,
    a_model_that_calls_without_end_must_answer_in_the_last_round,
    a_cut_in_the_arguments_makes_no_call,
    a_refusal_of_tools_is_asked_once_without_and_told_once,
    another_refusal_is_none_of_tools,
    the_limit_of_calls_holds_and_leaves_a_call_for_the_answer,
    results_that_a_limit_leaves_no_room_for_are_taken_back,
    a_form_is_asked_for_in_words_and_read_from_the_last_round,
    a_file_with_a_key_is_for_nobody,
    long_results_end_the_calls,
    nobody_else_is_offered_tools,
    a_call_that_is_kept_is_used_before_a_first_request_fails,
    a_limit_of_tokens_leaves_room_for_the_answer,
    a_refusal_in_a_later_round_is_asked_once_more_without_tools,
    a_request_that_is_too_long_is_no_refusal_of_tools,
    a_call_without_arguments_is_one_with_none,
    a_dropped_answer_stops_the_reading,
);

/// Whether a slow file is read, and how many readings were stopped before their time.
static READING: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// Answers calls with what they name.
struct Folder;

impl FolderReader for Folder {
    fn run(&self, _: &Path, call: &FolderCall, bounds: &Bounds<'_>) -> Ran {
        let text = match call {
            FolderCall::Read { path, .. } if path == "key.txt" => KEY.to_owned(),
            FolderCall::Read { path, .. } if path == "long.txt" => "x".repeat(bounds.bytes),
            FolderCall::Read { path, .. } if path == "slow.txt" => {
                READING.store(true, Ordering::SeqCst);
                while !bounds.is_over() {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                STOPPED.fetch_add(u32::from(Instant::now() < bounds.until), Ordering::SeqCst);
                "too late".to_owned()
            }
            call => format!("contents of {call}"),
        };
        match (bounds.holds_key)(&text) {
            true => Ran::failed("it holds a key"),
            false => Ran {
                text,
                failed: false,
            },
        }
    }
}

fn backends(config: ProviderConfig, limits: LimitsConfig) -> Backends {
    let config = Config {
        providers: [("svc".to_owned(), config)].into(),
        limits,
        ..Config::default()
    };
    let options = Options {
        env: Env::of([("SVC_KEY", KEY)]),
        reader: Some(Reader(Arc::new(Folder))),
        ..Options::default()
    };
    Backends::new(&config, options)
}

fn reading() -> Member {
    Member {
        reads: true,
        ..member("svc")
    }
}

fn asked() -> Request {
    Request {
        reads: true,
        ..request()
    }
}

async fn seat(wire: Wire, replies: Vec<Reply>) -> (Fake, Arc<dyn Backend>) {
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let backends = backends(provider(&fake, wire), LimitsConfig::default());
    let seat = backends.seat(&reading()).unwrap();
    (fake, seat)
}

fn calls(calls: &[(&str, &str)]) -> Step {
    let own = |(name, arguments): &(&str, &str)| ((*name).to_owned(), (*arguments).to_owned());
    Step::Calls(calls.iter().map(own).collect())
}

fn read(path: &str) -> Reply {
    Reply::Stream(vec![calls(&[(
        "read_file",
        &json!({"path": path}).to_string(),
    )])])
}

/// The names of the tools that a request offers.
fn offered(wire: Wire, body: &Value) -> Vec<String> {
    let (tools, name) = match wire {
        Wire::Gemini => (&body["tools"][0]["functionDeclarations"], "/name"),
        Wire::Anthropic => (&body["tools"], "/name"),
        _ => (&body["tools"], "/function/name"),
    };
    let names = tools.as_array().into_iter().flatten();
    names
        .filter_map(|tool| Some(tool.pointer(name)?.as_str()?.to_owned()))
        .collect()
}

/// Whether no tool may be called.
fn must_answer(wire: Wire, body: &Value) -> bool {
    match wire {
        Wire::Gemini => body["toolConfig"]["functionCallingConfig"]["mode"] == "NONE",
        Wire::Anthropic => body["tool_choice"]["type"] == "none",
        _ => body.get("tools").is_none(),
    }
}

/// The results in a request, in order: name or id of the call, text, and whether it failed.
fn results(wire: Wire, body: &Value) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match wire {
        Wire::Gemini => list(&body["contents"])
            .iter()
            .flat_map(|content| list(&content["parts"]))
            .filter_map(|part| {
                let response = part.get("functionResponse")?;
                let said = &response["response"];
                let result = text(said.get("result").or(said.get("error"))?);
                Some((text(&response["name"]), result))
            })
            .collect(),
        Wire::Anthropic => list(&body["messages"])
            .iter()
            .flat_map(|message| list(&message["content"]))
            .filter(|block| block["type"] == "tool_result")
            .map(|block| (text(&block["tool_use_id"]), text(&block["content"])))
            .collect(),
        _ => list(&body["messages"])
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| (text(&message["tool_call_id"]), text(&message["content"])))
            .collect(),
    }
}

fn bodies(fake: &Fake) -> Vec<Value> {
    fake.seen().iter().map(kd_fake::Seen::json).collect()
}

/// The tool lines that users see.
async fn told(backend: &dyn Backend, request: Request) -> Vec<String> {
    let deltas: Vec<_> = backend.ask(request).collect().await;
    let line = |item: &Result<Delta, _>| match item {
        Ok(Delta::Tool { name, detail }) => Some(format!("{name} {detail}")),
        _ => None,
    };
    deltas.iter().filter_map(line).collect()
}

async fn results_go_back_and_the_answer_follows(wire: Wire) {
    let first = vec![
        Step::Text("Let me look.".into()),
        calls(&[("read_file", "{\"path\":\"a.rs\",\"start_line\":2}")]),
    ];
    let replies = vec![Reply::Stream(first), Reply::words(&["It is ", "so."])];
    let (fake, backend) = seat(wire, replies.clone()).await;
    let heard: Heard = hear(&*backend, asked()).await;
    assert_eq!(heard.whole(), "Let me look.\n\nIt is so.");
    let usage = heard.usage();
    assert_eq!(usage.repeats, 1, "the second request is counted");
    if wire != Wire::OpenAi {
        // Its usage of the first round is unknown: the fake reports none with calls.
        assert_eq!(usage.input_tokens, 22);
    }
    let starts = heard.shown.matches("Started {").count();
    assert_eq!(starts, 1, "{}", heard.shown);
    let bodies = bodies(&fake);
    assert_eq!(bodies.len(), 2);
    for body in &bodies {
        let names = ["list_files", "read_file", "search_files"];
        assert_eq!(offered(wire, body), names);
        assert!(!must_answer(wire, body));
    }
    let sent = results(wire, &bodies[1]);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1, "contents of a.rs:2-");
    let whole = bodies[1].to_string();
    assert!(whole.contains("Let me look."), "{whole}");
    assert_eq!(
        whole.contains("\"thoughtSignature\":\"signed1\""),
        wire == Wire::Gemini
    );
    let (_fake, backend) = seat(wire, replies).await;
    let lines = told(&*backend, asked()).await;
    assert_eq!(lines, ["read_file a.rs:2- (19 bytes)"]);
}

async fn calls_at_once_are_all_made_and_too_many_are_not(wire: Wire) {
    let many: Vec<String> = (0..10).map(|n| format!("{{\"path\": \"f{n}\"}}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|call| ("read_file", &**call)).collect();
    let replies = vec![Reply::Stream(vec![calls(&many)]), Reply::words(&["ok"])];
    let (fake, backend) = seat(wire, replies).await;
    assert_eq!(hear(&*backend, asked()).await.whole(), "ok");
    let sent = results(wire, &bodies(&fake)[1]);
    let texts: Vec<&str> = sent.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts.len(), 10, "every call has its result");
    assert_eq!(
        texts[..3],
        ["contents of f0", "contents of f1", "contents of f2"]
    );
    assert!(texts[8].contains("at most 8 calls"), "{texts:?}");
    if wire != Wire::Gemini {
        let ids: std::collections::BTreeSet<&str> =
            sent.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids.len(), 10, "{sent:?}");
    }
}

async fn wrong_calls_are_answered_with_the_reason_in_a_form_that_services_take(wire: Wire) {
    let wrong = [
        ("read_file", "{\"path\": \"a.r"),
        ("run shell;", "{}"),
        ("read_file", "{\"path\": \"../secret\"}"),
        ("read_file", "{\"path\": \"/etc/passwd\"}"),
        ("search_files", "[1]"),
        ("read_file", "{}"),
    ];
    let replies = vec![Reply::Stream(vec![calls(&wrong)]), Reply::words(&["ok"])];
    let (fake, backend) = seat(wire, replies.clone()).await;
    assert_eq!(hear(&*backend, asked()).await.whole(), "ok");
    let body = &bodies(&fake)[1];
    let sent = results(wire, body);
    for ((_, text), expected) in sent.iter().zip([
        "not one JSON object",
        "there is no tool `run shell;`",
        "`../secret` is not a path below the folder",
        "`/etc/passwd` is not a path below the folder",
        "not one JSON object",
        "missing field `path`",
    ]) {
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(sent.len(), 6);
    // What the model wrote would make services refuse the next request.
    let whole = body.to_string();
    assert!(!whole.contains("\"run shell;\""), "{whole}");
    let key = match wire {
        Wire::Gemini => "\"args\":",
        Wire::Anthropic => "\"input\":",
        _ => "\"arguments\":",
    };
    for after in whole.split(key).skip(1) {
        assert!(
            after.starts_with('{') || after.starts_with("\"{"),
            "{after}"
        );
    }
    let (_fake, backend) = seat(wire, replies).await;
    let lines = told(&*backend, asked()).await;
    assert!(
        lines[1].starts_with("unknown a call: there is no tool"),
        "{lines:?}"
    );
}

async fn a_model_that_calls_without_end_must_answer_in_the_last_round(wire: Wire) {
    let (fake, backend) = seat(wire, vec![read("a")]).await;
    let heard = hear(&*backend, asked()).await;
    let failure = heard.failure();
    assert_eq!(failure.kind, FailureKind::Decode);
    assert!(
        failure.message.contains("in place of an answer"),
        "{failure}"
    );
    let bodies = bodies(&fake);
    assert_eq!(bodies.len(), ROUNDS_MAX as usize + 1);
    let last = bodies.len() - 1;
    for (at, body) in bodies.iter().enumerate() {
        assert_eq!(must_answer(wire, body), at == last, "{at}");
    }
    // With words, it has answered.
    let mut replies = vec![read("a"); ROUNDS_MAX as usize];
    replies.push(Reply::words(&["At last."]));
    let (_fake, backend) = seat(wire, replies).await;
    assert_eq!(hear(&*backend, asked()).await.whole(), "At last.");
}

async fn a_cut_in_the_arguments_makes_no_call(wire: Wire) {
    let whole = wire.calls(&[("read_file".to_owned(), json!({"path": "a"}).to_string())]);
    let half = &whole[..whole.find("path").unwrap()];
    let cut = Reply::Stream(vec![Step::Raw(half.as_bytes().into()), Step::Cut]);
    let replies = vec![cut.clone(), read("b"), Reply::words(&["ok"])];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let config = ProviderConfig {
        attempts: Some(2),
        ..provider(&fake, wire)
    };
    let backends = backends(config, LimitsConfig::default());
    let heard = hear(&*backends.seat(&reading()).unwrap(), asked()).await;
    assert_eq!(heard.whole(), "ok");
    assert_eq!(heard.retries.len(), 1);
    let sent = results(wire, &bodies(&fake)[2]);
    assert_eq!(sent.len(), 1, "only the whole call is made");
    assert_eq!(sent[0].1, "contents of b");
    // Without another attempt, the turn fails.
    let (fake, backend) = seat(wire, vec![cut]).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.failure().kind, FailureKind::Decode);
    assert_eq!(fake.seen().len(), 1);
}

fn refusal(wire: Wire, words: &str) -> Reply {
    Reply::Status {
        code: 400,
        headers: Vec::new(),
        body: Some(wire.error_body(400, words)),
    }
}

async fn a_refusal_of_tools_is_asked_once_without_and_told_once(wire: Wire) {
    let word = || Reply::words(&["ok"]);
    let replies = vec![refusal(wire, "m does not support tools"), word(), word()];
    let (fake, backend) = seat(wire, replies).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.whole(), "ok");
    assert_eq!(heard.notices.len(), 1, "{:?}", heard.notices);
    let notice = &heard.notices[0];
    assert!(
        notice.contains("ada answers without reading files")
            && notice.contains("does not support tools"),
        "{notice}"
    );
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.whole(), "ok");
    assert!(heard.notices.is_empty(), "told once");
    let offers: Vec<usize> = bodies(&fake)
        .iter()
        .map(|b| offered(wire, b).len())
        .collect();
    assert_eq!(offers, [3, 0, 0]);
}

async fn another_refusal_is_none_of_tools(wire: Wire) {
    let (fake, backend) = seat(wire, vec![refusal(wire, "max_tokens is too large")]).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert_eq!(fake.seen().len(), 1);
}

async fn the_limit_of_calls_holds_and_leaves_a_call_for_the_answer(wire: Wire) {
    for (calls, tools) in [
        (1, [false; 3]),
        (2, [true, false, false]),
        (3, [true, true, false]),
    ] {
        let answers = move |seen: &kd_fake::Seen, _| {
            let body = seen.json();
            let may_call = !offered(wire, &body).is_empty() && !must_answer(wire, &body);
            let reply = match may_call {
                true => read("a"),
                false => Reply::words(&["ok"]),
            };
            Some((wire, reply))
        };
        let addr = ([127, 0, 0, 1], 0).into();
        let fake = Fake::choosing(addr, answers).await.unwrap();
        let limits = LimitsConfig {
            calls: Some(calls),
            ..LimitsConfig::default()
        };
        let backends = backends(provider(&fake, wire), limits);
        let heard = hear(&*backends.seat(&reading()).unwrap(), asked()).await;
        assert_eq!(heard.whole(), "ok", "{calls}");
        let bodies = bodies(&fake);
        assert_eq!(bodies.len() as u64, calls);
        for (body, may_call) in bodies.iter().zip(tools) {
            let is_free = !offered(wire, body).is_empty() && !must_answer(wire, body);
            assert_eq!(is_free, may_call, "{calls}");
        }
        assert_eq!(backends.spending().used().calls, calls);
    }
}

async fn results_that_a_limit_leaves_no_room_for_are_taken_back(wire: Wire) {
    let replies = vec![read("long.txt"), Reply::words(&["Without it."])];
    let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
    let limits = LimitsConfig {
        // Room for a request of a few KiB, and for no result of 24 KiB.
        tokens: Some(20_000),
        ..LimitsConfig::default()
    };
    let backends = backends(provider(&fake, wire), limits);
    let heard = hear(&*backends.seat(&reading()).unwrap(), asked()).await;
    assert_eq!(heard.whole(), "Without it.");
    let bodies = bodies(&fake);
    assert_eq!(bodies.len(), 2, "the request that did not fit was not sent");
    assert!(results(wire, &bodies[1])[0].1.starts_with("(left out"));
    assert!(must_answer(wire, &bodies[1]));
}

async fn a_form_is_asked_for_in_words_and_read_from_the_last_round(wire: Wire) {
    let first = vec![Step::Text("Hm.".into()), calls(&[("list_files", "{}")])];
    let replies = vec![Reply::Stream(first), Reply::words(&["{\"vote\": \"yes\"}"])];
    let (fake, backend) = seat(wire, replies).await;
    let mut asked = asked();
    asked.schema = Some(json!({"type": "object", "properties": {"vote": {"type": "string"}}}));
    let heard = hear(&*backend, asked).await;
    let text = match heard.end.as_ref().unwrap() {
        Delta::Finished { text, .. } => text.as_deref(),
        _ => None,
    };
    assert_eq!(text, Some("{\"vote\": \"yes\"}"));
    for body in bodies(&fake) {
        assert!(body.to_string().contains("JSON schema allows"), "{body}");
        for form in ["response_format", "output_config", "generationConfig"] {
            assert!(body.get(form).is_none(), "{body}");
        }
    }
}

async fn a_file_with_a_key_is_for_nobody(wire: Wire) {
    let (fake, backend) = seat(wire, vec![read("key.txt"), Reply::words(&["ok"])]).await;
    hear(&*backend, asked()).await.whole();
    let body = &bodies(&fake)[1];
    assert_eq!(results(wire, body)[0].1, "it holds a key");
    assert!(!body.to_string().contains(KEY));
}

async fn long_results_end_the_calls(wire: Wire) {
    let (fake, backend) = seat(wire, vec![read("long.txt")]).await;
    hear(&*backend, asked()).await.failure();
    let bodies = bodies(&fake);
    let last = bodies.last().unwrap();
    let bytes: usize = results(wire, last).iter().map(|(_, text)| text.len()).sum();
    assert_eq!((bodies.len(), bytes), (7, 128 << 10));
    assert!(must_answer(wire, last));
}

async fn nobody_else_is_offered_tools(wire: Wire) {
    let fake = Fake::start(Script::always(wire, Reply::words(&["ok"])))
        .await
        .unwrap();
    let backends = backends(provider(&fake, wire), LimitsConfig::default());
    let other = backends.seat(&member("svc")).unwrap();
    let reading = backends.seat(&reading()).unwrap();
    hear(&*other, asked()).await.whole();
    hear(&*reading, request()).await.whole();
    let mut own = asked();
    own.tools = Some(Box::new(ToolTalk::default()));
    hear(&*reading, own).await.whole();
    for body in bodies(&fake) {
        assert!(offered(wire, &body).is_empty(), "{body}");
    }
}

fn two_calls() -> LimitsConfig {
    LimitsConfig {
        calls: Some(2),
        ..LimitsConfig::default()
    }
}

async fn a_call_that_is_kept_is_used_before_a_first_request_fails(wire: Wire) {
    let busy = Reply::Status {
        code: 503,
        headers: Vec::new(),
        body: Some(wire.error_body(503, "busy")),
    };
    for first in [refusal(wire, "m does not support tools"), busy] {
        let replies = vec![first, Reply::words(&["ok"])];
        let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
        let config = ProviderConfig {
            attempts: Some(2),
            ..provider(&fake, wire)
        };
        let backends = backends(config, two_calls());
        let heard = hear(&*backends.seat(&reading()).unwrap(), asked()).await;
        assert_eq!(heard.whole(), "ok");
        let bodies = bodies(&fake);
        assert_eq!(bodies.len(), 2);
        assert!(offered(wire, &bodies[1]).is_empty(), "{}", bodies[1]);
    }
}

async fn a_limit_of_tokens_leaves_room_for_the_answer(wire: Wire) {
    let tokens = |tokens| LimitsConfig {
        tokens: Some(tokens),
        ..LimitsConfig::default()
    };
    // The long question fits once, or twice and the result too.
    for (limit, offers) in [(60_000, false), (120_000, true)] {
        let answer = Reply::words(&["ok"]);
        let replies = match offers {
            true => vec![read("a.rs"), answer],
            false => vec![answer],
        };
        let fake = Fake::start(Script::then(wire, replies)).await.unwrap();
        let backends = backends(provider(&fake, wire), tokens(limit));
        let mut request = asked();
        request.prompt.turn = "word ".repeat(8_000);
        let heard = hear(&*backends.seat(&reading()).unwrap(), request).await;
        assert_eq!(heard.whole(), "ok", "{limit}");
        let bodies = bodies(&fake);
        assert_eq!(bodies.len(), 1 + usize::from(offers), "{limit}");
        assert_eq!(!offered(wire, &bodies[0]).is_empty(), offers, "{limit}");
    }
}

async fn a_refusal_in_a_later_round_is_asked_once_more_without_tools(wire: Wire) {
    let missing = || refusal(wire, "a call is missing its thought_signature");
    let replies = vec![read("a.rs"), missing(), Reply::words(&["From the file."])];
    let (fake, backend) = seat(wire, replies).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.whole(), "From the file.");
    assert_eq!(heard.notices.len(), 1, "{:?}", heard.notices);
    assert!(
        heard.notices[0].contains("ada answers without further reading"),
        "{:?}",
        heard.notices
    );
    let sent = bodies(&fake);
    assert_eq!(sent.len(), 3);
    assert!(offered(wire, &sent[2]).is_empty() && results(wire, &sent[2]).is_empty());
    // What was read is in the question, below a line that says what it is.
    let whole = sent[2].to_string();
    assert!(whole.contains("contents of a.rs"), "{whole}");
    // Once: a second refusal ends the turn.
    let (fake, backend) = seat(wire, vec![read("a.rs"), missing()]).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert_eq!(bodies(&fake).len(), 3);
}

async fn a_request_that_is_too_long_is_no_refusal_of_tools(wire: Wire) {
    let words = "This model's maximum context length is 4097 tokens; you asked for 4238 (4143 in the messages, 95 in the functions).";
    let (fake, backend) = seat(wire, vec![refusal(wire, words)]).await;
    let heard = hear(&*backend, asked()).await;
    assert_eq!(heard.failure().kind, FailureKind::Invalid);
    assert!(heard.notices.is_empty(), "{:?}", heard.notices);
    assert_eq!(fake.seen().len(), 1);
}

async fn a_call_without_arguments_is_one_with_none(wire: Wire) {
    let first = Reply::Stream(vec![calls(&[("list_files", "null")])]);
    let (fake, backend) = seat(wire, vec![first, Reply::words(&["ok"])]).await;
    hear(&*backend, asked()).await.whole();
    let sent = results(wire, &bodies(&fake)[1]);
    assert!(sent[0].1.starts_with("contents of"), "{sent:?}");
}

/// Only one of the tests reads a slow file at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn a_dropped_answer_stops_the_reading(wire: Wire) {
    let _alone = ALONE.lock().await;
    READING.store(false, Ordering::SeqCst);
    let before = STOPPED.load(Ordering::SeqCst);
    let (_fake, backend) = seat(wire, vec![read("slow.txt")]).await;
    let answer = tokio::spawn(backend.ask(asked()).collect::<Vec<_>>());
    let short = std::time::Duration::from_millis(2);
    while !READING.load(Ordering::SeqCst) {
        tokio::time::sleep(short).await;
    }
    answer.abort();
    while STOPPED.load(Ordering::SeqCst) == before {
        tokio::time::sleep(short).await;
    }
}
