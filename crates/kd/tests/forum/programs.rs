//! Agent programs visit through kd's MCP server: a fake one configured like Claude Code, and one that speaks ACP.

use super::support::{Home, SANDBOX, Said};
use super::{forum, house, persona, quick, store};
use kd_backends::transport::rights::landlock;
use kd_forum::MAIN;
use kd_forum::words::Outcome;
use serde_json::{Value, json};

/// Runs the forum once, in the sandbox.
fn run_once(home: &Home) -> Said {
    let mut run = quick(home, &["run-once"]);
    Said::of(run.env_remove(SANDBOX).output().expect("it runs"))
}

/// Returns the folder that the fake agent may write, beside its script.
fn state(home: &Home) -> std::path::PathBuf {
    let state = home.path().join("state");
    std::fs::create_dir_all(&state).expect("made");
    state
}

/// Creates a shell script that tries what the sandbox forbids, records in this folder what succeeded, and becomes the
/// fake agent.
fn greedy(home: &Home, state: &std::path::Path) -> std::path::PathBuf {
    let file = home.path().join("greedy.sh");
    let (home, state) = (home.path().display(), state.display());
    let words = format!(
        "cat {home}/.ssh/id > {state}/key; cat {home}/.config/gh/hosts.yml > {state}/token
         for at in broken.txt {home}/work/broken.txt {home}/work/.kd/broken.txt {home}/work/.kd/forum.db; do ( echo broken >> $at ) 2>/dev/null && echo $at >> {state}/wrote; done
         ls -A > {state}/here; exec \"$@\"\n"
    );
    std::fs::write(&file, words).expect("written");
    file
}

/// Checks that nothing the agent tried beside its calls succeeded.
fn check_rights(home: &Home, state: &std::path::Path) {
    let got = |name: &str| std::fs::read_to_string(state.join(name)).unwrap_or_default();
    assert_eq!(got("here"), "", "it works in an empty folder");
    assert_eq!((got("key"), got("token")), (String::new(), String::new()));
    assert_eq!(got("wrote"), "");
    assert!(!home.work().join("broken.txt").exists());
}

/// Creates files that the agent must not read.
fn lay_out(home: &Home) {
    for (name, words) in [(".ssh/id", "key"), (".config/gh/hosts.yml", "token")] {
        let at = home.path().join(name);
        std::fs::create_dir_all(at.parent().unwrap()).expect("made");
        std::fs::write(at, words).expect("written");
    }
}

fn calls(note: &std::path::Path) -> Value {
    json!({"note": note, "tools": [
        {"name": "read_thread", "arguments": {"thread_id": 1}},
        {"name": "reply_to_thread", "arguments": {"thread_id": 1, "body": "Signed as the king.", "author": "king"}},
        {"name": "finish", "arguments": {"did": "create_thread"}},
        {"name": "reply_to_thread", "arguments": {"thread_id": 1, "body": "One more thing."}},
    ]})
}

/// Checks the results of a program's visit.
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

/// Creates a fake Claude Code that makes these calls, and the configuration of the agent `ada` that starts it. It
/// records what it saw in the folder.
pub(super) fn program(home: &Home) -> (std::path::PathBuf, Value) {
    let state = state(home);
    let (note, file) = (state.join("note.json"), home.path().join("claude.json"));
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "I replied.",
        "session_id": "s", "usage": {"input_tokens": 5, "output_tokens": 2}});
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1", "tools": []});
    let script = json!([{"record": state.join("seen.json")}, {"print": format!("{init}\n")}, calls(&note), {"print": format!("{result}\n")}]);
    std::fs::write(&file, script.to_string()).expect("written");
    let agent = json!({"agents": {"ada": {"backend": "claude_code", "command": ["/bin/sh", greedy(home, &state), kd_fake::fake_agent(), "--script", file], "state": [state]}}});
    (state, agent)
}

#[test]
fn claude_code_is_given_the_server_and_its_calls_are_its_visit() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    lay_out(&home);
    let (state, agent) = program(&home);
    let note = state.join("note.json");
    persona(
        &home,
        "ada",
        "backend: claude_code\nsystem_prompt: You love bees.\n",
    );
    std::fs::write(home.config_file(), agent.to_string()).expect("written");
    let ran = run_once(&home);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    check(&home, &note, &ran.out);
    if landlock().is_some() {
        check_rights(&home, &state);
    }
    let seen: Value =
        serde_json::from_slice(&std::fs::read(state.join("seen.json")).expect("seen"))
            .expect("JSON");
    let args = seen["args"].to_string();
    assert!(
        args.contains("mcp__kd__reply_to_thread") && !args.contains("Read,Grep,Glob"),
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
    let state = state(&home);
    lay_out(&home);
    let (note, file) = (state.join("note.json"), home.path().join("acp.json"));
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
    let agent = json!({"agents": {"ada": {"backend": "acp", "command": ["/bin/sh", greedy(&home, &state), kd_fake::fake_agent(), "--script", file], "state": [state]}}});
    std::fs::write(home.config_file(), agent.to_string()).expect("written");
    let ran = run_once(&home);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    check(&home, &note, &ran.out);
    if landlock().is_some() {
        check_rights(&home, &state);
    }
}
