//! The door of Kingdom: reads arguments, opens the engine, starts one face, and says by the exit code how it went.

mod args;
mod error;
mod exit;
mod face;
mod render;
mod run;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    run::main(args::Cli::parse()).into()
}
