//! `kd vote …`: count ballots by any rule.

use clap::{Args, Subcommand};
use std::path::PathBuf;

// The commands below `kd vote`.
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
  ballots, a line each     {\"voter\": \"ada\", \"choice\": \"A\", \"confidence\": 0.8}
                           {\"n\": 3, \"ranks\": [\"B\", [\"A\", \"C\"]]}     B before A and C, who are tied
                           {\"scores\": {\"A\": 5, \"B\": 2}}   {\"approvals\": [\"A\", \"C\"]}   {\"trail\": [\"A\", \"B\"]}
  polls, a line each       {\"candidates\": [\"A\", \"B\"], \"ballots\": [[\"A\", \"B\"], [\"B\"]]}
  CSV with a head          voter,n,weight,confidence,reliability and choice | rank1,rank2,… | score:A,score:B,… | approvals | round1,…
A ballot that a rule cannot read is an abstention with its reason. `kd vote rules` lists the rules.")]
pub(crate) struct Tally {
    /// By which rule, or rules with commas between
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
    /// The seed of lots, where a tie needs one [default: what the file says, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How irv breaks ties of the lowest
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) ties: Option<Ties>,
    /// Weights count in every rule, not only in `weighted`
    #[arg(long)]
    pub(crate) weighted: bool,
    /// As one JSON object for each poll and rule, a line each
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `--ties`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ties {
    /// All of them go together, unless nobody would be left
    Batch,
    /// Every order is followed; all who win in one tie
    Parallel,
    /// Who had fewest in the latest round in which they differed
    Backward,
    /// Who had fewest in the earliest round in which they differed
    Forward,
    /// Who has the lowest Borda score
    Borda,
    /// A lot from the seed
    Seeded,
}

/// Compare our counts with those that a file records
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd vote check profiles.jsonl
  kd vote check elections.jsonl --json | jq '.differences[]'

A line is a poll with what another program found:
  {\"candidates\": 3, \"ballots\": [[2,0,1],[0,2,1]], \"winners\": {\"plurality\": [0,2], \"schulze(beat_path,margins)\": [0,2]}}
  {\"candidates\": [\"A\",\"B\"], \"rules\": {…RCTab…}, \"ballots\": [{\"n\": 2, \"ranks\": [\"A\",null]}], \"rounds\": [{\"tally\": {…}, \"eliminated\": [], \"elected\": []}]}
Every winner set and every round is compared. Any difference is listed, and the command fails with exit code 1.")]
pub(crate) struct Check {
    /// The polls; `-` reads stdin
    pub(crate) file: PathBuf,
    /// As one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// List the rules: what each does, who proposed it, when it misleads
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd vote rules
  kd vote rules irv            one of them
  kd vote rules --json | jq -r '.[].name'")]
pub(crate) struct Rules {
    /// Only this one
    pub(crate) name: Option<String>,
    /// As one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
