//! What editors of other versions send: forks, models, cancelled requests, lines that are not messages.

use super::{Agent, council, prompt, text_of};
use crate::support::Home;
use serde_json::{Value, json};
use std::io::Write;

/// Asks in a session and returns the text of the answer.
fn ask(agent: &mut Agent, session: &str, question: &str) -> String {
    let id = agent.send("session/prompt", prompt(session, question));
    let (told, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    text_of(&told, "agent_message_chunk")
}

#[test]
fn a_fork_has_the_messages_and_the_mode_and_is_not_advertised() {
    let home = council();
    let mut agent = Agent::start(&home);
    let about = agent.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": {}}),
    );
    assert!(!about.to_string().contains("fork"), "{about}");
    let session = agent.session(&home);
    ask(&mut agent, &session, "Tabs or spaces?");
    let mode = json!({"sessionId": session, "modeId": "think"});
    assert!(agent.call("session/set_mode", mode)["result"].is_object());
    let fork = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
    let forked = agent.call("session/fork", fork);
    let copy = forked["result"]["sessionId"]
        .as_str()
        .expect("a fork")
        .to_owned();
    assert_ne!(copy, session);
    assert_eq!(
        forked["result"]["modes"]["currentModeId"], "think",
        "{forked}"
    );
    // The fork is open, and messages there do not appear in its source.
    ask(&mut agent, &copy, "And in Makefiles?");
    let loaded = |agent: &mut Agent, id: &str| {
        let request = json!({"sessionId": id, "cwd": home.work(), "mcpServers": []});
        let id = agent.send("session/load", request);
        text_of(&agent.until(id).0, "user_message_chunk")
    };
    assert_eq!(
        loaded(&mut agent, &copy),
        "Tabs or spaces?And in Makefiles?"
    );
    assert_eq!(loaded(&mut agent, &session), "Tabs or spaces?");
    agent.end();
}

#[test]
fn sessions_are_listed_with_the_time_of_their_last_message() {
    let home = council();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    ask(&mut agent, &session, "Tabs or spaces?");
    let listed = agent.call("session/list", json!({"cwd": home.work()}));
    let updated = listed["result"]["sessions"][0]["updatedAt"].as_str();
    let updated = updated.expect("a time").to_owned();
    updated
        .parse::<kd_core::Timestamp>()
        .expect("as ISO 8601 has it");
    ask(&mut agent, &session, "And in Makefiles?");
    let listed = agent.call("session/list", json!({"cwd": home.work()}));
    let later = listed["result"]["sessions"][0]["updatedAt"].as_str();
    assert!(
        later.is_some_and(|later| later >= updated.as_str()),
        "{listed}"
    );
    agent.end();
}

#[test]
fn a_model_is_a_mode_for_clients_without_modes() {
    let home = council();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    for (model, mode) in [("think", "think"), ("kd/ask", "ask")] {
        let answer = agent.call(
            "session/set_model",
            json!({"sessionId": session, "modelId": model}),
        );
        assert_eq!(answer["result"], json!({}), "{answer}");
        let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
        let loaded = agent.call("session/load", load);
        assert_eq!(loaded["result"]["modes"]["currentModeId"], mode, "{loaded}");
    }
    let answer = agent.call(
        "session/set_model",
        json!({"sessionId": session, "modelId": "gpt"}),
    );
    let why = answer["error"]["message"].as_str();
    assert!(
        why.is_some_and(|why| why.contains("models: ask, think")),
        "{answer}"
    );
    agent.end();
}

#[test]
fn a_cancelled_request_ends_like_a_cancelled_session() {
    let slow = json!({"runs": [[{"text": "Well, yes.\n\n"}, "hang"], [{"text": "Done."}]]});
    let home = Home::scripted(&[("ann", slow)]);
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let id = agent.send("session/prompt", prompt(&session, "hi"));
    while agent.next()["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    let cancel = |id: Value| json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
    // Another one, and none at all, stop nothing.
    agent.write(&cancel(json!(9999)));
    agent.write(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {}}));
    agent.write(&cancel(json!(id)));
    let (_, answer) = agent.until(id);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(ask(&mut agent, &session, "Again?"), "Done.");
    agent.end();
}

#[test]
fn lines_that_are_no_messages_are_answered_and_end_nothing() {
    let home = council();
    let mut agent = Agent::start(&home);
    let session = agent.session(&home);
    let deep = "[".repeat(100_000);
    let lines = [
        "no JSON",
        "{",
        "[]",
        "7",
        "null",
        "{\"jsonrpc\": \"1.0\"}",
        "\u{0}",
        &deep,
    ];
    for line in lines {
        let input = agent.input.as_mut().expect("open");
        writeln!(input, "{line}").expect("written");
        let answer = agent.next();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(-32600)),
            "{answer}"
        );
    }
    for params in [
        json!([]),
        json!({"sessionId": 7}),
        json!({"sessionId": session, "prompt": "text"}),
        Value::Null,
        json!(7),
        json!("text"),
        json!(true),
    ] {
        let answer = agent.call("session/prompt", params.clone());
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    assert_eq!(
        ask(&mut agent, &session, "Tabs or spaces?"),
        "## ann\n\nSpaces.\n\n## bob\n\nTabs."
    );
    agent.end();
}
