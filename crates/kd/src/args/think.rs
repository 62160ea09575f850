//! `kd think`: a fast and a rigorous member answer together.

use super::ask::{self, Attach, Form, Going, Model, Output, Privacy, Spending, Tools};
use super::values;
use clap::Args;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  kd think \"Is a cyclic universe compatible with the second law?\"
  kd think --fast haiku --rigorous opus \"Review this plan\" < plan.md
  kd think -m claude,codex \"…\"           the fast member, then the rigorous one
  kd think --council \"…\"                 also show the debate
  kd think --max-messages 2 --within 1m \"…\"
  kd think --json \"…\" | jq -r .think.answer
  kd show --council                      show the debate of the newest turn afterwards

Text outside <council> tags is shown at once; text inside them goes only to the other member. The
debate ends with a reply without a tag or at a limit; then the answer follows.";

/// Have a fast and a rigorous model debate until they agree
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = false)]
pub(crate) struct Think {
    /// The question; `-` reads it from stdin. Piped input is appended as context
    #[arg(value_name = "QUESTION")]
    pub(crate) question: Vec<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// The members: first the fast one, then the rigorous one, then the arbiter
    #[arg(
        short,
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with_all = ["fast", "rigorous", "arbiter"],
        help_heading = "Members"
    )]
    pub(crate) members: Vec<String>,
    /// The fast member; answers first [default: think.fast; if unset, the first member]
    #[arg(long, value_name = "NAME", help_heading = "Members")]
    pub(crate) fast: Option<String>,
    /// The rigorous member; checks the answer [default: think.rigorous; if unset, the second member]
    #[arg(long, value_name = "NAME", help_heading = "Members")]
    pub(crate) rigorous: Option<String>,
    /// The member that answers if they do not agree [default: think.arbiter; if unset, the rigorous member]
    #[arg(long, value_name = "NAME", help_heading = "Members")]
    pub(crate) arbiter: Option<String>,
    #[command(flatten)]
    pub(crate) tools: Tools,
    /// Maximum time for one reply, such as 90s, 2m or 1h [default: council.timeout]
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Members")]
    pub(crate) timeout: Option<Duration>,

    /// Maximum number of messages between the two [default: 6]
    #[arg(long, value_name = "N", value_parser = values::whole::<u32>(1..=100), allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) max_messages: Option<u32>,
    /// Have the other member check answers given before this message [default: 1 for the built-in model, 0 for others]
    #[arg(long, value_name = "N", value_parser = values::whole::<u32>(0..=100), allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) min_messages: Option<u32>,
    /// Maximum tokens of all prompts and replies together
    #[arg(long, value_name = "TOKENS", value_parser = values::whole::<u64>(256..), allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) budget: Option<u64>,
    /// Stop the debate and ask for the answer after this time, such as 90s, 2m or 1h
    #[arg(long, value_name = "TIME", value_parser = values::duration, allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) within: Option<Duration>,

    #[command(flatten)]
    pub(crate) going: Going,

    #[command(flatten)]
    pub(crate) model: Model,

    #[command(flatten)]
    pub(crate) spending: Spending,

    #[command(flatten)]
    pub(crate) privacy: Privacy,

    /// Also show the debate between the two members
    #[arg(long, help_heading = "Output")]
    pub(crate) council: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) form: Form,
}

impl Think {
    /// The request, for the library.
    pub(crate) fn request(&self) -> kd_app::Think {
        let part = |own: &Option<String>, at: usize| {
            let member = self.members.get(at);
            own.as_ref().or(member).cloned()
        };
        kd_app::Think {
            fast: part(&self.fast, 0),
            rigorous: part(&self.rigorous, 1),
            arbiter: part(&self.arbiter, 2),
            all: kd_app::SeatRequest {
                tools: self.tools.request(),
                ..self.model.request(self.timeout)
            },
            messages_max: self.max_messages,
            messages_min: self.min_messages,
            tokens_max: self.budget,
            secs_max: self.within.map(|t| t.as_secs()),
            thread: self.going.choice(),
            terms: ask::terms(&self.spending, self.privacy, self.model.offline),
        }
    }
}
