//! `kd eval`: measure what a council gains.

use super::values;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Measure councils on recorded answers, simulated members or your own questions
#[derive(Clone, Debug, Args)]
#[command(
    group(clap::ArgGroup::new("what").required(true).args(["replay", "simulate", "list", "live"])),
    after_help = "\
Examples:
  kd eval --replay answers.csv                                   all members of the file, by plurality
  kd eval --replay answers.csv --members ada,bob,cyd --rule plurality,log-odds,auto
  kd eval --replay answers.csv --councils 40 --rule plurality,auto    40 random councils, compared with their best member
  kd eval --replay answers.csv --members ada,bob,cyd --promise 0.8,0.9 --marks 100,400    whether promises are kept
  kd eval --replay answers.csv --members ada,bob,cyd --promise 0.9 --drift    how soon broken promises are noticed
  kd eval --replay logs/*.eval                                   logs of Inspect, one for each model
  kd eval --replay ada=samples_sums_1.jsonl bob=samples_sums_2.jsonl --metric exact_match,none
  kd eval --replay results.jsonl --gold gold.csv                 results of `kd batch run`
  kd eval --replay gsm.csv math.csv --page --format html -o page.html    a page: do councils beat their best member?
  kd eval --replay debates.jsonl --mode CoT --rule first-round,last-round,trajectory
  kd eval --simulate spec.json
  kd eval --live questions.csv --max-usd 2                       ask your council, its best member and samples of it
  kd eval --live --report                                        compare a share of your questions (`eval.share`)
  kd eval --list                                                 list deciders and protocols to simulate

A table of answers     id,gold,ada,bob     one answer per cell; empty: none; <missing>: not asked
  optional columns     n_options, cost:ada, confidence:ada
Other tools            logs of Inspect (.eval, .json), samples of lm-evaluation-harness, folders of HELM runs, results.json
                       of promptfoo, samples of Every Eval Ever, results of `kd batch run`; told by their content
Debates, one per line  {\"answers\": [[\"7\",\"5\"],[\"5\"]], \"correct\": [[false,true],[true]]}     one list per agent
A simulation           {\"options\": 4, \"correlation\": 0.4, \"members\": [{\"accuracy\": 0.7, \"count\": 5}]}

Deciders that learn from right answers learn from every second question and decide the others. A decider is called
better only if the 95 % interval of the paired difference lies entirely above zero."
)]
pub(crate) struct Eval {
    /// Recorded answers: files or folders, joined; NAME=FILE names the model; `-` reads stdin
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) replay: Vec<PathBuf>,
    /// Members to simulate, as JSON; `-` reads stdin
    #[arg(long, value_name = "SPEC")]
    pub(crate) simulate: Option<PathBuf>,
    /// List the deciders, and the protocols that can be simulated
    #[arg(long)]
    pub(crate) list: bool,
    /// The members, in order [default: every member of the file]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["simulate", "list"])]
    pub(crate) members: Vec<String>,
    /// Deciders, or rules of `kd vote rules` [default: plurality; for debates first-round,last-round]
    #[arg(
        long,
        value_name = "RULE,…",
        value_delimiter = ',',
        requires = "replay",
        conflicts_with = "live"
    )]
    pub(crate) rule: Vec<String>,
    /// Number of possible answers, for log-odds and Dawid-Skene [default: as in the file; if it has none, 20]
    #[arg(long, value_name = "K", requires = "replay", conflicts_with = "live", value_parser = values::whole::<u64>(2..=1_000_000), allow_negative_numbers = true)]
    pub(crate) options: Option<u64>,
    /// Number of random councils; each decider is compared with the best member
    #[arg(long, value_name = "N", requires = "replay", conflicts_with_all = ["members", "live"], value_parser = values::whole::<u32>(1..=10_000), allow_negative_numbers = true)]
    pub(crate) councils: Option<u32>,
    /// Number of members per council
    #[arg(long, value_name = "N", requires = "councils", conflicts_with_all = ["members", "promise", "format"], default_value_t = 5, value_parser = values::whole::<u32>(2..=100), allow_negative_numbers = true)]
    pub(crate) size: u32,
    /// Learn these promises (shares right) from marks of some questions and test them on the others
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', requires = "replay", conflicts_with_all = ["live", "councils", "rule", "options"], value_parser = values::promise, allow_negative_numbers = true)]
    pub(crate) promise: Vec<f64>,
    /// Numbers of marks to learn from
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "promise", conflicts_with_all = ["councils", "rule", "options", "format"], default_value = "200", value_parser = values::whole::<u32>(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) marks: Vec<u32>,
    /// Number of times the questions are split into marked ones and others
    #[arg(long, value_name = "N", requires = "promise", conflicts_with_all = ["councils", "rule", "options", "format"], default_value_t = 300, value_parser = values::whole::<u32>(1..=10_000), allow_negative_numbers = true)]
    pub(crate) splits: u32,
    /// Change something after the marks, and count the marks until broken promises are withdrawn
    #[arg(long, requires = "promise", conflicts_with_all = ["councils", "rule", "options", "format"])]
    pub(crate) drift: bool,
    /// Compare N random councils of five from each file with their best member, as a page [default: 40]
    #[arg(long, value_name = "N", requires = "replay", num_args = 0..=1, default_missing_value = "40", conflicts_with_all = ["live", "members", "rule", "options", "councils", "promise", "mode", "json"], value_parser = values::whole::<u32>(1..=10_000), allow_negative_numbers = true)]
    pub(crate) page: Option<u32>,
    /// The metric or scorer that says what is right [default: the first of the file]
    #[arg(
        long,
        value_name = "NAME",
        requires = "replay",
        conflicts_with = "live"
    )]
    pub(crate) metric: Option<String>,
    /// Right answers to the questions of a batch: CSV or JSON Lines with `id` and `gold`
    #[arg(
        long,
        value_name = "FILE",
        requires = "replay",
        conflicts_with = "live"
    )]
    pub(crate) gold: Option<PathBuf>,
    /// Only debates recorded under this mode
    #[arg(long, requires = "replay", conflicts_with = "live")]
    pub(crate) mode: Option<String>,
    /// Count an empty answer as wrong instead of as an abstention
    #[arg(long, requires = "replay", conflicts_with = "live")]
    pub(crate) empty_answers: bool,
    /// Random seed for lots, orders, councils and bootstraps
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["simulate", "list"], value_parser = values::whole::<u64>(0..), allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the joined answers (csv), the decisions in the form of Every Eval Ever (eee), or the page of --live or --page (md, html, eee)
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["simulate", "list", "json", "councils", "promise"], help_heading = "Output")]
    pub(crate) format: Option<Format>,
    /// Write to this file (csv, md, html) or below this folder (eee)
    #[arg(
        short,
        long,
        value_name = "PATH",
        requires = "format",
        conflicts_with_all = ["json", "councils", "promise"],
        help_heading = "Output"
    )]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: Live,
}

/// Options of `--live`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Your questions")]
pub(crate) struct Live {
    /// Ask these questions of your council, its best member alone, and that member sampled at equal cost: a file with
    /// `gold`, as `kd batch` reads it [default: your marked verdicts]
    #[arg(long, value_name = "QUESTIONS", num_args = 0..=1)]
    pub(crate) live: Option<Option<PathBuf>>,
    /// The member to ask alone [default: the best by your marks]
    #[arg(long, value_name = "NAME", requires = "live")]
    pub(crate) best: Option<String>,
    /// Estimate calls and cost; ask nothing
    #[arg(long, requires = "live")]
    pub(crate) dry_run: bool,
    /// Compare what was kept of a share of your questions (`eval.share`); ask nothing
    #[arg(long, requires = "live", conflicts_with_all = ["members", "best", "dry_run", "yes", "max_usd", "max_calls"])]
    pub(crate) report: bool,
    /// Do not ask before spending; needs --max-usd or --max-calls
    #[arg(long, requires = "live")]
    pub(crate) yes: bool,
    /// Maximum cost of all together in US dollars
    #[arg(long, value_name = "USD", value_parser = values::usd, allow_negative_numbers = true, requires = "live")]
    pub(crate) max_usd: Option<f64>,
    /// Maximum number of requests to models, all together
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true, requires = "live")]
    pub(crate) max_calls: Option<u64>,
    /// Questions to ask at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = values::whole::<u16>(1..=1000), allow_negative_numbers = true, requires = "live")]
    pub(crate) concurrency: u16,
}

/// A form of answers or decisions to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Csv,
    Eee,
    Md,
    Html,
}
