//! Many processes write one thread concurrently: each number is assigned once, and nothing is lost.
//!
//! `cargo test -p kd --test program many:: -- --nocapture` prints what was announced and what is on disk.

use crate::support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use support::{Dice, Home, announced, whole};

/// Concurrent processes.
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
    // All write to pipes, so all are read concurrently.
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

#[test]
fn of_thirty_two_processes_half_are_killed_and_the_others_lose_nothing() {
    let scripts: Vec<_> = MEMBERS
        .iter()
        .map(|name| {
            let acts: Vec<_> = (0..10)
                .flat_map(|i| {
                    [
                        json!({"text": format!("{name} {i}\n\n")}),
                        json!({"sleep_ms": 3}),
                    ]
                })
                .collect();
            (*name, json!({"runs": [acts]}))
        })
        .collect();
    let home = Home::scripted(&scripts);
    let first = home.run(&["ask", "--jsonl", "Shall we begin?"]);
    let lines = first.out.lines().count();
    let [thread] = home.threads().try_into().expect("one thread");
    let begun = whole(&thread);
    let mut dice = Dice::new(32);

    let ends: Vec<_> = std::thread::scope(|scope| {
        let processes: Vec<_> = (0..PROCESSES)
            .map(|i| {
                let mut child = home
                    .kd(&["ask", "--continue", "--jsonl", &format!("Question {i}?")])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null())
                    .spawn()
                    .expect("it runs");
                let doomed = (i % 2 == 0).then(|| 1 + dice.below(lines as u64 - 1) as usize);
                scope.spawn(move || {
                    let mut out = BufReader::new(child.stdout.take().expect("piped"));
                    let (mut said, mut count) = (Vec::new(), 0);
                    while out.read_until(b'\n', &mut said).expect("a pipe") > 0 {
                        count += 1;
                        if doomed == Some(count) {
                            // It has not been waited for, so its process ID is still valid.
                            let _ = kill_process(Pid::from_child(&child), Signal::KILL);
                        }
                    }
                    (doomed, child.wait().expect("it ends"), said)
                })
            })
            .collect();
        processes
            .into_iter()
            .map(|p| p.join().expect("read"))
            .collect()
    });

    let disk = whole(&thread);
    assert!(begun.iter().all(|(seq, m)| disk.get(seq) == Some(m)));
    let (mut killed, mut heard) = (0, BTreeSet::new());
    for (doomed, status, said) in &ends {
        let announced = announced(said);
        match doomed {
            Some(_) if status.signal() == Some(Signal::KILL.as_raw()) => killed += 1,
            _ => {
                assert_eq!(status.code(), Some(0), "{status}");
                assert_eq!(announced.len(), 1 + MEMBERS.len());
            }
        }
        for message in announced {
            assert_eq!(disk.get(&message.seq), Some(&message));
            assert!(heard.insert(message.seq), "a number twice: {message:?}");
        }
    }
    println!(
        "{PROCESSES} processes, {killed} killed: {} messages announced, {} on disk",
        begun.len() + heard.len(),
        disk.len()
    );
    assert!(killed > 0);
    let next = home.run(&["ask", "--continue", "--json", "And now?"]);
    assert_eq!(next.code, Some(0), "{}", next.err);
}
