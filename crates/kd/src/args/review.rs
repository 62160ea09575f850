//! `kd review`: report findings about a change, with the likelihood that each is real.

use super::ask::{Privacy, Spending};
use super::values;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd review                          this branch and uncommitted changes, against its base
  kd review --staged                 what the next commit would contain
  kd review --branch develop         against another base
  kd review v1.2..HEAD               between two commits
  git format-patch -1 --stdout | kd review --pr -
  kd review --dry-run                calls, tokens and price, without asking
  kd review --format sarif -o review.sarif
  kd review --fail-on 'P>=0.7' --fail-on blocker
  kd review mark 3f9a accepted       from 5 marks on, they correct P(real)
  kd review show --all               the newest review again, and what only one member saw

P(real) is the share of similar findings that were real. It was measured on recorded reviews of 50 public pull
requests by 12 products, whose known faults are incomplete: a lower bound, for other code than yours. From 5 marks
(kd review mark) of findings with the same agreement on, such as 2 of 3 members, your marks correct that table, which
weighs as much as 10 marks.

--fail-on takes P>=SHARE, a severity (that or worse), or both with a comma, and then both must hold: blocker,P>=0.5.
Repeat the option if one condition is enough. Settings come from your own file and from the base commit, never from
the change. `kd council review` asks for a review in prose.

Exit codes: 0 reviewed; 2 wrong options, or nothing to review; 3 no members; 4 a limit left something out; 5 a member
failed or did not vote; 6 all members failed; 10 a finding meets --fail-on.";

/// Review a change: findings with severity, votes and the probability that each is real
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Review {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Two commits, branches or tags: what the second changes [default: this branch and uncommitted changes]
    #[arg(value_name = "FROM..TO", conflicts_with_all = ["staged", "branch", "pr"])]
    pub(crate) range: Option<String>,
    /// Review what is staged
    #[arg(long, conflicts_with_all = ["branch", "pr"], help_heading = "Change")]
    pub(crate) staged: bool,
    /// Review this branch and uncommitted changes, against BASE [default: the default branch of origin, main or master]
    #[arg(long, value_name = "BASE", num_args = 0..=1, default_missing_value = "", conflicts_with = "pr",
          help_heading = "Change")]
    pub(crate) branch: Option<String>,
    /// Review a unified diff or a mail with one; `-` reads stdin
    #[arg(long, value_name = "FILE", help_heading = "Change")]
    pub(crate) pr: Option<PathBuf>,

    /// The members [default: council.review_members, else council.members]
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    /// Maximum time for one answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue, help_heading = "Council")]
    pub(crate) offline: bool,
    /// Print what would be asked and what it costs, without asking
    #[arg(long, help_heading = "Council")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) spending: Spending,
    #[command(flatten)]
    pub(crate) privacy: Privacy,

    /// Exit with code 10 if a finding matches; may be repeated
    #[arg(long, value_name = "CONDITION", help_heading = "Output")]
    pub(crate) fail_on: Vec<String>,
    /// Print only the report and errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

impl Review {
    /// Whether a program reads what is printed.
    pub(crate) fn is_json(&self) -> bool {
        let format = match &self.command {
            Some(Command::Show(args)) => args.shown.format,
            Some(Command::Marks(args)) => return args.json,
            Some(Command::Mark(_)) => return false,
            None => self.shown.format,
        };
        !matches!(format, Format::Terminal | Format::Markdown)
    }
}

/// How a report is shown.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Shown {
    /// Format of the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) format: Format,
    /// Write the report to a file, in the format of --format, or of its name: .md, .json or .sarif
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Let -o replace a file that is no earlier report
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Also show findings that only one member saw
    #[arg(long)]
    pub(crate) all: bool,
}

/// `--format`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, with the code
    #[default]
    Terminal,
    /// One document
    Markdown,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
    /// The whole report as one JSON object
    Json,
    /// Every event as one line of JSON as it happens, then the report
    JsonlEvents,
    /// A review for `gh api repos/OWNER/REPO/pulls/N/reviews`
    Github,
    /// Discussions for `glab api projects/ID/merge_requests/N/discussions`
    Gitlab,
}

/// The commands below `kd review`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Mark(Mark),
    Marks(Marks),
    Show(Show),
}

/// Mark a finding as accepted or dismissed
///
/// Marks are stored in your data folder, per repository. From 5 marks of the same agreement on, they correct P(real).
#[derive(Debug, Args)]
pub(crate) struct Mark {
    /// The finding's id or a unique prefix
    pub(crate) id: String,
    /// Your verdict
    #[arg(value_enum)]
    pub(crate) verdict: Verdict,
    /// The review [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
}

/// What the user thinks of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    /// A real defect
    Accepted,
    /// Not a defect
    Dismissed,
}

/// List the marks of this repository
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Marks {
    #[command(subcommand)]
    pub(crate) command: Option<MarksCommand>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// The commands below `kd review marks`.
#[derive(Debug, Subcommand)]
pub(crate) enum MarksCommand {
    /// Forget all marks of this repository
    Forget,
}

/// Show a review again
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The review's thread (its id or a unique prefix), or a file made with --format json [default: the newest review]
    #[arg(value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    #[command(flatten)]
    pub(crate) shown: Shown,
}
