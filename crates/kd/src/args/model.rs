//! `kd model …`: files for the built-in engine.

use clap::{Args, Subcommand};

// The commands below `kd model`.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    List(List),
    Pull(Pull),
    Verify(Verify),
    Rm(Rm),
    Bench(Bench),
    Path(Path),
}

/// List the models that can be fetched, and those that are here
#[derive(Debug, Args)]
pub(crate) struct List {
    /// As one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Fetch a model; an interrupted one goes on where it stopped
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd model list
  kd model pull smollm2-360m")]
pub(crate) struct Pull {
    /// Its key in `kd model list` [default: the built-in choice]
    pub(crate) model: Option<String>,
}

/// Check the files against their checksums
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Its key [default: all that are here]
    pub(crate) model: Option<String>,
}

/// Remove a model's file
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// Its key
    pub(crate) model: String,
}

/// Measure a model on this machine: alone, and several members together
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Its key, or a GGUF file [default: the built-in choice]
    pub(crate) model: Option<String>,
    /// How many members answer at once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) members: u32,
    /// Tokens of each answer
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) tokens: u32,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Print where a model's file is
#[derive(Debug, Args)]
pub(crate) struct Path {
    /// Its key [default: the built-in choice]
    pub(crate) model: Option<String>,
}
