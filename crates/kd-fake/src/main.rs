//! `kd-fake WIRE TOKENS [PAUSE_MICROS]`: the fake server as a separate process, so that a bench can count its own CPU
//! time. `kd-fake models`: the server for real agent programs, see [`kd_fake::models`].
//!
//! Prints its address on the first line of stdout and serves until its stdin ends.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use kd_fake::{Fake, Reply, Script, Wire};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::AsyncReadExt;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "models") {
        return serve(kd_fake::models::start().await).await;
    }
    let wire = match args.first().map(String::as_str) {
        Some("openai") => Wire::OpenAi,
        Some("anthropic") => Wire::Anthropic,
        Some("gemini") => Wire::Gemini,
        _ => return usage(),
    };
    let Some(tokens) = args.get(1).and_then(|t| t.parse::<usize>().ok()) else {
        return usage();
    };
    let pause = match args.get(2).map(|p| p.parse::<u64>()) {
        None => Duration::ZERO,
        Some(Ok(micros)) => Duration::from_micros(micros),
        Some(Err(_)) => return usage(),
    };
    let reply = if pause.is_zero() {
        Reply::flood(wire, tokens)
    } else {
        Reply::paced(tokens, pause)
    };
    serve(Fake::start(Script::always(wire, reply)).await).await
}

async fn serve(fake: std::io::Result<Fake>) -> ExitCode {
    match fake {
        Ok(fake) => {
            println!("{}", fake.url());
            let mut sink = Vec::new();
            // Stdin ends when the parent exits.
            let _ = tokio::io::stdin().read_to_end(&mut sink).await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("kd-fake: cannot listen on loopback: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: kd-fake openai|anthropic|gemini TOKENS [PAUSE_MICROS] | kd-fake models");
    ExitCode::from(2)
}
