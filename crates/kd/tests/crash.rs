//! The program is killed, again and again, at any point of a round: what it had announced stays, and the next round works.
//!
//! `cargo test -p kd --test crash -- --nocapture` prints how many were killed where, and what was on disk after it.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::{Dice, Home, announced, whole};

/// How many processes die in all.
const KILLS: usize = 500;
/// Threads that are written at the same time, each in a home of its own.
const LANES: usize = 4;
/// After so many kills of a lane a round is let through to its end.
const REST: usize = 25;
/// Pieces of one answer.
const PIECES: usize = 6;
const MEMBERS: [&str; 3] = ["ada", "bob", "cy"];

/// Where a process was when it died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Nothing was said yet.
    Starting,
    /// The question was not on disk yet, or not announced.
    Opening,
    /// Members spoke, none had finished.
    Streaming,
    /// Some answers were on disk, some not.
    Saving,
    /// All answers were announced.
    Ending,
}

/// What a lane saw.
#[derive(Default)]
struct Tally {
    kills: BTreeMap<Phase, usize>,
    /// Rounds that ended before their kill came.
    escaped: usize,
    announced: usize,
    on_disk: usize,
    /// Whole messages that the dead had no time to announce.
    unannounced: usize,
    rounds_let_through: usize,
}

fn answer(name: &str) -> String {
    let pieces: Vec<String> = (0..PIECES).map(|i| piece(name, i)).collect();
    pieces.concat().trim_end().to_owned()
}

fn piece(name: &str, i: usize) -> String {
    match i + 1 {
        PIECES => format!("And that is all from {name}.\n"),
        n => format!("Point {n} of {name}: it depends on what you need.\n\n"),
    }
}

/// Speaks for some tens of milliseconds.
fn script(name: &str, pause_ms: u64) -> Value {
    let acts: Vec<Value> = (0..PIECES)
        .flat_map(|i| {
            [
                json!({"sleep_ms": pause_ms}),
                json!({"text": piece(name, i)}),
            ]
        })
        .collect();
    json!({"runs": [acts]})
}

fn phase(lines: &[u8], messages: usize) -> Phase {
    match messages {
        _ if lines.is_empty() => Phase::Starting,
        0 => Phase::Opening,
        1 => Phase::Streaming,
        n if n <= MEMBERS.len() => Phase::Saving,
        _ => Phase::Ending,
    }
}

/// Where the next process shall die.
enum Point {
    /// So long after its start.
    After(Duration),
    /// When it has written so many lines, and this much later.
    Lines(u64, Duration),
}

impl Point {
    /// A third anywhere in time, from the first instruction on; the others wherever the round is, however slow the
    /// machine: these find the moments of saving, which are short.
    fn choose(dice: &mut Dice, usual: Duration, lines: u64) -> Self {
        if dice.below(3) == 0 {
            return Point::After(usual.mul_f64(dice.below(1000) as f64 / 900.0));
        }
        let later = Duration::from_micros(dice.below(4000));
        Point::Lines(1 + dice.below(lines), later)
    }
}

/// One process, killed at a point; what it wrote, and whether the kill came in time.
fn killed(home: &Home, question: &str, point: &Point) -> (Vec<u8>, bool) {
    let mut child = home
        .kd(&["ask", "--continue", "--plain", "--jsonl", question])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let begun = Instant::now();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        while out.read_until(b'\n', &mut all).expect("a pipe") > 0 {
            let _ = sender.send(());
        }
        all
    });
    match point {
        // The pause is the point itself: nothing is waited for.
        Point::After(time) => std::thread::sleep(time.saturating_sub(begun.elapsed())),
        Point::Lines(count, later) => {
            for _ in 0..*count {
                if lines.recv().is_err() {
                    break;
                }
            }
            std::thread::sleep(*later);
        }
    }
    // Not waited for yet, so the id is still its own.
    let _ = kill_process(Pid::from_child(&child), Signal::KILL);
    let status = child.wait().expect("it ends");
    let said = reader.join().expect("read");
    assert!(
        status.signal() == Some(9) || status.code() == Some(0),
        "{status}"
    );
    (said, status.signal() == Some(9))
}

