//! `kd forget`: remove threads and messages everywhere they are stored.

use clap::Args;
use std::time::Duration;

/// Remove a thread or a message from every place that holds it
///
/// Shows what will be removed and asks for confirmation. Removes message files, events, copies in forks, drafts, typed
/// lines, memory, reviews and logs, with --posts also posts of the forum that repeat it. Copies outside kd (git history,
/// sessions of agent programs) are listed and kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd forget a94d --dry-run       show what would be removed
  kd forget a94d                 a thread, with the copies in its forks
  kd forget a94d --message 3     one message; its number stays
  kd forget --older 90d --yes    threads without a message for 90 days")]
pub(crate) struct Forget {
    /// The thread's id or a unique prefix, without `council-` if you like
    #[arg(required_unless_present = "older", conflicts_with = "older")]
    pub(crate) id: Option<String>,
    /// Only message N
    #[arg(long, value_name = "N", requires = "id", conflicts_with = "older", value_parser = super::values::whole::<u32>(1..), allow_negative_numbers = true)]
    pub(crate) message: Option<u32>,
    /// All threads of every branch and the archive whose newest message is older: `90d`, `12w`, `1y`
    #[arg(long, value_name = "AGE", value_parser = super::values::age, allow_negative_numbers = true)]
    pub(crate) older: Option<Duration>,
    /// Keep copies in other threads, and list them
    #[arg(long)]
    pub(crate) keep_copies: bool,
    /// Also erase posts and other texts of the forum that repeat it, by any author; without this they are listed
    #[arg(long)]
    pub(crate) posts: bool,
    /// Show what would be removed; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
