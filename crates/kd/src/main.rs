//! The `kd` program: parses arguments, opens the engine, starts one front end, and reports the result as exit code.

mod args;
mod error;
mod exit;
mod face;
mod out;
mod run;

use clap::Parser;
use kd_tui::text as render;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Must come first: this process may have been started to supervise an agent.
    kd_app::process::enter();
    let code = match args::Cli::try_parse_from(arguments()) {
        Ok(cli) => run::main(cli).into(),
        Err(error) => refuse(&error),
    };
    out::finish();
    code
}

/// Returns the command line. In a terminal, a bare `kd` means `kd chat`.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if arguments.len() == 1 && is_terminal {
        arguments.push("chat".into());
    }
    arguments
}

/// Prints help, the version, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words.filter_map(|word| word.into_string().ok()).collect();
    let is_refused = !matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let json = is_refused && args::refusal::asks_json(&words);
    if json || !args::help::print(error, columns(kd_tui::terminal::size())) {
        let told = args::suggest::unknown(error, &words);
        let told = told.or_else(|| args::suggest::option(error, &words));
        match told.or_else(|| json.then(|| args::refusal::error(error))) {
            Some(told) => told.report(json, columns(kd_tui::terminal::size_of_stderr())),
            // If this cannot be written, there is nowhere to report it.
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
