//! The order of a running cycle is secret until the cycle has ended.

use super::people::hear;
use super::support::Home;
use super::{forum, house, quick, script, scripted, store};
use kd_forum::MAIN;
use kd_forum::logline::LogEvent;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

const AGENTS: [&str; 5] = ["ada7", "bob7", "cyd7", "dan7", "eve7"];

/// Returns everything that anyone but the leader can read of the forum, by source.
fn readable(home: &Home) -> Vec<(&'static str, String)> {
    let file = home.path().join("export.jsonl");
    let _ = std::fs::remove_file(&file);
    let exported = forum(home, &["export", file.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let log = home.work().join(".kd/logs/runner.log");
    vec![
        ("log", forum(home, &["log"]).out),
        ("audit", forum(home, &["audit"]).out),
        ("audit 1", forum(home, &["audit", "1"]).out),
        ("export", std::fs::read_to_string(file).unwrap()),
        ("runner.log", std::fs::read_to_string(log).unwrap()),
        ("members", forum(home, &["members"]).out),
        ("fairness", forum(home, &["fairness", "--json"]).out),
    ]
}

#[test]
fn the_order_of_a_running_cycle_is_nowhere_until_it_has_ended() {
    let home = house(&json!({}), &[]);
    forum(&home, &["post", "Bees", "Why?"]);
    let read = json!({"tool": "read_log"});
    for name in AGENTS {
        script(
            &home,
            name,
            &json!({"runs": [[{"text": read.to_string()}], ["hang"]]}),
        );
    }
    let mut child = quick(&home, &["run-once"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pid = Pid::from_child(&child);
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut out = String::new();
    while !out.contains("Starting run for agent: ") {
        assert!(lines.read_line(&mut out).expect("text") > 0, "{out}");
    }
    let mut all = readable(&home);
    kill_process(pid, Signal::INT).expect("it lives");
    let mut errors = BufReader::new(child.stderr.take().expect("piped"));
    hear(&mut errors, "Ctrl+C again stops it now");
    kill_process(pid, Signal::INT).expect("it lives");
    lines.read_to_string(&mut out).expect("text");
    child.wait().expect("it ends");
    all.push(("terminal", out));
    all.extend(readable(&home));
    let mut beside = store(&home);
    let open = beside.open_cycle(MAIN).unwrap().expect("it is open");
    let ran = beside.runs_of(open.id).unwrap().remove(0).agent;
    let waiting: Vec<&str> = AGENTS.into_iter().filter(|name| *name != ran).collect();
    for (source, text) in &all {
        for told in ["agent order", "order_drawn", "sitting_out", "sitting out"] {
            let allowed = *source == "export" && told == "sitting_out";
            assert!(allowed || !text.contains(told), "{source}: {told}: {text}");
        }
        // Waiting agents on one line are in alphabetical order.
        for line in text.lines() {
            let mut places: Vec<_> = waiting.iter().filter_map(|name| line.find(name)).collect();
            let told = places.clone();
            places.sort_unstable();
            assert_eq!(told, places, "{source}: {line}");
        }
    }
    let cycle = |text: &str| -> Value {
        let is = |line: &&str| line.contains(r#""record":"cycle""#);
        serde_json::from_str(text.lines().find(is).unwrap()).unwrap()
    };
    let export = &all
        .iter()
        .find(|(source, _)| *source == "export")
        .unwrap()
        .1;
    let nothing = json!({"order": [], "turns": [], "sitting_out": [], "redrawn": 0});
    assert_eq!(cycle(export)["plan"], nothing);

    for name in AGENTS {
        scripted(&home, name, &[json!({"tool": "skip", "reason": "tired"})]);
    }
    let ended = forum(&home, &["run-once"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let order = beside.cycle(MAIN, 1).unwrap().plan.order;
    let log = beside.log_tail(MAIN, 99).unwrap();
    let told = log.iter().find_map(|line| match &line.event {
        LogEvent::OrderDrawn { order, .. } => Some(order),
        _ => None,
    });
    assert_eq!(told, Some(&order), "revealed at the end");
    assert_eq!(order[0], ran, "a stopped cycle goes on with its order");
    let audit = forum(&home, &["audit", "1"]);
    assert!(
        audit.code == Some(0) && audit.out.contains("identical"),
        "{}",
        audit.out
    );
}
