//! `kd init`: write a configuration from what is found on this machine.

use clap::Args;

/// Seat your own agents and models
///
/// Looks for agent programs on the PATH, an Ollama on this machine and keys in the environment, offers what it found,
/// and writes a commented configuration. Nothing is called and no key is written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd init                                choose from a numbered list
  kd init --members claude,ollama --yes  no questions
  kd init --user                         for all your folders, not only this one")]
pub(crate) struct Init {
    /// Seat these, of those that `kd init` finds; NAME=MODEL picks the model of a service
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) members: Vec<String>,
    /// Ask nothing: take --members, or all that was found
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Write the user's configuration, not this folder's
    #[arg(long)]
    pub(crate) user: bool,
    /// Replace a configuration that exists
    #[arg(long)]
    pub(crate) force: bool,
}
