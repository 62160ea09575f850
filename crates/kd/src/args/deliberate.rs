//! `kd deliberate`: a council that plans its procedure, reviews, votes and concludes; `kd replay`, `kd why` and `kd
//! memory` inspect its records.

use super::ask::{Attach, Form, Output, Privacy, Tools};
use super::values;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd deliberate \"Should a small team start with SQLite or PostgreSQL?\"
  kd deliberate --dry-run \"…\"                    print the plan: members, calls, tokens, price
  kd deliberate --preset diverse --rule irv \"…\"  members, roles and voting rule
  kd deliberate --iterate --strategy debate \"…\"  run another pass when they do not agree
  kd deliberate --protocol auto --max-usd 0.10 \"…\"
  kd deliberate --plan council.json \"…\"          plan from a file (format: kd config schema)
  kd deliberate --export report.html \"…\"         the full record with charts
  kd why                                         how the council reached its decision
  kd replay                                      repeat the decision from the record, without a model
  kd deliberate --resume                         finish a fork at a stage, or what was interrupted

Exit codes: 0 unanimous, majority or plurality; 4 cut by a limit; 5 degraded; 7 split; 8 no quorum;
11 no promise (--require); 13 asks back (--ask-back).";

/// Plan a council, collect opinions and reviews, vote, conclude
#[derive(Debug, Default, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "kd deliberate [OPTIONS] [QUESTION]...\n       kd deliberate [OPTIONS] --resume [ID]"
)]
pub(crate) struct Deliberate {
    /// The question; `-` reads it from stdin. Piped input is appended as context
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// Finish the deliberation of a thread that was forked at a stage or interrupted; a unique prefix of
    /// its id is enough [default: the current thread]
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["question", "files", "members", "planning", "preset", "size", "protocol", "rule", "answer", "plan",
                                "edit", "dry_run", "iterate", "strategy", "max_iterations", "rounds", "certainty", "max_time", "timeout",
                                "max_tokens", "seed", "ask_back", "output_schema"])]
    pub(crate) resume: Option<String>,

    /// The agents to choose members from, in order; roles are assigned in turn
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Plan"
    )]
    pub(crate) members: Vec<String>,
    #[command(flatten)]
    pub(crate) tools: Tools,
    /// Planner: static, llm or hybrid
    #[arg(long, value_name = "MODE", help_heading = "Plan")]
    pub(crate) planning: Option<String>,
    /// Members, roles and voting rule: small, standard, reasoning or diverse
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) preset: Option<String>,
    /// Number of members, 3 to 9
    #[arg(long, value_name = "N", help_heading = "Plan", value_parser = values::whole::<u32>(3..=9), allow_negative_numbers = true)]
    pub(crate) size: Option<u32>,
    /// Protocol: council, solo, sample-vote, vote, cascade, certain-enough, gated-debate, debate,
    /// round-table, collective-improvement, peer-review, layers, delphi, red-team, or auto
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) protocol: Option<String>,
    /// Voting rule; `kd vote rules` lists them
    #[arg(long, value_name = "NAME", help_heading = "Plan")]
    pub(crate) rule: Option<String>,
    /// Kind of the answers: choice:a,b, yes-no, number, date, exact, json, set, ranking, code, judged or text
    #[arg(long, value_name = "KIND", help_heading = "Plan")]
    pub(crate) answer: Option<String>,
    /// Run the plan of a file; --edit shows the format
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub(crate) plan: Option<PathBuf>,
    /// Edit the plan in your editor before running it
    #[arg(long, help_heading = "Plan")]
    pub(crate) edit: bool,
    /// Print the plan and its cost, without asking
    #[arg(long, help_heading = "Plan")]
    pub(crate) dry_run: bool,

    /// Let a council that disagrees ask you the one question whose answer would decide
    #[arg(long, help_heading = "Plan")]
    pub(crate) ask_back: bool,

    /// Run another pass when the council does not agree
    #[arg(long, help_heading = "Iteration")]
    pub(crate) iterate: bool,
    /// Strategy of the next pass: refine, escalate, specialize or debate
    #[arg(long, value_name = "NAME", help_heading = "Iteration")]
    pub(crate) strategy: Option<String>,
    /// Maximum number of passes, 1 to 5
    #[arg(long, value_name = "N", help_heading = "Iteration", value_parser = values::whole::<u32>(1..=5), allow_negative_numbers = true)]
    pub(crate) max_iterations: Option<u32>,
    /// Number of rounds, for protocols that have rounds
    #[arg(long, value_name = "N", help_heading = "Iteration", value_parser = values::whole::<u32>(1..=5), allow_negative_numbers = true)]
    pub(crate) rounds: Option<u32>,

    /// The chance of being right, 0.5 to 1, at which certain-enough stops asking members
    #[arg(long, value_name = "SHARE", help_heading = "Limits", value_parser = values::share, allow_negative_numbers = true)]
    pub(crate) certainty: Option<f64>,
    /// Maximum tokens of all prompts and answers together, retries included
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true)]
    pub(crate) max_total_tokens: Option<u64>,
    /// Maximum number of requests to models, retries included
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true)]
    pub(crate) max_calls: Option<u64>,
    /// Maximum cost in US dollars, retries included; needs known prices
    #[arg(long, value_name = "USD", value_parser = values::usd, allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) max_usd: Option<f64>,
    /// Maximum time for the whole deliberation, such as 10m or 1h
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) max_time: Option<Duration>,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,
    /// Maximum tokens per answer
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = values::whole::<u32>(16..), allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<u32>,

    /// Model for members that name none
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Random seed for labels, orders, lots, and models that support one
    #[arg(long, value_name = "N", value_parser = values::seed, allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) seed: Option<u64>,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue, help_heading = "Model")]
    pub(crate) offline: bool,

    #[command(flatten)]
    pub(crate) privacy: Privacy,

    /// Exit with code 11 unless your marks show that at least this share of similar verdicts is right, 0.5 to 0.999
    #[arg(long, value_name = "SHARE", value_parser = values::promise, allow_negative_numbers = true, help_heading = "Output")]
    pub(crate) require: Option<f64>,
    /// Also write the full record to a file: .md, .html or .json
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) export: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// Repeat a decision from its record, without a model, and compare
///
/// The options under “What if” decide in another way from the same replies. This is counterfactual: it assumes that
/// each member would reply the same. If a reply is needed that was not recorded, the command stops and says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd replay                              must agree with the record, byte for byte
  kd replay --without bob                as if bob had not taken part
  kd replay --rule schulze --seed 4      another voting rule, another seed for lots and labels
  kd replay --weights bob=2,alice=0.5    other weights
  kd replay --all-rules                  the winner under each rule, decisive ballots, margins")]
