//! Helpers for tests against a fake server: a council with one service, asked to the end.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use futures::StreamExt;
use kd_backends::{Backend, Backends, Env, Options};
use kd_core::config::{Config, ProviderConfig, Wire as ConfigWire};
use kd_core::request::Deadlines;
use kd_core::{Delta, Failure, Member, Prompt, Request, Sampling, SeatName, Usage};
use kd_fake::{Fake, Wire};
use std::sync::Arc;
use std::time::Duration;

/// The key that must never appear.
pub const KEY: &str = "sk-fake-0123456789abcdef";

/// Everything one answer produced.
#[derive(Debug)]
pub struct Heard {
    /// The final text.
    pub text: String,
    pub thinking: String,
    pub notices: Vec<String>,
    pub retries: Vec<Failure>,
    pub end: Result<Delta, Failure>,
    /// All deltas and the failure, as `Debug` shows them.
    pub shown: String,
}

impl Heard {
    pub fn failure(&self) -> &Failure {
        match &self.end {
            Err(failure) => failure,
            Ok(end) => panic!(
                "{end:?}, but a failure was expected, after {:?}",
                excerpt(&self.text)
            ),
        }
    }

    pub fn usage(&self) -> Usage {
        match &self.end {
            Ok(Delta::Finished {
                usage: Some(usage), ..
            }) => *usage,
            other => panic!("{other:?}, but an end with usage was expected"),
        }
    }

    pub fn whole(&self) -> &str {
        if let Err(failure) = &self.end {
            panic!(
                "{failure:?}, but a whole answer was expected, after {:?}",
                excerpt(&self.text)
            );
        }
        &self.text
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

pub fn config_wire(wire: Wire) -> ConfigWire {
    match wire {
        Wire::OpenAi => ConfigWire::OpenAi,
        Wire::Anthropic => ConfigWire::Anthropic,
        Wire::Gemini => ConfigWire::Gemini,
        Wire::Responses => unreachable!("only programs speak it"),
    }
}

/// Settings of a service at this server: one attempt, the key from a variable.
pub fn provider(fake: &Fake, wire: Wire) -> ProviderConfig {
    ProviderConfig {
        wire: config_wire(wire),
        base_url: Some(fake.url()),
        key_env: Some("SVC_KEY".into()),
        attempts: Some(1),
        ..ProviderConfig::default()
    }
}

/// Creates [`Backends`] with these services.
pub fn backends(services: impl IntoIterator<Item = (&'static str, ProviderConfig)>) -> Backends {
    let providers = services
        .into_iter()
        .map(|(name, config)| (name.to_owned(), config))
        .collect();
    let config = Config {
        providers,
        ..Config::default()
    };
    Backends::new(
        &config,
        Options {
            env: Env::of([("SVC_KEY", KEY)]),
            ..Options::default()
        },
    )
}

pub fn member(backend: &str) -> Member {
    Member {
        model: Some("fake-1".into()),
        persona: "You doubt.".into(),
        ..Member::new(SeatName::new("ada").unwrap(), backend)
    }
}

/// Creates the backend of `svc` with these settings.
pub fn seat(config: ProviderConfig) -> Arc<dyn Backend> {
    backends([("svc", config)]).seat(&member("svc")).unwrap()
}

pub fn request() -> Request {
    Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat: SeatName::new("ada").unwrap(),
        prompt: Prompt {
            rules: "RULES".into(),
            persona: "PERSONA".into(),
            history: "HISTORY".into(),
            turn: "TURN".into(),
            ..Prompt::default()
        },
        sampling: Sampling::default(),
        schema: None,
        // Long: a test that reaches them has hung.
        deadlines: Deadlines {
            first: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(120),
        },
        writable: false,
        tools: None,
    }
}

/// Asks to the end.
pub async fn hear(backend: &dyn Backend, request: Request) -> Heard {
    let mut deltas = backend.ask(request);
    let mut heard = Heard {
        text: String::new(),
        thinking: String::new(),
        notices: Vec::new(),
        retries: Vec::new(),
        end: Err(Failure::new(
            kd_core::FailureKind::Crashed,
            "the stream ended with neither Finished nor Err",
        )),
        shown: String::new(),
    };
    while let Some(item) = deltas.next().await {
        let large = matches!(&item, Ok(Delta::Text { text }) if text.len() > 4096);
        if !large {
            heard.shown.push_str(&format!("{item:?}\n"));
        }
        match item {
            Ok(Delta::Text { text }) => heard.text.push_str(&text),
            Ok(Delta::Thinking { text }) => heard.thinking.push_str(&text),
            Ok(Delta::Notice { text }) => heard.notices.push(text),
            Ok(Delta::Retrying { failure, .. }) => {
                heard.text.clear();
                heard.thinking.clear();
                heard.retries.push(failure);
            }
            Ok(end @ Delta::Finished { .. }) => {
                heard.end = Ok(end);
                assert!(
                    deltas.next().await.is_none(),
                    "something came after the end"
                );
                break;
            }
            Ok(_) => {}
            Err(failure) => {
                heard.end = Err(failure);
                assert!(
                    deltas.next().await.is_none(),
                    "something came after the failure"
                );
                break;
            }
        }
    }
    heard
}
