//! `kd ask`: ask the council a question.

use super::values;
use clap::{Args, ValueEnum};
use kd_app::{Limits, SeatRequest, Terms, ThreadChoice};
use kd_core::config::ToolUse;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd ask \"Should a small team start with SQLite or PostgreSQL?\"
  kd ask @claude What did you mean by that?      ask one member (also --to claude)
  git diff | kd ask \"Is this change safe?\"       piped input is appended as context
  kd ask \"What is wrong in @src/main.rs?\"        attach a file (also --attach src/main.rs)
  kd ask - < question.md                         read the question from a file
  kd ask --continue \"And with ten users?\"        continue the current thread
  kd ask --fork \"And with a hundred?\"           the same in a fork; the thread stays as it is
  kd ask -o answer.md \"Compare A and B\"          also save the answers as Markdown
  kd ask --json \"Yes or no?\" | jq -r '.answers[].text'

@NAME of a member anywhere in the question asks only that member; @PATH of a text file that
exists attaches it. In code, quotes, paths and addresses, and before any other word, @ is
plain text.";

/// Ask the council a question
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct Ask {
    /// The question; `-` reads it from stdin. Piped input is appended as context
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// Ask only these of the thread's members, as @NAME in the question does
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) to: Vec<String>,
    /// The members of the thread, in this order [default: council.members]
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Council"
    )]
    pub(crate) members: Vec<String>,
    /// Skip the chair's conclusion
    #[arg(long, help_heading = "Council")]
    pub(crate) no_conclude: bool,
    /// Let agent programs change files this time; by default they only read
    #[arg(short, long, help_heading = "Council")]
    pub(crate) writable: bool,
    #[command(flatten)]
    pub(crate) tools: Tools,
    /// Maximum time for one member's answer, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Council")]
    pub(crate) timeout: Option<Duration>,

    /// Ask in the background; follow with `kd council watch`
    #[arg(long = "async", conflicts_with_all = ["output", "output_schema"], help_heading = "Council")]
    pub(crate) background: bool,
    /// The exact addressees, regardless of mentions; set for rounds in the background
    #[arg(long, value_name = "NAMES", hide = true)]
    pub(crate) address: Option<String>,

    #[command(flatten)]
    pub(crate) going: Going,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) spending: Spending,

    #[command(flatten)]
    pub(crate) privacy: Privacy,

    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) form: Form,
}

impl Ask {
    /// Returns the terms of the question, for the library.
    pub(crate) fn request(&self) -> kd_app::Ask {
        kd_app::Ask {
            seats: SeatRequest {
                members: self.members.clone(),
                // Without the flag, the configuration decides.
                writable: self.writable.then_some(true),
                tools: self.tools.request(),
                ..self.model.request(self.timeout)
            },
            to: self.to.clone(),
            address: self.address.clone(),
            // The command that continues in the background names the thread, not the user.
            thread: match (self.going.choice(), &self.address) {
                (ThreadChoice::Named(id), Some(_)) => ThreadChoice::Given(id),
                (choice, _) => choice,
            },
            no_conclusion: self.no_conclude,
            terms: terms(&self.spending, self.privacy, self.model.offline),
        }
    }
}

/// The files of a question.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Attach {
    /// Attach this text file, picture or PDF, wherever it is; repeatable. @PATH in the question attaches a
    /// file below this folder
    #[arg(long = "attach", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// Tools of `kd` for members at services.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Tools {
    /// Tools of members at HTTP services: `read` for files below this folder, which are sent to their service, or
    /// `none` [default: agents.NAME.tools]
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        hide_possible_values = true,
        help_heading = "Council"
    )]
    pub(crate) tools: Option<Wanted>,
}

/// `--tools`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wanted {
    /// List, read and search files
    Read,
    /// No tools
    None,
}

impl Wanted {
    /// Returns the word of the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::None => "none",
        }
    }
}

impl Tools {
    /// Returns what all members at services may do, for the library.
    pub(crate) fn request(self) -> Option<ToolUse> {
        self.tools.map(|wanted| match wanted {
            Wanted::Read => ToolUse::Read,
            Wanted::None => ToolUse::None,
        })
    }
}

/// Limits, privacy and downloads of a question.
pub(crate) fn terms(spending: &Spending, privacy: Privacy, offline: bool) -> Terms {
    Terms {
        limits: Limits {
            usd: spending.max_usd,
            calls: spending.max_calls,
            tokens: spending.max_total_tokens,
        },
        private: privacy.private,
        allow_secrets: privacy.allow_secrets,
        offline,
        output: None,
    }
}

