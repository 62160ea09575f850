//! llama.cpp: one context, a sequence per member, the common prefix evaluated once and shared.

use std::num::NonZeroU32;
use std::path::Path;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;

use crate::{Clock, Question, Side, Took};

/// Maximum tokens per batch.
const BATCH: usize = 2048;

pub struct Theirs<'a>(LlamaContext<'a>);

pub fn backend() -> LlamaBackend {
    let mut backend = LlamaBackend::init().unwrap();
    backend.void_logs();
    backend
}

pub fn load(backend: &LlamaBackend, path: &Path) -> LlamaModel {
    LlamaModel::load_from_file(backend, path, &LlamaModelParams::default()).unwrap()
}

impl<'a> Theirs<'a> {
    pub fn new(backend: &LlamaBackend, model: &'a LlamaModel, threads: usize) -> Self {
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(4096))
            .with_n_batch(BATCH as u32)
            .with_n_ubatch(512)
            .with_n_seq_max(8)
            .with_kv_unified(true)
            .with_n_threads(threads as i32)
            .with_n_threads_batch(threads as i32);
        Self(model.new_context(backend, params).unwrap())
    }

    /// Returns the most likely token after row `at` of the last batch. Never the end token: answers have a fixed
    /// length.
    fn best(&self, at: i32) -> LlamaToken {
        let logits = self.0.get_logits_ith(at);
        let mut best = 0;
        for (i, logit) in logits.iter().enumerate() {
            if *logit > logits[best] {
                best = i;
            }
        }
        LlamaToken(best as i32)
    }
}

impl Side for Theirs<'_> {
    fn ask(&mut self, questions: &[Question], answer: usize) -> Took {
        let clock = Clock::start();
        // Clearing the last council's cache takes negligible time.
        self.0.clear_kv_cache_seq(None, None, None).unwrap();
        let (n, first) = (questions.len(), &questions[0].tokens);
        // The last token of each prompt is always evaluated separately, for its logits.
        let same = |q: &Question| first.iter().zip(&q.tokens).take_while(|(a, b)| a == b).count().min(q.tokens.len() - 1);
        let shared = questions.iter().map(same).min().unwrap();
        let mut batch = LlamaBatch::new(BATCH, 1);
        if n > 1 && shared > 0 {
            for (i, token) in first[..shared].iter().enumerate() {
                batch.add(LlamaToken(*token as i32), i as i32, &[0], false).unwrap();
            }
            self.0.decode(&mut batch).unwrap();
            for member in 1..n {
                self.0.kv_cache_seq_cp(0, member as i32, None, None).unwrap();
            }
            batch.clear();
        }
        let from = if n > 1 { shared } else { 0 };
        let mut last = Vec::new();
        for (member, question) in questions.iter().enumerate() {
            for (i, token) in question.tokens.iter().enumerate().skip(from) {
                let end = i + 1 == question.tokens.len();
                batch.add(LlamaToken(*token as i32), i as i32, &[member as i32], end).unwrap();
            }
            last.push(batch.n_tokens() - 1);
        }
        self.0.decode(&mut batch).unwrap();
        let mut next: Vec<LlamaToken> = last.iter().map(|at| self.best(*at)).collect();
        let read = clock.read();
        for step in 1..answer {
            batch.clear();
            for (member, token) in next.iter().enumerate() {
                let place = questions[member].tokens.len() + step - 1;
                batch.add(*token, place as i32, &[member as i32], true).unwrap();
            }
            self.0.decode(&mut batch).unwrap();
            next = (0..n as i32).map(|at| self.best(at)).collect();
        }
        let end = clock.read();
        Took { reading: read.0, answering: end.0 - read.0, reading_cpu: read.1, answering_cpu: end.1 - read.1 }
    }
}
