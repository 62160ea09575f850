//! Kills `kd` while an agent program visits: neither the program nor its `kd mcp` nor what it started survives, and the
//! next run closes the visit.
#![cfg(target_os = "linux")]

use super::support::{Home, SANDBOX, Said, until};
use super::{forum, house, persona, quick, scripted, store};
use kd_forum::MAIN;
use kd_forum::words::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

/// Returns the programs running with this home: by its path in their arguments or environment.
fn programs_of(home: &Home) -> Vec<String> {
    let mark = home.path().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let (args, env) = (read("cmdline"), read("environ"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
        // A zombie process has no arguments.
        if !args.is_empty() && (text(&args).contains(&mark) || text(&env).contains(&mark)) {
            found.push(text(&args));
        }
    }
    found
}

/// Creates a forum whose agent `ada` is a stubborn program: it reads a thread through `kd mcp`, starts a daemon, and
/// stays.
fn stubborn() -> Home {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why do they dance?"]);
    let state = home.path().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let file = home.path().join("stubborn.json");
    let script = json!([
        {"ignore": ["INT", "TERM", "HUP"]},
        {"shell": state.join("shell"), "session": true, "orphan": true, "stubborn": true},
        {"tools": [{"name": "read_thread", "arguments": {"thread_id": 1}}], "note": state.join("note.json"), "stay": true},
    ]);
    std::fs::write(&file, script.to_string()).unwrap();
    persona(
        &home,
        "ada",
        "backend: claude_code\nsystem_prompt: You love bees.\n",
    );
    let agent = json!({"agents": {"ada": {"backend": "claude_code", "command": [kd_fake::fake_agent(), "--script", file], "state": [state]}}});
    std::fs::write(home.config_file(), agent.to_string()).unwrap();
    home
}

fn killed_visit(args: &[&str]) -> Home {
    let home = stubborn();
    let mut kd = quick(&home, args);
    let mut kd = kd
        .env_remove(SANDBOX)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let note = home.path().join("state/note.json");
    let noted: Value = until("the call", || {
        serde_json::from_slice(&std::fs::read(&note).ok()?).ok()
    });
    assert_eq!(
        noted["answers"][0]["thread"]["body"], "Why do they dance?",
        "{noted}"
    );
    let running = programs_of(&home);
    for program in ["stubborn.json", " mcp ", "--sleeper"] {
        assert!(
            running.iter().any(|args| args.contains(program)),
            "{running:?}"
        );
    }
    kill_process(Pid::from_child(&kd), Signal::KILL).expect("it lives");
    kd.wait().expect("reaped");
    // Only their supervisor can stop them.
    until("their end", || programs_of(&home).is_empty().then_some(()));
    home
}

/// Runs the next visit, with another agent, and checks that the visit of `ada` is closed.
fn check_closed(home: &Home, args: &[&str]) {
    let open = store(home).runs(MAIN, 1).unwrap().remove(0);
    assert_eq!((open.outcome, open.ended_at), (Outcome::Running, None));
    scripted(home, "bob", &[json!({"tool": "skip", "reason": "tired"})]);
    let next: Said = forum(home, args);
    assert_eq!(next.code, Some(0), "{}{}", next.out, next.err);
    assert!(next.out.contains("Run for ada was cut off"), "{}", next.out);
    let closed = store(home).run(open.id).unwrap();
    assert_eq!(closed.outcome, Outcome::Interrupted);
    assert!(closed.ended_at.is_some());
}

#[test]
fn a_killed_cycle_leaves_no_program_and_no_running_visit() {
    let home = killed_visit(&["run-once"]);
    check_closed(&home, &["run-once"]);
}

#[test]
fn a_killed_visit_outside_cycles_leaves_no_program_and_does_not_stay_running() {
    let home = killed_visit(&["run-agent", "ada"]);
    check_closed(&home, &["run-agent", "bob"]);
    assert!(programs_of(&home).is_empty());
}
