//! `kd acp` over real stdin and stdout, with hand-written messages. `tests/clients/run` tests the official client.

mod editors;

use crate::support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use support::Home;

/// A running agent.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Agent {
    fn start(home: &Home) -> Self {
        let mut command = home.kd(&["acp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut agent = Self {
            child,
            input,
            output,
            last: 0,
        };
        let about = agent.call(
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": {}}),
        );
        assert_eq!(about["result"]["protocolVersion"], 1, "{about}");
        agent
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{message}").expect("written");
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.output.read_line(&mut line).expect("a line") > 0,
            "the agent ended"
        );
        serde_json::from_str(&line).expect("JSON only")
    }

    /// Returns the messages before the response to a request, and the response.
    fn until(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return (before, message);
            }
            before.push(message);
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.until(id).1
    }

    fn session(&mut self, home: &Home) -> String {
        let new = self.call("session/new", json!({"cwd": home.work(), "mcpServers": []}));
        new["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{new}"))
            .to_owned()
    }

    /// Closes stdin and waits for the end.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// Returns the updates of a kind.
fn updates<'m>(messages: &'m [Value], kind: &str) -> Vec<&'m Value> {
    let updates = messages.iter().map(|m| &m["params"]["update"]);
    updates.filter(|u| u["sessionUpdate"] == kind).collect()
}

fn text_of(messages: &[Value], kind: &str) -> String {
    let chunks = updates(messages, kind);
    chunks
        .iter()
        .filter_map(|u| u["content"]["text"].as_str())
        .collect()
}

fn council() -> Home {
    let said = |text: &str| json!({"runs": [[{"text": text}]]});
    Home::scripted(&[("ann", said("Spaces.")), ("bob", said("Tabs."))])
}

#[test]
fn a_prompt_is_answered_with_a_plan_cards_and_a_message_and_its_session_can_be_loaded() {
    let home = council();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let id = agent.send("session/prompt", prompt(&session, "Tabs or spaces?"));
    let (told, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(
        text_of(&told, "agent_message_chunk"),
        "## ann\n\nSpaces.\n\n## bob\n\nTabs."
    );
    assert!(text_of(&told, "agent_thought_chunk").contains("asking ann"));
    let cards = updates(&told, "tool_call");
    let titles: Vec<&str> = cards
        .iter()
        .filter_map(|card| card["title"].as_str())
        .collect();
    assert_eq!(titles, ["ann: answer", "bob: answer"]);
    let ends = updates(&told, "tool_call_update");
    assert_eq!(ends.len(), 2);
    assert!(
        ends.iter().all(|end| end["status"] == "completed"),
        "{ends:?}"
    );
    assert!(
        ends.iter()
            .any(|end| end["content"][0]["content"]["text"] == "Tabs."),
        "{ends:?}"
    );
    let plan = updates(&told, "plan").pop().expect("a plan")["entries"].clone();
    assert_eq!(plan[0]["content"], "answer");
    assert_eq!(plan[0]["status"], "completed", "{plan}");
    agent.end();

    let mut agent = Agent::start(&home);
    let listed = agent.call("session/list", json!({"cwd": home.work()}));
    let sessions = listed["result"]["sessions"].as_array().expect("sessions");
    assert_eq!(
        (
            sessions.len(),
            &sessions[0]["sessionId"],
            &sessions[0]["title"]
        ),
        (1, &json!(session), &json!("Tabs or spaces?"))
    );
    let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let id = agent.send("session/load", load);
    let (told, loaded) = agent.until(id);
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(text_of(&told, "user_message_chunk"), "Tabs or spaces?");
    assert_eq!(
        updates(&told, "tool_call").len() + updates(&told, "agent_message_chunk").len(),
        2
    );
    let id = agent.send("session/prompt", prompt(&session, "Why?"));
    assert_eq!(agent.until(id).1["result"]["stopReason"], "end_turn");
    agent.end();
    assert_eq!(home.threads().len(), 1, "one session is one thread");
    assert_eq!(home.run(&["fsck"]).code, Some(0));
}

#[test]
fn the_message_of_every_mode_is_the_answer_and_no_card_is_overwritten_by_a_later_prompt() {
    let home = support::council::served();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let mut ids = Vec::new();
    let mut ended = 0;
    for mode in ["ask", "think", "deliberate", "ask"] {
        agent.call(
            "session/set_mode",
            json!({"sessionId": session, "modeId": mode}),
        );
        let id = agent.send("session/prompt", prompt(&session, "Tabs or spaces?"));
        let (told, answer) = agent.until(id);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let text = text_of(&told, "agent_message_chunk");
        assert!(
            !text.is_empty() && !text.starts_with('{') && !text.contains("interrupted"),
            "{mode}: {text}"
        );
        let own: Vec<String> = updates(&told, "tool_call")
            .iter()
            .filter_map(|card| Some(card["toolCallId"].as_str()?.to_owned()))
            .collect();
        assert!(!own.is_empty(), "{mode}");
        for end in updates(&told, "tool_call_update") {
            let id = end["toolCallId"].as_str().expect("an id");
            assert!(own.iter().any(|own| own == id), "{mode}: {id} of {own:?}");
            ended += 1;
        }
        ids.extend(own);
    }
    let all = ids.len();
    assert_eq!(ended, all, "each card ends");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "{ids:?}");
    agent.end();

    // The mode of the last question is the mode of the loaded session.
    let mut agent = Agent::start(&home);
    let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let mode = |agent: &mut Agent| {
        let loaded = agent.call("session/load", load.clone());
        loaded["result"]["modes"]["currentModeId"].clone()
    };
    assert_eq!(mode(&mut agent), "ask");
    agent.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "think"}),
    );
    assert_eq!(mode(&mut agent), "think");
    let id = agent.send("session/prompt", prompt(&session, "Why?"));
    assert_eq!(agent.until(id).1["result"]["stopReason"], "end_turn");
    agent.end();
    let mut agent = Agent::start(&home);
    assert_eq!(mode(&mut agent), "think");
    agent.end();
}

