//! `kd batch`: many questions, asked in the same way.

use super::ask::{Model, Privacy, Spending};
use super::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd batch run questions.jsonl -o results.jsonl
  kd batch run questions.csv --id-field key -o results.jsonl --max-usd 5
  kd batch run questions.txt --as deliberate -o results.jsonl --concurrency 32
  kd batch run questions.jsonl -o results.jsonl --provider-batch
  kd batch run questions.jsonl --dry-run          calls and price, without asking
  kd batch run questions.jsonl -o results.jsonl --store postgresql://kd@db.example.org/kd
  jq -r .answer results.jsonl

Ctrl+C lets the questions that are being asked finish. The same command goes on where it stopped, and
the same question is asked once.

Exit codes: 0 all answered; 4 a limit ended the run; 5 some failed; 6 all failed; 130 interrupted.";

// The subcommands of `kd batch`.
#[derive(Debug, Subcommand)]
pub(crate) enum Batch {
    Run(Box<Run>),
    Status(Status),
    Results(Results),
    Retry(Retry),
    Cancel(Cancel),
    Forget(Forget),
    #[command(visible_alias = "ls")]
    List(List),
}

/// The database of a fleet.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Store {
    /// The database whose workers ask: postgresql://user@host/name [default: KD_BATCH_STORE]
    #[arg(long, value_name = "URL", help_heading = "Several machines")]
    pub(crate) store: Option<String>,
}

/// How long a worker may be silent.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Lease {
    /// After how long without a sign of life its questions are given to other workers
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, default_value = "60s", help_heading = "Several machines")]
    pub(crate) lease: Duration,
}

/// Ask all questions of a file, or go on with it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Questions: .jsonl, .csv, a line each, a folder of .txt and .md files, or `-` for stdin
    #[arg(value_name = "QUESTIONS")]
    pub(crate) questions: PathBuf,

    /// How each question is asked: ask, think, deliberate, or a file with a plan
    #[arg(
        long = "as",
        value_name = "HOW",
        default_value = "ask",
        help_heading = "Questions"
    )]
    pub(crate) how: String,
    /// The field with the id [default: id or question_id, else the line]
    #[arg(long, value_name = "FIELD", help_heading = "Questions")]
    pub(crate) id_field: Option<String>,
    /// The field with the question [default: question, prompt, input or text]
    #[arg(long, value_name = "FIELD", help_heading = "Questions")]
    pub(crate) question_field: Option<String>,
    /// Ask every question, also those that are equal or were answered before
    #[arg(long, help_heading = "Questions")]
    pub(crate) fresh: bool,
    /// Print calls, tokens and price, without asking
    #[arg(long, help_heading = "Questions")]
    pub(crate) dry_run: bool,

    /// The members, in order
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    /// Skip the chair's conclusion
    #[arg(long, help_heading = "Council")]
    pub(crate) no_conclude: bool,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,

    /// How many questions are asked at the same time [default: 8, or 512 with --provider-batch]; with --store, 0 leaves
    /// all of them to workers
    #[arg(long, value_name = "N", value_parser = values::whole::<u16>(0..=4096), allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) concurrency: Option<u16>,
    /// Ask services with batch endpoints through them: about half the price, an answer within a day
    #[arg(long, conflicts_with = "rate", help_heading = "Pace")]
    pub(crate) provider_batch: bool,
    /// Maximum questions started per second, minute or hour: 2/s, 30/m, 500/h
    #[arg(long, value_name = "N/UNIT", value_parser = values::rate, allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) rate: Option<Duration>,
    /// How often a question is asked before it counts as failed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = values::whole::<u32>(1..=20), allow_negative_numbers = true, help_heading = "Pace")]
    pub(crate) attempts: u32,
    /// Pause before a failed question is asked again; doubled each time, such as 5s or 1m
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, default_value = "5s", help_heading = "Pace")]
    pub(crate) pause: Duration,

    #[command(flatten)]
    pub(crate) store: Store,
    #[command(flatten)]
    pub(crate) lease: Lease,
    /// Batches with a higher number are asked first
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = values::whole::<i32>(-1000..=1000), allow_negative_numbers = true, help_heading = "Several machines")]
    pub(crate) priority: i32,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) spending: Spending,

    #[command(flatten)]
    pub(crate) privacy: Privacy,

    /// Write one JSON line per question to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Add a line of JSON to this file for everything that happens: no questions, no answers
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) log: Option<PathBuf>,
    /// Print progress as lines, on a terminal too; also set by ACCESSIBLE=1 or TERM=dumb
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
    /// Print one JSON object at the end
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print only errors and the JSON object
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// Show the progress of a batch, and why questions failed
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The batch's id or a unique prefix, without `batch-` if you like [default: the running one, else the newest]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Print the results of a batch: one JSON line per question
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// The batch's id or a unique prefix, without `batch-` if you like [default: the newest]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that is not the results of this batch
    #[arg(long, requires = "output", help_heading = "Output")]
    pub(crate) force: bool,
}

/// Mark failed and cancelled questions to be asked again
#[derive(Debug, Args)]
pub(crate) struct Retry {
    /// The batch's id or a unique prefix, without `batch-` if you like [default: the newest]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
}

/// Mark the rest of a batch as not to be asked
///
/// A process that runs it stops; questions that are being asked are finished. Its batches at providers are cancelled
/// there. `kd batch retry` takes this back.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The batch's id or a unique prefix, without `batch-` if you like [default: the running one, else the newest]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
}

/// Erase a batch of a database: its questions, results and threads
///
/// Equal questions of the batch, and questions of other batches with the same answer, are erased too. Refuses while workers
/// ask. Threads of this project's own batches are removed with `kd forget THREAD`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd batch forget 3f1c90ab --dry-run          show what would be erased
  kd batch forget 3f1c90ab --question q17     one question")]
pub(crate) struct Forget {
    /// The batch's id or a unique prefix, without `batch-` if you like
    pub(crate) id: String,
    /// Only the question with this id
    #[arg(long, value_name = "ID")]
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) store: Store,
    /// Show what would be erased; change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
}

/// List the batches of this project
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) store: Store,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
