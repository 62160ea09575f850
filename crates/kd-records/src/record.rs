//! One answer of one model to one question, in the form that all formats share.

use crate::gold::Gold;

/// What to read.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The metric or scorer that decides which answers are right; unset means the first of each file.
    pub metric: Option<String>,
    /// Right answers for records without scores.
    pub gold: Option<Gold>,
}

/// Recorded answers cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct Unread {
    /// The file.
    pub path: String,
    /// Why.
    pub what: String,
    /// Advice to the user.
    pub hint: String,
}

impl Unread {
    pub(crate) fn new(path: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            what: what.into(),
            hint: hint.into(),
        }
    }
}

/// A tool's judgment of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Score {
    /// From 0 (wrong) to 1 (right), or on another scale.
    Number(f64),
    /// Nothing: the question failed, or there is no such metric.
    None,
    /// The file of right answers does not have the question.
    NoGold,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The model.
    pub model: String,
    /// The task or data set; empty if unknown.
    pub task: String,
    /// The key that two equal questions of a task share.
    pub key: String,
    /// The id of the question, for people.
    pub id: String,
    /// The number of the answer, from 1, if the model was asked several times.
    pub run: u32,
    /// The question.
    pub input: String,
    /// Whether the same key with another question is another question.
    pub is_checked: bool,
    /// The right answers.
    pub gold: Vec<String>,
    /// The number of possible answers.
    pub options: Option<u64>,
    /// The answer, as the tool extracted it; `None` if it is unknown.
    pub said: Option<String>,
    /// The score.
    pub score: Score,
    /// The cost of the answer in US dollars.
    pub cost: Option<f64>,
}
