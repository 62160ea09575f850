//! The result of one question of a batch: one line of a file of results.

use crate::event::Outcome;
use crate::formats::BATCH_RESULT;
use crate::usage::{Certainty, Usage};
use jiff::Timestamp;
use kd_eval::marks::Standing;
use serde::{Deserialize, Serialize};

/// How the questions of a batch are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Every member answers, the chair concludes.
    #[default]
    Ask,
    /// A fast and a rigorous member answer together.
    Think,
    /// A council plans, answers, reviews and votes.
    Deliberate,
}

impl Method {
    /// Returns the name of its command.
    pub fn word(self) -> &'static str {
        match self {
            Method::Ask => "ask",
            Method::Think => "think",
            Method::Deliberate => "deliberate",
        }
    }

    /// Returns the method with this name.
    pub fn of_word(word: &str) -> Option<Self> {
        [Method::Ask, Method::Think, Method::Deliberate]
            .into_iter()
            .find(|method| method.word() == word)
    }
}

/// How the job of a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// There is an answer.
    Answered,
    /// No attempt gave one.
    Failed,
}

/// A result: one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The version of the format.
    pub v: u32,
    /// The batch.
    pub batch: String,
    /// The id of the question.
    pub id: String,
    /// Its place in the file of questions, from 1.
    pub n: u64,
    /// The question, as it was asked.
    pub question: String,
    /// How it was asked.
    #[serde(rename = "as")]
    pub method: Method,
    /// How it ended.
    pub status: Status,
    /// The answer: the conclusion, the verdict, or the only member's answer; `None` if there are only the members'
    /// separate answers.
    pub answer: Option<String>,
    /// Whether the answer was cut, and by what: `length` (the token limit) or `repetition`; `None` if it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The member that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The members' answers, of `ask`; of `deliberate`, what each member stood for in the last count, if answers can be
    /// compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Said>,
    /// The verdict of a deliberation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The promise about the verdict from the marks of the person who asked, at the time of the verdict; or the
    /// reason why there is none. `None` if cached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warranty: Option<Standing>,
    /// How the last round ended; `None` if there was none.
    pub outcome: Option<Outcome>,
    /// The members that failed in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failed>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The thread.
    pub thread: Option<String>,
    /// Whether an earlier answer to the same question was used.
    pub cached: bool,
    /// How often it was asked for this line; 0 if cached.
    pub attempts: u32,
    /// The usage of the last attempt.
    pub usage: Spending,
    /// How long the last attempt took.
    pub seconds: f64,
    /// When the line was written.
    pub at: Timestamp,
}

/// A member's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The member.
    pub member: String,
    /// Its text.
    pub text: String,
    /// What cut it: `length` or `repetition`; `None` if it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// A member's failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The member.
    pub member: String,
    /// The kind, as in other output.
    pub kind: String,
    /// The description.
    pub message: String,
}

/// The decision of a deliberation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcome: `unanimous`, `majority`, `split` …
    pub outcome: String,
    /// The winning answer; `None` without a decision.
    pub winner: Option<String>,
    /// The agreement, 0 to 1.
    pub confidence: f64,
}

/// Tokens and money of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Tokens of the prompts; `None` if unknown.
    pub input_tokens: Option<u64>,
    /// Tokens of the answers; `None` if unknown.
    pub output_tokens: Option<u64>,
    /// US dollars; `None` if unknown.
    pub usd: Option<f64>,
    /// How exact that is.
    #[serde(default, skip_serializing_if = "Certainty::is_exact")]
    pub certainty: Certainty,
}

impl Default for Spending {
    /// Nothing was asked.
    fn default() -> Self {
        Self {
            input_tokens: Some(0),
            output_tokens: Some(0),
            usd: None,
            certainty: Certainty::default(),
        }
    }
}

impl Spending {
    /// Returns all tokens that are known.
    pub fn tokens(&self) -> u64 {
        let known = [self.input_tokens, self.output_tokens];
        known.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

impl From<&Usage> for Spending {
    fn from(usage: &Usage) -> Self {
        let known = |tokens| usage.counts_tokens().then_some(tokens);
        Self {
            input_tokens: known(usage.input_tokens),
            output_tokens: known(usage.output_tokens),
            usd: usage.cost_usd,
            // The price of a part is unknown.
            certainty: match usage.cost_usd.is_some() && usage.unpriced > 0 {
                true => usage.certainty.and(Certainty::AtLeast),
                false => usage.certainty,
            },
        }
    }
}

impl Row {
    /// Creates the line of a question without an answer.
    pub fn failed(method: Method, reason: impl Into<String>, at: Timestamp) -> Self {
        Self {
            v: BATCH_RESULT.version,
            batch: String::new(),
            id: String::new(),
            n: 0,
            question: String::new(),
            method,
            status: Status::Failed,
            answer: None,
            cut: None,
            by: None,
            answers: Vec::new(),
            verdict: None,
            warranty: None,
            outcome: None,
            failures: Vec::new(),
            reason: Some(reason.into()),
            thread: None,
            cached: false,
            attempts: 0,
            usage: Spending::default(),
            seconds: 0.0,
            at,
        }
    }

    /// Returns the line of the same question at another place, answered by this one.
    #[must_use]
    pub fn for_another(&self, batch: &str, id: &str, n: u64, at: Timestamp) -> Self {
        Self {
            batch: batch.to_owned(),
            id: id.to_owned(),
            n,
            cached: true,
            // It was by the marks of that time.
            warranty: None,
            attempts: 0,
            usage: Spending {
                usd: self.usage.usd.map(|_| 0.0),
                ..Spending::default()
            },
            seconds: 0.0,
            at,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_nobody_counted_are_unknown() {
        let spent = |input_tokens, output_tokens| {
            Spending::from(&Usage {
                input_tokens,
                output_tokens,
                ..Usage::default()
            })
        };
        let unknown = serde_json::json!(spent(0, 0));
        assert!(unknown["input_tokens"].is_null() && unknown["output_tokens"].is_null());
        assert_eq!(spent(3, 0).output_tokens, Some(0));
        assert_eq!(Spending::default().tokens(), 0);
        let known_in_part = Usage {
            cost_usd: Some(0.5),
            unpriced: 1,
            ..Usage::default()
        };
        assert_eq!(Spending::from(&known_in_part).certainty, Certainty::AtLeast);
        let old = serde_json::json!({"input_tokens": 3, "output_tokens": 4, "usd": null});
        let old: Spending = serde_json::from_value(old).expect("an older line");
        assert_eq!(old.tokens(), 7);
    }
}
