//! Many processes write one thread at the same time: each number is given once, and nothing is lost.
//!
//! `cargo test -p kd --test many -- --nocapture` prints what was announced and what is on disk.

mod support;

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use support::{Home, announced, whole};

/// Processes at the same time.
const PROCESSES: usize = 32;
const MEMBERS: [&str; 3] = ["ada", "bob", "cy"];

#[test]
fn thirty_two_processes_write_one_thread() {
    let answer = |name: &str| {
        format!(
            "{name} says:\n\n{}\n\nso says {name}.",
            "well ".repeat(200).trim()
        )
    };
    let scripts: Vec<_> = MEMBERS
        .iter()
        .map(|name| (*name, json!({"runs": [[{"text": answer(name)}]]})))
        .collect();
    let home = Home::scripted(&scripts);
    let first = home.run(&["ask", "--json", "Shall we begin?"]).json();
    let id = first["thread_id"].as_str().expect("an id");
    let [thread] = home.threads().try_into().expect("one thread");

    let children: Vec<_> = (0..PROCESSES)
        .map(|i| {
            home.kd(&["ask", "--thread", id, "--jsonl", &format!("Question {i}?")])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs")
        })
        .collect();
    // All write to pipes, so all are read at the same time.
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let readers: Vec<_> = children
            .into_iter()
            .map(|child| scope.spawn(move || child.wait_with_output().expect("it ends")))
            .collect();
        readers
            .into_iter()
            .map(|r| r.join().expect("read"))
            .collect()
    });

    let disk = whole(&thread);
    let mut own = BTreeSet::new();
    let mut announcements = 0;
    for (i, output) in outputs.iter().enumerate() {
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "process {i}: {err}");
        let heard = announced(&output.stdout);
        announcements += heard.len();
        for message in &heard {
            assert_eq!(disk.get(&message.seq), Some(message), "process {i}");
        }
        let king = heard
            .iter()
            .find(|m| m.is_king() && m.body == format!("Question {i}?"))
            .expect("its own question");
        assert!(own.insert(king.seq), "each question has its number");
    }
    let mut by_sender: BTreeMap<&str, usize> = BTreeMap::new();
    for message in disk.values().skip(1 + MEMBERS.len()) {
        *by_sender.entry(&message.from).or_default() += 1;
        if !message.is_king() {
            assert_eq!(message.body, answer(&message.from));
        }
    }
    println!(
        "{PROCESSES} processes, {announcements} messages heard by them, {} on disk: {by_sender:?}",
        disk.len()
    );
    assert_eq!(by_sender.len(), 1 + MEMBERS.len());
    assert!(
        by_sender.values().all(|count| *count == PROCESSES),
        "nothing is lost: {by_sender:?}"
    );
    let list = home.run(&["council", "list", "--json"]).json();
    assert_eq!(list[0]["message_count"], disk.len());
    let next = home.run(&["ask", "--thread", id, "--json", "And now?"]);
    assert_eq!(next.code, Some(0), "{}", next.err);
}
