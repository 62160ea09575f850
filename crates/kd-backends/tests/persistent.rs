//! Persistent agents as real processes: a fake agent that speaks each protocol, is asked twice, told to stop, dies,
//! hangs, and leaves processes behind. Also tests the watch over read-only turns.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use futures::StreamExt;
use kd_backends::transport::keeper;
use kd_backends::transport::process::{living, settle};
use kd_backends::{Backend, Backends, Env, Options};
use kd_core::config::{AgentConfig, Config};
use kd_core::request::Deadlines;
use kd_core::seating::{SeatRequest, seat};
use kd_core::{Delta, Failure, FailureKind, Prompt, Request, Sampling, SeatName};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A folder in which the fake agent replaces one program.
struct Stage {
    folder: TempDir,
    backends: Backends,
    member: kd_core::Member,
}

impl Stage {
    /// Creates a member called `ada`, whose program plays this script and records its input in `heard`.
    fn new(agent: AgentConfig, steps: &Value) -> Self {
        keeper::use_program(env!("CARGO_BIN_EXE_kd-keeper"));
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("fake");
        std::fs::hard_link(kd_fake::fake_agent(), &at)
            .or_else(|_| std::fs::copy(kd_fake::fake_agent(), &at).map(drop))
            .unwrap();
        let script = steps
            .to_string()
            .replace("HEARD", folder.path().join("heard").to_str().unwrap())
            .replace("FOLDER", folder.path().to_str().unwrap());
        std::fs::write(folder.path().join("fake.script"), script).unwrap();
        let mut config = Config::default();
        let command = vec![at.to_str().unwrap().to_owned()];
        // Allowed in the sandbox, where there is one: the fake agent records its input there.
        let state = vec![folder.path().to_str().unwrap().to_owned()];
        let agent = AgentConfig {
            command,
            state,
            ..agent
        };
        config.agents.insert("ada".into(), agent);
        let member = seat(&config, &SeatRequest::default())
            .unwrap()
            .roster
            .members()[0]
            .clone();
        let path = std::env::var("PATH").unwrap();
        let env = Env::of([("PATH", path.as_str()), ("HOME", "/nowhere")]);
        let backends = Backends::new(
            &config,
            Options {
                env,
                ..Options::default()
            },
        )
        .in_folder(folder.path().into());
        Self {
            folder,
            backends,
            member,
        }
    }

    fn backend(&self) -> Arc<dyn Backend> {
        self.backends.seat(&self.member).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns its running processes.
    fn processes(&self) -> Vec<i32> {
        let program = self.path("fake");
        let mut found: Vec<i32> = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Returns the lines that the agent read, and how many processes read them.
    fn heard(&self) -> (Vec<Value>, usize) {
        let text = std::fs::read_to_string(self.path("heard")).unwrap();
        let mut processes = BTreeSet::new();
        let lines = text
            .lines()
            .map(|line| {
                let (pid, line) = line.split_once(' ').unwrap();
                processes.insert(pid.to_owned());
                serde_json::from_str(line).unwrap_or_else(|_| json!(line))
            })
            .collect();
        (lines, processes.len())
    }
}

fn backed(backend: &str) -> AgentConfig {
    AgentConfig {
        backend: backend.into(),
        ..AgentConfig::default()
    }
}

fn request(question: &str) -> Request {
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: SeatName::new("ada").unwrap(),
        prompt: Prompt {
            history: question.into(),
            ..Prompt::default()
        },
        sampling: Sampling::default(),
        schema: None,
        deadlines: Deadlines::default(),
        writable: false,
        tools: None,
    }
}

async fn run(
    backend: &dyn Backend,
    request: Request,
) -> (String, Vec<String>, Result<Delta, Failure>) {
    let mut stream = backend.ask(request);
    let (mut text, mut notices) = (String::new(), Vec::new());
    while let Some(delta) = stream.next().await {
        match delta {
            Ok(Delta::Text { text: piece }) => text.push_str(&piece),
            Ok(Delta::Retrying { .. }) => text.clear(),
            Ok(Delta::Notice { text }) => notices.push(text),
            Ok(end @ Delta::Finished { .. }) => return (text, notices, Ok(end)),
            Ok(_) => {}
            Err(failure) => return (text, notices, Err(failure)),
        }
    }
    panic!("the stream ended with neither Finished nor a failure");
}

/// Asks, and drops the stream once this text has arrived.
async fn interrupt(backend: &dyn Backend, after: &str) {
    let mut stream = backend.ask(request("go"));
    let mut text = String::new();
    while !text.contains(after) {
        match stream.next().await {
            Some(Ok(Delta::Text { text: piece })) => text.push_str(&piece),
            Some(Ok(_)) => {}
            other => panic!("the agent ended early: {other:?}"),
        }
    }
}

fn lines(values: &[Value]) -> Value {
    let text: String = values.iter().map(|value| format!("{value}\n")).collect();
    json!({ "print": text })
}

fn hear(word: &str) -> Value {
    json!({"hear": word, "note": "HEARD"})
}

/// Waits until the condition holds.
async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("it comes");
}

