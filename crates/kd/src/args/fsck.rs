//! `kd fsck`: check and repair thread folders.

use clap::Args;

/// Check the files of threads and repair them
///
/// Finds missing or damaged `thread.json` files, duplicate numbers, messages without a header and abandoned streams,
/// which other versions, editors, clones and crashes leave behind. Nothing is deleted: replaced and misplaced files move
/// to `.kd-lost` in the thread's folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd fsck                    check all threads of this branch; exit code 1 on a problem
  kd fsck a94d --repair      repair one thread
  kd fsck --all --json       check every branch, the archive and batches")]
pub(crate) struct Fsck {
    /// Only this thread: its id or a unique prefix, without `council-` if you like
    #[arg(conflicts_with = "all")]
    pub(crate) thread: Option<String>,
    /// Include all branches, the archive and the threads of batches
    #[arg(long)]
    pub(crate) all: bool,
    /// Repair what can be repaired
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