#[test]
fn what_is_too_long_or_in_no_folder_is_refused_in_words() {
    let home = council();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let long = |n: usize| prompt(&session, &"x".repeat(n));
    let gone = json!({"cwd": home.path().join("nowhere"), "mcpServers": []});
    for (method, params, words) in [
        ("session/prompt", long(9 << 20), "at most 8 MiB"),
        ("session/prompt", long(5 << 20), "longer than 4 MiB"),
        ("session/new", gone, "no folder"),
        (
            "session/load",
            json!({"sessionId": "", "cwd": home.work(), "mcpServers": []}),
            "is empty",
        ),
    ] {
        let answer = agent.call(method, params);
        let why = answer["error"]["message"].as_str().expect("an error");
        assert!(why.contains(words), "{method}: {why}");
    }
    agent.end();
}

#[test]
fn a_session_without_a_word_leaves_nothing_behind_and_is_not_listed() {
    let home = council();
    let mut agent = Agent::start(&home);
    agent.session(&home);
    let listed = agent.call("session/list", json!({"cwd": home.work()}));
    assert_eq!(listed["result"]["sessions"], json!([]), "{listed}");
    agent.end();
    assert_eq!(home.threads().len(), 0);
}

#[test]
fn a_cancelled_prompt_ends_as_cancelled_and_the_session_goes_on() {
    let slow = json!({"runs": [[{"text": "Well, yes.\n\n"}, "hang"], [{"text": "Done."}]]});
    let home = Home::scripted(&[("ann", slow)]);
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let id = agent.send("session/prompt", prompt(&session, "hi"));
    while agent.next()["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    let busy = agent.call("session/prompt", prompt(&session, "hello?"));
    assert!(
        busy["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("running")),
        "{busy}"
    );
    // Nothing is replayed while the prompt is running.
    let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let id_of_load = agent.send("session/load", load);
    let (told, refused) = agent.until(id_of_load);
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("running")),
        "{refused}"
    );
    assert_eq!(text_of(&told, "user_message_chunk"), "");
    agent.write(
        &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}),
    );
    let (_, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let id = agent.send("session/prompt", prompt(&session, "Again?"));
    let (told, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(text_of(&told, "agent_message_chunk"), "Done.");
    agent.end();
}

#[test]
fn modes_are_ways_to_answer_and_bad_requests_are_refused() {
    let home = council();
    let mut agent = Agent::start(&home);
    let new = agent.call("session/new", json!({"cwd": home.work(), "mcpServers": []}));
    let modes = new["result"]["modes"]["availableModes"]
        .as_array()
        .expect("modes");
    let ids: Vec<&str> = modes
        .iter()
        .filter_map(|mode| mode["id"].as_str())
        .collect();
    assert_eq!(ids, ["ask", "think", "deliberate"]);
    let session = new["result"]["sessionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let set = |mode: &str| json!({"sessionId": session, "modeId": mode});
    assert!(agent.call("session/set_mode", set("think"))["result"].is_object());
    let id = agent.send("session/prompt", prompt(&session, "Tabs or spaces?"));
    let (told, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(!text_of(&told, "agent_message_chunk").is_empty());
    let bad = [
        ("session/set_mode", set("vote")),
        ("session/prompt", prompt("nosuch", "hi")),
        ("session/prompt", prompt(&session, "  ")),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
        ),
        (
            "session/load",
            json!({"sessionId": "council-0000", "cwd": home.work(), "mcpServers": []}),
        ),
        (
            "session/load",
            json!({"sessionId": "../../etc", "cwd": home.work(), "mcpServers": []}),
        ),
        ("session/new", json!({"cwd": "relative", "mcpServers": []})),
        ("session/list", json!({"cursor": "x"})),
        (
            "session/set_model",
            json!({"sessionId": session, "modelId": "gpt"}),
        ),
        ("session/set_model", json!({"sessionId": session})),
        (
            "session/fork",
            json!({"sessionId": "council-0000", "cwd": home.work(), "mcpServers": []}),
        ),
        ("no/such", json!({})),
    ];
    for (method, params) in bad {
        let answer = agent.call(method, params);
        assert!(answer["error"]["message"].is_string(), "{method}: {answer}");
    }
    agent.end();
}

#[test]
fn nobody_answered_is_an_error_with_the_reason() {
    let failure = json!({"kind": "auth", "message": "the key was refused"});
    let home = Home::scripted(&[("eve", json!({"runs": [[{"fail": failure}]]}))]);
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let id = agent.send("session/prompt", prompt(&session, "hi"));
    let (told, answer) = agent.until(id);
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|m| m.contains("refused")),
        "{answer}"
    );
    assert_eq!(updates(&told, "tool_call_update")[0]["status"], "failed");
    agent.end();
}

