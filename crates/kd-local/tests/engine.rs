//! The engine's public API, on tiny random models: what callers can rely on.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod tiny;
mod writer;

use std::sync::mpsc::{Receiver, channel};

use kd_local::chat::{ChatMessage, Role};
use kd_local::{Engine, Error, Job, Options, Piece, Sampling, StopReason, Ticket, Usage, Watch};
use serde_json::json;
use tiny::Tiny;

fn engine(options: Options) -> Engine {
    let built = Tiny {
        context: 400,
        layers: 2,
        ..Tiny::default()
    }
    .build();
    Engine::from_bytes(built.bytes(), options).unwrap()
}

fn job(text: &str, seed: u64) -> Job {
    Job {
        messages: vec![ChatMessage::new(Role::User, text)],
        sampling: Sampling {
            temperature: 1.0,
            seed,
            ..Sampling::default()
        },
        max_tokens: 24,
        stop: Vec::new(),
        schema: None,
        watch: None,
    }
}

fn submit(engine: &Engine, job: Job) -> (Ticket, Receiver<Piece>) {
    let (sender, receiver) = channel();
    (
        engine.submit(job, move |piece| drop(sender.send(piece))),
        receiver,
    )
}

#[derive(Debug, Default)]
struct Answer {
    text: String,
    parts: usize,
    choices: Vec<Vec<(String, f64)>>,
    shared: usize,
    end: Option<(StopReason, Usage)>,
    error: Option<Error>,
}

