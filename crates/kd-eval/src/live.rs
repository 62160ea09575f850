//! Compares ways to answer the same questions: how often each way is right, and whether one way is better than
//! another, question by question. Each way was asked separately.

use crate::intervals::{Interval, of_equal, wilson};
use crate::paired::{Comparison, Verdict, compare};
use crate::replay::Replay;
use serde::Serialize;

/// A way to answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Its name.
    pub way: String,
    /// The share of right answers; a question without a decision counts as wrong.
    pub right: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// Two ways on the same questions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The first way.
    pub way: String,
    /// The way it is compared with.
    pub beside: String,
    /// The comparison.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Number of questions that every way was asked.
    pub questions: u64,
    /// The ways, in order.
    pub ways: Vec<Way>,
    /// Each way beside each later one.
    pub pairs: Vec<Pair>,
}

/// Compares the columns of a replay: each member of it is a way to answer.
pub fn compared(replay: &Replay, seed: u64) -> Compared {
    let n = replay.questions.len() as u64;
    let scores = |way: usize| -> Vec<f64> {
        let questions = replay.questions.iter();
        questions
            .map(|question| f64::from(u8::from(question.is_right(way))))
            .collect()
    };
    let columns: Vec<Vec<f64>> = (0..replay.members.len()).map(scores).collect();
    let ways = replay.members.iter().zip(&columns);
    let ways = ways.map(|(name, scores)| {
        let right: f64 = scores.iter().sum();
        Way {
            way: name.clone(),
            right: if n == 0 { 0.0 } else { right / n as f64 },
            interval: wilson(right, n),
        }
    });
    let mut pairs = Vec::new();
    for (at, ours) in columns.iter().enumerate() {
        for (other, theirs) in columns.iter().enumerate().skip(at + 1) {
            pairs.push(Pair {
                way: replay.members[at].clone(),
                beside: replay.members[other].clone(),
                comparison: shown(compare(ours, theirs, seed), n),
            });
        }
    }
    Compared {
        questions: n,
        ways: ways.collect(),
        pairs,
    }
}

/// Ways that differ on none of these questions may differ on others: so the report never calls them the same.
fn shown(found: Comparison, n: u64) -> Comparison {
    match found.verdict {
        Verdict::Same => Comparison {
            verdict: Verdict::NotShown,
            interval: of_equal(0.0, n),
            ..found
        },
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Question;

    fn replay(rows: &[[Option<bool>; 2]]) -> Replay {
        let question = |row: &[Option<bool>; 2]| Question {
            keys: vec!["no".into(), "yes".into()],
            right: vec![false, true],
            answers: row.iter().map(|right| right.map(usize::from)).collect(),
            ..Question::default()
        };
        Replay {
            members: vec!["council".into(), "alone".into()],
            named: true,
            questions: rows.iter().map(question).collect(),
            ..Replay::default()
        }
    }

    #[test]
    fn a_difference_is_told_only_if_the_questions_show_it() {
        let (won, lost) = ([Some(true), Some(false)], [Some(false), Some(true)]);
        let verdict =
            |rows: &[[Option<bool>; 2]]| compared(&replay(rows), 0).pairs[0].comparison.verdict;
        assert_eq!(verdict(&[won; 12]), Verdict::Better);
        assert_eq!(verdict(&[lost; 12]), Verdict::Worse);
        assert_eq!(verdict(&[won; 4]), Verdict::NotShown);
        assert_eq!(verdict(&[[Some(true); 2]; 40]), Verdict::NotShown);
        assert_eq!(verdict(&[[Some(true); 2]]), Verdict::NotShown);
        let mixed = [[won; 12], [lost; 12]].concat();
        assert_eq!(verdict(&mixed), Verdict::NotShown);
        // Few questions, or equal ones, leave much open: 97.5 and 8.8 points to both sides.
        let width = |n: usize| {
            let i = compared(&replay(&vec![[Some(true); 2]; n]), 0).pairs[0]
                .comparison
                .interval;
            assert_eq!(i.low, -i.high);
            (i.high * 1000.0).round()
        };
        assert_eq!((width(0), width(1), width(40)), (1000.0, 975.0, 88.0));
    }

    #[test]
    fn no_decision_is_wrong() {
        let found = compared(&replay(&[[None, Some(true)], [Some(true), Some(true)]]), 0);
        assert_eq!(
            (found.questions, found.ways[0].right, found.ways[1].right),
            (2, 0.5, 1.0)
        );
        assert_eq!(found.pairs[0].comparison.lost, 1);
        assert_eq!(compared(&replay(&[]), 0).ways[0].right, 0.0);
    }
}
