//! `kd batch run --provider-batch` through the real program, against a service that speaks the batch endpoints of OpenAI,
//! Anthropic and Gemini: the same answers as asked directly, at the batch's price; every fault of the service; kills.

use crate::support;

use kd_fake::Wire;
use kd_fake::batches::{BatchFault, BatchService, FAULTS, NO_ANSWERS, NoAnswer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;
use support::{Home, Said};

const RUN: [&str; 7] = [
    "batch",
    "run",
    "q.txt",
    "-o",
    "r.jsonl",
    "--provider-batch",
    "--pause=1s",
];

fn word(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic",
        Wire::Gemini => "gemini",
        Wire::OpenAi | Wire::Responses => "openai",
    }
}

/// A member at this service, and these further settings.
fn home(service: &BatchService, wire: Wire, more: Value) -> Home {
    let mut config = json!({
        "agents": {"ada": {"backend": "svc", "max_tokens": 100}},
        "council": {"members": ["ada"], "conclude": false},
        "providers": {"svc": {"wire": word(wire), "base_url": service.url(), "model": "m-1", "batches": true, "batch_pause": 0.1,
            "batch_price": 0.5, "prices": {"m-1": {"input": 10.0, "output": 50.0}}}},
    });
    if let (Some(all), Value::Object(more)) = (config.as_object_mut(), more) {
        all.extend(more);
    }
    Home::new(&config)
}

fn questions(home: &Home, count: usize) {
    let text: String = (1..=count).map(|n| format!("Question {n}?\n")).collect();
    fs::write(home.work().join("q.txt"), text).expect("written");
}

fn results(home: &Home) -> Vec<Value> {
    let text = fs::read_to_string(home.work().join("r.jsonl")).expect("results");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Returns the answer to each question.
fn answers(home: &Home) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or("(none)").to_owned();
    let lines = results(home);
    let all: BTreeMap<_, _> = lines
        .iter()
        .map(|line| (text(&line["question"]), text(&line["answer"])))
        .collect();
    assert_eq!(all.len(), lines.len(), "no question twice");
    all
}

fn is_own_answer((question, answer): (&String, &String)) -> bool {
    answer.starts_with(&format!("echo: {question} "))
}

