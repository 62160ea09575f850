//! `kd cost`: show spending.

use clap::{Args, ValueEnum};

/// Show what was spent today and this month
///
/// Every request to a model is counted here, with its member, model and price, and none of its words. The record is in your
/// data folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kd cost                      today, this month, and this month by member
  kd cost --by model           by model
  kd cost --by day --since 2026-01-01
  kd cost --json | jq .month.usd

`by logins` is what the tokens of agent programs with a login of their own would
have cost with a key: a subscription covers them.")]
pub(crate) struct Cost {
    /// What to sum by
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Member)]
    pub(crate) by: By,
    /// From this day on, such as 2026-01-31 [default: the first of this month]
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