pub(crate) struct Replay {
    /// The thread; a unique prefix of its id is enough [default: the newest turn's]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Leave out these members
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "What if"
    )]
    pub(crate) without: Vec<String>,
    /// Decide by this voting rule; `kd vote rules` lists them
    #[arg(long, value_name = "NAME", help_heading = "What if")]
    pub(crate) rule: Option<String>,
    /// Draw labels, orders and lots from this seed
    #[arg(long, value_name = "N", help_heading = "What if", value_parser = values::whole::<u64>(0..), allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Weigh members differently, for rules that count weights
    #[arg(long, value_name = "NAME=W", value_delimiter = ',', value_parser = values::weight, help_heading = "What if")]
    pub(crate) weights: Vec<(String, f64)>,
    /// Count the ballots by every rule
    #[arg(long, help_heading = "What if")]
    pub(crate) all_rules: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

impl Replay {
    /// Returns whether an option asks for a decision under other conditions.
    pub(crate) fn is_what_if(&self) -> bool {
        !self.without.is_empty()
            || self.rule.is_some()
            || self.seed.is_some()
            || !self.weights.is_empty()
            || self.all_rules
    }
}

/// Explain how the council reached its decision
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The thread; a unique prefix of its id is enough [default: the newest turn's]
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print the record as a document instead
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) export: Option<Format>,
    /// Print the explanation as one JSON object
    #[arg(long, conflicts_with = "export", help_heading = "Output")]
    pub(crate) json: bool,
}

impl Why {
    /// Returns whether the output is JSON, and errors with it.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.export == Some(Format::Json)
    }
}

/// `--export` of `kd why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Markdown
    Md,
    /// One self-contained page with charts
    Html,
    /// The record as one object
    Json,
}

// The subcommands of `kd memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Show the memory across deliberations
    Show(MemoryShow),
    /// Remember a preference, or what this project is about
    Set(MemorySet),
    /// Forget one thing, or everything
    Forget(MemoryForget),
}

/// `kd memory show`
#[derive(Debug, Args)]
pub(crate) struct MemoryShow {
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `kd memory set`
#[derive(Debug, Args)]
pub(crate) struct MemorySet {
    /// The name of a preference, or `domain`
    pub(crate) name: String,
    /// The text to remember
    pub(crate) value: String,
}

/// `kd memory forget`
#[derive(Debug, Args)]
pub(crate) struct MemoryForget {
    /// The name of a preference, `domain`, or the id of a thread
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// Everything
    #[arg(long)]
    pub(crate) all: bool,
}
