//! `kd fork`: create a thread that shares the beginning of another.

use super::values;
use clap::Args;

/// Start a new thread that shares the beginning of another
///
/// Messages are copied byte for byte; the old thread stays as it is. `kd show --all` shows the numbers of
/// messages.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd fork                      the whole current thread
  kd fork a94d --before 7      without message 7 and later messages
  kd fork --stage review       a deliberation with its opinions, before its review
  kd ask --continue \"…\"        continue in the fork
  kd list                      lists forks below the thread they come from")]
pub(crate) struct Fork {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// Leave out message N and all later messages
    #[arg(long, value_name = "N", conflicts_with = "stage", value_parser = values::whole::<u32>(1..), allow_negative_numbers = true)]
    pub(crate) before: Option<u32>,
    /// Keep the newest deliberation up to this stage: opinions, review, vote … (its replies are left out)
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Option<String>,
    /// Keep the current thread; do not switch to the fork
    #[arg(long)]
    pub(crate) stay: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
