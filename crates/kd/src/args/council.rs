//! `kd council …`: look at what was said.

use super::ask::Ask;
use super::chat::Chat;
use clap::{Args, Subcommand};

/// The commands below `kd council`.
#[derive(Debug, Subcommand)]
pub(crate) enum Council {
    Ask(Box<Ask>),
    Chat(Chat),
    Show(Show),
    #[command(visible_alias = "ls")]
    List(List),
    Status(Status),
}

/// Show what was said in a thread
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd council show              the newest turn of the current thread
  kd council show a94d --all   all of the thread whose id begins with council-a94d
  kd council show --last 2     the two newest turns
  kd show --council            also what the seats of `kd think` wrote to each other")]
pub(crate) struct Show {
    /// The thread: its id or a unique beginning of it, `council-` may be left out [default: the current one]
    pub(crate) id: Option<String>,
    /// The newest N turns (a turn is one message of the king and what followed)
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) last: u32,
    /// The whole thread
    #[arg(long)]
    pub(crate) all: bool,
    /// Also what the seats of `kd think` wrote to each other
    #[arg(long)]
    pub(crate) council: bool,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the threads of this branch
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Of all branches
    #[arg(long)]
    pub(crate) all: bool,
    /// As one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Show who has answered the newest question
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The thread: its id or a unique beginning of it, `council-` may be left out [default: the current one]
    pub(crate) id: Option<String>,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
