//! The engine with llama.cpp: the guarantees that hold there, too. Run with the feature `llama-cpp` and
//! `KD_MODEL=SmolLM2-135M-Instruct.Q4_1.gguf`; without the variable, only tests that need no model run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail, and say that it did not run"
)]

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use kd_local::chat::{ChatMessage, Role};
use kd_local::{
    Carrier, Engine, Error, Job, Options, Piece, Sampling, StopReason, Ticket, Usage, Watch,
};
use serde_json::json;

fn model() -> Option<PathBuf> {
    let path = std::env::var_os("KD_MODEL");
    if path.is_none() {
        println!("not run: set KD_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf");
    }
    path.map(PathBuf::from)
}

fn load(path: &std::path::Path, options: Options) -> Engine {
    let options = Options {
        carrier: Some(Carrier::LlamaCpp),
        // One thread: llama.cpp's threads spin while waiting, which is slow beside other tests.
        threads: Some(1),
        ..options
    };
    Engine::load(path, options).unwrap()
}

fn job(text: &str) -> Job {
    Job {
        messages: vec![ChatMessage::new(Role::User, text)],
        sampling: Sampling::greedy(),
        max_tokens: 24,
        stop: Vec::new(),
        schema: None,
        watch: None,
    }
}

fn submit(engine: &Engine, job: Job) -> (Ticket, Receiver<Piece>) {
    let (sender, pieces) = channel();
    let ticket = engine.submit(job, move |piece| drop(sender.send(piece)));
    (ticket, pieces)
}

#[derive(Debug, Default)]
struct Answer {
    text: String,
    shared: usize,
    choices: Vec<Vec<(String, f64)>>,
    end: Option<(StopReason, Usage)>,
    error: Option<Error>,
}

fn hear(pieces: &Receiver<Piece>) -> Answer {
    let mut answer = Answer::default();
    for piece in pieces {
        match piece {
            Piece::Started { shared_tokens, .. } => answer.shared = shared_tokens,
            Piece::Text(text) => answer.text += &text,
            Piece::Choice(choice) => answer.choices.push(choice),
            Piece::Done { reason, usage } => answer.end = Some((reason, usage)),
            Piece::Failed(error) => answer.error = Some(error),
        }
    }
    assert!(
        answer.end.is_some() != answer.error.is_some(),
        "one end: {answer:?}"
    );
    answer
}

fn ask(engine: &Engine, job: Job) -> Answer {
    let (_ticket, pieces) = submit(engine, job);
    hear(&pieces)
}

#[test]
fn it_answers_what_our_own_engine_answers() {
    let Some(path) = model() else { return };
    let theirs = load(&path, Options::default());
    let ours = Engine::load(
        &path,
        Options {
            carrier: Some(Carrier::BuiltIn),
            ..Options::default()
        },
    )
    .unwrap();
    assert_eq!(theirs.info().simd, "llama.cpp");
    assert_eq!(theirs.info().name, ours.info().name);
    assert_eq!(theirs.info().parameters, ours.info().parameters);
    let question = "What is the capital of France?";
    assert_eq!(
        theirs.count_tokens(&job(question).messages),
        ours.count_tokens(&job(question).messages)
    );
    // Greedy; the two round differently, so only the beginning is certain to match.
    let (a, b) = (ask(&theirs, job(question)), ask(&ours, job(question)));
    assert_eq!(a.text[..20], b.text[..20], "{} / {}", a.text, b.text);
    assert_eq!(
        a.end.unwrap().1.prompt_tokens,
        b.end.unwrap().1.prompt_tokens
    );
}

#[test]
fn members_share_the_beginning_and_answer_together() {
    let Some(path) = model() else { return };
    let engine = load(
        &path,
        Options {
            together: 3,
            ..Options::default()
        },
    );
    let question = "Should a small team start with SQLite or with PostgreSQL? ";
    let running: Vec<_> = ["careful", "bold", "cheap", "curious", "tired"]
        .iter()
        .map(|who| {
            submit(
                &engine,
                job(&format!("{question}You are a {who} engineer.")),
            )
        })
        .collect();
    let answers: Vec<Answer> = running.iter().map(|(_, pieces)| hear(pieces)).collect();
    assert!(answers.iter().all(|a| a.text.len() > 20), "{answers:?}");
    assert!(
        answers.iter().filter(|a| a.shared > 20).count() >= 4,
        "{answers:?}"
    );
    // The next round finds the previous one in the cache.
    let again = ask(&engine, job(&format!("{question}You are a bold engineer.")));
    assert!(again.shared > 20, "{again:?}");
}

