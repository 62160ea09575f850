//! The log of a batch: one JSON object per line. No question and no answer is part of it.

use crate::formats::BATCH_LOG;
use jiff::Timestamp;
use serde::Serialize;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogEvent {
    /// A run of the batch began.
    Begun,
    /// A question is asked.
    Started,
    /// A question is answered.
    Answered,
    /// A question failed for good.
    Failed,
    /// A question failed and is asked again.
    Retried,
    /// A question was interrupted; the attempt does not count.
    Unasked,
    /// A limit refused a request.
    Limit,
    /// Something happened at a provider: a batch was handed over or is over, or a warning.
    Provider,
    /// The run is over.
    Ended,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogLine {
    /// The version of the format.
    pub v: u32,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub event: LogEvent,
    /// The batch.
    pub batch: String,
    /// The id of the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its place in the file of questions, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// How often it was asked, this time included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The kinds of the members' failures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Why, or what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Tokens of prompts and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl LogLine {
    /// Creates a line without details.
    pub fn new(event: LogEvent, batch: &str, at: Timestamp) -> Self {
        Self {
            v: BATCH_LOG.version,
            at,
            event,
            batch: batch.to_owned(),
            id: None,
            n: None,
            attempt: None,
            thread: None,
            failures: Vec::new(),
            reason: None,
            seconds: None,
            tokens: None,
            usd: None,
        }
    }
}
