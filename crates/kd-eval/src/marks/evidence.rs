//! The part of the user's marks that a decision uses.
//!
//! Sums of all marks tell how often each model was right; recent marks tell how models answer together. Both can be kept
//! in a database, so that a decision does not read all marks.

use super::mark::Mark;
use super::published::Published;
use std::collections::BTreeMap;

/// Maximum number of recent marks that a decision reads. The strictest promise needs about half of them.
pub const RECENT: usize = 1000;

/// Marks, as a decision uses them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// How often each model was right, from all marks.
    pub sums: Sums,
    /// Recent marks, oldest first: at least those that matter for the decision, at most [`RECENT`] of these.
    pub recent: Vec<Mark>,
    /// Published results of models. Empty unless it is set: a test on recorded answers must not learn from a table that
    /// was derived from them.
    pub published: Published,
}

impl Evidence {
    /// Takes all marks.
    pub fn of(marks: Vec<Mark>) -> Self {
        Self {
            sums: Sums::of(&marks),
            recent: marks,
            published: Published::default(),
        }
    }

    /// Adds a mark.
    pub fn add(&mut self, mark: Mark) {
        self.sums.add(&mark);
        self.recent.push(mark);
    }

    /// Adds published results of models.
    pub fn with(mut self, published: Published) -> Self {
        self.published = published;
        self
    }

    /// Returns whether there are no marks.
    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.sums.0.is_empty()
    }
}

/// Right answers and questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of right answers.
    pub right: u64,
    /// Number of questions.
    pub questions: u64,
}

/// How often each model was right, by kind of question and model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(BTreeMap<String, BTreeMap<String, Sum>>);

impl Sums {
    /// Adds up marks.
    pub fn of<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> Self {
        let mut sums = Self::default();
        for mark in marks {
            sums.add(mark);
        }
        sums
    }

    /// Adds a mark.
    pub fn add(&mut self, mark: &Mark) {
        self.change(mark, |sum, right| {
            sum.right += u64::from(right);
            sum.questions += 1;
        });
    }

    /// Subtracts a mark that was added before.
    pub fn subtract(&mut self, mark: &Mark) {
        self.change(mark, |sum, right| {
            sum.right = sum.right.saturating_sub(u64::from(right));
            sum.questions = sum.questions.saturating_sub(1);
        });
    }

    /// Subtracts right answers and questions of a model that were added before.
    pub fn take(&mut self, kind: &str, model: &str, sum: Sum) {
        if let Some(known) = self.0.get_mut(kind).and_then(|of| of.get_mut(model)) {
            known.right = known.right.saturating_sub(sum.right);
            known.questions = known.questions.saturating_sub(sum.questions);
        }
    }

    /// Sets the sum of a model.
    pub fn set(&mut self, kind: String, model: String, sum: Sum) {
        self.0.entry(kind).or_default().insert(model, sum);
    }

    /// Iterates over kinds, models and sums.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, Sum)> {
        self.0.iter().flat_map(|(kind, models)| {
            models
                .iter()
                .map(move |(model, sum)| (kind.as_str(), model.as_str(), *sum))
        })
    }

    fn change(&mut self, mark: &Mark, change: impl Fn(&mut Sum, bool)) {
        for member in &mark.members {
            let Some(right) = mark.was_right(member) else {
                continue;
            };
            // Keys are copied only once for each kind and model.
            if !self.0.contains_key(&mark.kind) {
                self.0.insert(mark.kind.clone(), BTreeMap::new());
            }
            let Some(models) = self.0.get_mut(&mark.kind) else {
                continue;
            };
            match models.get_mut(&member.model) {
                Some(sum) => change(sum, right),
                None => {
                    let mut sum = Sum::default();
                    change(&mut sum, right);
                    models.insert(member.model.clone(), sum);
                }
            }
        }
    }
}
