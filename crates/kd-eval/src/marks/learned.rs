//! Learns about a council from marks. `kd deliberate` and `kd eval` both use this code for decisions.
//!
//! Input: marks, the kind of question, the models of the council. Output: each member's strength, and the marked
//! questions that all members answered, for [`Enough`].
//!
//! A wrong verdict without its right answer does not show who else was right. Leaving out only such verdicts would
//! select questions by their result: the winner would have won all remaining ones. So right verdicts are left out in
//! the same proportion ([`representative`]).

use super::evidence::{Evidence, RECENT};
use super::mark::Mark;
use super::strength::{Source, sources, strengths};
use crate::auto::Strength;
use crate::enough::{Aim, Enough};
use crate::weights::{Labelled, learned};

/// Minimum number of questions with known right answers, answered by all members, for weights that are fitted on them. With fewer, odds weights are
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

/// Results learned from marks about the members of a council, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Their strengths; all `None` without informative marks.
    pub strengths: Vec<Option<Strength>>,
    /// Where each strength comes from.
    pub sources: Vec<Source>,
    /// The questions that all members answered and whose right answer is known, oldest first: a [`representative`]
    /// part of the questions that all members answered.
    pub rows: Vec<Row>,
    /// The share of the questions asked of all of them to which each gave no answer; empty without questions.
    pub silent: Vec<f64>,
}

impl Learned {
    /// Learns about these models on this kind of question. `is_blind` returns whether the members of a protocol
    /// answer without seeing each other's answers. Only such answers show how often members make the same error.
    pub fn of(
        evidence: &Evidence,
        kind: &str,
        models: &[&str],
        is_blind: impl Fn(&str) -> bool,
    ) -> Self {
        let newest = evidence.recent.iter().rev();
        let here = newest.filter(|mark| mark.kind == kind && is_blind(&mark.protocol));
        let mut asked: Vec<(Row, Told)> = here
            .filter_map(|mark| Some((Row::of(mark, models)?, Told::by(mark))))
            .take(RECENT)
            .collect();
        asked.reverse();
        Self {
            strengths: strengths(evidence, kind, models),
            sources: sources(evidence, kind, models),
            silent: silent(&asked, models.len()),
            rows: representative(asked),
        }
    }

    /// Returns whether each member has enough marks on this kind of question to be compared with the others by them.
    pub fn is_measured(&self) -> bool {
        self.sources.iter().all(Source::is_measured)
    }

    /// Returns weights fitted on the questions that all members answered: those that err together share a weight, and an
    /// answer that is missing counts as wrong. `None` with fewer than [`JOINT_QUESTIONS`] questions.
    pub fn joint(&self) -> Option<Vec<f64>> {
        let labelled: Vec<Labelled<'_>> = self.rows.iter().map(Row::labelled).collect();
        let is_enough = labelled.len() >= JOINT_QUESTIONS;
        is_enough.then(|| learned(&labelled, self.strengths.len()))
    }

    /// Returns when enough members have answered; `None` with too few questions.
    pub fn enough(&self, costs: &[f64], aim: Aim, seed: u64) -> Option<Enough> {
        let labelled: Vec<Labelled<'_>> = self.rows.iter().map(Row::labelled).collect();
        Enough::learn(&labelled, costs, aim, seed)
    }
}

/// The statement of a mark about a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It was right, so its answer is the right one.
    Right,
    /// It was wrong, and the right answer is known.
    Wrong,
    /// It was wrong, and no more.
    OnlyWrong,
}

impl Told {
    fn by(mark: &Mark) -> Self {
        match (mark.is_right(), &mark.answer) {
            (true, _) => Told::Right,
            (false, Some(_)) => Told::Wrong,
            (false, None) => Told::OnlyWrong,
        }
    }
}

/// Returns questions whose right answer is known. Takes the same share of questions with a right verdict and with a
/// wrong verdict, evenly over time. So whether a question is left out does not depend on whether its verdict was
/// right.
fn representative(asked: Vec<(Row, Told)>) -> Vec<Row> {
    let count = |of: Told| asked.iter().filter(|(_, told)| *told == of).count();
    let known = count(Told::Wrong);
    let wrong = known + count(Told::OnlyWrong);
    let mut right = 0;
    let mut is_kept = |told: Told| match told {
        Told::Right if wrong == 0 => true,
        Told::Right => {
            right += 1;
            right * known / wrong > (right - 1) * known / wrong
        }
        Told::Wrong => true,
        Told::OnlyWrong => false,
    };
    asked
        .into_iter()
        .filter_map(|(row, told)| is_kept(told).then_some(row))
        .collect()
}

