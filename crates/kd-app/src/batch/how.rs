//! How every question of a batch is asked.

use crate::request::Question;
use crate::{Ask, Deliberate, Think};
use kd_core::batch::Method;

/// How every question of a batch is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum How {
    /// Every member answers, the chair concludes.
    Ask(Ask),
    /// A fast and a rigorous member answer together.
    Think(Think),
    /// A council plans, answers, reviews and votes, as the settings say.
    Deliberate(Deliberate),
}

impl How {
    /// The method.
    pub fn method(&self) -> Method {
        match self {
            How::Ask(_) => Method::Ask,
            How::Think(_) => Method::Think,
            How::Deliberate(_) => Method::Deliberate,
        }
    }

    /// Whether secrets are sent as they are.
    pub(super) fn allows_secrets(&self) -> bool {
        match self {
            How::Ask(ask) => ask.terms.allow_secrets,
            How::Think(think) => think.terms.allow_secrets,
            How::Deliberate(_) => false,
        }
    }
}

/// Returns the question of a job for the library: no name in it selects a member.
pub(super) fn plain(text: &str) -> Question {
    Question {
        text: text.to_owned(),
        ..Question::default()
    }
}
