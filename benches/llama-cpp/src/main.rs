//! The figures of `crates/kd-local/benches/council.rs`, on llama.cpp: the same file, threads, prompts by length, answers by
//! number of tokens, medians over rounds. Greedy, and an answer is never ended early, so that every run does the same work.
//!
//! `llama-cpp-bench MODEL [THREADS] [ROUNDS]` prints the same lines of JSON.

use std::num::NonZeroU32;
use std::time::Instant;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

const ANSWER: usize = 48;
const ROUND_ANSWER: usize = 24;
const SHARED: usize = 512;
/// Tokens that a member reads of its own, in a round and where decoding is measured.
const OWN: usize = 24;

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("llama-cpp-bench MODEL [THREADS] [ROUNDS]");
    let threads: i32 = args.next().map_or(2, |v| v.parse().unwrap());
    let rounds: usize = args.next().map_or(5, |v| v.parse().unwrap());
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    let mut loads = Vec::new();
    let mut model = None;
    for _ in 0..3 {
        drop(model.take());
        let begun = Instant::now();
        model = Some(LlamaModel::load_from_file(&backend, &path, &LlamaModelParams::default()).unwrap());
        loads.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let model = model.unwrap();
    show("load ms", median(loads));
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(4096))
        .with_n_batch(1024)
        .with_n_ubatch(256)
        .with_n_seq_max(5)
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let mut council = Council { context: model.new_context(&backend, params).unwrap(), vocab: model.n_vocab() };
    let sizes = [1, 3, 5];
    let mut prompt = Vec::new();
    let mut decode = [const { Vec::new() }; 3];
    let mut alone = [const { Vec::new() }; 3];
    let mut round = [const { Vec::new() }; 3];
    let mut round_alone = [const { Vec::new() }; 3];
    for r in 0..rounds {
        let shared = council.words(r, SHARED);
        let took = council.ask(&shared, 1, 0, 1);
        prompt.push(SHARED as f64 / took.reading);
        for (i, n) in sizes.into_iter().enumerate() {
            let took = council.ask(&[], n, OWN, ANSWER);
            decode[i].push((n * ANSWER) as f64 / took.answering);
            let secs: f64 = (0..n).map(|_| council.ask(&[], 1, OWN, ANSWER).answering).sum();
            alone[i].push((n * ANSWER) as f64 / secs);
            round[i].push(council.ask(&shared, n, OWN, ROUND_ANSWER).total);
            round_alone[i].push((0..n).map(|_| council.ask(&shared, 1, OWN, ROUND_ANSWER).total).sum());
        }
    }
    show("prompt tok/s", median(prompt));
    for (i, n) in sizes.into_iter().enumerate() {
        show(&format!("decode tok/s, {n} together"), median(decode[i].clone()));
        show(&format!("decode tok/s, {n} one after another"), median(alone[i].clone()));
        show(&format!("decode ratio, {n}"), ratio(&decode[i], &alone[i]));
        show(&format!("round s, {n} together"), median(round[i].clone()));
        show(&format!("round s, {n} one after another"), median(round_alone[i].clone()));
        show(&format!("round ratio, {n}"), ratio(&round_alone[i], &round[i]));
    }
    show("peak memory MiB", peak_mib());
}

struct Council<'a> {
    context: LlamaContext<'a>,
    vocab: i32,
}

struct Took {
    reading: f64,
    answering: f64,
    total: f64,
}

impl Council<'_> {
    /// `n` members read `shared` once and `own` tokens each, then answer together.
    fn ask(&mut self, shared: &[LlamaToken], n: usize, own: usize, answer: usize) -> Took {
        self.context.clear_kv_cache();
        let begun = Instant::now();
        let mut batch = LlamaBatch::new(1024, n as i32);
        for (i, token) in shared.iter().enumerate() {
            batch.add(*token, i as i32, &[0], own == 0 && i + 1 == shared.len()).unwrap();
        }
        if !shared.is_empty() {
            self.context.decode(&mut batch).unwrap();
            for member in 1..n {
                self.context.kv_cache_seq_cp(0, member as i32, None, None).unwrap();
            }
        }
        let mut last = vec![batch.n_tokens() - 1; n];
        if own > 0 {
            batch.clear();
            for member in 0..n {
                for (i, token) in self.words(100 + member, own).into_iter().enumerate() {
                    batch.add(token, (shared.len() + i) as i32, &[member as i32], i + 1 == own).unwrap();
                }
                last[member] = batch.n_tokens() - 1;
            }
            self.context.decode(&mut batch).unwrap();
        }
        let mut next: Vec<LlamaToken> = last.iter().map(|at| self.best(*at)).collect();
        let reading = begun.elapsed().as_secs_f64();
        for step in 1..answer {
            batch.clear();
            for (member, token) in next.iter().enumerate() {
                batch.add(*token, (shared.len() + own + step - 1) as i32, &[member as i32], true).unwrap();
            }
            self.context.decode(&mut batch).unwrap();
            next = (0..n as i32).map(|at| self.best(at)).collect();
        }
        let total = begun.elapsed().as_secs_f64();
        Took { reading, answering: total - reading, total }
    }

    fn best(&self, at: i32) -> LlamaToken {
        let logits = self.context.get_logits_ith(at);
        let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        LlamaToken(best as i32)
    }

    /// Tokens that mean nothing, the same for the same `seed`.
    fn words(&self, seed: usize, n: usize) -> Vec<LlamaToken> {
        let mut state = seed as u64 + 1;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                LlamaToken(300 + (state >> 33) as i32 % (self.vocab - 300).min(8000))
            })
            .collect()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ratio(a: &[f64], b: &[f64]) -> f64 {
    median(a.iter().zip(b).map(|(a, b)| a / b).collect())
}

fn show(what: &str, value: f64) {
    println!("{{\"figure\":{what:?},\"value\":{value:.2}}}");
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