/// Returns the share of the questions to which each member gave no answer.
fn silent(asked: &[(Row, Told)], members: usize) -> Vec<f64> {
    let share = |member: usize| {
        let none = |(row, _): &&(Row, Told)| row.answers.get(member).copied().flatten().is_none();
        asked.iter().filter(none).count() as f64 / asked.len() as f64
    };
    let members = if asked.is_empty() { 0 } else { members };
    (0..members).map(share).collect()
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
                    // It is unknown only in verdicts of `Told::OnlyWrong`, which teach nothing here.
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
            unasked: Vec::new(),
            stopping: None,
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
        assert_eq!(learned.silent, [0.0, 0.0]);
        let evidence = Evidence::of(vec![mark("vote", &silent, 1.0), mark("vote", &all, 1.0)]);
        let learned = Learned::of(&evidence, "number", &["a", "b"], |_| true);
        assert_eq!(learned.silent, [0.5, 0.0]);
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

    /// Asks a council whose `bob` and `cyd` always give the same answer, so the verdict is theirs. Each of `n`
    /// questions is marked; `given` returns whether the mark of a right or wrong verdict has the right answer.
    fn questions(n: usize, given: impl Fn(bool) -> bool) -> Vec<Mark> {
        let of = |at: usize| {
            // No pattern; ann is right in 91 % and the others in 58 % of questions, independently.
            let dice = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let (ann, others) = (dice % 100 < 91, dice / 100 % 100 < 58);
            let said = |right: bool, wrong: &str| if right { "7" } else { wrong }.to_owned();
            let keys = [said(ann, "8"), said(others, "9"), said(others, "9")];
            let mut mark = mark("vote", &[], f64::from(u8::from(others)));
            for (name, key) in ["ann", "bob", "cyd"].into_iter().zip(keys) {
                mark.members.push(Member {
                    name: name.into(),
                    model: name.into(),
                    backs: name != "ann" || key == said(others, "9"),
                    key: Some(key),
                    confidence: None,
                });
            }
            mark.winner = Some(said(others, "9"));
            mark.answer = given(others).then(|| "7".into());
            mark
        };
        (0..n).map(of).collect()
    }

    /// Without right answers, marks leave only questions that the winner got right: they teach nothing about members that
    /// disagreed.
    #[test]
    fn the_best_member_is_first_whether_or_not_marks_have_the_right_answer() {
        use crate::enough::MARGIN;
        type Given = fn(bool) -> bool;
        let ways: [(&str, Given, usize); 4] = [
            ("always", |_| true, 240),
            ("never", |_| false, 0),
            // As many people mark: `right`, or the answer that would have been.
            ("of wrong verdicts", |right| !right, 240),
            // Nothing is known of a wrong verdict.
            ("of right verdicts", |right| right, 0),
        ];
        for (what, given, rows) in ways {
            let evidence = Evidence::of(questions(240, given));
            let learned = Learned::of(&evidence, "number", &["bob", "ann", "cyd"], |_| true);
            assert_eq!(learned.rows.len(), rows, "{what}");
            let right: Vec<f64> = learned
                .strengths
                .iter()
                .flatten()
                .map(|s| s.right)
                .collect();
            assert!(
                right[1] > right[0] + 0.2 && right[0] == right[2],
                "{what}: {right:?}"
            );
            let joint = learned.joint();
            assert_eq!(joint.is_some(), rows > 0, "{what}");
            if let Some(joint) = joint {
                assert!(joint[1] > joint[0] + joint[2], "{what}: {joint:?}");
            }
            let aim = Aim::Margin(MARGIN);
            let rule = learned
                .enough(&[1.0; 3], aim, 1)
                .unwrap_or_else(|| Enough::by_strength(&right, true));
            assert_eq!(rule.order[0], 1, "{what}: {rule:?}");
        }
    }

    #[test]
    fn right_verdicts_teach_as_often_as_wrong_ones() {
        let row = |told: Told| {
            let right = vec![told == Told::Right];
            (
                Row {
                    answers: vec![Some(0)],
                    right,
                },
                told,
            )
        };
        let of = |right: usize, wrong: usize, only: usize| {
            let each = [
                (Told::Right, right),
                (Told::Wrong, wrong),
                (Told::OnlyWrong, only),
            ];
            let asked = each
                .into_iter()
                .flat_map(|(told, n)| (0..n).map(move |_| row(told)));
            let kept = representative(asked.collect());
            let right = kept.iter().filter(|row| row.right[0]).count();
            (right, kept.len() - right)
        };
        assert_eq!(of(60, 20, 20), (30, 20));
        assert_eq!(of(60, 40, 0), (60, 40));
        assert_eq!(of(60, 0, 40), (0, 0));
        assert_eq!(of(60, 0, 0), (60, 0));
        assert_eq!(of(0, 10, 30), (0, 10));
    }
}