fn settled() {
    assert!(
        settle(Duration::from_secs(60)),
        "a child process or task did not end"
    );
}

mod claude {
    use super::*;

    pub(crate) fn piece(text: &str) -> Vec<Value> {
        vec![
            json!({"type": "stream_event", "event": {"type": "message_start", "message": {"id": text}}}),
            json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}}}),
        ]
    }

    pub(crate) fn answer(text: &str) -> Value {
        let mut all = piece(text);
        all.push(json!({"type": "assistant", "message": {"id": text, "content": [{"type": "text", "text": text}]}}));
        all.push(json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed",
            "result": text, "total_cost_usd": 0.5, "usage": {"input_tokens": 1, "output_tokens": 1}}));
        lines(&all)
    }

    pub(crate) fn cleared() -> Value {
        lines(&[
            json!({"type": "conversation_reset"}),
            json!({"type": "system", "subtype": "init", "session_id": "n"}),
            json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 0, "result": ""}),
        ])
    }

    pub(crate) fn stopped() -> Value {
        lines(&[
            json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
            "terminal_reason": "aborted_streaming"}),
        ])
    }
}

#[tokio::test]
async fn claude_is_asked_again_in_an_emptied_session_of_the_same_process() {
    let steps = json!([
        hear("one"), claude::answer("first"),
        hear("/clear"), claude::cleared(),
        hear("two"), claude::answer("second"), {"hang": true}
    ]);
    let stage = Stage::new(backed("claude_code"), &steps);
    let backend = stage.backend();
    assert_eq!(run(&*backend, request("one")).await.0, "first");
    let (text, _, end) = run(&*backend, request("two")).await;
    assert_eq!(text, "second");
    let Ok(Delta::Finished {
        usage: Some(usage), ..
    }) = end
    else {
        panic!("{end:?}")
    };
    assert_eq!(usage.cost_usd, Some(0.5), "the price starts at zero again");
    let (heard, processes) = stage.heard();
    assert_eq!((heard.len(), processes), (3, 1));
    drop((backend, stage));
    settled();
}

#[tokio::test]
async fn a_program_that_was_made_ready_is_the_one_that_is_asked() {
    let steps =
        json!([{"write": "FOLDER/up"}, hear("one"), claude::answer("first"), {"hang": true}]);
    let stage = Stage::new(backed("claude_code"), &steps);
    stage.backends.prepare(&stage.member);
    stage.backends.prepare(&stage.member);
    until(|| stage.path("up").exists()).await;
    let ready = stage.processes();
    assert_eq!(ready.len(), 1, "one is enough");
    let backend = stage.backend();
    let (text, notices, _) = run(&*backend, request("one")).await;
    assert_eq!(text, "first");
    // The fake agent records its input; no other file is reported.
    let other = notices.iter().filter(|n| !n.contains("heard"));
    assert_eq!(other.count(), 0, "{notices:?}");
    assert_eq!(stage.processes(), ready);
    drop((backend, stage));
    settled();
}

