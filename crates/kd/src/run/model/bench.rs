//! `kd model bench`: measures tokens per second of one member alone, and of several together, the same way as `kd ask`.

use super::super::here::Here;
use super::{Error, Exit};
use crate::args::model::Bench;
use crate::face::json;
use futures::StreamExt;
use kd_backends::{Backends, Options};
use kd_core::seating::LOCAL;
use kd_core::usage::Usage;
use kd_core::{Delta, Failure, Member, Prompt, Request, Sampling, SeatName};
use std::io::Write;
use std::time::{Duration, Instant};

const QUESTION: &str = "Should a small team start with SQLite or PostgreSQL? Explain in detail.";

/// The measurements of one run.
struct Measured {
    members: u32,
    tokens: u64,
    first: Duration,
    whole: Duration,
}

impl Measured {
    /// Returns tokens per second of all members together, excluding the time to the first token.
    fn speed(&self) -> f64 {
        self.tokens as f64 / (self.whole - self.first).as_secs_f64().max(1e-9)
    }
}

/// Returns how many times faster the members are together than one after another.
fn gain(alone: &Measured, together: &Measured) -> f64 {
    together.speed() / alone.speed().max(1e-9)
}

fn as_json(alone: &Measured, together: &Measured) -> serde_json::Value {
    let row = |m: &Measured| {
        serde_json::json!({"members": m.members, "tokens": m.tokens, "tokens_per_second": m.speed(),
            "first_word_seconds": m.first.as_secs_f64(), "seconds": m.whole.as_secs_f64()})
    };
    let gain = gain(alone, together);
    let v = kd_core::formats::MODEL_BENCH.version;
    serde_json::json!({"v": v, "alone": row(alone), "together": row(together), "gain": gain})
}

pub(super) fn run(args: &Bench, here: &Here) -> Result<(), Error> {
    let layout = here.find_layout()?;
    let mut config = here.settings(layout.as_ref())?.config;
    if args.model.is_some() {
        config.local.model.clone_from(&args.model);
    }
    kd_backends::delivery::locate(&config.local, &here.of_backends(false))?;
    let options = Options {
        env: here.of_backends(false),
        ..Options::default()
    };
    let backends = Backends::new(&config, options);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Error::new("io", Exit::Error, "cannot start an OS thread").because(e))?;
    // The first run loads the model and is not counted.
    runtime.block_on(measure(&backends, 1, 1))?;
    let alone = runtime.block_on(measure(&backends, 1, args.tokens))?;
    let together = runtime.block_on(measure(&backends, args.members, args.tokens))?;
    let mut out = crate::out::stdout().lock();
    if args.json {
        let object = as_json(&alone, &together);
        writeln!(out, "{}", json::text(&object, true)?)?;
        return Ok(());
    }
    for m in [&alone, &together] {
        writeln!(
            out,
            "{:>2} at once: {:7.1} tokens/s, first word after {:.2} s, {} tokens in {:.2} s",
            m.members,
            m.speed(),
            m.first.as_secs_f64(),
            m.tokens,
            m.whole.as_secs_f64()
        )?;
    }
    writeln!(
        out,
        "together {:.1} times the speed of one after another",
        gain(&alone, &together)
    )?;
    Ok(())
}

async fn measure(backends: &Backends, members: u32, tokens: u32) -> Result<Measured, Error> {
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
            .map_err(|f| Error::new("no_model", Exit::NoSeat, f.message.clone()).next(f.hint()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A measurement needs a model, so the schema is checked here.
    #[test]
    fn the_output_is_what_its_schema_says() {
        let of = |members| Measured {
            members,
            tokens: 64,
            first: Duration::from_millis(200),
            whole: Duration::from_secs(2),
        };
        let schema = include_str!("../../../../../docs/schemas/model-bench.schema.json");
        let schema = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut value = as_json(&of(1), &of(3));
        assert!(validator.is_valid(&value), "{value}");
        value["zz"] = 1.into();
        assert!(!validator.is_valid(&value));
    }
}