/// Receives a job's pieces to the end, and checks their order.
fn hear(pieces: &Receiver<Piece>) -> Answer {
    let mut answer = Answer::default();
    let mut started = false;
    for piece in pieces {
        assert!(
            answer.end.is_none() && answer.error.is_none(),
            "a piece after the end: {piece:?}"
        );
        match piece {
            Piece::Started { shared_tokens, .. } => {
                assert!(!started);
                (started, answer.shared) = (true, shared_tokens);
            }
            Piece::Text(text) => {
                assert!(started && !text.is_empty());
                answer.text += &text;
                answer.parts += 1;
            }
            Piece::Choice(choice) => {
                assert!(started);
                answer.choices.push(choice);
            }
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

fn together(engine: &Engine, jobs: Vec<Job>) -> Vec<Answer> {
    let running: Vec<_> = jobs.into_iter().map(|job| submit(engine, job)).collect();
    running.iter().map(|(_, pieces)| hear(pieces)).collect()
}

fn fresh() -> Options {
    Options {
        threads: Some(2),
        ..Options::default()
    }
}

#[test]
fn an_answer_comes_in_pieces_and_counts_its_tokens() {
    let engine = engine(fresh());
    let job = job("tell me the thing", 1);
    let prompt = engine.count_tokens(&job.messages);
    let answer = ask(&engine, job);
    let (reason, usage) = answer.end.unwrap();
    assert_eq!(usage.prompt_tokens, prompt);
    assert!(answer.parts > 1, "streamed, not at once");
    assert!(usage.answer_tokens == 24 && reason == StopReason::Length || reason == StopReason::End);
    let info = engine.info();
    assert_eq!(
        (info.name.as_str(), info.architecture.as_str(), info.context),
        ("Tiny", "llama", 400)
    );
    assert_eq!(info.licence.as_deref(), Some("apache-2.0"));
    assert!(info.parameters > 50_000 && info.weight_bytes > 50_000);
}

#[test]
fn members_say_together_what_they_say_alone() {
    let question =
        "the same long beginning that all of them read, and then something of their own: ";
    let jobs = |n: u64| -> Vec<Job> {
        (0..n)
            .map(|i| {
                job(
                    &format!("{question}{}", "member ".repeat(i as usize + 1)),
                    i,
                )
            })
            .collect()
    };
    let alone: Vec<String> = jobs(6)
        .into_iter()
        .map(|job| {
            ask(
                &engine(Options {
                    threads: Some(1),
                    plain: true,
                    ..fresh()
                }),
                job,
            )
            .text
        })
        .collect();
    assert!(alone.iter().any(|text| *text != alone[0]));
    for threads in [1, 2, 3] {
        for n in [2, 6] {
            let engine = engine(Options {
                threads: Some(threads),
                ..fresh()
            });
            let answers = together(&engine, jobs(n));
            for (answer, alone) in answers.iter().zip(&alone) {
                assert_eq!(&answer.text, alone, "{threads} threads, {n} together");
            }
            // A second time, from the cache.
            let again = together(&engine, jobs(n));
            for (answer, alone) in again.iter().zip(&alone) {
                assert_eq!(&answer.text, alone);
                assert!(answer.shared > 80);
            }
        }
    }
}

#[test]
fn a_common_beginning_is_read_once() {
    let engine = engine(fresh());
    let beginning = "what everybody has heard so far, word by word, ".repeat(3);
    let first = ask(&engine, job(&format!("{beginning}one"), 1));
    assert_eq!(first.shared, 0);
    // The next round starts with the same prefix.
    let second = ask(&engine, job(&format!("{beginning}two"), 2));
    assert!(second.shared > 100, "{}", second.shared);
    // Without a cache, members that run at the same time still share a prefix.
    let engine = self::engine(Options {
        cache_bytes: 0,
        ..fresh()
    });
    let answers = together(
        &engine,
        (0..4).map(|i| job(&format!("{beginning}{i}"), i)).collect(),
    );
    assert_eq!(
        answers.iter().filter(|a| a.shared > 100).count(),
        3,
        "{answers:?}"
    );
    assert_eq!(ask(&engine, job(&format!("{beginning}two"), 2)).shared, 0);
}

#[test]
fn a_job_that_comes_later_joins_the_running_ones() {
    let engine = engine(fresh());
    let alone = [
        ask(&engine, job("the first one", 1)).text,
        ask(&engine, job("the second, later", 2)).text,
    ];
    let engine = self::engine(fresh());
    let (second_sender, second_pieces) = channel();
    let (first_sender, first_pieces) = channel();
    let (ticket_sender, ticket) = channel();
    let other = engine.clone();
    let mut later = Some(job("the second, later", 2));
    let _first = engine.submit(job("the first one", 1), move |piece| {
        // In the middle of the first answer, from its own sink.
        if matches!(piece, Piece::Text(_))
            && let Some(job) = later.take()
        {
            let sender = second_sender.clone();
            ticket_sender
                .send(other.submit(job, move |piece| drop(sender.send(piece))))
                .unwrap();
        }
        drop(first_sender.send(piece));
    });
    let first = hear(&first_pieces);
    let _second = ticket.recv().unwrap();
    let second = hear(&second_pieces);
    assert_eq!([first.text, second.text], alone);
}

#[test]
fn a_prompt_that_is_too_long_is_refused_before_any_work() {
    let engine = engine(Options {
        context: Some(64),
        ..fresh()
    });
    assert_eq!(engine.info().context, 64);
    let answer = ask(&engine, job(&"too long ".repeat(20), 1));
    match answer.error.unwrap() {
        error @ Error::TooLong { prompt, limit: 64 } => {
            assert!(prompt > 64, "{prompt}");
            assert!(error.to_string().contains("64") && error.hint().is_some());
        }
        other => panic!("{other:?}"),
    }
    // A prompt that leaves little space gets a short answer.
    let text = "0".repeat(64 - 8 - engine.count_tokens(&job("", 1).messages));
    let answer = ask(
        &engine,
        Job {
            max_tokens: 1000,
            ..job(&text, 3)
        },
    );
    let (reason, usage) = answer.end.unwrap();
    assert!(usage.answer_tokens <= 8, "{usage:?}");
    assert!(reason == StopReason::End || usage.answer_tokens == 8);
}

#[test]
fn a_limit_of_tokens_is_kept() {
    let engine = engine(fresh());
    for max_tokens in [0, 1, 5] {
        let answer = ask(
            &engine,
            Job {
                max_tokens,
                ..job("count", 1)
            },
        );
        let (reason, usage) = answer.end.unwrap();
        assert!(usage.answer_tokens <= max_tokens);
        assert!(
            usage.answer_tokens == max_tokens && reason == StopReason::Length
                || reason == StopReason::End
        );
        assert!(max_tokens > 0 || answer.text.is_empty());
    }
}

#[test]
fn dropping_the_ticket_ends_the_job_and_no_other() {
    let engine = engine(fresh());
    let long = |seed| Job {
        max_tokens: 300,
        sampling: Sampling {
            seed,
            ..Sampling::greedy()
        },
        ..job("on and on", seed)
    };
    let alone = ask(&engine, long(2));
    let (first, first_pieces) = submit(&engine, long(1));
    let (_second, second_pieces) = submit(&engine, long(2));
    while !matches!(first_pieces.recv().unwrap(), Piece::Text(_)) {}
    drop(first);
    let rest: Vec<Piece> = first_pieces.iter().collect();
    assert!(
        matches!(
            rest.last(),
            Some(Piece::Failed(Error::Cancelled)) | Some(Piece::Done { .. })
        ),
        "{:?}",
        rest.last()
    );
    assert_eq!(hear(&second_pieces).text, alone.text);
    // A job that is cancelled before it starts reports it.
    let (ticket, pieces) = submit(&engine, long(3));
    drop(ticket);
    let last = pieces.iter().last().unwrap();
    assert!(matches!(
        last,
        Piece::Failed(Error::Cancelled) | Piece::Done { .. }
    ));
}

#[test]
fn nothing_of_a_stop_string_leaks() {
    let engine = engine(fresh());
    let whole = ask(&engine, job("stop", 5)).text;
    let letters: Vec<char> = whole.chars().collect();
    assert!(letters.len() > 6, "{whole:?}");
    for from in 1..letters.len() - 3 {
        let stop: String = letters[from..from + 3].iter().collect();
        let at = whole.find(&stop).unwrap();
        let answer = ask(
            &engine,
            Job {
                stop: vec!["never said".into(), stop],
                ..job("stop", 5)
            },
        );
        assert_eq!(answer.text, whole[..at]);
        assert_eq!(answer.end.unwrap().0, StopReason::Stop);
    }
}

#[test]
fn an_answer_follows_its_schema_and_tells_its_choice() {
    let engine = engine(fresh());
    let labels = vec!["agree".to_owned(), "disagree".into(), "abstain".into()];
    let schema = json!({
        "type": "object",
        "properties": { "reason": { "type": "string", "maxLength": 8 }, "vote": { "enum": labels } },
        "required": ["reason", "vote"],
        "additionalProperties": false,
    });
    let jobs = |n: u64| -> Vec<Job> {
        let watch = Some(Watch {
            labels: labels.clone(),
        });
        (0..n)
            .map(|i| Job {
                schema: Some(schema.clone()),
                watch: watch.clone(),
                max_tokens: 200,
                ..job("vote!", i)
            })
            .collect()
    };
    let alone: Vec<String> = jobs(4)
        .into_iter()
        .map(|job| ask(&engine, job).text)
        .collect();
    for (answer, alone) in together(&engine, jobs(4)).iter().zip(&alone) {
        let (reason, usage) = answer.end.unwrap();
        assert_eq!(reason, StopReason::End);
        assert!(
            usage.forced_tokens > 10 && usage.forced_tokens < usage.answer_tokens,
            "{usage:?}"
        );
        let json: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert!(labels.iter().any(|l| json["vote"] == **l), "{json}");
        let [choice] = &answer.choices[..] else {
            panic!("{:?}", answer.choices)
        };
        assert!(choice.iter().map(|(label, _)| label).eq(&labels));
        assert!((choice.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-6);
        assert_eq!(&answer.text, alone);
    }
    // A schema that allows only one answer needs no sampling.
    let answer = ask(
        &engine,
        Job {
            schema: Some(json!({ "const": "yes" })),
            ..job("?", 1)
        },
    );
    assert_eq!(answer.text, "\"yes\"");
}

#[test]
fn a_schema_that_cannot_be_met_fails_the_job_alone() {
    let engine = engine(fresh());
    let answers = together(
        &engine,
        vec![
            Job {
                schema: Some(json!({ "type": "nonsense" })),
                ..job("a", 1)
            },
            job("b", 2),
        ],
    );
    assert!(
        matches!(answers[0].error, Some(Error::Schema { .. })),
        "{answers:?}"
    );
    assert!(answers[1].end.is_some());
    let watch = Some(Watch {
        labels: vec!["x".into(), "y".into()],
    });
    let answer = ask(
        &engine,
        Job {
            schema: Some(json!({ "enum": ["a", "b"] })),
            watch,
            ..job("a", 1)
        },
    );
    assert!(
        matches!(answer.error, Some(Error::Schema { .. })),
        "{answer:?}"
    );
}

#[test]
fn a_sink_that_panics_loses_its_job_and_no_other() {
    let engine = engine(fresh());
    let alone = ask(&engine, job("steady", 1)).text;
    let _bad = engine.submit(job("bad", 2), |_| panic!("a sink"));
    assert_eq!(ask(&engine, job("steady", 1)).text, alone);
}

#[test]
fn the_last_handle_ends_what_runs() {
    let engine = engine(fresh());
    let (_ticket, pieces) = submit(
        &engine,
        Job {
            max_tokens: 300,
            ..job("long", 1)
        },
    );
    while !matches!(pieces.recv().unwrap(), Piece::Text(_)) {}
    let other = engine.clone();
    drop(engine);
    assert!(ask(&other, job("still here", 1)).end.is_some());
    drop(other);
    let last = pieces.iter().last().unwrap();
    assert!(
        matches!(last, Piece::Failed(Error::Cancelled) | Piece::Done { .. }),
        "{last:?}"
    );
}

#[test]
fn more_jobs_than_seats_wait_for_their_turn() {
    let engine = engine(Options {
        together: 2,
        ..fresh()
    });
    let alone: Vec<String> = (0..7)
        .map(|i| ask(&engine, job(&format!("number {i}"), i)).text)
        .collect();
    let answers = together(
        &engine,
        (0..7).map(|i| job(&format!("number {i}"), i)).collect(),
    );
    assert!(answers.iter().map(|a| &a.text).eq(&alone));
}

#[test]
fn a_file_that_cannot_be_used_says_why() {
    let load = |path: &std::path::Path| Engine::load(path, Options::default()).unwrap_err();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.gguf");
    assert!(matches!(load(&missing), Error::Io { path, .. } if path == missing));
    let text = folder.path().join("text.gguf");
    std::fs::write(&text, "no model at all").unwrap();
    assert!(matches!(load(&text), Error::Gguf { .. }));
    let good = folder.path().join("good.gguf");
    let bytes = Tiny::default().build().bytes();
    std::fs::write(&good, &bytes).unwrap();
    assert_eq!(
        Engine::load(&good, Options::default())
            .unwrap()
            .info()
            .file_bytes,
        bytes.len() as u64
    );
    // Truncated anywhere: an error, never a panic.
    for len in (0..bytes.len()).step_by(bytes.len() / 50) {
        assert!(Engine::from_bytes(bytes[..len].to_vec(), Options::default()).is_err());
    }
}

#[test]
fn the_real_model_says_together_what_it_says_alone() {
    let Some(path) = std::env::var_os("KD_MODEL") else {
        println!("not run: set KD_MODEL to SmolLM2-135M-Instruct.Q4_1.gguf");
        return;
    };
    let load = || {
        Engine::load(
            path.as_ref(),
            Options {
                cache_bytes: 0,
                ..Options::default()
            },
        )
        .unwrap()
    };
    let jobs = || -> Vec<Job> {
        let personas = ["a careful", "a bold", "a cheap", "a curious", "a tired"];
        let question = "Should a small team start with SQLite or with PostgreSQL? ";
        personas
            .iter()
            .zip(1..)
            .map(|(who, seed)| Job {
                max_tokens: 40,
                ..job(&format!("{question}You are {who} engineer."), seed)
            })
            .collect()
    };
    let engine = load();
    let alone: Vec<String> = jobs()
        .into_iter()
        .map(|job| ask(&engine, job).text)
        .collect();
    let answers = together(&engine, jobs());
    assert!(answers.iter().map(|a| &a.text).eq(&alone));
    assert_eq!(answers.iter().filter(|a| a.shared > 30).count(), 4);
}
