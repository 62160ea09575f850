//! The reason why a turn gave no complete answer.

use crate::usage::Certainty;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The kinds of failure. Exhaustive on purpose: every front end and rule can handle all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The program, model or endpoint does not exist.
    Missing,
    /// The key or login is missing, wrong or lacks permission.
    Auth,
    /// Too many requests (HTTP 429).
    RateLimit,
    /// The service is up but cannot accept work now (HTTP 500, 502, 503, 529).
    Overloaded,
    /// Timed out: until the first response, between two, or in total.
    Timeout,
    /// The answer could not be parsed, or was truncated.
    Decode,
    /// The prompt does not fit, or the request is malformed (HTTP 400, 404, 413, 422).
    Invalid,
    /// The model or the provider declined to answer.
    Refused,
    /// The turn was stopped.
    Cancelled,
    /// The connection or process broke.
    Crashed,
    /// A limit of the run prevented the request: it was not sent.
    Limit,
}

impl FailureKind {
    /// Returns the kind as one word, for logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureKind::Missing => "missing",
            FailureKind::Auth => "auth",
            FailureKind::RateLimit => "rate_limit",
            FailureKind::Overloaded => "overloaded",
            FailureKind::Timeout => "timeout",
            FailureKind::Decode => "decode",
            FailureKind::Invalid => "invalid",
            FailureKind::Refused => "refused",
            FailureKind::Cancelled => "cancelled",
            FailureKind::Crashed => "crashed",
            FailureKind::Limit => "limit",
        }
    }
}

/// The reason why a turn gave no complete answer: the kind for rules, the message for users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// A one-sentence description without keys or secrets.
    pub message: String,
    /// Advice to the user, if it is more specific than [`Failure::hint`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Time that the service asked to wait before the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The usage of the turn; `None` if not reported. Boxed: usually `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Box<Used>>,
}

/// The usage of a turn without a complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// Requests sent; 0 if none was.
    pub requests: u64,
    /// Tokens, price and retries of all of them.
    #[serde(flatten)]
    pub usage: Usage,
}

impl Failure {
    /// Returns whether the call may have used tokens that were not reported: it had started, and ended without figures.
    pub fn is_uncounted(&self) -> bool {
        let under_way = matches!(
            self.kind,
            FailureKind::Cancelled
                | FailureKind::Timeout
                | FailureKind::Crashed
                | FailureKind::Decode
        );
        under_way && self.used.is_none()
    }

    /// Creates a failure of a kind with a message.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            advice: None,
            retry_after: None,
            used: None,
        }
    }

    /// Adds specific advice.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Adds the usage.
    #[must_use]
    pub fn after(mut self, usage: Option<&Usage>) -> Self {
        self.used = usage.map(|usage| {
            Box::new(Used {
                requests: usage.repeats + 1,
                usage: *usage,
            })
        });
        self
    }

    /// Marks the failure as cut off before its usage was reported.
    #[must_use]
    pub fn uncounted(self) -> Self {
        self.after(Some(&Usage {
            certainty: Certainty::AtLeast,
            ..Usage::default()
        }))
    }

    /// Returns whether retrying unchanged may help.
    pub fn retryable(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::RateLimit
                | FailureKind::Overloaded
                | FailureKind::Decode
                | FailureKind::Crashed
        )
    }

    /// Returns the message followed by the advice, for readers of a single text such as an agent.
    pub fn with_advice(&self) -> String {
        match &self.advice {
            Some(advice) => format!("{}; {advice}", self.message),
            None => self.message.clone(),
        }
    }

    /// Returns advice for the user.
    pub fn hint(&self) -> &str {
        if let Some(advice) = &self.advice {
            return advice;
        }
        match self.kind {
            FailureKind::Missing => {
                "install it, or remove the member from `council.members`; `kd init` lists what is installed"
            }
            FailureKind::Auth => "check the key: `kd config show --origin` shows where it is read",
            FailureKind::RateLimit => {
                "wait, ask fewer members at once, or set `providers.<name>.requests_per_minute`"
            }
            FailureKind::Overloaded => "the service is busy: try again later",
            FailureKind::Timeout => "raise `council.timeout`, or ask a shorter question",
            FailureKind::Decode => "the answer was not in the expected form: try again",
            FailureKind::Invalid => "check the model's name and the length of the thread",
            FailureKind::Refused => "rephrase the question, or ask another model",
            FailureKind::Cancelled => "ask again with `--continue`",
            FailureKind::Crashed => {
                "try again; if it persists, check the endpoint or the program itself"
            }
            FailureKind::Limit => "raise the limit, or ask fewer members",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
