//! `kd ask`: put a question to the council.

use super::values;
use clap::Args;
use kd_core::config::LimitsConfig;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd ask \"Should a small team start with SQLite or PostgreSQL?\"
  kd ask @claude What did you mean by that?      one member only (also --to claude)
  git diff | kd ask \"Is this change safe?\"       the pipe is context below the question
  kd ask - < question.md                         the whole question from a file
  kd ask --continue \"And with ten users?\"        go on in the current thread
  kd ask -o answer.md \"Compare A and B\"          also keep the answers as Markdown
  kd ask --json \"Yes or no?\" | jq -r '.answers[].text'

A name after @ in the question picks members; write it in `backticks` to mean only the letters.";

/// Put a question to the council
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct Ask {
    /// The question; `-` reads it from stdin. What is piped in stands below it as context
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,

    /// Ask only these members
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) to: Vec<String>,
    /// Who sits in the council this time, in order
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    /// Leave out the chair's conclusion
    #[arg(long, help_heading = "Council")]
    pub(crate) no_conclude: bool,
    /// Let agent programs change files this time (else they may only read)
    #[arg(short, long, help_heading = "Council")]
    pub(crate) writable: bool,
    /// Stop a member that takes longer [seconds, or 90s, 2m, 1h]
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,

    /// Ask in the background: the round goes on when this terminal is closed (see `kd council watch`)
    #[arg(long = "async", conflicts_with = "output", help_heading = "Council")]
    pub(crate) background: bool,
    /// Whom exactly the question is for, whatever it mentions: how a round in the background is told
    #[arg(long, value_name = "NAMES", hide = true)]
    pub(crate) address: Option<String>,

    #[command(flatten)]
    pub(crate) going: Going,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) spending: Spending,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// In which thread.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Going {
    /// Go on in the current thread, or in the one named
    #[arg(short = 'c', long = "continue", value_name = "ID", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with = "thread", help_heading = "Thread")]
    pub(crate) resume: Option<String>,
    /// Go on in this thread (a unique beginning of its id will do)
    #[arg(long, value_name = "ID", help_heading = "Thread")]
    pub(crate) thread: Option<String>,
}

impl Going {
    /// The thread to go on in: its id, or nothing for the current one.
    pub(crate) fn wanted(&self) -> Option<&str> {
        self.thread.as_deref().or(self.resume.as_deref())
    }
}

/// Which model, and how it picks its words.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Model {
    /// The model for every member that names none; for the built-in one a key of `kd model list` or a GGUF file
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// 0 always takes the likeliest word; 2 is the usual upper end
    #[arg(long, value_name = "0..2", value_parser = values::temperature, help_heading = "Model")]
    pub(crate) temperature: Option<f32>,
    /// The most tokens of one answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Model")]
    pub(crate) max_tokens: Option<u32>,
    /// Fix the chance, where the model can
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub(crate) seed: Option<u64>,
    /// Fetch nothing: use only models that are here already
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue, help_heading = "Model")]
    pub(crate) offline: bool,
}

/// What the run may spend, retries included.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Spending {
    /// Maximum cost in US dollars; needs known prices [default: limits.usd]
    #[arg(long, value_name = "USD", value_parser = values::usd)]
    pub(crate) max_usd: Option<f64>,
    /// Maximum number of requests to models [default: limits.calls]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Maximum tokens of all prompts and answers [default: limits.tokens]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_total_tokens: Option<u64>,
}

impl Spending {
    /// Lays the flags over the settings.
    pub(crate) fn lay_over(&self, limits: &mut LimitsConfig) {
        limits.usd = self.max_usd.or(limits.usd);
        limits.calls = self.max_calls.or(limits.calls);
        limits.tokens = self.max_total_tokens.or(limits.tokens);
    }
}

/// How the answers are shown.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Labelled lines, nothing repainted (the way of a pipe; also by ACCESSIBLE=1 or TERM=dumb)
    #[arg(long)]
    pub(crate) plain: bool,
    /// One JSON object at the end
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Every event as one line of JSON, as it happens
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// No progress, notices or closing line on stderr; errors stay
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Also write the finished answers to a file: Markdown, or JSON with --json or a name that ends in .json
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Output {
    /// Whether a program reads it.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.jsonl
    }
}
