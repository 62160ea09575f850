//! Adds a custom backend: the program itself answers for one member of the council.
//!
//! `cargo run -p kd-app --example custom_backend`
#![allow(clippy::print_stdout)]

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kd_app::backend::{Backend, Delta, Failure, Finish, Request};
use kd_app::{Ask, Env, Kingdom, UserError};
use std::sync::Arc;

/// Answers with the number of words that it was asked.
struct WordCounter;

impl Backend for WordCounter {
    fn ask(&self, request: Request) -> BoxStream<'static, Result<Delta, Failure>> {
        let words = request.prompt.history.as_str().split_whitespace().count();
        let answer = [
            Ok(Delta::Text {
                text: format!("I was asked in {words} words."),
            }),
            Ok(Delta::Finished {
                finish: Finish::Stop,
                text: None,
                usage: None,
                choices: Vec::new(),
            }),
        ];
        stream::iter(answer).boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), UserError> {
    let folder = std::env::temp_dir().join("kd-example-backend");
    std::fs::create_dir_all(&folder).expect("a folder");
    let env = Env::process().in_folder(folder);
    let env = env.with_backend("counter", Arc::new(WordCounter));
    let mut kingdom = Kingdom::open_with(env)?;
    kingdom.configure(|config| {
        let agent = config.agents.entry("wordy".into()).or_default();
        agent.backend = "counter".into();
        config.council.conclude = false;
    });
    let answers = kingdom.ask(Ask::default(), "How many words are these?")?;
    for message in answers.answers().await?.messages {
        println!("{}: {}", message.from, message.body.trim());
    }
    Ok(())
}
