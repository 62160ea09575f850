//! The door of Kingdom: reads arguments, opens the engine, starts one face, and says by the exit code how it went.

mod args;
mod error;
mod exit;
mod face;
mod run;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use kd_tui::text as render;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may have been started to keep an agent.
    kd_backends::transport::keeper::enter();
    match args::Cli::try_parse_from(arguments()) {
        Ok(cli) => run::main(cli).into(),
        Err(error) => refuse(&error),
    }
}

/// The command line. `kd` alone is `kd chat` where somebody can chat.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if arguments.len() == 1 && is_terminal {
        arguments.push("chat".into());
    }
    arguments
}

/// Help, version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    // When this cannot be written there is nobody to tell.
    let _ = error.print();
    let unknown = error.kind() == ErrorKind::InvalidSubcommand;
    if unknown && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let _ = writeln!(std::io::stderr(), "\nTo put a question: kd ask \"…\"");
    }
    match error.exit_code() {
        0 => exit::Exit::Done.into(),
        _ => exit::Exit::Usage.into(),
    }
}
