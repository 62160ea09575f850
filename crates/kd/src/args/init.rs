//! `kd init`: write a configuration from what is found on this machine.

use clap::Args;

/// Set up your own agents and models
///
/// Looks for agent programs on the PATH, a local Ollama server and API keys in the environment, lets you choose, and writes a
/// commented configuration. Calls no model and writes no key. If nothing is found, lists what it looked for and how to
/// get each (exit code 3).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd init                                choose from a numbered list
  kd init --members claude,ollama --yes  without questions
  kd init --user                         for all your folders")]
pub(crate) struct Init {
    /// Members to set up, of those found; NAME=MODEL picks the model of a service [default: a suggested one]
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) members: Vec<String>,
    /// Do not ask: take --members, or everything found that costs nothing
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Write your own configuration instead of this folder's; the default outside of a project
    #[arg(long)]
    pub(crate) user: bool,
    /// Replace an existing configuration
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object, and ask nothing; needs --members or --yes
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