#[test]
fn settings_of_a_folder_take_effect_only_after_the_user_allowed_them() {
    let home = council();
    let marker = home.path().join("ran");
    let command = json!(["sh", "-c", format!("touch '{}'", marker.display())]);
    let project = json!({"agents": {"mal": {"backend": "command", "command": command}}, "council": {"members": ["ann", "mal"]}});
    std::fs::write(home.work().join(".kd/config.json"), project.to_string()).expect("written");
    let mut agent = Agent::start(&home);
    for allows in [false, true] {
        let session = agent.session(&home);
        let id = agent.send("session/prompt", prompt(&session, "Tabs or spaces?"));
        let asked = loop {
            let message = agent.next();
            if message["method"] == "session/request_permission" {
                break message;
            }
            assert_ne!(message["id"], id, "answered before consent: {message}");
        };
        let shown = asked["params"]["toolCall"].to_string();
        assert!(shown.contains("agents.mal.command"), "{shown}");
        assert!(!marker.exists());
        let option = asked["params"]["options"][usize::from(!allows)].clone();
        assert_eq!(
            option["kind"],
            if allows {
                "allow_always"
            } else {
                "reject_once"
            }
        );
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        agent.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}}));
        let (_, answer) = agent.until(id);
        assert!(answer["result"].is_object() || !allows, "{answer}");
        assert_eq!(marker.exists(), allows);
    }
    agent.end();
}

#[test]
fn of_too_many_sessions_the_one_used_least_recently_is_closed_and_leaves_nothing() {
    let home = council();
    let mut agent = Agent::start(&home);
    let said = |answer: &Value| answer["result"]["stopReason"] == "end_turn";
    let first = agent.session(&home);
    assert!(said(&agent.call("session/prompt", prompt(&first, "Tabs?"))));
    let unused = agent.session(&home);
    let mut newest = Vec::new();
    for _ in 0..256 {
        newest.push(agent.session(&home));
    }
    for closed in [&first, &unused] {
        let answer = agent.call("session/prompt", prompt(closed, "And spaces?"));
        let why = answer["error"]["message"].as_str().expect("an error");
        assert!(why.contains("no open session"), "{why}");
    }
    for open in [&newest[0], &newest[255]] {
        let answer = agent.call("session/prompt", prompt(open, "Tabs?"));
        assert!(said(&answer), "{answer}");
    }
    agent.end();
    let mut left: Vec<String> = home
        .threads()
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    left.sort();
    let mut used = [first, newest[0].clone(), newest[255].clone()];
    used.sort();
    assert_eq!(
        left, used,
        "sessions in which nothing was said leave no thread"
    );
}
