//! `kd debug …`: inspect the output of agent programs.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use kd_app::debug::dialects;
use std::path::PathBuf;

// The subcommands of `kd debug`.
#[derive(Debug, Subcommand)]
pub(crate) enum Debug {
    Decode(Decode),
}

/// Print the events of a recorded stream as kd reads them
///
/// Prints one JSON object per line; the last one of each turn has the kind `finished` or `failed`. A recording of both
/// directions has lines of the form {"dir": "in" or "out", "msg": …}.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  claude -p --output-format stream-json --verbose --include-partial-messages hi > said.jsonl
  kd debug decode --dialect claude said.jsonl
  kd debug decode --dialect codex - < said.jsonl")]
pub(crate) struct Decode {
    /// The program that was recorded
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(dialects()))]
    pub(crate) dialect: String,
    /// The recording; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