#[tokio::test]
async fn one_that_was_made_ready_and_died_is_replaced() {
    let steps =
        json!([{"write": "FOLDER/up"}, hear("one"), claude::answer("first"), {"hang": true}]);
    let stage = Stage::new(backed("claude_code"), &steps);
    stage.backends.prepare(&stage.member);
    until(|| stage.path("up").exists()).await;
    for pid in stage.processes() {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
    let backend = stage.backend();
    assert_eq!(run(&*backend, request("one")).await.0, "first");
    drop((backend, stage));
    settled();
}

#[tokio::test]
async fn nobody_is_made_ready_who_is_not_kept() {
    let steps = json!([{"write": "FOLDER/up"}, hear("one"), claude::answer("first")]);
    let cold = AgentConfig {
        warm: Some(false),
        ..backed("claude_code")
    };
    let stage = Stage::new(cold, &steps);
    stage.backends.prepare(&stage.member);
    assert_eq!(run(&*stage.backend(), request("one")).await.0, "first");
    // A process that expected more input would still be running.
    until(|| stage.processes().is_empty()).await;
    // A missing program does not matter either, before it is asked.
    let lost = Stage::new(backed("claude_code"), &steps);
    std::fs::remove_file(lost.path("fake")).unwrap();
    lost.backends.prepare(&lost.member);
    let (_, _, end) = run(&*lost.backend(), request("one")).await;
    assert_eq!(end.unwrap_err().kind, FailureKind::Missing);
}

#[tokio::test]
async fn a_claude_that_cannot_empty_its_session_is_replaced() {
    let steps = json!([
        hear("one"), claude::answer("first"),
        hear("/clear"),
        lines(&[json!({"type": "result", "subtype": "success", "is_error": false, "terminal_reason": "completed", "result": "Unknown command"})]),
        {"hang": true}
    ]);
    let stage = Stage::new(backed("claude_code"), &steps);
    let backend = stage.backend();
    for question in ["one", "one more"] {
        let (text, _, end) = run(&*backend, request(question)).await;
        assert!(end.is_ok(), "{end:?}");
        assert_eq!(text, "first");
    }
    assert_eq!(stage.heard().1, 2, "another process was asked");
    drop((backend, stage));
    settled();
}

#[tokio::test]
async fn stopped_in_its_own_words_it_is_kept_and_asked_again() {
    let steps = json!([
        hear("go"), lines(&claude::piece("half a word")),
        hear("interrupt"), claude::stopped(), {"write": "FOLDER/stopped"},
        hear("/clear"), claude::cleared(),
        hear("go"), claude::answer("second"), {"hang": true}
    ]);
    let stage = Stage::new(backed("claude_code"), &steps);
    let backend = stage.backend();
    interrupt(&*backend, "half").await;
    while !stage.path("stopped").exists() {
        tokio::task::yield_now().await;
    }
    // Its last output is still being read before the process returns to the pool; an earlier question gets a
    // new process, whose first input is the same.
    let (text, _, end) = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let mut stream = backend.ask(request("go"));
            let mut text = String::new();
            let end = loop {
                match stream.next().await {
                    Some(Ok(Delta::Text { text: piece })) => text.push_str(&piece),
                    Some(Ok(end @ Delta::Finished { .. })) => break Some(end),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break None,
                }
                if text == "half a word" {
                    break None;
                }
            };
            if let Some(end) = end {
                return (text, (), end);
            }
            drop(stream);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!(text, "second");
    assert!(matches!(end, Delta::Finished { .. }));
    drop((backend, stage));
    settled();
}

#[tokio::test]
async fn whoever_does_not_stop_is_ended_with_all_it_started() {
    let steps = json!([
        {"ignore": ["INT", "TERM"]}, {"shell": "FOLDER/shell", "session": true, "stubborn": true},
        hear("go"), lines(&claude::piece("half a word")), {"hang": true}
    ]);
    let stage = Stage::new(backed("claude_code"), &steps);
    let backend = stage.backend();
    interrupt(&*backend, "half").await;
    let shell: i32 = std::fs::read_to_string(stage.path("shell"))
        .unwrap()
        .parse()
        .unwrap();
    // The grace second passes on the runtime; then it is dropped.
    while living().iter().any(|(label, _)| label == "ada") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    settled();
    let state = std::fs::read_to_string(format!("/proc/{shell}/stat"));
    assert!(state.is_err() || state.unwrap().contains(") Z "));
}

#[tokio::test]
async fn codex_gets_a_thread_for_each_question_and_shows_its_words_as_they_come() {
    let turn = |id: u64, thread: &str, text: &str| {
        lines(&[
            json!({"id": id, "result": {"turn": {"id": "u"}}}),
            json!({"method": "turn/started", "params": {"threadId": thread, "turn": {"id": "u"}}}),
            json!({"method": "item/agentMessage/delta", "params": {"threadId": thread, "itemId": "i", "delta": text}}),
            json!({"method": "item/completed", "params": {"threadId": thread, "item": {"type": "agentMessage", "id": "i", "text": text}}}),
            json!({"method": "turn/completed", "params": {"threadId": thread, "turn": {"id": "u", "status": "completed"}}}),
        ])
    };
    let thread = |id: u64, thread: &str| {
        lines(&[json!({"id": id, "result": {"thread": {"id": thread}, "model": "m"}})])
    };
    let steps = json!([
        hear("initialize"), lines(&[json!({"id": 1, "result": {"userAgent": "kingdom/0.169.0 (x)"}})]),
        hear("thread/start"), thread(2, "t1"),
        hear("turn/start"), turn(3, "t1", "first"),
        hear("thread/start"), thread(5, "root"),
        hear("thread/name/set"), lines(&[json!({"id": 6, "result": {}})]),
        hear("thread/fork"), thread(7, "t2"),
        hear("turn/start"), turn(8, "t2", "second"),
        hear("thread/fork"), thread(10, "t3"),
        hear("turn/start"), turn(11, "t3", "third"),
        hear("thread/delete"), {"write": "FOLDER/deleted"}, {"hang": true}
    ]);
    let stage = Stage::new(backed("codex"), &steps);
    let backend = stage.backend();
    assert_eq!(run(&*backend, request("one")).await.0, "first");
    assert_eq!(run(&*backend, request("two")).await.0, "second");
    assert_eq!(run(&*backend, request("three")).await.0, "third");
    let (heard, processes) = stage.heard();
    assert_eq!(processes, 1);
    let methods: Vec<&str> = heard
        .iter()
        .filter_map(|line| line["method"].as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "initialized",
            "thread/start",
            "turn/start",
            "thread/unsubscribe",
            "thread/start",
            "thread/name/set",
            "thread/fork",
            "turn/start",
            "thread/unsubscribe",
            "thread/fork",
            "turn/start"
        ]
    );
    for begun in [2, 5, 7, 10] {
        // It would override the settings that Codex got at its start.
        assert_eq!(heard[begun]["params"].get("sandbox"), None);
    }
    // The pool ends with its members; the root thread is deleted with the process.
    drop(backend);
    let Stage {
        folder, backends, ..
    } = stage;
    drop(backends);
    until(|| folder.path().join("deleted").exists()).await;
    settled();
}

