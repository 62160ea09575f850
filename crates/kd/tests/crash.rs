//! Kills the program repeatedly at any point of a round: announced messages survive, and the next round works.
//!
//! `cargo test -p kd --test program crash:: -- --nocapture` prints where how many were killed, and what was on disk afterwards.

use crate::support;

use kd_core::{Message, Status};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::{Dice, Home, announced, whole};

/// Total number of kills.
const KILLS: usize = 500;
/// Threads written concurrently, each in its own home.
const LANES: usize = 4;
/// Number of kills in a lane before one round runs to its end.
const REST: usize = 25;
/// Processes killed while creating a thread.
const NEW_THREADS: usize = 40;
/// Pieces per answer.
const PIECES: usize = 6;
const MEMBERS: [&str; 3] = ["ada", "bob", "cy"];

/// The phase in which a process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// No output yet.
    Starting,
    /// The question was not yet on disk, or not yet announced.
    Opening,
    /// Members were speaking, none had finished.
    Streaming,
    /// Some answers were on disk, some not.
    Saving,
    /// All answers were announced.
    Ending,
}

/// The observations of a lane.
#[derive(Default)]
struct Tally {
    kills: BTreeMap<Phase, usize>,
    /// Rounds that ended before the kill.
    escaped: usize,
    announced: usize,
    on_disk: usize,
    /// Complete messages that the killed process had not announced.
    unannounced: usize,
    let_through: usize,
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

impl Phase {
    /// Returns the phase of a process, given its output and the number of messages that it announced.
    fn of(said: &[u8], announced: usize) -> Self {
        match announced {
            _ if said.is_empty() => Phase::Starting,
            0 => Phase::Opening,
            1 => Phase::Streaming,
            n if n <= MEMBERS.len() => Phase::Saving,
            _ => Phase::Ending,
        }
    }
}

/// The point at which to kill the next process.
enum Point {
    /// The given time after its start.
    After(Duration),
    /// The given time after the process has written the given number of lines.
    Lines(usize, Duration),
}

impl Point {
    /// Chooses a third at any time from the first instruction on; the others by progress of the round, however slow the
    /// machine: these hit the short moments of saving.
    fn choose(dice: &mut Dice, (usual, lines): (Duration, u64)) -> Self {
        if dice.below(3) == 0 {
            return Point::After(usual.mul_f64(dice.below(1000) as f64 / 1000.0));
        }
        let later = Duration::from_micros(dice.below(4000));
        Point::Lines(1 + dice.below(lines) as usize, later)
    }
}

/// A thread that is continually written and killed, in its own home.
struct Lane {
    seed: u64,
    home: Home,
    thread: PathBuf,
    dice: Dice,
    /// All messages that were ever on disk.
    known: BTreeMap<u32, Message>,
    asked: Vec<String>,
    /// The duration of a round on this machine, and the number of lines that it writes.
    usual: (Duration, u64),
    tally: Tally,
}

impl Lane {
    fn new(seed: u64) -> Self {
        let scripts: Vec<(&str, Value)> = MEMBERS
            .iter()
            .zip([4, 5, 7])
            .map(|(name, pause)| (*name, script(name, pause)))
            .collect();
        let home = Home::scripted(&scripts);
        let first = home.run(&["ask", "--plain", "How does it begin?"]);
        assert_eq!(first.code, Some(0), "{}", first.err);
        let [thread] = home.threads().try_into().expect("one thread");
        let known = whole(&thread);
        assert_eq!(known.len(), 1 + MEMBERS.len());
        let tally = Tally {
            announced: known.len(),
            ..Tally::default()
        };
        let mut lane = Self {
            seed,
            home,
            thread,
            dice: Dice::new(seed),
            known,
            asked: Vec::new(),
            usual: (Duration::ZERO, 0),
            tally,
        };
        lane.let_through();
        lane
    }

    /// Kills `kills` processes and returns the observations.
    fn run(mut self, kills: usize) -> Tally {
        let mut dead = 0;
        while dead < kills {
            if !self.kill() {
                self.tally.escaped += 1;
                continue;
            }
            dead += 1;
            if dead % REST == 0 || dead == kills {
                self.let_through();
                self.look();
            }
        }
        self.tally.on_disk = self.known.len();
        self.tally
    }

    fn ask(&mut self) -> Command {
        let question = format!("Question {} of lane {}?", self.asked.len() + 1, self.seed);
        let command = self
            .home
            .kd(&["ask", "--continue", "--plain", "--jsonl", &question]);
        self.asked.push(question);
        command
    }