#[test]
fn more_than_its_memory_holds_waits_and_is_answered() {
    let Some(path) = model() else { return };
    let engine = load(
        &path,
        Options {
            context: Some(256),
            ..Options::default()
        },
    );
    let running: Vec<_> = (0..6)
        .map(|i| {
            let text = format!("{i} ") + &"something else ".repeat(20 + i);
            submit(&engine, job(&text))
        })
        .collect();
    for (_, pieces) in &running {
        let answer = hear(pieces);
        assert!(answer.end.is_some(), "{answer:?}");
    }
    let error = ask(&engine, job(&"too long ".repeat(300))).error.unwrap();
    assert!(
        matches!(error, Error::TooLong { limit: 256, .. }),
        "{error:?}"
    );
}

#[test]
fn dropping_the_ticket_ends_a_job_and_no_other() {
    let Some(path) = model() else { return };
    let engine = load(
        &path,
        Options {
            together: 2,
            ..Options::default()
        },
    );
    let long = |text| Job {
        max_tokens: 2000,
        ..job(text)
    };
    let (first, first_pieces) = submit(&engine, long("Count from one to a thousand."));
    let (_second, second_pieces) = submit(&engine, job("Name a river."));
    let (third, third_pieces) = submit(&engine, job("Never to be said."));
    drop(third);
    let waiting = third_pieces.iter().last().unwrap();
    assert!(
        matches!(waiting, Piece::Failed(Error::Cancelled)),
        "{waiting:?}"
    );
    while !matches!(first_pieces.recv().unwrap(), Piece::Text(_)) {}
    drop(first);
    let last = first_pieces.iter().last().unwrap();
    assert!(
        matches!(last, Piece::Failed(Error::Cancelled) | Piece::Done { .. }),
        "{last:?}"
    );
    assert!(hear(&second_pieces).end.is_some());
}

#[test]
fn a_vote_follows_its_schema_and_tells_its_choice() {
    let Some(path) = model() else { return };
    let engine = load(&path, Options::default());
    let labels: Vec<String> = ["agree", "disagree", "abstain"].map(String::from).into();
    let vote = Job {
        schema: Some(json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "maxLength": 40 }, "vote": { "enum": labels } },
            "required": ["reason", "vote"],
            "additionalProperties": false,
        })),
        watch: Some(Watch {
            labels: labels.clone(),
        }),
        max_tokens: 200,
        ..job("Do you agree that water is wet?")
    };
    let answer = ask(&engine, vote);
    assert_eq!(answer.end.unwrap().0, StopReason::End, "{answer:?}");
    let json: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert!(labels.iter().any(|l| json["vote"] == **l), "{json}");
    let [choice] = &answer.choices[..] else {
        panic!("{:?}", answer.choices)
    };
    assert!((choice.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-6);
}

#[test]
fn a_stop_string_ends_the_answer() {
    let Some(path) = model() else { return };
    let engine = load(&path, Options::default());
    let whole = ask(&engine, job("Name a river.")).text;
    let stop = whole.chars().skip(12).take(3).collect::<String>();
    let answer = ask(
        &engine,
        Job {
            stop: vec![stop.clone()],
            ..job("Name a river.")
        },
    );
    assert_eq!(answer.end.unwrap().0, StopReason::Stop, "{whole}");
    assert_eq!(Some(answer.text.as_str()), whole.split(&stop).next());
}

#[test]
fn what_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options {
        carrier: Some(Carrier::LlamaCpp),
        ..Options::default()
    };
    let missing = folder.path().join("none.gguf");
    assert!(matches!(
        Engine::load(&missing, options()),
        Err(Error::Io { .. })
    ));
    let text = folder.path().join("text.gguf");
    std::fs::write(&text, "no model at all").unwrap();
    assert!(matches!(
        Engine::load(&text, options()),
        Err(Error::Unsupported { .. })
    ));
}