#[tokio::test]
async fn a_history_whose_mark_is_refused_is_told_without_it() {
    let refused = json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": 400,
        "terminal_reason": "api_error", "result":
        "API Error: 400 A maximum of 4 blocks with cache_control may be provided. Found 5."});
    let steps = json!([
        {"hear": "rules", "note": "HEARD"}, lines(&[refused])
    ]);
    let stage = Stage::new(backed("claude_code"), &steps);
    let mut asked = request("king: one\n\nada: two");
    asked.prompt.rules = "rules".into();
    asked.prompt.starts = vec![9].into();
    asked.prompt.turn = "turn".into();
    let (_, _, end) = run(&*stage.backend(), asked.clone()).await;
    assert!(end.unwrap_err().message.contains("cache_control"));
    let marked = |stage: &Stage| -> Vec<bool> {
        let heard = stage.heard().0;
        let marks = heard.iter().map(|line| line.to_string());
        marks.map(|line| line.contains("cache_control")).collect()
    };
    assert_eq!(marked(&stage), [true, false], "asked once more, unmarked");
    let _ = run(&*stage.backend(), asked).await;
    assert_eq!(marked(&stage), [true, false, false], "and not marked again");
}

#[tokio::test]
async fn a_codex_without_an_app_server_is_asked_in_its_one_shot_form() {
    let said = json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "as before"}});
    let steps = json!([
        {"when": "app-server", "do": [{"complain": "error: unrecognized subcommand 'app-server'\n"}, {"exit": 2}]},
        {"read": true}, lines(&[said, json!({"type": "turn.completed", "usage": {}})])
    ]);
    let stage = Stage::new(backed("codex"), &steps);
    let backend = stage.backend();
    let (text, notices, end) = run(&*backend, request("one")).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(text, "as before");
    assert!(notices[0].contains("for each question"), "{notices:?}");
    assert!(notices[0].contains("Codex 0.80.0 or later"), "{notices:?}");
    // The same is not tried and told with each question.
    let (text, notices, end) = run(&*backend, request("two")).await;
    assert!(end.is_ok(), "{end:?}");
    let told = |text: &String| text.contains("for each question");
    assert_eq!(text, "as before");
    assert!(!notices.iter().any(told), "{notices:?}");
    drop(backend);
    drop(stage);
    settled();
}

fn acp_greeting() -> Value {
    lines(&[
        json!({"jsonrpc": "2.0", "id": "$asked", "result": {"protocolVersion": 1, "agentCapabilities": {}}}),
    ])
}

fn acp_said(session: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session,
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
}

