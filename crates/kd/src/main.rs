//! The door of Kingdom: reads arguments, opens the engine, starts one face, and says by the exit code how it went.

mod args;
mod error;
mod exit;
mod face;
mod run;

use clap::Parser;
use kd_tui::text as render;
use std::ffi::OsString;
use std::io::IsTerminal;
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
    if !args::help::print(error, columns(run::terminal::size())) {
        let mut words = std::env::args_os().skip(1);
        let first = words.find_map(|word| word.into_string().ok().filter(|w| !w.starts_with('-')));
        match args::suggest::unknown(error, first.as_deref()) {
            Some(unknown) => unknown.report(false, columns(run::terminal::size_of_stderr())),
            // When this cannot be written there is nobody to tell.
            None => drop(error.print()),
        }
    }
    match error.exit_code() {
        0 => exit::Exit::Done.into(),
        _ => exit::Exit::Usage.into(),
    }
}

fn columns(size: Option<(u16, u16)>) -> Option<usize> {
    size.map(|(columns, _)| columns.into())
}
