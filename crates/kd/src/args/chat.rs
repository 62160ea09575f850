//! `kd chat`: chat with the council.

use super::ask::{Model, Privacy, Spending, Tools};
use super::values;
use clap::Args;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd                           continue the current thread, or start the first
  kd chat                      the same
  kd chat --new                start a new thread
  kd chat a94d                 continue the thread council-a94d…
  kd chat --fork a94d          continue in a fork of it
  kd chat --plain              plain lines, for screen readers and slow connections
  printf 'hi\\n/quit\\n' | kd chat
  kd chat --jsonl              events as JSON, for a program that drives the chat

In the chat: /help lists the commands, @NAME asks one member, @all asks all and lets them discuss,
@PATH attaches a text file, a picture or a PDF document.
Esc (with --plain: Ctrl+C) stops the running turns; Ctrl+C twice quits.
The next `kd chat` resumes queued messages and interrupted turns.";

/// Chat with the council in the terminal
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    #[arg(conflicts_with = "new")]
    pub(crate) id: Option<String>,
    /// Continue the current thread (the default)
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["new", "id"])]
    pub(crate) again: bool,
    /// Continue in a fork of the current thread, or of the one named; that one stays as it is
    #[arg(long, conflicts_with = "new")]
    pub(crate) fork: bool,
    /// Start a new thread
    #[arg(long)]
    pub(crate) new: bool,

    /// The members of the chat, in this order [default: council.members]
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    #[command(flatten)]
    pub(crate) tools: Tools,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) model: Model,
    #[command(flatten)]
    pub(crate) spending: Spending,

    #[command(flatten)]
    pub(crate) privacy: Privacy,

    /// Print plain lines, each with its speaker; also set by ACCESSIBLE=1 or TERM=dumb
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
    /// Print every event as one line of JSON, for programs; lines of input are {"say": "…"} or commands
    #[arg(long, conflicts_with = "plain", help_heading = "Output")]
    pub(crate) jsonl: bool,
}

impl Chat {
    /// The request, for the library.
    pub(crate) fn request(&self) -> kd_app::ChatRequest {
        kd_app::ChatRequest {
            seats: kd_app::SeatRequest {
                members: self.members.clone(),
                tools: self.tools.request(),
                ..self.model.request(self.timeout)
            },
            id: self.id.clone(),
            terms: super::ask::terms(&self.spending, self.privacy, self.model.offline),
        }
    }
}