#[tokio::test]
async fn any_acp_agent_sits_by_configuration_alone_and_its_wishes_to_write_are_rejected() {
    let steps = json!([
        hear("initialize"), acp_greeting(),
        hear("session/new"), lines(&[json!({"jsonrpc": "2.0", "id": "$asked", "result": {"sessionId": "s1",
            "modes": {"availableModes": [{"id": "agent"}, {"id": "read-only"}]}}})]),
        hear("set_mode"), lines(&[json!({"jsonrpc": "2.0", "id": "$asked", "result": {}})]),
        hear("session/prompt"), lines(&[json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
            "params": {"sessionId": "s1", "toolCall": {"title": "write"}, "options": [
                {"optionId": "go", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]}})]),
        hear("\"no\""), lines(&[acp_said("s1", "then not"),
            json!({"jsonrpc": "2.0", "id": "$asked", "result": {"stopReason": "end_turn"}})]),
        {"hang": true}
    ]);
    let stage = Stage::new(backed("acp"), &steps);
    let (text, _, end) = run(&*stage.backend(), request("one")).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(text, "then not");
    assert_eq!(stage.heard().1, 1);
    drop(stage);
    settled();
}

#[tokio::test]
async fn a_mode_that_is_refused_ends_the_turn_before_the_question() {
    let steps = json!([
        hear("initialize"), acp_greeting(),
        hear("session/new"), lines(&[json!({"jsonrpc": "2.0", "id": "$asked", "result": {"sessionId": "s1",
            "modes": {"availableModes": [{"id": "read-only"}]}}})]),
        hear("set_mode"), lines(&[json!({"jsonrpc": "2.0", "id": "$asked", "error": {"code": -32602, "message": "no such mode"}})]),
        hear("never"), {"hang": true}
    ]);
    let stage = Stage::new(backed("acp"), &steps);
    let failure = run(&*stage.backend(), request("one")).await.2.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert!(failure.message.contains("no such mode"), "{failure}");
    let (heard, _) = stage.heard();
    assert!(heard.iter().all(|line| line["method"] != "session/prompt"));
    drop(stage);
    settled();
}

#[tokio::test]
async fn a_process_that_nobody_asks_is_stopped() {
    let steps = json!([hear("one"), claude::answer("first"), {"again": [hear("never")]}]);
    let folder = Stage::new(backed("claude_code"), &steps);
    let mut config = Config::default();
    config.council.warm_secs = 1;
    let command = vec![folder.path("fake").to_str().unwrap().to_owned()];
    config.agents.insert(
        "bob".into(),
        AgentConfig {
            command,
            state: vec![folder.path("").to_str().unwrap().to_owned()],
            ..backed("claude_code")
        },
    );
    let roster = seat(&config, &SeatRequest::default()).unwrap().roster;
    let env = Env::of([("PATH", std::env::var("PATH").unwrap())]);
    let backends = Backends::new(
        &config,
        Options {
            env,
            ..Options::default()
        },
    )
    .in_folder(folder.folder.path().into());
    let backend = backends.seat(&roster.members()[0]).unwrap();
    assert_eq!(run(&*backend, request("one")).await.0, "first");
    let lives = || living().iter().any(|(label, _)| label == "bob");
    assert!(lives(), "it is kept");
    while lives() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    settled();
}

#[tokio::test]
async fn files_that_change_during_a_read_only_turn_are_told() {
    let git = |folder: &std::path::Path| {
        let done = std::process::Command::new("git")
            .args(["init", "-q"])
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success());
    };
    let steps =
        json!([hear("go"), {"write": "FOLDER/broken.txt"}, claude::answer("done"), {"hang": true}]);
    let stage = Stage::new(backed("claude_code"), &steps);
    git(stage.folder.path());
    let (_, notices, end) = run(&*stage.backend(), request("go")).await;
    assert!(end.is_ok(), "{end:?}");
    assert!(
        notices
            .iter()
            .any(|n| n.contains("broken.txt") && n.contains("read-only")),
        "{notices:?}"
    );

    let stage = Stage::new(backed("claude_code"), &steps);
    let (_, notices, end) = run(&*stage.backend(), request("go")).await;
    assert!(end.is_ok(), "{end:?}");
    assert!(
        notices.iter().any(|n| n.contains("broken.txt")),
        "outside of git too: {notices:?}"
    );

    let stage = Stage::new(backed("claude_code"), &steps);
    git(stage.folder.path());
    let request = Request {
        writable: true,
        ..request("go")
    };
    let (_, notices, _) = run(&*stage.backend(), request).await;
    assert!(
        notices.is_empty(),
        "who may write is not watched: {notices:?}"
    );
    drop(stage);
    settled();
}
