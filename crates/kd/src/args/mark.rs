//! `kd mark` and `kd marks`: record which verdicts were right.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Mark a verdict as right or wrong
///
/// kd learns from marks how often each member is right on each kind of question, and how reliable a verdict is. Marks
/// are stored in your data folder, never in a repository.
#[derive(Debug, Args)]
#[command(
    override_usage = "kd mark [OPTIONS] [THREAD] <MARK>\n       kd mark [OPTIONS] [THREAD] --by <COMMAND>\n       kd mark [OPTIONS] [BATCH] --gold <FILE>",
    after_help = "\
Examples:
  kd mark right                  the newest verdict of the current thread
  kd mark a94d wrong             another thread's
  kd mark a94d 391               the right answer
  kd mark a94d 0.7               partly right
  kd mark a94d --by 'cargo test'   right if the command succeeds
  kd mark --gold answers.csv     the verdicts of the newest batch, by a file of right answers"
)]
pub(crate) struct Mark {
    /// The thread [default: the current one], and `right`, `wrong`, a share from 0 to 1, or the right answer
    #[arg(value_name = "MARK", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    /// Run this command in a shell: right if it succeeds, wrong if it fails
    #[arg(long, value_name = "COMMAND")]
    pub(crate) by: Option<String>,
    /// Mark all verdicts of a batch by right answers: rows of .csv or .jsonl with `id` (or `thread`) and `gold`
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "by",
        help_heading = "Many verdicts"
    )]
    pub(crate) gold: Option<PathBuf>,
    /// The field with the id of a question [default: id or question_id]
    #[arg(
        long,
        value_name = "FIELD",
        requires = "gold",
        help_heading = "Many verdicts"
    )]
    pub(crate) id_field: Option<String>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List, export, import or forget marks of verdicts
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  kd marks                       all marks
  kd marks next                  the verdicts whose marks would teach most
  kd marks export > marks.jsonl  one JSON object per line
  kd marks import marks.jsonl
  kd marks forget a94d           the marks of a thread
  kd marks forget a94d --project app-0f1e2d3c
                                 of another project, named as `kd marks` names it
  kd marks forget --all          asks first; --yes does not"
)]
pub(crate) struct Marks {
    #[command(subcommand)]
    pub(crate) command: Option<MarksCommand>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// The commands below `kd marks`.
#[derive(Debug, Subcommand)]
pub(crate) enum MarksCommand {
    /// Name the five unmarked verdicts of this project whose marks would teach most
    Next {
        /// Print one JSON object
        #[arg(long, help_heading = "Output")]
        json: bool,
    },
    /// Print all marks, one JSON object per line
    Export,
    /// Import marks from `kd marks export`
    Import {
        /// The file; - is stdin
        file: PathBuf,
    },
    /// Forget the marks of a thread, or all
    Forget {
        /// The thread's id or a unique prefix
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// The project of the thread, as `kd marks` names it, or the beginning of that [default: this one]
        #[arg(long, value_name = "NAME", conflicts_with = "all")]
        project: Option<String>,
        /// All marks
        #[arg(long)]
        all: bool,
        /// Do not ask before all marks are forgotten
        #[arg(long, requires = "all")]
        yes: bool,
    },
}
