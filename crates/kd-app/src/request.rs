//! The request of a host: the question, the members, the thread, the limits.

use crate::output::OutputSchema;
use kd_core::config::{Config, LimitsConfig};
use kd_core::media::Attachment;
use kd_core::seating::SeatRequest;

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The question with its context.
    pub text: String,
    /// The part without context: only here a mention addresses a member.
    pub asked: String,
    /// Pictures and documents that the text names.
    pub media: Vec<Attachment>,
}

impl Question {
    /// A question without context.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            asked: text.clone(),
            text,
            media: Vec::new(),
        }
    }
}

impl From<&str> for Question {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// The thread for a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ThreadChoice {
    /// A new one.
    #[default]
    New,
    /// The current one of the branch.
    Current,
    /// The one with this ID, or with this beginning of an ID, because the user named it: that seats its members.
    Named(String),
    /// The thread whose ID is or begins with this text, because a program named it. Members that only the
    /// folder seats are left out.
    Given(String),
    /// A new one that shares the messages of the thread with this ID, or with this beginning of an ID, which the user named;
    /// of the current one if it is empty.
    Fork(String),
}

impl ThreadChoice {
    /// The ID; empty for the current thread, `None` for a new one.
    pub(crate) fn wanted(&self) -> Option<&str> {
        match self {
            ThreadChoice::New => None,
            ThreadChoice::Current => Some(""),
            ThreadChoice::Named(id) | ThreadChoice::Given(id) | ThreadChoice::Fork(id) => Some(id),
        }
    }
}

impl ThreadChoice {
    /// Returns whether the question is asked in a fork.
    pub(crate) fn forks(&self) -> bool {
        matches!(self, ThreadChoice::Fork(_))
    }

    /// Returns the name of the thread as the user typed it.
    pub(crate) fn by_user(&self) -> Option<&str> {
        match self {
            ThreadChoice::Given(_) => None,
            choice => choice.wanted(),
        }
    }
}

/// Spending limits of one question, retries included. `None` leaves a limit to the settings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// US dollars; the prices of all members must be known.
    pub usd: Option<f64>,
    /// Requests to models.
    pub calls: Option<u64>,
    /// Tokens of all prompts and answers.
    pub tokens: Option<u64>,
}

impl Limits {
    /// Overrides the limits in the settings with these limits.
    pub fn lay_over(&self, limits: &mut LimitsConfig) {
        limits.usd = self.usd.or(limits.usd);
        limits.calls = self.calls.or(limits.calls);
        limits.tokens = self.tokens.or(limits.tokens);
    }
}

/// Options that every kind of question has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The spending limits.
    pub limits: Limits,
    /// Ask only members that answer on this machine.
    pub private: bool,
    /// Send secrets as they are; otherwise they are masked.
    pub allow_secrets: bool,
    /// Download nothing.
    pub offline: bool,
    /// The JSON schema into which the answer is put too.
    pub output: Option<OutputSchema>,
}

impl Terms {
    /// Lays the terms over the settings.
    pub fn lay_over(&self, config: &mut Config) {
        self.limits.lay_over(&mut config.limits);
        config.council.private |= self.private;
    }
}

/// A question to the council.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// The members and how they are asked.
    pub seats: SeatRequest,
    /// Names of the members to ask; empty means everyone, or those that the question mentions.
    pub to: Vec<String>,
    /// The address, whatever the question mentions.
    pub address: Option<String>,
    /// The thread.
    pub thread: ThreadChoice,
    /// Leave out the chair's conclusion.
    pub no_conclusion: bool,
    /// Limits, privacy, downloads.
    pub terms: Terms,
}
