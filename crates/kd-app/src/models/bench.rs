//! Measures tokens per second of one member alone, and of several together, the same way as a question asks them.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use futures::StreamExt;
use kd_backends::{Backends, Options};
use kd_core::seating::LOCAL;
use kd_core::usage::Usage;
use kd_core::{Delta, Failure, Member, Prompt, Request, Sampling, SeatName};
use std::time::{Duration, Instant};

const QUESTION: &str = "Should a small team start with SQLite or PostgreSQL? Explain in detail.";

/// What to measure.
#[derive(Clone, Debug)]
pub struct BenchRequest {
    /// The model; `None` means the model in the settings.
    pub model: Option<String>,
    /// Members that are asked together.
    pub members: u32,
    /// Maximum tokens of each answer.
    pub tokens: u32,
}

/// The measurements of both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Benched {
    /// One member.
    pub alone: Measured,
    /// Several members at once.
    pub together: Measured,
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Members that answered at once.
    pub members: u32,
    /// Tokens of all answers.
    pub tokens: u64,
    /// Time to the first text of any member.
    pub first: Duration,
    /// Time to the end of the last answer.
    pub whole: Duration,
}

impl Measured {
    /// Returns tokens per second of all members together, excluding the time to the first token.
    pub fn speed(&self) -> f64 {
        self.tokens as f64 / (self.whole - self.first).as_secs_f64().max(1e-9)
    }
}

impl Benched {
    /// Returns how many times faster the members are together than one after another.
    pub fn gain(&self) -> f64 {
        self.together.speed() / self.alone.speed().max(1e-9)
    }
}

/// Measures a model of the built-in engine. Must not be called from a thread that runs asynchronous tasks.
///
/// # Errors
/// The settings cannot be read, there is no such model, or it does not answer.
pub fn bench(request: &BenchRequest, env: &Env) -> Result<Benched, UserError> {
    let layout = env.find_layout()?;
    let mut config = env.settings(layout.as_ref())?.config;
    if request.model.is_some() {
        config.local.model.clone_from(&request.model);
    }
    super::locate(&config.local, env)?;
    let options = Options {
        env: env.of_backends(false),
        ..Options::default()
    };
    let backends = Backends::new(&config, options);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| UserError::new(ErrorKind::Io, "cannot start an OS thread").because(e))?;
    // The first run loads the model and is not counted.
    runtime.block_on(measure(&backends, 1, 1))?;
    let alone = runtime.block_on(measure(&backends, 1, request.tokens))?;
    let together = runtime.block_on(measure(&backends, request.members, request.tokens))?;
    Ok(Benched { alone, together })
}

async fn measure(backends: &Backends, members: u32, tokens: u32) -> Result<Measured, UserError> {
    let begun = Instant::now();
    let asked: Vec<_> = (0..members)
        .map(|i| one(backends, i, tokens, begun))
        .collect();
    let mut measured = Measured {
        members,
        tokens: 0,
        first: Duration::MAX,
        whole: Duration::ZERO,
    };
    for answer in futures::future::join_all(asked).await {
        let (used, first) = answer
            .map_err(|f| UserError::new(ErrorKind::NoModel, f.message.clone()).next(f.hint()))?;
        measured.tokens += used.output_tokens;
        measured.first = measured.first.min(first);
    }
    measured.whole = begun.elapsed();
    measured.first = measured.first.min(measured.whole);
    Ok(measured)
}

/// Asks one member; returns its usage and when its first text arrived.
async fn one(
    backends: &Backends,
    number: u32,
    tokens: u32,
    begun: Instant,
) -> Result<(Usage, Duration), Failure> {
    let seat = SeatName::new(format!("voice-{number}"))
        .map_err(|e| Failure::new(kd_core::FailureKind::Invalid, e.to_string()))?;
    let sampling = Sampling {
        temperature: Some(0.0),
        max_tokens: Some(tokens),
        ..Sampling::default()
    };
    let member = Member {
        sampling: sampling.clone(),
        ..Member::new(seat.clone(), LOCAL)
    };
    let mut answer = backends.seat(&member)?.ask(Request {
        attachments: Vec::new(),
        schema_of_user: false,
        reads: false,
        seat,
        prompt: Prompt {
            rules: QUESTION.to_owned(),
            persona: format!("You are voice {number}."),
            ..Prompt::default()
        },
        sampling,
        schema: None,
        deadlines: member.deadlines,
        writable: false,
        tools: None,
    });
    let (mut first, mut used) = (None, Usage::default());
    while let Some(delta) = answer.next().await {
        match delta? {
            Delta::Text { .. } => {
                first.get_or_insert_with(|| begun.elapsed());
            }
            Delta::Finished { usage, .. } => used = usage.unwrap_or_default(),
            _ => {}
        }
    }
    Ok((used, first.unwrap_or_else(|| begun.elapsed())))
}
