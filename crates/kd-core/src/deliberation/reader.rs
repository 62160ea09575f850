//! Reads the replies of a deliberation, each once, and records the result, so that a later version of
//! [`kd_reading`] decides the record the same way.

use super::answer::AnswerKind;
use super::plan::Plan;
use super::standins::StandIns;
use crate::hex::hex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

/// The reading of one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The kind of item that was parsed: `answer`, `ballot`, `object`, …
    pub sought: String,
    /// The first 16 hexadecimal digits of the SHA-256 of the request and the text.
    pub of: String,
    /// The result; `null` if the text is exactly the requested JSON.
    pub found: Value,
}

/// A recorded reading that the current reader would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reread {
    /// The kind of item that was parsed.
    pub sought: String,
    /// The recorded result.
    pub recorded: Value,
    /// The current result.
    pub today: Value,
}

/// Reads each text once. Recorded readings take precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    recorded: BTreeMap<(String, String), Value>,
    known: RefCell<BTreeMap<(String, String), Value>>,
    fresh: RefCell<Vec<Reading>>,
    reread: RefCell<Vec<Reread>>,
}

impl Reader {
    /// Creates a reader that returns recorded results.
    pub(super) fn recorded(readings: impl IntoIterator<Item = Reading>) -> Self {
        Self {
            recorded: readings
                .into_iter()
                .map(|r| ((r.sought, r.of), r.found))
                .collect(),
            ..Self::default()
        }
    }

    /// Reads a text. `asked` is everything else that the result depends on.
    pub(super) fn read<T: Serialize + DeserializeOwned>(
        &self,
        sought: &str,
        asked: &str,
        text: &str,
        find: impl FnOnce() -> T,
    ) -> T {
        self.read_that(sought, asked, text, |_| true, find)
    }

    /// Reads a text. A recorded result that is not `possible` does not count: a record may state anything.
    pub(super) fn read_that<T: Serialize + DeserializeOwned>(
        &self,
        sought: &str,
        asked: &str,
        text: &str,
        possible: impl Fn(&T) -> bool,
        find: impl FnOnce() -> T,
    ) -> T {
        let key = (sought.to_owned(), digest(sought, asked, text));
        if let Some(found) = self.known.borrow().get(&key)
            && let Ok(found) = T::deserialize(found)
        {
            return found;
        }
        let mut now = find();
        let mut found = serde_json::to_value(&now).unwrap_or_default();
        if let Some(then) = self.recorded.get(&key)
            && *then != found
            && let Ok(said) = T::deserialize(then)
            && possible(&said)
        {
            // Points are kept in billionths: a record may have more digits.
            if serde_json::to_value(&said).ok().as_ref() != Some(&found) {
                self.reread.borrow_mut().push(Reread {
                    sought: key.0.clone(),
                    recorded: then.clone(),
                    today: found,
                });
            }
            (now, found) = (said, then.clone());
        }
        self.fresh.borrow_mut().push(Reading {
            sought: key.0.clone(),
            of: key.1.clone(),
            found: found.clone(),
        });
        self.known.borrow_mut().insert(key, found);
        now
    }

    /// Returns the readings since the last call.
    pub(super) fn take(&self) -> Vec<Reading> {
        self.fresh.take()
    }

    /// Returns the replies that the current reader reads differently from the record.
    pub(super) fn reread(&self) -> Vec<Reread> {
        self.reread.borrow().clone()
    }
}

/// Returns the first 16 hexadecimal digits of a digest of the texts, each prefixed with its length.
fn digest(sought: &str, asked: &str, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [sought, asked, text] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize()[..8])
}

/// A running plan: the plan, the reader of its replies, and the stand-ins for names.
#[derive(Clone, Debug)]
pub struct Run {
    plan: Plan,
    pub(super) reader: Reader,
    pub(super) stand_ins: StandIns,
}

impl Run {
    pub(super) fn new(plan: Plan, reader: Reader) -> Self {
        Self {
            stand_ins: StandIns::new(plan.seed, &plan.question),
            plan,
            reader,
        }
    }

    /// Takes the kind suggested by the form of the question.
    pub(super) fn take_guess(&mut self) -> Option<AnswerKind> {
        self.plan.guess.take()
    }

    /// Changes how answers are compared from here on.
    pub(super) fn settle(&mut self, answers: &AnswerKind) {
        self.plan.judged = answers.is_comparable();
        self.plan.answers = answers.clone();
    }
}

impl Deref for Run {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}