    /// Starts and kills one process; false if it ended before.
    fn kill(&mut self) -> bool {
        let point = Point::choose(&mut self.dice, self.usual);
        let mut child = self
            .ask()
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
                // Once the process is dead, nothing counts lines.
                let _ = sender.send(());
            }
            all
        });
        // The pauses choose the point in time; they do not wait for an event.
        match point {
            Point::After(time) => std::thread::sleep(time.saturating_sub(begun.elapsed())),
            Point::Lines(count, later) => {
                lines.iter().take(count).count();
                std::thread::sleep(later);
            }
        }
        // It has not been waited for, so its process ID is still valid.
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        let status = child.wait().expect("it ends");
        let said = reader.join().expect("read");
        let dead = status.signal() == Some(Signal::KILL.as_raw());
        assert!(dead || status.code() == Some(0), "{status}");
        let (count, phase) = self.check(&said);
        if dead {
            *self.tally.kills.entry(phase).or_default() += 1;
        } else {
            assert_eq!(count, 1 + MEMBERS.len());
        }
        dead
    }

    /// Runs one round to its end.
    fn let_through(&mut self) {
        let begun = Instant::now();
        let output = self.ask().output().expect("it runs");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let lines = output.stdout.iter().filter(|b| **b == b'\n').count() as u64;
        self.usual = (begun.elapsed(), lines);
        let (count, _) = self.check(&output.stdout);
        assert_eq!(count, 1 + MEMBERS.len(), "the question and each answer");
        self.tally.let_through += 1;
    }

    /// Checks the thread after a process: old messages are unchanged, announced ones exist, and new ones are complete.
    /// Returns how many were announced and how far the round had come.
    fn check(&mut self, said: &[u8]) -> (usize, Phase) {
        let disk = whole(&self.thread);
        for (seq, message) in &self.known {
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
        for message in disk.values().skip(self.known.len()) {
            if message.is_king() {
                assert_eq!(
                    Some(message.body.as_str()),
                    self.asked.last().map(String::as_str),
                    "{message:?}"
                );
            } else {
                assert_eq!(message.status, Some(Status::Complete), "{message:?}");
                assert_eq!(message.body, answer(&message.from), "{message:?}");
            }
        }
        let new = disk.len() - self.known.len();
        self.tally.announced += announced.len();
        self.tally.unannounced += new - announced.len();
        self.known = disk;
        (announced.len(), Phase::of(said, announced.len()))
    }

    /// Checks that other commands see the same thread.
    fn look(&self) {
        let list = self.home.run(&["council", "list", "--json"]).json();
        assert_eq!(list[0]["message_count"], self.known.len(), "{list}");
        let show = self.home.run(&["council", "show", "--all", "--json"]);
        assert_eq!((show.code, show.err.as_str()), (Some(0), ""));
        let shown = show.json();
        let shown = shown["messages"].as_array().expect("messages");
        assert_eq!(shown.len(), self.known.len());
        let streams: Vec<_> = std::fs::read_dir(&self.thread)
            .expect("a thread")
            .map(|item| item.expect("entry"))
            .filter(|item| item.file_name().to_string_lossy().starts_with(".stream-"))
            .map(|item| (item.file_name(), std::fs::read_to_string(item.path())))
            .collect();
        assert!(streams.is_empty(), "a round cleans up: {streams:?}");
    }
}

#[test]
fn five_hundred_deaths_lose_nothing() {
    let begun = Instant::now();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (1..=LANES as u64)
            .map(|seed| scope.spawn(move || Lane::new(seed).run(KILLS / LANES)))
            .collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().expect("the lane holds"))
            .collect()
    });
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let mut kills: BTreeMap<Phase, usize> = BTreeMap::new();
    for (phase, count) in tallies.iter().flat_map(|t| &t.kills) {
        *kills.entry(*phase).or_default() += count;
    }
    println!(
        "{} killed in {LANES} threads in {:.0} s: {kills:?}; {} rounds ended before their kill, {} were let through",
        kills.values().sum::<usize>(),
        begun.elapsed().as_secs_f64(),
        sum(|t| t.escaped),
        sum(|t| t.let_through),
    );
    println!(
        "{} messages announced, {} on disk, {} of them whole without having been announced",
        sum(|t| t.announced),
        sum(|t| t.on_disk),
        sum(|t| t.unannounced),
    );
    assert_eq!(kills.values().sum::<usize>(), KILLS);
    for phase in [Phase::Starting, Phase::Streaming, Phase::Saving] {
        assert!(kills.contains_key(&phase), "nobody died in {phase:?}");
    }
    assert_eq!(
        sum(|t| t.on_disk),
        sum(|t| t.announced) + sum(|t| t.unannounced)
    );
}

#[test]
fn deaths_while_a_thread_is_made_leave_a_usable_folder() {
    let scripts: Vec<(&str, Value)> = MEMBERS.iter().map(|m| (*m, script(m, 1))).collect();
    let home = Home::scripted(&scripts);
    let begun = Instant::now();
    assert_eq!(home.run(&["ask", "-q", "x"]).code, Some(0));
    let usual = begun.elapsed();
    let mut dice = Dice::new(7);
    for _ in 0..NEW_THREADS {
        let mut child = home
            .kd(&["ask", "-q", "A new thread?"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        std::thread::sleep(usual.mul_f64(dice.below(1000) as f64 / 1000.0));
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().expect("it ends");
        let list = home.run(&["council", "list", "--json"]);
        assert_eq!((list.code, list.err.as_str()), (Some(0), ""));
        let next = home.run(&["ask", "--continue", "--json", "And now?"]);
        assert_eq!(next.code, Some(0), "{}", next.err);
        assert_eq!(next.json()["outcome"], "complete");
    }
    for thread in home.threads() {
        whole(&thread);
    }
}
