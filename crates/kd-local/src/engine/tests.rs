//! A case that cannot be produced from outside: a step that panics.

use super::*;
use crate::chat::Role;
use crate::tiny::Tiny;

#[test]
fn a_panic_in_a_step_fails_its_jobs_and_the_worker_goes_on() {
    let gguf = Gguf::from_bytes(Tiny::default().build().bytes()).unwrap();
    // Special tokens whose ids have no weights in the model: the first step panics.
    let lying = Tiny {
        words_without_weights: 9,
        ..Tiny::default()
    }
    .build();
    let words = Gguf::from_bytes(lying.bytes()).unwrap();
    let pool = Pool::new(2);
    let model = Model::load(&gguf, &pool, Simd::detect()).unwrap();
    let tokenizer = Arc::new(Tokenizer::from_gguf(&words).unwrap());
    let template = ChatTemplate::from_gguf(&words, &tokenizer).unwrap();
    let words = Arc::clone(&tokenizer);
    let parts = worker::Parts {
        brain: Own::new(model, pool),
        simd: Simd::detect(),
        tokenizer,
        layout: Arc::new(move |messages| Ok(template.render(messages, &words))),
        context: 256,
        together: 4,
        cache_bytes: 1 << 20,
    };
    let (sender, receiver) = channel();
    let (said, pieces) = channel();
    let thread = std::thread::spawn(move || worker::run(parts, &receiver));
    for _ in 0..2 {
        let said = said.clone();
        let job = Job {
            messages: vec![ChatMessage::new(Role::User, "hello")],
            sampling: Sampling::greedy(),
            max_tokens: 4,
            stop: Vec::new(),
            schema: None,
            watch: None,
        };
        let sink: Sink = Box::new(move |piece| said.send(piece).unwrap());
        let cancelled = Arc::new(AtomicBool::new(false));
        assert!(
            sender
                .send(Request {
                    job,
                    constraint: None,
                    sink,
                    cancelled
                })
                .is_ok()
        );
        // The worker survives the first job's panic and answers the second.
        match pieces.recv().unwrap() {
            Piece::Failed(Error::Worker { what }) => {
                assert!(what.contains("beyond the vocabulary"), "{what}")
            }
            other => panic!("{other:?}"),
        }
    }
    drop(sender);
    thread.join().unwrap();
}

#[test]
fn a_vocabulary_without_weights_is_refused_at_loading() {
    let lying = Tiny {
        words_without_weights: 9,
        ..Tiny::default()
    }
    .build();
    assert!(matches!(
        Engine::from_bytes(lying.bytes(), Options::default()),
        Err(Error::Tokenizer { .. })
    ));
}
