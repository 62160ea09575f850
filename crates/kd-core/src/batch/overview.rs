//! A batch at a glance, for monitoring: its state, pace, spending and failures.

use crate::usage::Certainty;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// A worker that does not serve a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Its unique name.
    pub worker: String,
    /// The reason.
    pub reason: String,
}

/// A batch at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// Its id.
    pub id: String,
    /// How questions are asked.
    #[serde(rename = "as")]
    pub method: String,
    /// The file of questions.
    pub questions: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether a process runs it now.
    pub running_now: bool,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Its questions by state: `waiting`, `running`, `answered`, `failed`, `cancelled`.
    pub states: BTreeMap<&'static str, u64>,
    /// Those that an earlier answer to the same question answered; also counted as answered.
    pub cached: u64,
    /// Requests to models.
    pub calls: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
    /// How exact tokens and money are.
    pub certainty: Certainty,
    /// How long its runs took; in a fleet, how long its workers took together.
    pub seconds: f64,
    /// Questions asked to their end per second, as observed; `None` if that is unknown.
    pub per_second: Option<f64>,
    /// Whether a limit has refused a request.
    pub limited: bool,
    /// Failed questions, by the kind of the first failure of a member; `other` without one.
    pub failures: BTreeMap<String, u64>,
    /// The first failed questions, with their reasons.
    pub dead: Vec<Dead>,
    /// The workers of a fleet that do not serve it.
    pub refusals: Vec<Refusal>,
    /// Requests in batches at providers.
    pub at_providers: u64,
}

/// A question that failed for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dead {
    /// Its id.
    pub id: String,
    /// Its place, from 1.
    pub n: u64,
    /// How often it was asked.
    pub attempts: u32,
    /// Why it failed.
    pub reason: String,
}

/// A member that failed in questions that others answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberFailures {
    /// The member.
    pub member: String,
    /// The number of answered questions in which it failed.
    pub questions: u64,
    /// The failure in one of them.
    pub reason: String,
}

impl Overview {
    /// Returns the number of questions.
    pub fn total(&self) -> u64 {
        self.states.values().sum()
    }

    /// Returns the number of questions in a state.
    pub fn state(&self, name: &str) -> u64 {
        self.states.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of questions that are not over.
    pub fn left(&self) -> u64 {
        self.state("waiting") + self.state("running")
    }

    /// Returns questions asked to their end per second, as observed, else over all its runs; `None` before the first.
    pub fn rate(&self) -> Option<f64> {
        if self.per_second.is_some() {
            return self.per_second.filter(|rate| *rate > 0.0);
        }
        let ended = (self.state("answered") + self.state("failed")).saturating_sub(self.cached);
        (ended > 0 && self.seconds > 0.0).then(|| ended as f64 / self.seconds)
    }

    /// Returns the seconds until its end at that rate; `None` if it is over, not running, or the rate is unknown.
    pub fn seconds_left(&self) -> Option<f64> {
        let left = self.left();
        let rate = self.rate().filter(|_| left > 0 && self.running_now)?;
        Some(left as f64 / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_what_was_asked_and_the_end_needs_a_run() {
        let mut batch = Overview {
            states: BTreeMap::from([("answered", 60), ("failed", 10), ("waiting", 30)]),
            cached: 20,
            seconds: 25.0,
            ..Overview::default()
        };
        assert_eq!(
            (batch.total(), batch.left(), batch.rate()),
            (100, 30, Some(2.0))
        );
        assert_eq!(batch.seconds_left(), None);
        batch.running_now = true;
        assert_eq!(batch.seconds_left(), Some(15.0));
        batch.seconds = 0.0;
        assert_eq!((batch.rate(), batch.seconds_left()), (None, None));
        batch.per_second = Some(6.0);
        assert_eq!(batch.seconds_left(), Some(5.0));
        batch.per_second = Some(0.0);
        assert_eq!(batch.seconds_left(), None);
    }
}
