//! `kd fsck`: find and mend what is wrong in thread folders.

use clap::Args;

/// Check the files of threads, and mend them
///
/// Finds what other versions, editors, clones and killed programs leave behind: missing or torn `thread.json`, doubled
/// numbers, files without a header, streams that nobody writes. Nothing is ever deleted: what cannot stay goes to
/// `.kd-lost` in the thread's folder, and so does the old text of what is written anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd fsck                    all threads of this branch; code 1 if something is wrong
  kd fsck a94d --repair      mend one thread
  kd fsck --all --json       every branch and the archive, for a script")]
pub(crate) struct Fsck {
    /// Only this thread: its id or a unique beginning of it, `council-` may be left out
    #[arg(conflicts_with = "all")]
    pub(crate) thread: Option<String>,
    /// The threads of all branches, and of the archive
    #[arg(long)]
    pub(crate) all: bool,
    /// Mend what can be mended
    #[arg(long)]
    pub(crate) repair: bool,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