async fn run(home: &Home, args: &[&str]) -> Said {
    let mut command = home.kd(args);
    let done = tokio::task::spawn_blocking(move || command.output());
    Said::of(done.await.expect("it ends").expect("it runs"))
}

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.kd(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

async fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..600 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not in 30 s: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wire_gives_the_answers_of_direct_requests_at_the_price_of_batches() {
    for wire in Wire::ALL {
        let service = BatchService::start(wire, BatchFault::None)
            .await
            .expect("it listens");
        let home = home(&service, wire, json!({}));
        questions(&home, 6);
        let said = run(&home, &RUN).await;
        assert_eq!(said.code, Some(0), "{wire:?}: {}", said.err);
        let batched = answers(&home);
        assert!(batched.iter().all(is_own_answer), "{wire:?}: {batched:?}");
        assert_eq!(service.billed(), (6, 0), "{wire:?}");
        assert_eq!(service.batches(), [6], "{wire:?}: one batch");
        // 100 tokens in, 10 out: 100 * 10 + 10 * 50 dollars per million, half of it.
        for line in results(&home) {
            let usd = line["usage"]["usd"].as_f64().expect("a price");
            assert!((usd - 0.00075).abs() < 1e-9, "{wire:?}: {line:#}");
            assert_eq!(line["usage"]["input_tokens"], 100, "{wire:?}");
        }
        let status = run(&home, &["batch", "status", "--json"]).await.json();
        let usd = status["spent"]["usd"].as_f64().expect("a sum");
        assert!((usd - 0.0045).abs() < 1e-9, "{wire:?}: {status:#}");
        assert_eq!(status["spent"]["calls"], 6, "{wire:?}");

        let direct = ["batch", "run", "q.txt", "-o", "d.jsonl", "--fresh"];
        let said = run(&home, &direct).await;
        assert_eq!(said.code, Some(0), "{wire:?}: {}", said.err);
        assert_eq!(service.billed(), (6, 6), "{wire:?}");
        let text = fs::read_to_string(home.work().join("d.jsonl")).expect("results");
        fs::write(home.work().join("r.jsonl"), text).expect("written");
        assert_eq!(answers(&home), batched, "{wire:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fault_of_a_service_loses_doubles_or_mixes_up_an_answer() {
    for wire in Wire::ALL {
        let mut runs = tokio::task::JoinSet::new();
        for fault in FAULTS {
            runs.spawn(with_fault(wire, fault));
        }
        while let Some(done) = runs.join_next().await {
            done.expect("it is right");
        }
    }
}

async fn with_fault(wire: Wire, fault: BatchFault) {
    let service = BatchService::start(wire, fault).await.expect("it listens");
    let home = home(&service, wire, json!({}));
    questions(&home, 4);
    let said = run(&home, &RUN).await;
    let about = format!("{wire:?} {fault:?}: {}", said.err);
    if fault == BatchFault::Polls(NoAnswer::Forbidden) {
        // A key without rights is not a failure that passes: later runs go on.
        return refused_poll(&service, &home, &about).await;
    }
    let answers = answers(&home);
    // The amount of usage that cannot be read is bounded, not guessed.
    if fault == BatchFault::BadUsage {
        let usage = &results(&home)[0]["usage"];
        let usd = usage["usd"].as_f64().expect("a bound");
        assert_eq!(usage["certainty"], "at_most", "{about}: {usage}");
        assert!(usd > 0.00075, "{about}: {usage}");
        assert_eq!(handed(&service), 4, "{about}: asked once");
    }
    let own = answers.iter().filter(|one| is_own_answer(*one)).count();
    // A request that the service refuses fails its question; all others are answered.
    let (code, right) = match (fault, wire) {
        (BatchFault::ItemError, _) | (BatchFault::BadLine, Wire::OpenAi) => (5, 3),
        (BatchFault::BadLine, _) => (6, 0),
        _ => (0, 4),
    };
    assert_eq!((said.code, own), (Some(code), right), "{about}");
    assert_eq!(answers.len(), 4, "{about}");
    let (billed, direct) = service.billed();
    let most = if fault == BatchFault::Missing { 5 } else { 4 };
    assert!(billed <= most && direct == 0, "{about} {billed} {direct}");
    use BatchFault::{Garbage, Twice, Unknown};
    let warns = matches!(fault, Twice | Unknown | Garbage);
    assert_eq!(said.err.contains("left out"), warns, "{about}");
    // Nothing is sent to another host, and the run does not hang on one.
    let is_elsewhere = fault == BatchFault::Elsewhere;
    assert!(!said.err.contains("127.0.0.1:9") || is_elsewhere, "{about}");
}

/// Returns how many requests were handed over, in however many batches.
fn handed(service: &BatchService) -> usize {
    service.batches().iter().sum()
}

async fn refused_poll(service: &BatchService, home: &Home, about: &str) {
    let mut code = None;
    for _ in 0..2 {
        run(home, &["batch", "retry"]).await;
        code = run(home, &RUN).await.code;
    }
    assert_eq!(code, Some(0), "{about}");
    assert_eq!(handed(service), 4, "{about}: collected, not sent again");
    assert!(answers(home).iter().all(is_own_answer), "{about}");
}

/// Polls that get no answer to the end of a run: the requests are not sent again, and count with their maximum.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_poll_cannot_tell_counts_with_its_maximum_and_is_collected_later() {
    let mut runs = tokio::task::JoinSet::new();
    for (at, none) in NO_ANSWERS.into_iter().enumerate() {
        let wire = Wire::ALL[at % Wire::ALL.len()];
        runs.spawn(without_answers(wire, none));
    }
    while let Some(done) = runs.join_next().await {
        done.expect("it is right");
    }
}

async fn without_answers(wire: Wire, none: NoAnswer) {
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    service.silence(Some(none));
    let home = home(&service, wire, json!({}));
    questions(&home, 2);
    let args = [&RUN[..], &["--attempts", "1"]].concat();
    let said = run(&home, &args).await;
    let about = format!("{wire:?} {none:?}: {}", said.err);
    assert_ne!(said.code, Some(0), "{about}");
    let status = run(&home, &["batch", "status", "--json"]).await.json();
    let spent = &status["spent"];
    assert_eq!(spent["certainty"], "at_most", "{about} {status:#}");
    // 100 tokens of an answer at half of 50 dollars per million are 0.0025, each time.
    let (usd, sent) = (spent["usd"].as_f64().expect("a bound"), handed(&service));
    assert!(usd > 0.0025 * sent as f64, "{about} {status:#}");
    assert_eq!(spent["calls"], sent, "{about} {status:#}");
    // Only what the service does not know any more is asked again.
    let is_gone = none == NoAnswer::Gone;
    assert!(sent == 2 || is_gone, "{about} {sent}");
    assert_eq!(service.billed().1, 0, "{about}");
    // A key without rights stops the batch: no question has failed.
    let lines = match none {
        NoAnswer::Forbidden => Vec::new(),
        _ => results(&home),
    };
    for line in lines {
        assert_eq!(line["usage"]["certainty"], "at_most", "{about} {line:#}");
    }
    service.silence(None);
    let again = run(&home, &["batch", "retry"]).await;
    assert_eq!(again.code, Some(0), "{about} {}", again.err);
    let said = run(&home, &args).await;
    assert_eq!(said.code, Some(0), "{about} {}", said.err);
    assert!(answers(&home).iter().all(is_own_answer), "{about}");
    let again = if is_gone { 2 } else { 0 };
    assert_eq!(handed(&service), sent + again, "{about}");
    let status = run(&home, &["batch", "status", "--json"]).await.json();
    let after = status["spent"]["usd"].as_f64().expect("a bound");
    let paid = if is_gone { 0.0015 } else { 0.0 };
    assert!(
        (after - usd - paid).abs() < 1e-9,
        "{about} {usd} {status:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_pays_for_nothing_twice() {
    for wire in Wire::ALL {
        let service = BatchService::start(wire, BatchFault::None)
            .await
            .expect("it listens");
        service.hold(true);
        let home = home(&service, wire, json!({}));
        questions(&home, 5);
        for _ in 0..2 {
            let mut child = start(&home, &RUN);
            until("the batch is there", || service.batches() == [5]).await;
            let polled = service.seen().len();
            until("it is polled", || service.seen().len() > polled + 1).await;
            let _ = child.kill();
            let _ = child.wait();
        }
        service.hold(false);
        let said = run(&home, &RUN).await;
        assert_eq!(said.code, Some(0), "{wire:?}: {}", said.err);
        assert!(
            said.err.contains("of an earlier run"),
            "{wire:?}: {}",
            said.err
        );
        let answers = answers(&home);
        assert!(
            answers.len() == 5 && answers.iter().all(is_own_answer),
            "{answers:?}"
        );
        assert_eq!(
            (service.batches(), service.billed()),
            (vec![5], (5, 0)),
            "{wire:?}"
        );
        let status = run(&home, &["batch", "status", "--json"]).await.json();
        assert_eq!(status["spent"]["calls"], 5, "{wire:?}: {status:#}");
        assert_eq!(
            status["spent"]["certainty"], "exact",
            "{wire:?}: {status:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_leaves_the_batch_at_the_provider_and_cancel_ends_it_there() {
    use rustix::process::{Pid, Signal, kill_process};
    let wire = Wire::OpenAi;
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    service.hold(true);
    let home = home(&service, wire, json!({}));
    questions(&home, 3);
    let child = start(&home, &RUN);
    until("the batch is there", || service.batches() == [3]).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
    kill_process(pid, Signal::INT).expect("sent");
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output());
    let said = Said::of(ended.await.expect("it ends").expect("it ran"));
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(
        said.err.contains("the same command collects"),
        "{}",
        said.err
    );
    assert_eq!(service.cancelled(), 0);

    let said = run(&home, &["batch", "cancel"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("1 provider batch cancelled"),
        "{}",
        said.err
    );
    assert_eq!(service.cancelled(), 1);
    let said = run(&home, &["batch", "retry"]).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    service.hold(false);
    let said = run(&home, &RUN).await;
    // The first attempts were cancelled at the provider; they do not count, and all are asked again.
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(service.billed(), (3, 0));
    assert!(answers(&home).iter().all(is_own_answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn stages_of_a_protocol_go_one_batch_each_beside_members_asked_directly() {
    let wire = Wire::Anthropic;
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    let script = json!({"runs": [[{"sleep_ms": 300}, {"text": "from a script"}]]});
    let home = home(
        &service,
        wire,
        json!({
            "agents": {
                "ada": {"backend": "svc", "max_tokens": 100},
                "bob": {"backend": "scripted", "model": "script.json"},
            },
            "council": {"members": ["ada", "bob"], "conclude": true, "chair": "ada"},
        }),
    );
    fs::write(home.work().join("script.json"), script.to_string()).expect("written");
    questions(&home, 4);
    let said = run(&home, &RUN).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(service.batches(), [4, 4], "answers, then conclusions");
    assert_eq!(service.billed(), (8, 0));
    for line in results(&home) {
        let said: Vec<&Value> = line["answers"]
            .as_array()
            .expect("answers")
            .iter()
            .collect();
        assert_eq!(said.len(), 2, "{line:#}");
        assert_eq!(line["by"], "chair", "{line:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_and_the_estimate_tells_the_price_of_batches() {
    let wire = Wire::OpenAi;
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    let home = home(&service, wire, json!({}));
    questions(&home, 8);
    let usd = |said: &Said| said.json()["usd"]["high"].as_f64().expect("a price");
    let direct = ["batch", "run", "q.txt", "--dry-run", "--json"];
    let full = usd(&run(&home, &direct).await);
    let half = usd(&run(&home, &[&direct[..], &["--provider-batch"]].concat()).await);
    assert!((half * 2.0 - full).abs() < 1e-9, "{half} {full}");
    assert_eq!(service.billed(), (0, 0));

    let said = run(&home, &[&RUN[..], &["--max-calls", "3"]].concat()).await;
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert_eq!(service.billed(), (3, 0), "{}", said.err);
    let said = run(&home, &RUN).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(service.billed(), (8, 0), "{}", said.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_service_that_says_so_gets_batches() {
    let wire = Wire::OpenAi;
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    let home = home(
        &service,
        wire,
        json!({"providers": {"svc": {"base_url": service.url(), "model": "m-1"}}}),
    );
    questions(&home, 2);
    let said = run(&home, &RUN).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!((service.batches(), service.billed()), (vec![], (0, 2)));
    assert!(answers(&home).iter().all(is_own_answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deliberation_goes_on_after_kills_in_any_stage() {
    let wire = Wire::OpenAi;
    let service = BatchService::start(wire, BatchFault::None)
        .await
        .expect("it listens");
    let agent = json!({"backend": "svc", "max_tokens": 400});
    let home = home(
        &service,
        wire,
        json!({"agents": {"ada": agent, "bob": agent, "cy": agent}, "council": {"members": ["ada", "bob", "cy"]}}),
    );
    fs::write(home.work().join("q.txt"), "Is it safe?\n").expect("written");
    let args = [&RUN[..], &["--as", "deliberate", "--attempts", "20"]].concat();
    let mut kills = 0;
    loop {
        service.hold(true);
        let before = service.batches().len();
        let mut child = start(&home, &args);
        // A stage is handed over, or one of before is waited for.
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if service.batches().len() > before || child.try_wait().expect("waited").is_some() {
                break;
            }
        }
        if child.try_wait().expect("waited").is_some() {
            break;
        }
        let _ = child.kill();
        let _ = child.wait();
        kills += 1;
        // The provider finishes what it has; the next run goes one stage further.
        service.hold(false);
        assert!(kills < 15, "it does not end");
        let mut child = start(&home, &args);
        let handed = service.batches().len();
        for _ in 0..160 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if service.batches().len() > handed || child.try_wait().expect("waited").is_some() {
                break;
            }
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    service.hold(false);
    let said = run(&home, &args).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let line = &results(&home)[0];
    assert!(kills > 1 && !line["verdict"].is_null(), "{kills} {line:#}");
    // A second batch of the same questions, undisturbed, asks as much.
    let asked: usize = service.batches().iter().sum();
    let fresh = [
        "batch",
        "run",
        "q.txt",
        "-o",
        "f.jsonl",
        "--provider-batch",
        "--as",
        "deliberate",
        "--fresh",
    ];
    let said = run(&home, &fresh).await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let both: usize = service.batches().iter().sum();
    assert_eq!(
        both - asked,
        asked,
        "kills cost no request: {:?}",
        service.batches()
    );
}
