//! How the replies of a deliberation are read: each once, and noted, so that its record decides the same when a later
//! version of [`reading`](crate::reading) understands more.

use super::answer::AnswerKind;
use super::plan::Plan;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;

/// What was read in one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// What was looked for: `answer`, `ballot`, `object`, …
    pub sought: String,
    /// The first 16 hexadecimal digits of the SHA-256 of what was looked for and the text.
    pub of: String,
    /// What was found; `null` where the text is exactly the JSON asked for.
    pub found: Value,
}

/// A reading that today's reader does not agree with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reread {
    /// What was looked for.
    pub sought: String,
    /// What the record says was found.
    pub recorded: Value,
    /// What is found today.
    pub today: Value,
}

/// Reads texts, each once. Readings of a record stand in for its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    recorded: BTreeMap<(String, String), Value>,
    known: RefCell<BTreeMap<(String, String), Value>>,
    fresh: RefCell<Vec<Reading>>,
    reread: RefCell<Vec<Reread>>,
}

impl Reader {
    /// A reader that finds what a record says was found.
    pub(super) fn recorded(readings: impl IntoIterator<Item = Reading>) -> Self {
        Self {
            recorded: readings
                .into_iter()
                .map(|r| ((r.sought, r.of), r.found))
                .collect(),
            ..Self::default()
        }
    }

    /// What a text says. `asked` is all else that the result depends on.
    pub(super) fn read<T: Serialize + DeserializeOwned>(
        &self,
        sought: &str,
        asked: &str,
        text: &str,
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
        {
            self.reread.borrow_mut().push(Reread {
                sought: key.0.clone(),
                recorded: then.clone(),
                today: found,
            });
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

    /// What was read since the last call.
    pub(super) fn take(&self) -> Vec<Reading> {
        self.fresh.take()
    }

    /// What today's reader finds otherwise than the record.
    pub(super) fn reread(&self) -> Vec<Reread> {
        self.reread.borrow().clone()
    }
}

/// The first 16 hexadecimal digits of a digest of texts, each with its length before it.
fn digest(sought: &str, asked: &str, text: &str) -> String {
    let mut hash = Sha256::new();
    for part in [sought, asked, text] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let all = hash.finalize();
    all.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A plan that is carried out: the plan, and how its replies are read.
#[derive(Clone, Debug)]
pub struct Run {
    plan: Plan,
    pub(super) reader: Reader,
}

impl Run {
    pub(super) fn new(plan: Plan, reader: Reader) -> Self {
        Self { plan, reader }
    }

    /// What the form of the question suggests, once.
    pub(super) fn take_guess(&mut self) -> Option<AnswerKind> {
        self.plan.guess.take()
    }

    /// From here on answers compare in another way than was planned.
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
