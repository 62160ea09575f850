//! Speed of a council whose members share one model, compared with the same members one after another.
//!
//! `KD_MODEL=model.gguf cargo bench -p kd-local --bench council` prints one line of JSON per figure: medians over
//! interleaved rounds, so that ratios compare runs under the same load. `KD_BENCH_ROUNDS` sets the rounds (5).
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Instant;

use kd_local::chat::{ChatMessage, Role};
use kd_local::{Engine, Job, Options, Piece, Sampling};

/// Tokens of an answer, both in the decoding measurement and in a round.
const ANSWER: usize = 48;
const ROUND_ANSWER: usize = 24;
/// Words that make about 512 tokens.
const SHARED_WORDS: usize = 480;

fn main() {
    let Some(path) = std::env::var_os("KD_MODEL") else {
        println!("council: not run; set KD_MODEL to a GGUF file");
        return;
    };
    let rounds = std::env::var("KD_BENCH_ROUNDS")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(5);
    let begun = Instant::now();
    let first = load(&path);
    let cold = begun.elapsed().as_secs_f64() * 1e3;
    println!(
        "{{\"model\":{:?},\"simd\":{:?},\"threads\":{}}}",
        first.info().name,
        first.info().simd,
        first.info().threads
    );
    drop(first);
    let loads: Vec<f64> = (0..3)
        .map(|_| {
            let begun = Instant::now();
            let engine = load(&path);
            let took = begun.elapsed().as_secs_f64() * 1e3;
            drop(engine);
            took
        })
        .collect();
    show("load ms (first)", cold);
    show("load ms", median(loads));
    let engine = load(&path);
    let sizes = [1, 3, 5];
    let mut prompt = Vec::new();
    let mut decode = [const { Vec::new() }; 3];
    let mut alone = [const { Vec::new() }; 3];
    let mut round = [const { Vec::new() }; 3];
    let mut round_alone = [const { Vec::new() }; 3];
    for r in 0..rounds {
        // A different prefix each time, so that nothing is cached from the previous round.
        let job = |text: String, max_tokens| Job {
            messages: vec![ChatMessage::new(Role::User, text)],
            sampling: Sampling {
                seed: 7,
                ..Sampling::default()
            },
            max_tokens,
            stop: Vec::new(),
            schema: None,
            watch: None,
        };
        let long = ask(&engine, vec![job(words(r, SHARED_WORDS), 1)]);
        prompt.push(long.prompt_tokens as f64 / long.reading);
        for (i, n) in sizes.into_iter().enumerate() {
            let short = |m: usize| {
                job(
                    format!("Member {m} of {r}: tell a very long story about a river."),
                    ANSWER,
                )
            };
            let together = ask(&engine, (0..n).map(short).collect());
            decode[i].push(together.answer_tokens as f64 / together.answering);
            let (mut tokens, mut secs) = (0, 0.0);
            for m in 0..n {
                let one = ask(&engine, vec![short(m)]);
                tokens += one.answer_tokens;
                secs += one.answering;
            }
            alone[i].push(tokens as f64 / secs);
            let persona = |m: usize| {
                job(
                    format!(
                        "{}\nYou are member {m}. Say what you think.",
                        words(r, SHARED_WORDS)
                    ),
                    ROUND_ANSWER,
                )
            };
            round[i].push(ask(&engine, (0..n).map(persona).collect()).total);
            round_alone[i].push((0..n).map(|m| ask(&engine, vec![persona(m)]).total).sum());
        }
    }
    show("prompt tok/s", median(prompt));
    for (i, n) in sizes.into_iter().enumerate() {
        show(
            &format!("decode tok/s, {n} together"),
            median(decode[i].clone()),
        );
        show(
            &format!("decode tok/s, {n} one after another"),
            median(alone[i].clone()),
        );
        show(&format!("decode ratio, {n}"), ratio(&decode[i], &alone[i]));
        show(&format!("round s, {n} together"), median(round[i].clone()));
        show(
            &format!("round s, {n} one after another"),
            median(round_alone[i].clone()),
        );
        show(
            &format!("round ratio, {n}"),
            ratio(&round_alone[i], &round[i]),
        );
    }
    show("peak memory MiB", peak_mib());
    show("cpu s", cpu_secs());
}

fn load(path: &std::ffi::OsStr) -> Engine {
    // Without the prefix cache: sequential runs must evaluate everything, as separate programs would.
    Engine::load(
        Path::new(path),
        Options {
            cache_bytes: 0,
            ..Options::default()
        },
    )
    .unwrap()
}

#[derive(Default)]
struct Took {
    prompt_tokens: usize,
    answer_tokens: usize,
    /// Seconds until the last member has read its prompt.
    reading: f64,
    /// Seconds from then to the end.
    answering: f64,
    total: f64,
}

/// Submits all jobs at once and waits for all answers.
fn ask(engine: &Engine, jobs: Vec<Job>) -> Took {
    let (sender, receiver) = channel();
    let begun = Instant::now();
    let tickets: Vec<_> = jobs
        .into_iter()
        .map(|job| {
            let sender = sender.clone();
            engine.submit(job, move |piece| {
                sender.send((Instant::now(), piece)).unwrap()
            })
        })
        .collect();
    drop(sender);
    let mut took = Took::default();
    for (at, piece) in receiver {
        let at = (at - begun).as_secs_f64();
        match piece {
            Piece::Started { .. } => took.reading = at,
            Piece::Done { usage, .. } => {
                took.prompt_tokens += usage.prompt_tokens;
                took.answer_tokens += usage.answer_tokens;
                took.total = at;
            }
            Piece::Failed(error) => panic!("{error}"),
            _ => {}
        }
    }
    drop(tickets);
    took.answering = took.total - took.reading;
    took
}

/// Generates plain words, the same for the same `seed`.
fn words(seed: usize, n: usize) -> String {
    let some = [
        "river", "stone", "the", "a", "bridge", "over", "under", "old", "house", "where", "people",
        "sing", "small", "team",
    ];
    let mut state = seed as u64 + 1;
    (0..n)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            some[(state >> 33) as usize % some.len()]
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the median of the ratios within the rounds.
fn ratio(a: &[f64], b: &[f64]) -> f64 {
    median(a.iter().zip(b).map(|(a, b)| a / b).collect())
}

fn show(what: &str, value: f64) {
    println!("{{\"figure\":{what:?},\"value\":{value:.2}}}");
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}

fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let field = |n: usize| {
        after
            .split_whitespace()
            .nth(n)
            .and_then(|v| v.parse::<f64>().ok())
            .unwrap_or(f64::NAN)
    };
    (field(11) + field(12)) / 100.0
}
