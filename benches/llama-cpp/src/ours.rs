//! kd-local, through the API that `kd` uses.

use std::path::Path;
use std::sync::mpsc::channel;

use kd_local::chat::{ChatMessage, Role};
use kd_local::{Engine, Job, Options, Piece, Sampling};

use crate::{Clock, Question, Side, Took};

/// An engine without a prefix cache: every council reads everything, as with llama.cpp.
pub struct Ours(Engine);

impl Ours {
    pub fn load(path: &Path, threads: usize) -> Self {
        let options = Options { threads: Some(threads), cache_bytes: 0, ..Options::default() };
        Self(Engine::load(path, options).unwrap())
    }
}

impl Side for Ours {
    fn ask(&mut self, questions: &[Question], answer: usize) -> Took {
        let (sender, receiver) = channel();
        let clock = std::sync::Arc::new(Clock::start());
        let tickets: Vec<_> = questions
            .iter()
            .map(|question| {
                let job = Job {
                    messages: vec![ChatMessage::new(Role::User, question.text.clone())],
                    sampling: Sampling::greedy(),
                    max_tokens: answer,
                    stop: Vec::new(),
                    schema: None,
                    watch: None,
                };
                let (sender, clock) = (sender.clone(), clock.clone());
                self.0.submit(job, move |piece| sender.send((clock.read(), piece)).unwrap())
            })
            .collect();
        drop(sender);
        let (mut read, mut end) = ((0.0, 0.0), (0.0, 0.0));
        for (at, piece) in receiver {
            match piece {
                Piece::Started { .. } => read = at,
                Piece::Done { usage, .. } => {
                    assert_eq!(usage.answer_tokens, answer, "an answer that ended early measures less work");
                    end = at;
                }
                Piece::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
        drop(tickets);
        Took { reading: read.0, answering: end.0 - read.0, reading_cpu: read.1, answering_cpu: end.1 - read.1 }
    }
}
