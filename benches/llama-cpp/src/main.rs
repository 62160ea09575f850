//! Compares kd-local with llama.cpp on the same file: the same prompts token by token, the same number of greedy answer
//! tokens and of threads, alternating in one process so that both see the same machine conditions.
//!
//! `llama-cpp-bench MODEL [ROUNDS] [THREADS]` prints medians over the rounds: wall clock, CPU time, and the median of
//! the ratios within the rounds.

mod ours;
mod theirs;

use std::path::PathBuf;
use std::time::Instant;

use kd_local::chat::{ChatMessage, ChatTemplate, Role};
use kd_local::gguf::Gguf;
use kd_local::tokenizer::Tokenizer;

/// Answer tokens per round and when measuring decoding.
const ANSWER: usize = 48;
const ROUND_ANSWER: usize = 24;
/// Words that amount to about 512 tokens.
const SHARED_WORDS: usize = 480;

/// One member's question, as text and as tokens.
struct Question {
    text: String,
    tokens: Vec<u32>,
}

/// The time a council took.
struct Took {
    /// Seconds until the last member had read its prompt, and from then to the end.
    reading: f64,
    answering: f64,
    /// CPU seconds of all threads.
    reading_cpu: f64,
    answering_cpu: f64,
}

/// A measured engine.
trait Side {
    /// All members read their prompts, evaluating the common prefix once, and generate `answer` tokens each, together.
    fn ask(&mut self, questions: &[Question], answer: usize) -> Took;
}

/// One figure of both engines by round: wall clock and CPU time.
struct Figure {
    name: String,
    unit: &'static str,
    /// Whether higher is better.
    more: bool,
    ours: Vec<(f64, f64)>,
    theirs: Vec<(f64, f64)>,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().expect("llama-cpp-bench MODEL [ROUNDS] [THREADS]"));
    let rounds: usize = args.next().map_or(5, |v| v.parse().unwrap());
    let threads: usize = args.next().map_or(2, |v| v.parse().unwrap());
    let reader = Reader::open(&path);
    let backend = theirs::backend();
    let mut loads = Figure::new("load", "s", false);
    for _ in 0..3 {
        let clock = Clock::start();
        let engine = ours::Ours::load(&path, threads);
        loads.ours.push(clock.read());
        drop(engine);
        let clock = Clock::start();
        let model = theirs::load(&backend, &path);
        loads.theirs.push(clock.read());
        drop(model);
    }
    let mut ours = ours::Ours::load(&path, threads);
    let model = theirs::load(&backend, &path);
    let mut theirs = theirs::Theirs::new(&backend, &model, threads);
    let mut figures = vec![loads, Figure::new("prompt", "tok/s", true)];
    for n in [1, 3, 5] {
        figures.push(Figure::new(&format!("decode, {n} together"), "tok/s", true));
    }
    for n in [1, 3, 5] {
        figures.push(Figure::new(&format!("whole round, {n} together"), "s", false));
    }
    for round in 0..rounds {
        // A different prefix each time, so that nothing is cached from the previous round.
        let mut measure = |at: usize, questions: &[Question], answer: usize, of: &dyn Fn(&Took) -> (f64, f64)| {
            // Being first may be an advantage or a disadvantage, so they alternate.
            for turn in 0..2 {
                if (turn + round) % 2 == 0 {
                    figures[at].ours.push(of(&ours.ask(questions, answer)));
                } else {
                    figures[at].theirs.push(of(&theirs.ask(questions, answer)));
                }
            }
        };
        let long = [reader.question(words(round, SHARED_WORDS))];
        let tokens = long[0].tokens.len() as f64;
        measure(1, &long, 1, &|t| (tokens / t.reading, tokens / t.reading_cpu));
        for (i, n) in [1, 3, 5].into_iter().enumerate() {
            let short: Vec<_> = (0..n)
                .map(|m| reader.question(format!("Member {m} of {round}: tell a very long story about a river.")))
                .collect();
            let said = (n * (ANSWER - 1)) as f64;
            measure(2 + i, &short, ANSWER, &|t| (said / t.answering, said / t.answering_cpu));
            let council: Vec<_> = (0..n)
                .map(|m| {
                    let shared = words(1000 + round * 10 + n, SHARED_WORDS);
                    reader.question(format!("{shared}\nYou are member {m}. Tell a very long story about all of this."))
                })
                .collect();
            measure(5 + i, &council, ROUND_ANSWER, &|t| {
                (t.reading + t.answering, t.reading_cpu + t.answering_cpu)
            });
        }
        table(&figures, round + 1, threads);
    }
}

/// Printed after every round, so that an interrupted run shows results.
fn table(figures: &[Figure], rounds: usize, threads: usize) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("\n{rounds} rounds, {threads} threads, load {load}");
    println!("{:30}{:>32}{:>34}", "", "wall clock", "processor time");
    let head = ["kd-local", "llama.cpp", "ratio"];
    println!("{:30}{:>10}{:>12}{:>10}{:>12}{:>12}{:>10}", "", head[0], head[1], head[2], head[0], head[1], head[2]);
    figures.iter().for_each(Figure::show);
}

impl Figure {
    fn new(name: &str, unit: &'static str, more: bool) -> Self {
        Self { name: name.into(), unit, more, ours: Vec::new(), theirs: Vec::new() }
    }

    /// Prints ratios; above 1, kd-local is better.
    fn show(&self) {
        let median = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let part = |of: &dyn Fn(&(f64, f64)) -> f64| {
            let ours = median(&mut self.ours.iter().map(of).collect());
            let theirs = median(&mut self.theirs.iter().map(of).collect());
            let ratio = |(a, b): (&(f64, f64), &(f64, f64))| if self.more { of(a) / of(b) } else { of(b) / of(a) };
            (ours, theirs, median(&mut self.ours.iter().zip(&self.theirs).map(ratio).collect()))
        };
        let (wall, cpu) = (part(&|t| t.0), part(&|t| t.1));
        let name = format!("{}, {}", self.name, self.unit);
        let digits = if self.more { 0 } else { 2 };
        println!(
            "{name:30}{:>10.digits$}{:>12.digits$}{:>10.2}{:>12.digits$}{:>12.digits$}{:>10.2}",
            wall.0, wall.1, wall.2, cpu.0, cpu.1, cpu.2
        );
    }
}

/// Formats questions like kd-local, so that both engines read exactly the same tokens.
struct Reader {
    tokenizer: Tokenizer,
    template: ChatTemplate,
}

impl Reader {
    fn open(path: &std::path::Path) -> Self {
        let gguf = Gguf::open(path).unwrap();
        let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
        Self { template: ChatTemplate::from_gguf(&gguf, &tokenizer).unwrap(), tokenizer }
    }

    fn question(&self, text: String) -> Question {
        let message = ChatMessage::new(Role::User, text.clone());
        Question { text, tokens: self.template.render(&[message], &self.tokenizer) }
    }
}

/// Wall clock and CPU time of this process.
struct Clock(Instant, f64);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), cpu())
    }

    fn read(&self) -> (f64, f64) {
        (self.0.elapsed().as_secs_f64(), cpu() - self.1)
    }
}

fn cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes to `time`.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns plain words, the same for the same `seed`.
fn words(seed: usize, n: usize) -> String {
    let some = [
        "river", "stone", "the", "a", "bridge", "over", "under", "old", "house", "where", "people", "sing", "small",
        "team",
    ];
    let mut state = seed as u64 + 1;
    let word = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        some[(state >> 33) as usize % some.len()]
    };
    (0..n).map(word).collect::<Vec<_>>().join(" ")
}
