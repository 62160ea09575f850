//! `kd config …`: show, check and change settings.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

// The subcommands of `kd config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    Show(Show),
    Check(Check),
    /// Print the JSON schema of the configuration
    Schema,
    Set(Set),
    Unset(Unset),
    Path(Path),
}

/// Print the paths of the configuration files, highest precedence last
#[derive(Debug, Args)]
pub(crate) struct Path {
    /// Print a JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Check the configuration and report every mistake
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Check only this file
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Print the settings in force
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd config show
  kd config show forum                        every setting of the forum, defaults included
  kd config show agents.claude --origin")]
pub(crate) struct Show {
    /// Only this setting and those below it, defaults included
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Also print where each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Change one setting; comments in the file stay
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd config set council.timeout 120
  kd config set council.members claude,codex
  kd config set --layer user agents.claude.model opus")]
pub(crate) struct Set {
    /// The setting, for example council.timeout
    pub(crate) key: String,
    /// The value: JSON, or a plain word
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: String,
    #[command(flatten)]
    pub(crate) layer: Layer,
}

/// Reset one setting to its default
#[derive(Debug, Args)]
pub(crate) struct Unset {
    /// The setting, for example council.timeout
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) layer: Layer,
}

/// The file that is changed.
#[derive(Debug, Args)]
pub(crate) struct Layer {
    /// The file to change
    #[arg(long, value_enum, value_name = "LAYER", default_value_t = File::Project)]
    pub(crate) layer: File,
}

/// The files that hold settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum File {
    /// Your own, for all folders
    User,
    /// .kd/config.json, shared with everyone who works in this folder
    Project,
    /// .kd/config.local.json, not committed
    Local,
}
