//! Agent programs visit by our own MCP server: a fake one that is told of it as Claude Code is, and one that speaks ACP.

use super::support::Home;
use super::{forum, house, persona, store};
use kd_core::forum::MAIN;
use kd_core::forum::words::Outcome;
use serde_json::{Value, json};

fn calls(note: &std::path::Path) -> Value {
    json!({"note": note, "tools": [
        {"name": "read_thread", "arguments": {"thread_id": 1}},
        {"name": "reply_to_thread", "arguments": {"thread_id": 1, "body": "Signed as the king.", "author": "king"}},
        {"name": "finish", "arguments": {"did": "create_thread"}},
        {"name": "reply_to_thread", "arguments": {"thread_id": 1, "body": "One more thing."}},
    ]})
}

/// What the visit of a program left.
fn check(home: &Home, note: &std::path::Path, out: &str) {
    let noted: Value = serde_json::from_slice(&std::fs::read(note).expect("noted")).expect("JSON");
    let names: Vec<&str> = noted["names"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        names.contains(&"finish") && names.contains(&"vote"),
        "{names:?}"
    );
    assert!(
        !names.contains(&"ask_council"),
        "a visit is to the forum alone: {names:?}"
    );
    let answers = &noted["answers"];
    assert_eq!(
        answers[0]["thread"]["body"], "Why do they dance?",
        "{noted}"
    );
    assert_eq!(answers[1]["success"], true, "{noted}");
    assert_eq!(answers[3]["success"], false, "the visit was over: {noted}");
    let run = store(home).runs(MAIN, 1).unwrap().remove(0);
    assert_eq!(
        (run.outcome, run.deeds.len()),
        (Outcome::Acted, 1),
        "{run:?}\n{out}"
    );
    assert_eq!(
        (run.claim.as_deref(), run.claim_agrees),
        (Some("create_thread"), Some(false))
    );
    assert!(
        out.contains("ada says create_thread, and did reply_to_thread"),
        "{out}"
    );
    let (_, posts) = store(home).thread(1, 0, 9).unwrap();
    assert_eq!((posts.len(), posts[1].author.as_str()), (2, "ada"));
    assert_eq!(posts[1].run_id, Some(run.id));
}

#[test]
fn claude_code_is_given_the_server_and_its_calls_are_its_visit() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let (note, file) = (
        home.path().join("note.json"),
        home.path().join("claude.json"),
    );
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "I replied.",
        "session_id": "s", "usage": {"input_tokens": 5, "output_tokens": 2}});
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1", "tools": []});
    let script = json!([{"record": home.path().join("seen.json")}, {"print": format!("{init}\n")}, calls(&note), {"print": format!("{result}\n")}]);
    std::fs::write(&file, script.to_string()).expect("written");
    persona(
        &home,
        "ada",
        "backend: claude_code\nsystem_prompt: You love bees.\n",
    );
    let agent = json!({"agents": {"ada": {"backend": "claude_code", "command": [kd_fake::fake_agent(), "--script", file]}}});
    std::fs::write(home.config_file(), agent.to_string()).expect("written");
    let ran = forum(&home, &["run-once"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    check(&home, &note, &ran.out);
    let seen: Value =
        serde_json::from_slice(&std::fs::read(home.path().join("seen.json")).expect("seen"))
            .expect("JSON");
    let args = seen["args"].to_string();
    assert!(
        args.contains("mcp__kd__reply_to_thread") && args.contains("Read,Grep,Glob"),
        "{args}"
    );
    assert!(
        seen["stdin"].as_str().unwrap().contains("MCP server `kd`"),
        "{seen}"
    );
}

#[test]
fn an_acp_agent_is_given_the_server_with_its_session() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let (note, file) = (home.path().join("note.json"), home.path().join("acp.json"));
    let line = |value: Value| json!({"print": format!("{value}\n")});
    let said = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I replied."}}}});
    let script = json!([
        {"hear": "\"initialize\""}, line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"protocolVersion": 1, "agentCapabilities": {}}})),
        {"hear": "session/new"}, line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"sessionId": "s"}})),
        {"hear": "session/prompt"}, calls(&note), line(said),
        line(json!({"jsonrpc": "2.0", "id": "$asked", "result": {"stopReason": "end_turn"}})), {"read": true},
    ]);
    std::fs::write(&file, script.to_string()).expect("written");
    persona(
        &home,
        "ada",
        "backend: acp\nsystem_prompt: You love bees.\n",
    );
    let agent = json!({"agents": {"ada": {"backend": "acp", "command": [kd_fake::fake_agent(), "--script", file]}}});
    std::fs::write(home.config_file(), agent.to_string()).expect("written");
    let ran = forum(&home, &["run-once"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    check(&home, &note, &ran.out);
}
