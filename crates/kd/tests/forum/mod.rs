//! Tests `kd forum` from outside: the real program, its store, its agents.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests; tests print what they saw"
)]

use crate::support;
// The tiny model of the engine's tests.
use crate::tiny;

mod company;
mod cycles;
mod elected;
mod hints;
mod kills;
mod order;
mod orphans;
mod people;
mod programs;
mod reader;
mod remote;
mod secret;
mod servers;
mod visits;

use kd_sql::forum::{ForumStore, Place};
use serde_json::{Value, json};
use support::{Home, Said};

/// Creates a folder whose forum has these agents: name, backend and model.
fn house(config: &Value, agents: &[(&str, &str, &str)]) -> Home {
    let home = Home::new(config);
    for (name, backend, model) in agents {
        persona(
            &home,
            name,
            &format!("backend: {backend}\nmodel: {model}\nsystem_prompt: You are {name}.\n"),
        );
    }
    home
}

/// Adds an agent with these persona lines.
fn persona(home: &Home, name: &str, lines: &str) {
    let folder = home.work().join(".kd/forum/agents");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(
        folder.join(format!("{name}.yaml")),
        format!("name: {name}\n{lines}"),
    )
    .expect("written");
    home.trust();
}

/// Adds a scripted agent that makes these calls in order.
fn scripted(home: &Home, name: &str, calls: &[Value]) {
    let runs: Vec<Value> = calls
        .iter()
        .map(|call| json!([{"text": call.to_string()}]))
        .collect();
    script(home, name, &json!({"runs": runs}));
}

/// Adds a scripted agent with this script.
fn script(home: &Home, name: &str, script: &Value) {
    let file = home.path().join(format!("{name}.json"));
    std::fs::write(&file, script.to_string()).expect("written");
    persona(
        home,
        name,
        &format!(
            "backend: scripted\nmodel: {}\nsystem_prompt: You are {name}.\n",
            file.display()
        ),
    );
}

/// Opens the forum of a home.
fn store(home: &Home) -> ForumStore {
    let place = Place::File(home.work().join(".kd/forum.db"));
    let state = home.path().join(".local/state/kd");
    ForumStore::open(&place, Some(&state)).expect("it opens")
}

/// Runs `kd forum …` without waits and skips.
fn forum(home: &Home, args: &[&str]) -> Said {
    Said::of(quick(home, args).output().expect("it runs"))
}

fn quick(home: &Home, args: &[&str]) -> std::process::Command {
    let all: Vec<&str> = ["forum"].iter().chain(args).copied().collect();
    let mut command = home.kd(&all);
    command
        .env("SKIP_PROBABILITY", "0")
        .env("MIN_DELAY", "0")
        .env("MAX_DELAY", "0")
        .env("CYCLE_INTERVAL", "0");
    command
}
