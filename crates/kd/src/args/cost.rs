//! `kd cost`: show spending.

use clap::{Args, ValueEnum};

/// Show the spending of today and this month
///
/// Counts every request to a model with its member, model and price, never its text. The record is in your data folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd cost                      today, this month, and this month by member
  kd cost --by model           by model
  kd cost --by day --since 2026-01-01
  kd cost --json | jq .month.usd

`by logins` is what the tokens of agent programs with their own login would have
cost with an API key; their subscription covers them.")]
pub(crate) struct Cost {
    /// The group of each sum
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Member)]
    pub(crate) by: By,
    /// Count from this day, such as 2026-01-31 [default: the first of this month]
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<jiff::civil::Date>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `--by`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Member,
    Model,
    Service,
    Project,
    Day,
}

impl From<By> for kd_core::ledger::By {
    fn from(by: By) -> Self {
        match by {
            By::Member => Self::Member,
            By::Model => Self::Model,
            By::Service => Self::Service,
            By::Project => Self::Project,
            By::Day => Self::Day,
        }
    }
}
