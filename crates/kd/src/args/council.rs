//! `kd council …`: look at what was said.

use super::ask::{Ask, Output};
use super::chat::Chat;
use super::values;
use clap::{Args, Subcommand};
use std::time::Duration;

// The commands below `kd council`.
#[derive(Debug, Subcommand)]
pub(crate) enum Council {
    Ask(Box<Ask>),
    Chat(Chat),
    Show(Show),
    #[command(visible_alias = "ls")]
    List(List),
    Status(Status),
    Watch(Watch),
    Retry(Box<Retry>),
    Review(Box<Review>),
    Reset(Reset),
}

/// Follow the newest round of a thread, whoever asked it
///
/// Shows the answers as they grow, from this program or from kingdom-cli, and leaves with the code of the round.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd council ask --async \"Which database?\"
  kd council watch                  until everybody has answered
  kd council watch --timeout 5m     at most five minutes, then code 124")]
pub(crate) struct Watch {
    /// The thread: its id or a unique beginning of it, `council-` may be left out [default: the current one]
    pub(crate) id: Option<String>,
    /// Leave after this time [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Ask again whoever has not answered the newest question
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The thread: its id or a unique beginning of it, `council-` may be left out [default: the current one]
    pub(crate) id: Option<String>,
    /// Stop a member that takes longer [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Let agent programs change files this time
    #[arg(short, long)]
    pub(crate) writable: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Put this branch's changes before the council
///
/// The changes are those since the branch left its base, with what is not committed yet; `.kd` is left out. They are
/// put below the question as data. Members are `council.review_members`, words for them `prompts.review`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd council review                        against the branch that origin names, main or master
  kd council review --base develop Is the locking right?
  kd council review --async --to claude")]
pub(crate) struct Review {
    /// What to look at [default: whether the change should be merged, and what is wrong with it]
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,
    /// The branch, tag or commit that the change is for
    #[arg(short, long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Ask only these members
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) to: Vec<String>,
    /// Stop a member that takes longer [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Let agent programs change files this time
    #[arg(short, long)]
    pub(crate) writable: bool,
    /// Ask in the background: the round goes on when this terminal is closed (see `kd council watch`)
    #[arg(long = "async", conflicts_with = "output")]
    pub(crate) background: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Forget the sessions that members would take up again
///
/// What was said stays: only the ids by which agent programs know their earlier conversations go.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    /// Only this member's
    #[arg(long, value_name = "NAME")]
    pub(crate) member: Option<String>,
    /// Do not ask first
    #[arg(short, long)]
    pub(crate) force: bool,
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
