//! `kd worker`: answers questions of batches that other machines have started.

use super::batch::{Lease, Store};
use super::values;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  export KD_BATCH_STORE=postgresql://kd@db.example.org/kd
  kd batch run questions.jsonl -o results.jsonl      on one machine
  kd worker --concurrency 16                         on each other machine
  kd worker list                                     what each of them does

Members, addresses and keys are those of this machine's own configuration; a batch that was started with
another one is refused, and `kd batch status` says why. Ctrl+C or SIGTERM lets the questions that are
being asked finish.

Exit codes: 0 stopped; 1 the database cannot be reached.";

/// Answer questions of batches on a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Worker {
    #[command(subcommand)]
    pub(crate) command: Option<WorkerCommand>,
    #[command(flatten)]
    pub(crate) store: Store,

    /// How many questions are asked at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = values::whole::<u16>(1..=512), allow_negative_numbers = true)]
    pub(crate) concurrency: u16,
    #[command(flatten)]
    pub(crate) lease: Lease,
    /// Its name for `kd batch status`, to which a number is added
    #[arg(long, value_name = "NAME", default_value = "worker")]
    pub(crate) name: String,
    /// Print only errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

// The subcommands of `kd worker`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    #[command(visible_alias = "ls")]
    List(List),
}

/// List the workers of a database: what each does, and which batches it refuses
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: Store,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
