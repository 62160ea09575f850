//! `kd chat`: talk with the council.

use super::ask::Model;
use super::values;
use clap::{Args, ValueEnum};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd chat                      go on in the current thread, or open the first
  kd chat --new                open a new thread
  kd chat a94d                 go on in the thread whose id begins with council-a94d
  kd chat --plain              lines only, nothing repainted: for screen readers and slow lines
  printf 'hi\\n/quit\\n' | kd chat

In the chat: /help tells the commands, @member asks one, @all asks everybody and lets them discuss.
Ctrl+C stops who speaks; twice leaves. What waits or was cut off is taken up by the next `kd chat`.";

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

    /// Lines only, each with its speaker in front, nothing repainted (the way of a pipe; also by ACCESSIBLE=1 or TERM=dumb)
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
    /// Colours of the screen [default: what the terminal says of its ground]
    #[arg(long, value_enum, value_name = "THEME", env = "KD_THEME", default_value_t = Theme::Auto, hide_default_value = true, help_heading = "Output")]
    pub(crate) theme: Theme,
    /// How to tell that the members are done, when you look elsewhere
    #[arg(long, value_enum, value_name = "HOW", env = "KD_NOTIFY", default_value_t = Notify::Auto, help_heading = "Output")]
    pub(crate) notify: Notify,
}

/// `--theme`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Theme {
    /// Asks the terminal
    #[default]
    Auto,
    /// For a dark ground
    Dark,
    /// For a light ground
    Light,
    /// The sixteen colours of the terminal's palette
    Terminal,
    /// No colours
    Plain,
}

/// `--notify`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Notify {
    /// A desktop notification where the terminal is known to show them, else the bell
    #[default]
    Auto,
    /// A desktop notification (OSC 9, 99 or 777)
    Osc,
    /// The bell
    Bell,
    /// Not at all
    Off,
}
