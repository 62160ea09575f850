//! Many real processes in one thread: racing, killed in the middle, and one kind that does not use our locks.
//!
//! The children are this same binary, started with [`child`] as the only test; the environment says what to do. They
//! report on standard output, one line per completed action.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a helper of a test may fail and speak as a test may"
)]

mod common;

use common::{draft, thread};
use kd_core::{Delta, Event, Record};
use kd_store::log::EventLog;
use kd_store::stream::{PATIENCE, StreamWriter};
use kd_store::thread::{Durability, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const DEED: &str = "KD_TEST_DEED";
const FOLDER: &str = "KD_TEST_FOLDER";
const SENDER: &str = "KD_TEST_SENDER";
const COUNT: &str = "KD_TEST_COUNT";
/// Prefix of every report, to distinguish it from the test runner's output.
const REPORT: &str = "wrote ";

/// The children's code: does nothing unless one of the tests below started this process.
#[test]
fn child() {
    let Ok(deed) = env::var(DEED) else { return };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    let sender = env::var(SENDER).unwrap();
    let count: u32 = env::var(COUNT).unwrap().parse().unwrap();
    match deed.as_str() {
        "append" => append(&folder, &sender, count),
        "stream" => stream(&folder, &sender, count),
        "foreign" => foreign(&folder, &sender, count),
        other => panic!("no such deed: {other}"),
    }
}

fn report(seq: u32, sender: &str, i: u32) {
    // Bypasses the test runner's capture, in one write, so that a killed child leaves no partial report.
    let line = format!("{REPORT}{seq} {sender} {i}\n");
    let mut out = stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Builds a body whose end proves that it is complete.
fn body(sender: &str, i: u32) -> String {
    let filler = "An answer that goes on for a while.\n".repeat(1 + i as usize % 90);
    format!("{sender} {i}\n{filler}end {sender} {i}")
}

fn append(folder: &Path, sender: &str, count: u32) {
    let thread = Thread::open_folder(folder)
        .unwrap()
        .with_durability(Durability::Buffered);
    for i in 0..count {
        let message = thread.append(&draft(sender, &body(sender, i))).unwrap();
        report(message.seq, sender, i);
    }
}

/// Starts a stream like the engine.
fn begin(thread: &Thread, member: &str) -> StreamWriter {
    let first = Delta::Started {
        model: None,
        version: None,
        session: None,
    };
    StreamWriter::begin(thread, member, &first, PATIENCE).unwrap()
}

/// Does what the engine does: a stream, the log, the message, the end of the stream.
fn stream(folder: &Path, sender: &str, count: u32) {
    let thread = Thread::open_folder(folder)
        .unwrap()
        .with_durability(Durability::Buffered);
    let mut log = EventLog::open(&thread).unwrap();
    for i in 0..count {
        let text = body(sender, i);
        let mut stream = begin(&thread, sender);
        for line in text.lines() {
            stream.line(line).unwrap();
            stream.flush().unwrap();
        }
        log.append(&[Record {
            v: 1,
            seq: u64::from(i) + 1,
            ts: "2026-11-21T07:57:55Z".parse().unwrap(),
            thread: thread.id().clone(),
            event: Event::Noticed { text: text.clone() },
        }])
        .unwrap();
        let message = thread.append(&draft(sender, &text)).unwrap();
        stream.finish().unwrap();
        report(message.seq, sender, i);
    }
}

/// Creates a file exclusively with the highest number plus one, in at most ten attempts.
fn create_next(folder: &Path, sender: &str) -> Option<(u32, File)> {
    let highest = numbers(folder).into_iter().max().unwrap_or(0);
    (highest + 1..=highest + 10).find_map(|seq| {
        let path = folder.join(format!("{seq:04}-{sender}.md"));
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        Some((seq, file.ok()?))
    })
}

/// Writes like a program that uses no locks.
fn foreign(folder: &Path, sender: &str, count: u32) {
    for i in 0..count {
        // Ten attempts may be too few while duplicates are renumbered at the end: then it lists again.
        let (seq, mut file) = (0..100).find_map(|_| create_next(folder, sender)).unwrap();
        let text = format!(
            "---\nfrom: {sender}\nto: king\ntimestamp: 2026-11-21T07:57:55Z\n---\n\n{}\n",
            body(sender, i)
        );
        file.write_all(text.as_bytes()).unwrap();
        report(seq, sender, i);
    }
}

fn numbers(folder: &Path) -> Vec<u32> {
    fs::read_dir(folder)
        .unwrap()
        .filter_map(|item| {
            let name = item.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".md")?.split_once('-')?.0.parse().ok()
        })
        .collect()
}

/// A child, killed on drop.
struct Writer {
    process: Child,
    out: BufReader<ChildStdout>,
}

/// A child's report: the number, the sender, the child's own count.
type Deed = (u32, String, u32);

impl Writer {
    fn start(deed: &str, thread: &Thread, sender: &str, count: u32) -> Writer {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(DEED, deed)
            .env(FOLDER, thread.path())
            .env(SENDER, sender)
            .env(COUNT, count.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        Writer { process, out }
    }

    /// Returns the next report; `None` if the child has exited.
    fn next(&mut self) -> Option<Deed> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The runner prints `test child ... ` without a line break before the first report.
            if let Some((_, rest)) = line.split_once(REPORT) {
                let mut words = rest.split_whitespace();
                return Some((
                    words.next()?.parse().unwrap(),
                    words.next()?.to_owned(),
                    words.next()?.parse().unwrap(),
                ));
            }
        }
    }

    /// Returns all reports; the child must exit with success.
    fn finish(mut self) -> Vec<Deed> {
        let deeds = std::iter::from_fn(|| self.next()).collect();
        assert!(self.process.wait().unwrap().success());
        deeds
    }

    /// Kills it with SIGKILL, and returns its reports.
    fn kill(mut self) -> Vec<Deed> {
        self.process.kill().unwrap();
        let deeds = std::iter::from_fn(|| self.next()).collect();
        self.process.wait().unwrap();
        deeds
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Checks that every reported message exists and is complete, nothing is half-written, and no two share a number.
/// Messages of `ours` have the reported number; those of another program may have been renumbered.
fn check(thread: &Thread, deeds: &[Deed], is_ours: impl Fn(&str) -> bool) {
    let all = thread.messages().unwrap();
    assert_eq!(all.problems, []);
    let mut by_words = BTreeMap::new();
    let mut numbers = BTreeSet::new();
    for message in all.messages {
        assert!(
            numbers.insert(message.seq),
            "number {} was given twice",
            message.seq
        );
        let (first, _) = message.body.split_once('\n').unwrap();
        assert!(
            message.body.ends_with(&format!("\nend {first}")),
            "half-written: {}",
            message.seq
        );
        let place = (message.from.clone(), first.to_owned());
        by_words
            .entry(place)
            .or_insert_with(Vec::new)
            .push((message.seq, String::from(message.body)));
    }
    for (seq, sender, i) in deeds {
        let found = by_words.get(&(sender.clone(), format!("{sender} {i}")));
        let mut found = found.into_iter().flatten();
        let same = |(at, text): &(u32, String)| {
            (at == seq || !is_ours(sender)) && *text == body(sender, *i)
        };
        assert!(found.any(same), "message {seq} of {sender} is lost");
    }
}

#[test]
fn thirty_two_processes_write_one_thread() {
    const PROCESSES: u32 = 32;
    const EACH: u32 = 40;
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["m"]);
    let writers: Vec<_> = (0..PROCESSES)
        // Some share a sender, so that their names conflict too.
        .map(|p| Writer::start("append", &thread, &format!("m{}", p % 20), EACH))
        .collect();
    let deeds: Vec<_> = writers.into_iter().flat_map(Writer::finish).collect();
    assert_eq!(deeds.len() as u32, PROCESSES * EACH);
    check(&thread, &deeds, |_| true);
    let mut seqs = numbers(thread.path());
    seqs.sort_unstable();
    assert_eq!(
        seqs,
        (1..=PROCESSES * EACH).collect::<Vec<_>>(),
        "a gap, or one too many"
    );
    assert_eq!(
        thread.append(&draft("m", "m 0\nend m 0")).unwrap().seq,
        1281
    );
}

#[test]
fn five_hundred_kills_lose_no_finished_message() {
    const KILLS: u32 = 500;
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["a", "b", "c"]);
    let mut random = Random(0x5eed_0f4b_1119_u64);
    let mut deeds = Vec::new();
    let mut next = 0;
    let mut rounds = 0;
    while rounds * 3 < KILLS {
        rounds += 1;
        let mut writers: Vec<_> = ["a", "b", "c"]
            .map(|member| Writer::start("stream", &thread, member, 1_000_000))
            .into_iter()
            .collect();
        // All three are working, and then each is killed in the middle of a message.
        for writer in &mut writers {
            deeds.extend(writer.next());
        }
        for writer in writers {
            let wait = Duration::from_micros(random.below(1500));
            let begun = Instant::now();
            while begun.elapsed() < wait {
                std::hint::spin_loop();
            }
            deeds.extend(writer.kill());
        }
        let highest = deeds.iter().map(|d| d.0).max().unwrap().max(next);
        next = thread
            .append(&draft("king", "king 0\nend king 0"))
            .unwrap()
            .seq;
        assert!(next > highest, "{next} was given after {highest}");
        let tail = thread.tail(1).unwrap();
        assert_eq!((tail.messages[0].seq, tail.problems.len()), (next, 0));
        if rounds % 40 == 0 {
            check(&thread, &deeds, |_| true);
        }
    }
    check(&thread, &deeds, |_| true);

    // Leftovers are removed: streams by the next writer of that member, drafts when the folder is next listed.
    for member in ["a", "b", "c"] {
        begin(&thread, member).finish().unwrap();
    }
    fs::write(thread.path().join("strange"), "").unwrap();
    thread.append(&draft("king", "king 0\nend king 0")).unwrap();
    assert_eq!(
        fs::read_dir(thread.path().join(".kd-new")).unwrap().count(),
        0
    );
    let logged = kd_store::log::read(&thread).unwrap();
    assert!(
        logged.records.len() >= deeds.len(),
        "{} records",
        logged.records.len()
    );
    assert!(
        logged.skipped <= KILLS as usize,
        "{} torn lines",
        logged.skipped
    );
    println!(
        "{} kills, {} messages reported, {} on disk, {} torn log lines",
        rounds * 3,
        deeds.len(),
        thread.count().unwrap(),
        logged.skipped
    );
}

