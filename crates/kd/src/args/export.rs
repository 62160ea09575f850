//! `kd export`: export a thread as one document.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Export a thread as one document
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd export                          the current thread as Markdown
  kd export a94d -o council.md       into a file
  kd export -o council.html          as a self-contained web page
  kd export --json | jq -r '.messages[].from'
  kd export --tree -o tree.json      with the threads forked from it
  kd export --redact -o share.md     without keys, home folders and your user name")]
pub(crate) struct Export {
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// The format [default: that of the file's name, .md, .html or .json; otherwise md]
    #[arg(short, long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Print one JSON object, as --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(crate) json: bool,
    /// Include every thread forked from it, and the forks of those
    #[arg(long)]
    pub(crate) tree: bool,
    /// Mask keys and tokens, home folders and your user name
    #[arg(long)]
    pub(crate) redact: bool,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

impl Export {
    /// Returns whether the document is JSON, and errors with it.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.format == Some(Format::Json)
    }
}

/// The forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Markdown, for people
    Md,
    /// One self-contained web page, for a browser
    Html,
    /// One JSON object, for programs
    Json,
}

impl From<Format> for kd_app::export::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Md => Self::Md,
            Format::Html => Self::Html,
            Format::Json => Self::Json,
        }
    }
}