/// The thread of the question.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Going {
    /// Continue the current thread, or the one named
    #[arg(short = 'c', long = "continue", value_name = "ID", num_args = 0..=1, require_equals = true,
          default_missing_value = "", conflicts_with = "thread", help_heading = "Thread")]
    pub(crate) resume: Option<String>,
    /// Continue this thread; a unique prefix of its id is enough
    #[arg(
        long,
        visible_alias = "resume",
        value_name = "ID",
        help_heading = "Thread"
    )]
    pub(crate) thread: Option<String>,
    /// Ask in a fork of the current thread, or of the one named; that one stays as it is
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with_all = ["resume", "thread"], help_heading = "Thread")]
    pub(crate) fork: Option<String>,
}

impl Going {
    /// The thread to continue or to fork: its id, or an empty text for the current one.
    pub(crate) fn wanted(&self) -> Option<&str> {
        let continued = self.thread.as_deref().or(self.resume.as_deref());
        continued.or(self.fork.as_deref())
    }

    /// Returns the thread of the question, for the library.
    pub(crate) fn choice(&self) -> ThreadChoice {
        if let Some(id) = &self.fork {
            return ThreadChoice::Fork(id.clone());
        }
        match self.wanted() {
            None => ThreadChoice::New,
            Some("") => ThreadChoice::Current,
            Some(id) => ThreadChoice::Named(id.to_owned()),
        }
    }
}

/// The model and its sampling.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Model {
    /// Model for members that name none; for the built-in engine, a key of `kd model list` or a GGUF file
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// Sampling temperature; 0 is deterministic
    #[arg(long, value_name = "0..2", value_parser = values::temperature, allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) temperature: Option<f32>,
    /// Maximum tokens per answer
    #[arg(long, value_name = "N", value_parser = values::tokens, allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) max_tokens: Option<u32>,
    /// Random seed, where the model supports one
    #[arg(long, value_name = "N", value_parser = values::seed, allow_negative_numbers = true, help_heading = "Model")]
    pub(crate) seed: Option<u64>,
    /// Download nothing: use only models already on this machine
    #[arg(long, env = "KD_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
          action = clap::ArgAction::SetTrue, help_heading = "Model")]
    pub(crate) offline: bool,
}

impl Model {
    /// Returns the options with which every member is asked, with this time limit.
    pub(crate) fn request(&self, timeout: Option<Duration>) -> SeatRequest {
        SeatRequest {
            model: self.model.clone(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed,
            timeout: timeout.map(|t| t.as_secs()),
            ..SeatRequest::default()
        }
    }
}

/// The spending limits of the run, retries included.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Spending {
    /// Maximum cost in US dollars; needs known prices [default: limits.usd]
    #[arg(long, value_name = "USD", value_parser = values::usd, allow_negative_numbers = true)]
    pub(crate) max_usd: Option<f64>,
    /// Maximum number of requests to models [default: limits.calls]
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true)]
    pub(crate) max_calls: Option<u64>,
    /// Maximum tokens of all prompts and answers together [default: limits.tokens]
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(1..), allow_negative_numbers = true)]
    pub(crate) max_total_tokens: Option<u64>,
}

/// The privacy of the question.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Privacy")]
pub(crate) struct Privacy {
    /// Send keys, tokens and passwords in the question as they are; by default they are masked
    #[arg(long)]
    pub(crate) allow_secrets: bool,
    /// Ask only members that run on this machine, now and later in this thread; others are refused
    #[arg(long)]
    pub(crate) private: bool,
}

/// The output of the answers.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print labeled lines as answers arrive, in a pipe too; also set by ACCESSIBLE=1 or TERM=dumb
    #[arg(long, visible_alias = "stream")]
    pub(crate) plain: bool,
    /// Print one JSON object at the end
    #[arg(long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Print every event as a line of JSON as it happens
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Print only answers and errors: no progress, notices or closing line
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Also write the answers to a file, in the format of its name: .md, .json or .html (the whole thread); with --json as JSON
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The form of the answer.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Form {
    /// Also put the answer into this JSON schema: a file, or the schema itself. In a pipe only the JSON is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<String>,
}

impl Output {
    /// Returns whether a program reads the output.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.jsonl
    }
}
