//! `kd model …`: manage model files of the built-in engine.

use super::values;
use clap::{Args, Subcommand};

// The subcommands of `kd model`.
#[derive(Debug, Subcommand)]
pub(crate) enum Model {
    List(List),
    Pull(Pull),
    Use(Use),
    Verify(Verify),
    Rm(Rm),
    Bench(Bench),
    Path(Path),
}

/// List models that can be downloaded, and those on this machine
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Download a model; an interrupted download resumes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd model list
  kd model pull qwen2.5-1.5b")]
pub(crate) struct Pull {
    /// Its key in `kd model list` [default: the built-in choice]
    pub(crate) model: Option<String>,
}

/// Download a model, and let it answer from now on
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd model use qwen2.5-1.5b
  kd model use smollm2-135m")]
pub(crate) struct Use {
    /// Its key in `kd model list`
    pub(crate) model: String,
}

/// Check the model files against their checksums
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Its key [default: all on this machine]
    pub(crate) model: Option<String>,
}

/// Remove a model's file
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// Its key
    pub(crate) model: String,
}

/// Measure a model on this machine, with one member and with several
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// Its key, or a GGUF file [default: the built-in choice]
    pub(crate) model: Option<String>,
    /// Number of members that answer at once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = values::whole::<u32>(1..=16), allow_negative_numbers = true)]
    pub(crate) members: u32,
    /// Tokens per answer
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = values::whole::<u32>(1..=4096), allow_negative_numbers = true)]
    pub(crate) tokens: u32,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Print the path of a model's file
#[derive(Debug, Args)]
pub(crate) struct Path {
    /// Its key [default: the built-in choice]
    pub(crate) model: Option<String>,
}
