//! `kd seal`, `kd verify` and `kd import`: threads as files that can be verified anywhere.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Seal a thread in a file that shows any later change
///
/// The file contains every message and the whole record of the deliberation, in a chain of hashes. `kd verify` checks
/// it anywhere, without the thread; `kd import` creates a thread from it.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  kd seal                        the current thread, as council-….seal.json
  kd seal a94d --sign            signed with your key
  kd seal a94d --hash-only       only hashes, no contents
  kd seal --from a94d.seal.json --hash-only -o public.seal.json
                                 the same seal without contents
  kd seal key                    show your public key; the first use creates a key"
)]
pub(crate) struct Seal {
    #[command(subcommand)]
    pub(crate) command: Option<SealCommand>,
    /// The thread's id or a unique prefix, without `council-` if you like [default: the current one]
    pub(crate) id: Option<String>,
    /// Use this sealed file instead of a thread; its head hash stays the same
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    pub(crate) from: Option<PathBuf>,
    /// Sign with your key; creates one if you have none
    #[arg(long)]
    pub(crate) sign: bool,
    /// Leave out all contents; their hashes stay
    #[arg(long)]
    pub(crate) hash_only: bool,
    /// Write to this file [default: THREAD.seal.json]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file; a new seal of the same thread has another head
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Print one JSON object about the seal
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// The commands below `kd seal`.
#[derive(Debug, Subcommand)]
pub(crate) enum SealCommand {
    /// Show your public key; creates a key if you have none
    Key,
}

/// Data about a sealed file from another source.
#[derive(Debug, Args)]
pub(crate) struct Known {
    /// The head that it must have
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Option<String>,
    /// The public key that must have signed it
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) key: Option<String>,
}

/// Check a sealed file, without its thread and without a network
///
/// Prints what was verified. Exit code 12: the file was changed, has another head, or is not signed by the given key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd verify council-a94d.seal.json
  kd verify council-a94d.seal.json --head 3ffa775cbf56…  with this head
  kd verify council-a94d.seal.json --key d75a980182b1…   signed by this key")]
pub(crate) struct Verify {
    /// The sealed file; - is stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Create a thread from a sealed file
///
/// Checks the file first and refuses a changed one. The thread gets a new id; no other thread is changed. If a thread
/// was imported from the same file and still has its contents, names it instead.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd import council-a94d.seal.json
  kd import council-a94d.seal.json --key d75a980182b1…   if signed by this key")]
pub(crate) struct Import {
    /// The sealed file; - is stdin
    pub(crate) file: PathBuf,
    /// Create another thread even if one was imported from this file
    #[arg(long)]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
