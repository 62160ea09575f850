//! `kd vote …`: count ballots by any voting rule.

use super::values;
use clap::{Args, Subcommand};
use std::path::PathBuf;

// The subcommands of `kd vote`.
#[derive(Debug, Subcommand)]
pub(crate) enum Vote {
    Tally(Tally),
    Check(Check),
    Rules(Rules),
}

/// Count the ballots of a file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd vote tally --rule irv ballots.jsonl
  kd vote tally --rule schulze,borda ballots.csv      by several rules
  printf 'voter,choice\\nada,A\\nbob,B\\ncyd,A\\n' | kd vote tally --rule majority -

A file holds one of
  ballots, one per line    {\"voter\": \"ada\", \"choice\": \"A\", \"confidence\": 0.8}
                           {\"n\": 3, \"ranks\": [\"B\", [\"A\", \"C\"]]}: A and C are tied
                           {\"scores\": {\"A\": 5, \"B\": 2}}
                           {\"approvals\": [\"A\", \"C\"]}
                           {\"trail\": [\"A\", \"B\"]}
  polls, one per line      {\"candidates\": [\"A\", \"B\"], \"ballots\": [[\"A\", \"B\"], [\"B\"]]}
  CSV with a header        voter,n,weight,confidence,reliability and one of
                           choice | ranking (A>B=C) | rank1,rank2,… | score:A,score:B,… | approvals (A;B) | round1,…
A ballot that a rule cannot read counts as an abstention, with the reason. A second ballot of a voter, and one candidate
in two spellings, are errors. `kd vote rules` lists the rules.")]
pub(crate) struct Tally {
    /// The rule, or several separated by commas
    #[arg(
        short,
        long,
        value_name = "RULE",
        required = true,
        value_delimiter = ','
    )]
    pub(crate) rule: Vec<String>,
    /// The ballots; `-` reads stdin
    pub(crate) file: PathBuf,
    /// Random seed for ties that are broken by lot [default: the seed in the file, or 0]
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(0..), allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// How irv eliminates candidates that tie for the fewest votes
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) ties: Option<Ties>,
    /// Maximum approvals on a ballot of `approval` [default: half of the candidates, rounded up]
    #[arg(long, value_name = "N", value_parser = values::whole::<usize>(1..), allow_negative_numbers = true)]
    pub(crate) approvals_max: Option<usize>,
    /// The share of the votes that `super-majority` must exceed [default: two thirds]
    #[arg(long, value_name = "SHARE", value_parser = values::share, allow_negative_numbers = true)]
    pub(crate) threshold: Option<f64>,
    /// Apply weights in every rule, not only in `weighted`
    #[arg(long)]
    pub(crate) weighted: bool,
    /// Print one JSON object per poll and rule, one per line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `--ties`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ties {
    /// Eliminate all of them, unless nobody would be left
    Batch,
    /// Follow every order; the winners of all are tied
    Parallel,
    /// Eliminate the one with fewest votes in the latest round that differs
    Backward,
    /// Eliminate the one with fewest votes in the earliest round that differs
    Forward,
    /// Eliminate the one with the lowest Borda score
    Borda,
    /// Draw a lot from the seed
    Seeded,
}

/// Count the polls of a file and compare with the winners it records
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd vote check profiles.jsonl
  kd vote check elections.jsonl --json | jq '.differences[]'

Each line is a poll with the winners that another program found:
  {\"candidates\": 3, \"ballots\": [[2,0,1],[0,2,1]], \"winners\": {\"plurality\": [0,2], \"schulze(beat_path,margins)\": [0,2]}}
  {\"candidates\": [\"A\",\"B\"], \"rules\": {…RCTab…}, \"ballots\": [{\"n\": 2, \"ranks\": [\"A\",null]}], \"rounds\": [{\"tally\": {…}, \"eliminated\": [], \"elected\": []}]}
Compares every winner set and every round. Lists any difference and then exits with code 1.")]
pub(crate) struct Check {
    /// The polls; `-` reads stdin
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the rules: what each does, its source, and its caveats
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd vote rules
  kd vote rules irv            one of them
  kd vote rules --json | jq -r '.[].name'")]
pub(crate) struct Rules {
    /// Only this one
    pub(crate) name: Option<String>,
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