/// The thread after a death: all that was ever announced or seen stands as it stood, and what is new is whole.
fn check(
    thread: &Path,
    known: &mut BTreeMap<u32, kd_core::Message>,
    said: &[u8],
    asked: &[String],
) -> usize {
    let disk = whole(thread);
    for (seq, message) in known.iter() {
        assert_eq!(disk.get(seq), Some(message), "an old message stays");
    }
    let announced = announced(said);
    for message in &announced {
        assert_eq!(
            disk.get(&message.seq),
            Some(message),
            "announced, so on disk"
        );
    }
    for (_, message) in disk.range(known.len() as u32 + 1..) {
        if message.is_king() {
            assert!(asked.contains(&message.body), "{message:?}");
        } else {
            assert_eq!(
                message.status,
                Some(kd_core::Status::Complete),
                "{message:?}"
            );
            assert_eq!(message.body, answer(&message.from), "{message:?}");
        }
    }
    *known = disk;
    announced.len()
}

/// A round that is let through to its end.
fn let_through(home: &Home, question: &str) -> (Vec<u8>, Duration) {
    let begun = Instant::now();
    let output = home
        .kd(&["ask", "--continue", "--plain", "--jsonl", question])
        .output()
        .expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = announced(&output.stdout);
    assert_eq!(
        said.len(),
        1 + MEMBERS.len(),
        "the question and each answer"
    );
    assert_eq!(said[0].body, question);
    (output.stdout, begun.elapsed())
}

fn lane(seed: u64, kills: usize) -> Tally {
    let mut dice = Dice::new(seed);
    let scripts: Vec<(&str, Value)> = MEMBERS
        .iter()
        .zip([4, 5, 7])
        .map(|(name, pause)| (*name, script(name, pause)))
        .collect();
    let home = Home::scripted(&scripts);
    let first = home.run(&["ask", "--plain", "How does it begin?"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let [thread] = home.threads().try_into().expect("one thread");
    let mut tally = Tally::default();
    let mut known = whole(&thread);
    let mut asked = Vec::new();
    let mut ask = |tally: &mut Tally| {
        let question = format!("Question {} of lane {seed}?", asked.len() + 1);
        asked.push(question.clone());
        let (said, took) = let_through(&home, &question);
        tally.announced += check(&thread, &mut known, &said, &asked);
        tally.rounds_let_through += 1;
        let lines = said.iter().filter(|b| **b == b'\n').count() as u64;
        (took, lines)
    };
    let (mut usual, mut lines) = ask(&mut tally);
    let mut dead = 0;
    while dead < kills {
        let question = format!("Question {} of lane {seed}?", asked.len() + 1);
        asked.push(question.clone());
        let (said, in_time) = killed(&home, &question, &Point::choose(&mut dice, usual, lines));
        let before = known.len();
        let count = check(&thread, &mut known, &said, &asked);
        tally.announced += count;
        tally.unannounced += known.len() - before - count;
        if in_time {
            *tally.kills.entry(phase(&said, count)).or_default() += 1;
            dead += 1;
        } else {
            tally.escaped += 1;
        }
        if in_time && (dead % REST == 0 || dead == kills) {
            let question = format!("Question {} of lane {seed}?", asked.len() + 1);
            asked.push(question.clone());
            let (said, took) = let_through(&home, &question);
            tally.announced += check(&thread, &mut known, &said, &asked);
            tally.rounds_let_through += 1;
            usual = took;
            lines = said.iter().filter(|b| **b == b'\n').count() as u64;
            check_faces(&home, known.len());
        }
    }
    tally.on_disk = known.len();
    tally
}
