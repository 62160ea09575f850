//! Cycles in which agents join, leave and are banned while the process is killed. `tests/forum-cycles/run --full` is
//! the large run: 10,000 cycles on each database.

use super::{forum, house, persona, quick, scripted, store};
use kd_forum::MAIN;
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::words::Outcome;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn agents_come_and_go_while_the_process_is_killed() {
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|said| said.status.success()) {
        eprintln!("no python3 here: tests/forum-cycles is left out");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/forum-cycles/run");
    let folder = Path::new(env!("CARGO_BIN_EXE_kd")).parent().unwrap();
    let said = Command::new(script)
        .args(["--database", "sqlite", "--cycles", "40", "--kills", "5"])
        .args(["--changes", "4"])
        .env("KD_BIN", folder)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&said.stdout);
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{out}{err}");
    assert!(out.contains("| killed | 5 |"), "{out}");
}

#[test]
fn an_agent_that_is_banned_in_a_cycle_has_its_turn_recorded() {
    let home = house(&json!({}), &[]);
    // An agent answers once the test has written its script.
    let pipe = |name: &str| home.path().join(format!("{name}.json"));
    for name in ["ada", "bob"] {
        let made = Command::new("mkfifo").arg(pipe(name)).status();
        assert!(made.unwrap().success());
        let model = pipe(name).display().to_string();
        persona(
            &home,
            name,
            &format!("backend: scripted\nmodel: {model}\nsystem_prompt: You are {name}.\n"),
        );
    }
    let mut child = quick(&home, &["run-cycle", "--cycles", "1", "--jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut banned = None;
    for line in output.lines().map(Result::unwrap) {
        let line: LogLine = serde_json::from_str(&line).unwrap();
        if let LogEvent::RunStarted { agent } = line.event {
            assert_eq!(banned, None, "{agent} visits");
            let other = if agent == "ada" { "bob" } else { "ada" };
            let said = forum(&home, &["ban", other, "too loud"]);
            assert_eq!(said.code, Some(0), "{}", said.err);
            banned = Some(other);
            let call = json!({"tool": "skip", "reason": "tired"}).to_string();
            let script = json!({"runs": [[{"text": call}]]});
            std::fs::write(pipe(&agent), script.to_string()).unwrap();
        }
    }
    assert!(child.wait().unwrap().success());
    let mut store = store(&home);
    let cycle = store.cycle(MAIN, 1).unwrap();
    let runs = store.runs_of(cycle.id).unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].agent, banned.unwrap());
    assert_eq!(
        (runs[1].outcome, runs[1].reason.as_deref()),
        (Outcome::Skipped, Some("banned"))
    );
    let audited = store.audit(MAIN, &mut |_| {}).unwrap();
    assert_eq!(audited.faults, Vec::new());
}

#[test]
fn a_rule_about_the_time_between_cycles_holds_for_every_command() {
    let home = house(&json!({}), &[]);
    scripted(&home, "ada", &[json!({"tool": "skip", "reason": "tired"})]);
    let set = forum(&home, &["rules", "cycle_interval_secs", "3600", "slow"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    let first = forum(&home, &["run-once"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let again = forum(&home, &["run-once"]);
    assert!(
        again.code == Some(1)
            && again
                .err
                .contains("(3600 s) lets the next cycle start at 2")
            && again
                .err
                .contains("kd forum rules cycle_interval_secs none"),
        "{:?} {}",
        again.code,
        again.err
    );
    // With several cycles, it waits for the rule and says until when.
    let words = ["run-cycle", "--cycles", "2", "--interval", "0"];
    let mut child = quick(&home, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(line.contains("for next cycle"), "{line}");
    let stopped = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(stopped.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert!(err.contains("lets the next cycle start at 2"), "{err}");
    let cycles = store(&home).cycles(MAIN, 9).unwrap();
    assert_eq!(cycles.len(), 1, "{cycles:?}");
    // A virtual clock waits, too.
    let done = forum(
        &home,
        &[
            "run-cycle",
            "--virtual",
            "--agent",
            "ada",
            "--cycles",
            "2",
            "--interval",
            "0",
        ],
    );
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let cycles = store(&home).cycles(MAIN, 9).unwrap();
    assert_eq!(cycles.len(), 3);
    for pair in cycles.windows(2) {
        let passed = pair[0].started_at.duration_until(pair[1].started_at);
        assert!(passed.as_secs() >= 3_599, "{passed}");
    }
}
