//! The prompt cost of a long chat with HTTP members: the bodies of 50 turns, priced by the cache rules of both
//! services.
//!
//! `cargo test -p kd --test program cache:: -- --nocapture` prints the ratios. Rules (also in tests/real-agents/cache.mjs):
//! Anthropic caches up to a marked block, at 1.25 of the price; a later request reads the longest cached prefix that
//! ends at one of its marks, or up to 20 blocks before one, at 0.1. OpenAI reads the longest common prefix of two
//! requests with the same `prompt_cache_key`, in steps of 128 tokens from 1024 on, at 0.1. A token is four bytes; turns
//! follow within the cache lifetime; answers are not counted. A resumed session reads its whole last request and writes
//! what is new.

use crate::support;

use kd_fake::{Fake, Reply, Script, Wire};
use serde_json::{Value, json};
use std::collections::HashSet;
use support::{Home, Said};

const TURNS: usize = 50;
const READ: f64 = 0.1;
const WRITE: f64 = 1.25;
const LEAST: f64 = 1024.0;

fn tokens(text: &str) -> f64 {
    text.len() as f64 / 4.0
}

/// Returns the blocks of a request (system, then messages) and whether each is marked.
fn blocks(body: &Value) -> Vec<(String, bool)> {
    let list = |content: &Value| match content {
        Value::Array(blocks) => blocks.clone(),
        Value::Null => Vec::new(),
        text => vec![json!({"text": text})],
    };
    let messages = body["messages"].as_array().expect("messages");
    let all = list(&body["system"]).into_iter();
    let all = all.chain(messages.iter().flat_map(|m| list(&m["content"])));
    all.map(|block| {
        let text = block["text"].as_str().expect("text").to_owned();
        (text, block["cache_control"].is_object())
    })
    .collect()
}

/// Returns the cost of requests to Anthropic, in prices of one prompt token.
fn anthropic(bodies: &[Value]) -> f64 {
    let mut written: HashSet<String> = HashSet::new();
    let mut cost = 0.0;
    for body in bodies {
        let mut ends: Vec<String> = Vec::new();
        let blocks = blocks(body);
        for (text, _) in &blocks {
            let before = ends.last().cloned().unwrap_or_default();
            ends.push(before + text);
        }
        let marks: Vec<usize> = (0..blocks.len())
            .filter(|at| blocks[*at].1 && tokens(&ends[*at]) >= LEAST)
            .collect();
        let near = marks
            .iter()
            .flat_map(|mark| mark.saturating_sub(20)..=*mark);
        let read = near
            .filter(|at| written.contains(&ends[*at]))
            .map(|at| tokens(&ends[at]));
        let read = read.fold(0.0, f64::max);
        let kept = marks
            .iter()
            .map(|at| tokens(&ends[*at]))
            .fold(read, f64::max);
        written.extend(marks.iter().map(|at| ends[*at].clone()));
        let all = ends.last().map_or(0.0, |end| tokens(end));
        cost += READ * read + WRITE * (kept - read) + (all - kept);
    }
    cost
}

/// Returns the cost of requests to OpenAI.
fn openai(bodies: &[Value]) -> f64 {
    let text =
        |body: &Value| -> String { blocks(body).into_iter().map(|(text, _)| text).collect() };
    let mut before: Vec<(String, Value)> = Vec::new();
    let mut cost = 0.0;
    for body in bodies {
        let (text, key) = (text(body), &body["prompt_cache_key"]);
        let shared = |other: &str| {
            let same = text.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
            (same.count() as f64 / 4.0 / 128.0).floor() * 128.0
        };
        let read = before.iter().filter(|(_, k)| k == key && k.is_string());
        let read = read.map(|(other, _)| shared(other)).filter(|n| *n >= LEAST);
        let read = read.fold(0.0, f64::max);
        cost += READ * read + tokens(&text) - read;
        before.push((text, key.clone()));
    }
    cost
}

/// Returns the cost of the same turns in one resumed session.
fn resumed(bodies: &[Value], write: f64) -> f64 {
    let sizes = bodies
        .iter()
        .map(|b| blocks(b).iter().map(|(text, _)| tokens(text)).sum::<f64>());
    let (mut cost, mut last) = (0.0, 0.0_f64);
    for size in sizes {
        cost += READ * last + write * (size - last).max(0.0);
        last = size;
    }
    cost
}

/// Returns the request bodies of a 50-turn chat with one member of this API.
async fn chat(wire: Wire, provider: Value) -> Vec<Value> {
    let words: Vec<&str> = vec!["A schema first, then a measurement, then what it says. "; 13];
    let fake = Fake::start(Script::always(wire, Reply::words(&words)))
        .await
        .expect("it listens");
    let mut settings = json!({"base_url": fake.url(), "model": "model-1", "wire": name(wire)});
    for (key, value) in provider.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    let home = Home::new(&json!({
        "agents": {"m1": {"backend": "svc"}},
        "council": {"members": ["m1"], "auto_messages": 0},
        "providers": {"svc": settings},
    }));
    let command = home.kd(&["chat", "--plain"]);
    let line = "what follows for the schema, the indexes and the migration? ".repeat(12);
    let typed: String = (1..=TURNS)
        .map(|turn| format!("Point {turn}: {line}\n"))
        .collect();
    let said = tokio::task::spawn_blocking(move || Said::fed(command, &typed));
    let said = said.await.expect("it ends");
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let bodies: Vec<Value> = fake.seen().iter().map(|seen| seen.json()).collect();
    assert_eq!(bodies.len(), TURNS, "{}", said.err);
    bodies
}

fn name(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "anthropic",
        _ => "openai",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_over_http_costs_less_than_twice_a_resumed_session() {
    let on = json!({"prompt_cache": true});
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let bodies = chat(wire, on.clone()).await;
        let plain: f64 = bodies
            .iter()
            .flat_map(blocks)
            .map(|(text, _)| tokens(&text))
            .sum();
        let (fresh, whole) = match wire {
            Wire::Anthropic => (anthropic(&bodies), resumed(&bodies, WRITE)),
            _ => (openai(&bodies), resumed(&bodies, 1.0)),
        };
        println!(
            "{:<10} {:.0} k tokens sent; {:.2} times a resumed session, {:.2} times without a cache",
            name(wire),
            plain / 1000.0,
            fresh / whole,
            plain / whole
        );
        assert!(fresh < 2.0 * whole, "{}: {fresh} {whole}", name(wire));
        // One block per message, and one mark; one key for all.
        let last = bodies.last().expect("a body");
        let marks = blocks(last).iter().filter(|(_, marked)| *marked).count();
        match wire {
            Wire::Anthropic => assert_eq!((blocks(last).len() > 2 * TURNS - 2, marks), (true, 1)),
            _ => {
                let keys: HashSet<&str> = bodies[1..]
                    .iter()
                    .filter_map(|b| b["prompt_cache_key"].as_str())
                    .collect();
                assert_eq!(keys.len(), 1, "{keys:?}");
            }
        }
    }
}

/// Services that may not know the cache fields do not get them unless configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_services_are_told_nothing_of_a_cache() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        for provider in [json!({}), json!({"prompt_cache": false})] {
            let bodies = chat(wire, provider).await;
            let told = |body: &Value| {
                let text = body.to_string();
                text.contains("cache_control") || text.contains("prompt_cache_key")
            };
            assert!(!bodies.iter().any(told), "{}", name(wire));
        }
    }
}
