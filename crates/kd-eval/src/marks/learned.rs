//! What marks teach about a council: the one path from marks to decisions, for `kd deliberate` and for `kd eval`.
//!
//! Input: marks, the kind of question, the models of the council. Output: each member's strength, and the marked
//! questions that all members answered, for [`Enough`].

use super::evidence::{Evidence, RECENT};
use super::mark::Mark;
use super::strength::{Source, sources, strengths};
use crate::auto::Strength;
use crate::enough::{Aim, Enough};
use crate::weights::{Labelled, learned};

/// Minimum number of questions that all members answered for weights that are fitted on them. With fewer, odds weights are
/// right more often (`docs/eval.md`).
pub const JOINT_QUESTIONS: usize = 200;

/// A marked question that all members of a council answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Each member's answer; equal numbers are equal answers.
    pub answers: Vec<Option<usize>>,
    /// Whether an answer is right.
    pub right: Vec<bool>,
}

/// What marks teach about the members of a council, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Their strengths; all `None` without informative marks.
    pub strengths: Vec<Option<Strength>>,
    /// Where each strength comes from.
    pub sources: Vec<Source>,
    /// The questions that all of them answered, oldest first.
    pub rows: Vec<Row>,
}

impl Learned {
    /// Learns about these models on this kind of question. `is_blind` tells of a protocol whether its members answer
    /// without seeing each other's answers: only such answers teach how members err together.
    pub fn of(
        evidence: &Evidence,
        kind: &str,
        models: &[&str],
        is_blind: impl Fn(&str) -> bool,
    ) -> Self {
        let newest = evidence.recent.iter().rev();
        let here = newest.filter(|mark| mark.kind == kind && is_blind(&mark.protocol));
        let mut rows: Vec<Row> = here
            .filter_map(|mark| Row::of(mark, models))
            .take(RECENT)
            .collect();
        rows.reverse();
        Self {
            strengths: strengths(evidence, kind, models),
            sources: sources(evidence, kind, models),
            rows,
        }
    }

    /// Returns weights fitted on the questions that all members answered: those that err together share a weight, and an
    /// answer that is missing counts as wrong. `None` with fewer than [`JOINT_QUESTIONS`] questions.
    pub fn joint(&self) -> Option<Vec<f64>> {
        let labelled: Vec<Labelled<'_>> = self.rows.iter().map(Row::labelled).collect();
        let is_enough = labelled.len() >= JOINT_QUESTIONS;
        is_enough.then(|| learned(&labelled, self.strengths.len()))
    }

    /// Returns the share of the questions to which each member gave no answer; empty without questions.
    pub fn silent(&self) -> Vec<f64> {
        let n = self.rows.len();
        let share = |member: usize| {
            let none = |row: &&Row| row.answers.get(member).copied().flatten().is_none();
            self.rows.iter().filter(none).count() as f64 / n as f64
        };
        let members = if n == 0 { 0 } else { self.strengths.len() };
        (0..members).map(share).collect()
    }

    /// Returns when enough members have answered; `None` with too few questions.
    pub fn enough(&self, costs: &[f64], aim: Aim, seed: u64) -> Option<Enough> {
        let labelled: Vec<Labelled<'_>> = self.rows.iter().map(Row::labelled).collect();
        Enough::learn(&labelled, costs, aim, seed)
    }
}

impl Row {
    /// Returns the answers of these models in a mark; `None` if one of them was not asked.
    fn of(mark: &Mark, models: &[&str]) -> Option<Self> {
        let mut taken = vec![false; mark.members.len()];
        let mut keys: Vec<&str> = Vec::new();
        let mut row = Row {
            answers: Vec::with_capacity(models.len()),
            right: Vec::new(),
        };
        for model in models {
            let same = |at: &usize| !taken[*at] && mark.members[*at].model == *model;
            let at = (0..mark.members.len()).find(same)?;
            taken[at] = true;
            let member = &mark.members[at];
            let Some(key) = member.key.as_deref() else {
                row.answers.push(None);
                continue;
            };
            let answer = match keys.iter().position(|known| *known == key) {
                Some(answer) => answer,
                None => {
                    keys.push(key);
                    // Unknown counts as wrong, so that no chance is overstated.
                    row.right.push(mark.was_right(member).unwrap_or(false));
                    keys.len() - 1
                }
            };
            row.answers.push(Some(answer));
        }
        Some(row)
    }

    fn labelled(&self) -> Labelled<'_> {
        Labelled {
            answers: &self.answers,
            right: &self.right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark::{By, Member, VERSION};
    use super::*;
    use jiff::Timestamp;

    fn mark(protocol: &str, members: &[(&str, Option<&str>)], credit: f64) -> Mark {
        let member = |(model, key): &(&str, Option<&str>)| Member {
            name: (*model).into(),
            model: (*model).into(),
            key: key.map(Into::into),
            backs: *key == Some("7"),
            confidence: None,
        };
        Mark {
            v: VERSION,
            project: "p".into(),
            thread: "t".into(),
            message: 1,
            at: Timestamp::UNIX_EPOCH,
            by: By::User,
            kind: "number".into(),
            protocol: protocol.into(),
            members: members.iter().map(member).collect(),
            winner: Some("7".into()),
            credit,
            answer: None,
            calls: 0,
            usd: 0.0,
        }
    }

    #[test]
    fn a_mark_teaches_only_councils_that_answered_alone_and_whole() {
        let all = [("a", Some("7")), ("b", Some("8")), ("c", None)];
        let found = Row::of(&mark("vote", &all, 1.0), &["b", "a"]).unwrap();
        assert_eq!(found.answers, [Some(0), Some(1)]);
        assert_eq!(found.right, [false, true]);
        assert_eq!(
            Row::of(&mark("vote", &all[..1], 1.0), &["a", "b"]),
            None,
            "b was not asked"
        );
        assert_eq!(
            Row::of(&mark("vote", &all, 1.0), &["a", "a"]),
            None,
            "one answer, two members"
        );
        let silent = [("a", None), ("b", Some("7"))];
        let found = Row::of(&mark("vote", &silent, 1.0), &["b", "a"]).unwrap();
        assert_eq!(found.answers, [Some(0), None]);
        let evidence = Evidence::of(vec![mark("council", &all, 1.0), mark("vote", &all, 1.0)]);
        let learned = Learned::of(&evidence, "number", &["a", "b"], |name| name == "vote");
        assert_eq!(learned.rows.len(), 1, "the others saw reviews");
        assert!(learned.strengths.iter().all(Option::is_some));
        assert_eq!(learned.silent(), [0.0, 0.0]);
        let evidence = Evidence::of(vec![mark("vote", &silent, 1.0), mark("vote", &all, 1.0)]);
        let learned = Learned::of(&evidence, "number", &["a", "b"], |_| true);
        assert_eq!(learned.silent(), [0.5, 0.0]);
    }

    #[test]
    fn only_the_newest_marks_are_read() {
        let all = [("a", Some("7"))];
        let marks: Vec<Mark> = (0..RECENT + 10)
            .map(|at| mark("vote", &all, f64::from(u8::from(at >= 10))))
            .collect();
        let learned = Learned::of(&Evidence::of(marks), "number", &["a"], |_| true);
        assert_eq!(learned.rows.len(), RECENT);
        assert!(learned.rows.iter().all(|row| row.right == [true]));
    }
}
