//! `kd deliberate`: a council that plans itself, reviews, votes and concludes; `kd replay`, `kd why` and `kd memory`
//! look at what it left.

use super::ask::Output;
use super::values;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd deliberate \"Should a small team start with SQLite or PostgreSQL?\"
  kd deliberate --dry-run \"…\"                    the plan only: seats, calls, tokens, price
  kd deliberate --preset diverse --rule irv \"…\"  who sits and how they decide
  kd deliberate --iterate --strategy debate \"…\"  begin anew where they do not agree
  kd deliberate --protocol auto --max-usd 0.10 \"…\"
  kd deliberate --plan council.json \"…\"          seats and limits from a file (kd config schema)
  kd deliberate --export report.html \"…\"         the whole record with charts
  kd why                                         why the council decided as it did
  kd replay                                      decide again from the record, without a model

The exit code follows the outcome: 0 unanimous, majority, plurality; 7 split; 8 no quorum; 5 degraded; 4 cut by a limit.";

/// Have a council plan itself, opine, review, vote and conclude
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Deliberate {
    /// The question; `-` reads it from stdin. What is piped in stands below it as context
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,

    /// Who may sit, in order: agents; roles are given in turn
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Plan"
    )]
    pub(crate) members: Vec<String>,
    /// How the plan is made: static, llm or hybrid
    #[arg(long, value_name = "MODE", help_heading = "Plan")]
    pub(crate) planning: Option<String>,
    /// Who sits and how they decide: small, standard, reasoning or diverse
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) preset: Option<String>,
    /// How many seats, 3 to 9
    #[arg(long, value_name = "N", help_heading = "Plan")]
    pub(crate) size: Option<u32>,
    /// How the council works: council, solo, sample-vote, vote, cascade, gated-debate, debate, round-table,
    /// collective-improvement, peer-review, layers, delphi, red-team, or auto
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) protocol: Option<String>,
    /// The rule of the vote (kd vote rules)
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) rule: Option<String>,
    /// How answers are compared: choice:a,b, yes-no, number, date, exact, json, set, judged or text
    #[arg(long, value_name = "KIND", help_heading = "Plan")]
    pub(crate) answer: Option<String>,
    /// Run the plan of a file (the seed's schema, as --edit shows it)
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) plan: Option<PathBuf>,
    /// Open the plan in your editor before it runs
    #[arg(long, help_heading = "Plan")]
    pub(crate) edit: bool,
    /// Show the plan and stop
    #[arg(long, help_heading = "Plan")]
    pub(crate) dry_run: bool,

    /// Begin anew where the council does not agree
    #[arg(long, help_heading = "Iteration")]
    pub(crate) iterate: bool,
    /// What the next pass does differently: refine, escalate, specialize or debate
    #[arg(long, value_name = "NAME", help_heading = "Iteration")]
    pub(crate) strategy: Option<String>,
    /// The most passes, 1 to 5
    #[arg(long, value_name = "N", help_heading = "Iteration")]
    pub(crate) max_iterations: Option<u32>,
    /// Rounds of protocols with rounds
    #[arg(long, value_name = "N", help_heading = "Iteration")]
    pub(crate) rounds: Option<u32>,

    /// Maximum tokens of all prompts and answers, retries included
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_total_tokens: Option<u64>,
    /// Maximum number of requests to models, retries included
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_calls: Option<u64>,
    /// Maximum cost in US dollars, retries included; needs known prices
    #[arg(long, value_name = "USD", value_parser = values::usd, help_heading = "Limits")]
    pub(crate) max_usd: Option<f64>,
    /// The most time in all [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Limits")]
    pub(crate) max_time: Option<Duration>,
    /// Stop a member that takes longer [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// The most tokens of one answer
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_tokens: Option<u32>,

    /// The model of every member that names none
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Fix the chance: labels, orders, lots, and the models' where they can
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) seed: Option<u64>,
    /// Fetch nothing: use only models that are here already
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue, help_heading = "Model")]
    pub(crate) offline: bool,

    /// Also write the whole record to a file: .md, .html or .json
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Decide again from the record, without a model, and compare
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The thread (a unique beginning of its id will do) [default: the newest turn's]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Say in plain words why the council decided as it did
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The thread (a unique beginning of its id will do) [default: the newest turn's]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// The record as a document instead
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) export: Option<Format>,
}

/// `--export` of `kd why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Markdown
    Md,
    /// One page with charts, nothing fetched
    Html,
    /// The record as one object
    Json,
}

// The commands below `kd memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Show what is remembered across deliberations
    Show(MemoryShow),
    /// Remember a preference, or what this project is about
    Set(MemorySet),
    /// Forget one thing, or everything
    Forget(MemoryForget),
}

/// `kd memory show`
#[derive(Debug, Args)]
pub(crate) struct MemoryShow {
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `kd memory set`
#[derive(Debug, Args)]
pub(crate) struct MemorySet {
    /// The name of a preference, or `domain`
    pub(crate) name: String,
    /// What to remember
    pub(crate) value: String,
}

/// `kd memory forget`
#[derive(Debug, Args)]
pub(crate) struct MemoryForget {
    /// The name of a preference, `domain`, or the id of a thread
    #[arg(required_unless_present = "all")]
    pub(crate) name: Option<String>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
}
