//! `kd council …`: look at conversations.

use super::ask::{Ask, Output, Privacy, Wanted};
use super::chat::Chat;
use super::values;
use clap::{Args, Subcommand};
use std::time::Duration;

// The subcommands of `kd council`.
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

/// Follow the newest round of a thread
///
/// Shows answers as they arrive, including those of other processes and kingdom-cli. Exits with the exit code of the
/// round.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd council ask --async \"Which database?\"
  kd council watch                  until every member has answered
  kd council watch --timeout 5m     at most five minutes, then exit code 124")]
pub(crate) struct Watch {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// Stop watching after this time, such as 90s, 2m or 1h
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Ask the members that have not answered the newest question again
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Tools of members at HTTP services: `read` for files below this folder, which are sent to their service, or
    /// `none` [default: none]
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) tools: Option<Wanted>,
    /// Let agent programs change files this time; by default they only read
    #[arg(short, long)]
    pub(crate) writable: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Ask the council about the changes of this branch, in prose
///
/// `kd review` gives findings with votes and probabilities instead.
///
/// Reviews the changes since the branch left its base, uncommitted ones included and `.kd` excluded. The setting
/// `council.review_members` names the members, `prompts.review` their instructions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd council review                        against the default branch of origin, main or master
  kd council review --base develop Is the locking right?
  kd council review --async --to claude")]
pub(crate) struct Review {
    /// The question [default: should the change be merged, and what is wrong with it]
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,
    /// The branch, tag or commit to compare with
    #[arg(short, long, value_name = "REV")]
    pub(crate) base: Option<String>,
    /// Ask only these of the members
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) to: Vec<String>,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true)]
    pub(crate) timeout: Option<Duration>,
    /// Let agent programs change files this time; by default they only read
    #[arg(short, long)]
    pub(crate) writable: bool,
    /// Ask in the background; follow with `kd council watch`
    #[arg(long = "async", conflicts_with = "output")]
    pub(crate) background: bool,
    #[command(flatten)]
    pub(crate) privacy: Privacy,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Forget the saved sessions of agent programs
///
/// Messages stay. Only the ids of the programs' earlier conversations are removed.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    /// Only the session of this member
    #[arg(long, value_name = "NAME")]
    pub(crate) member: Option<String>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Show the newest question and its answers
#[derive(Debug, Args)]
pub(crate) struct Last {
    /// Number of questions to show with their answers
    #[arg(value_name = "N", default_value_t = 1, value_parser = values::whole::<u32>(1..), allow_negative_numbers = true)]
    pub(crate) count: u32,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

impl From<Last> for Show {
    fn from(last: Last) -> Self {
        Self {
            id: None,
            last: last.count,
            all: false,
            council: false,
            json: last.json,
        }
    }
}

/// Show the messages of a thread
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd show                      newest turn of the current thread
  kd show a94d --all           the whole thread council-a94d…
  kd show --last 2             the two newest turns
  kd show --council            also the debate behind a `kd think` answer
  kd show > answers.md         a Markdown document, as in any pipe")]
pub(crate) struct Show {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// The newest N turns; a turn is one of your messages and its answers
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "all", value_parser = values::whole::<u32>(1..), allow_negative_numbers = true)]
    pub(crate) last: u32,
    /// The whole thread
    #[arg(long)]
    pub(crate) all: bool,
    /// Also show the debate behind `kd think` answers
    #[arg(long)]
    pub(crate) council: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the threads of this branch, the newest last
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Include all branches
    #[arg(long)]
    pub(crate) all: bool,
    /// List the threads of this batch instead
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    pub(crate) batch: Option<String>,
    /// Maximum threads, the newest; --json lists all unless this is given [default: 20]
    #[arg(short = 'n', long, value_name = "N", value_parser = values::whole::<u32>(1..), allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Show who has answered the newest question
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
