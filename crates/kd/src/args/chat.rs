//! `kd chat`: talk with the council.

use super::ask::{Model, Spending};
use super::values;
use clap::Args;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd chat                      go on in the current thread, or open the first
  kd chat --new                open a new thread
  kd chat a94d                 go on in the thread whose id begins with council-a94d
  kd chat --plain              lines only, nothing repainted: for screen readers and slow lines
  printf 'hi\\n/quit\\n' | kd chat

In the chat: /help tells the commands, @member asks one, @all asks everybody and lets them discuss.
Esc (in lines: Ctrl+C) stops who speaks; Ctrl+C twice leaves.
What waits or was cut off is taken up by the next `kd chat`.";

/// Talk with the council
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// The thread: its id or a unique beginning of it, `council-` may be left out [default: the current one]
    #[arg(conflicts_with = "new")]
    pub(crate) id: Option<String>,
    /// Open a new thread
    #[arg(long)]
    pub(crate) new: bool,

    /// Who sits in the council this time, in order
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    /// Stop a member that takes longer [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) spending: Spending,

    /// Lines only, each with its speaker in front, nothing repainted (the way of a pipe; also by ACCESSIBLE=1 or TERM=dumb)
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
}
