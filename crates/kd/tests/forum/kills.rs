//! Kills the program repeatedly at any point of `run-cycle`: no post is lost or duplicated, and no agent has two turns
//! in a cycle. `cargo test -p kd --test program forum::kills -- --nocapture` prints the results.

use super::support::{Dice, Home};
use super::{house, quick, script, store};
use kd_forum::MAIN;
use kd_forum::logline::{LogEvent, LogLine};
use kd_forum::words::{Outcome, Run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

const KILLS: usize = 200;
/// Stores written concurrently.
const LANES: usize = 4;
const AGENTS: [&str; 4] = ["ada", "bob", "cyd", "dan"];
/// More answers than one process ever needs.
const ANSWERS: usize = 400;

/// Writes an agent that opens a thread on its first visit and replies in the first thread on later ones, then finishes.
fn agent(home: &Home, name: &str) {
    let say = |call: Value| json!([{"sleep_ms": 1}, {"text": call.to_string()}]);
    let reply =
        json!({"tool": "reply_to_thread", "thread_id": 1, "body": format!("words of {name}")});
    let finish = json!({"tool": "finish", "did": "reply_to_thread", "thread_id": 1});
    let runs = (0..ANSWERS).map(|i| {
        say(if i % 2 == 0 {
            reply.clone()
        } else {
            finish.clone()
        })
    });
    script(home, name, &json!({"runs": runs.collect::<Vec<_>>()}));
}

/// The events of one store.
#[derive(Default)]
struct Tally {
    kills: usize,
    /// Posts reported before their process was killed.
    told: BTreeSet<i64>,
    /// Processes killed during an agent's turn.
    inside: usize,
}

fn lane(seed: u64, kills: usize) -> (Home, Tally) {
    let home = house(&json!({}), &[]);
    for name in AGENTS {
        agent(&home, name);
    }
    let opened = super::forum(&home, &["post", "Bees", "Why do they dance?"]);
    assert_eq!(opened.code, Some(0), "{}", opened.err);
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    while tally.kills < kills {
        let mut child = quick(&home, &["run-cycle", "--jsonl"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let pid = Pid::from_child(&child);
        let output = child.stdout.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The receiver is gone once the process is killed; its output is read to the end all the same.
                let _ = sender.send(line);
            }
        });
        // Some are killed before their first line, most some lines and a moment later.
        let mut heard = Vec::new();
        for _ in 0..dice.below(24) {
            match lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => heard.push(line),
                Err(_) => break,
            }
        }
        std::thread::sleep(Duration::from_micros(dice.below(4000)));
        kill_process(pid, Signal::KILL).expect("it lives");
        child.wait().expect("it ends");
        reader.join().expect("read");
        heard.extend(lines.try_iter());
        tally.kills += 1;
        // The last line may be incomplete.
        let events: Vec<LogEvent> = heard
            .iter()
            .filter_map(|line| serde_json::from_str::<LogLine>(line).ok())
            .map(|line| line.event)
            .collect();
        tally.inside += usize::from(matches!(events.last(), Some(LogEvent::RunStarted { .. })));
        tally
            .told
            .extend(events.iter().filter_map(|event| match event {
                LogEvent::RunCompleted { post_id, .. } => *post_id,
                _ => None,
            }));
    }
    (home, tally)
}

#[test]
fn nothing_is_lost_and_nobody_has_two_turns() {
    let each = KILLS.div_ceil(LANES);
    let lanes: Vec<_> = (0..LANES as u64)
        .map(|seed| std::thread::spawn(move || lane(seed, each)))
        .collect();
    let (mut kills, mut inside, mut cycles, mut cut, mut posts) = (0, 0, 0, 0, 0);
    for lane in lanes {
        let (home, tally) = lane.join().expect("a lane");
        // The last interrupted one is brought to its end.
        let last = super::forum(&home, &["run-once"]);
        assert_eq!(last.code, Some(0), "{}{}", last.out, last.err);
        let seen = check(&home, &tally);
        kills += tally.kills;
        inside += tally.inside;
        cycles += seen.0;
        cut += seen.1;
        posts += seen.2;
    }
    eprintln!(
        "{kills} kills, {inside} of them in a visit; {cycles} cycles, {cut} turns cut off, {posts} posts"
    );
    assert!(
        kills >= KILLS && inside > 0 && cut > 0,
        "the kills met nothing"
    );
}

/// Returns cycles, interrupted turns, and posts of agents.
fn check(home: &Home, tally: &Tally) -> (usize, usize, usize) {
    let mut store = store(home);
    let audited = store.audit(MAIN, &mut |_| {}).expect("audited");
    assert_eq!(audited.faults, Vec::new());
    assert_eq!(audited.void, 0, "a killed cycle goes on");
    let cycles = store.cycles(MAIN, 1_000_000).expect("cycles");
    let mut runs: BTreeMap<i64, Run> = BTreeMap::new();
    for cycle in &cycles {
        assert!(
            cycle.ended_at.is_some(),
            "cycle {} hangs open",
            cycle.number
        );
        let of: Vec<Run> = store.runs_of(cycle.id).expect("runs");
        let ran: Vec<&str> = of.iter().map(|run| run.agent.as_str()).collect();
        let planned: Vec<&str> = cycle.plan.turns.iter().map(|t| t.agent.as_str()).collect();
        assert_eq!(ran, planned, "each once, in the order drawn");
        runs.extend(of.into_iter().map(|run| (run.id, run)));
    }
    let numbers: Vec<i64> = cycles.iter().map(|c| c.number).collect();
    assert_eq!(numbers, (1..=cycles.len() as i64).collect::<Vec<_>>());
    let mut of_run: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let posts = store.posts_after(MAIN, 0, 1_000_000).expect("posts");
    for post in posts.iter().filter(|post| post.author != "king") {
        let run = post.run_id.expect("a visit wrote it");
        assert_eq!(runs[&run].agent, post.author);
        of_run.entry(run).or_default().push(post.id);
    }
    let mut cut = 0;
    for run in runs.values() {
        let recorded: Vec<i64> = run.deeds.iter().filter_map(|deed| deed.post_id).collect();
        let written = of_run.get(&run.id).cloned().unwrap_or_default();
        assert_eq!(recorded, written, "the record and the posts agree");
        assert!(written.len() <= 1, "doubled: {run:?}");
        match run.outcome {
            Outcome::Acted => assert_eq!(written.len(), 1, "{run:?}"),
            Outcome::Interrupted => cut += 1,
            _ => panic!("{run:?}"),
        }
    }
    let there: BTreeSet<i64> = posts.iter().map(|post| post.id).collect();
    assert!(
        tally.told.is_subset(&there),
        "a post that was confirmed is gone"
    );
    (cycles.len(), cut, of_run.len())
}
