//! `kd doctor`: make one tiny real call to each member.

use super::values;
use clap::Args;
use std::time::Duration;

/// Test every member and show what is missing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd doctor                    every member and configured agent
  kd doctor claude codex       these
  kd doctor --json | jq -r '.[] | select(.answered | not) | .advice'

Sends each member one real request of a few tokens, in parallel. Agent programs are also asked to
write a file in an empty folder, although they may only read. `read-only` says `yes` if the agent
tried and the file does not exist, `flags only` if only its own flags prevented it, `NO` if the file
exists, and `not tried` if the model did not try. The last lines say what enforces it.
Exit code 0: all answered and none wrote the file; 5: some; 6: none.")]
pub(crate) struct Doctor {
    /// Only these members
    #[arg(value_name = "NAME")]
    pub(crate) members: Vec<String>,
    /// Maximum time for one member's answer, such as 90s or 2m
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, default_value = "60s")]
    pub(crate) timeout: Duration,
    /// Print one JSON array
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}