#[test]
fn beside_a_program_without_locks_numbers_stay_unique_and_nothing_is_lost() {
    const EACH: u32 = 150;
    let dir = tempfile::tempdir().unwrap();
    let thread = thread(dir.path(), &["ours-a", "ours-b", "theirs"]);
    let writers = vec![
        Writer::start("append", &thread, "ours-a", EACH),
        Writer::start("foreign", &thread, "theirs", EACH),
        Writer::start("append", &thread, "ours-b", EACH),
        // A sender unknown to the thread.
        Writer::start("foreign", &thread, "stranger", EACH),
    ];
    let deeds: Vec<_> = writers.into_iter().flat_map(Writer::finish).collect();
    assert_eq!(deeds.len() as u32, 4 * EACH);
    // Writes of others after our last one are fixed when a session ends.
    thread.settle().unwrap();
    check(&thread, &deeds, |from| from.starts_with("ours"));
    // Whatever the others did among themselves, every file is read, and the next number is new.
    assert_eq!(thread.messages().unwrap().messages.len() as u32, 4 * EACH);
    let highest = numbers(thread.path()).into_iter().max().unwrap();
    assert_eq!(
        thread.append(&draft("ours-a", "x")).unwrap().seq,
        highest + 1
    );
}

/// Xorshift: the times of the kills need not be very random, but the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
