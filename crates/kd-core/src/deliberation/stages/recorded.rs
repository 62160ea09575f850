//! Votes in the form that records of deliberations have: rankings without ties, points as decimal numbers.

use kd_vote::{Mark, NANOS, Nano, Rank};
use serde::{Deserialize, Serialize};

/// A recorded vote. Candidates are indexes in [`Board::candidates`](crate::deliberation::board::Board::candidates).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Recorded {
    /// One candidate.
    Choice(usize),
    /// A ranking from best to worst.
    Ranking(Vec<usize>),
    /// Scores, in the order of the candidates.
    #[serde(with = "decimal")]
    Scores(Vec<Option<Nano>>),
    /// All acceptable candidates.
    Approvals(Vec<usize>),
    /// A judge's choice in each order.
    Orders(Vec<Option<usize>>),
}

impl Recorded {
    /// Returns the form in which a vote is recorded; `None` if there is no vote.
    pub(super) fn of(mark: &Mark) -> Option<Self> {
        Some(match mark {
            Mark::Choice(c) => Self::Choice(*c),
            Mark::Ranking(ranks) => Self::Ranking(ranked(ranks).collect()),
            Mark::Scores(points) => Self::Scores(points.clone()),
            Mark::Approvals(set) => Self::Approvals(set.clone()),
            Mark::Trail(orders) => Self::Orders(orders.clone()),
            Mark::Unreadable(_) => return None,
        })
    }

    /// Returns the vote, unless it names a candidate that does not exist: anybody can have written a record.
    pub(super) fn mark(self, candidates: usize) -> Option<Mark> {
        let exist = |named: &[usize]| named.iter().all(|c| *c < candidates);
        let is_possible = match &self {
            Self::Choice(c) => exist(&[*c]),
            Self::Ranking(places) | Self::Approvals(places) => exist(places),
            Self::Scores(points) => points.len() <= candidates,
            Self::Orders(orders) => orders.iter().flatten().all(|c| *c < candidates),
        };
        is_possible.then(|| match self {
            Self::Choice(c) => Mark::Choice(c),
            Self::Ranking(order) => Mark::Ranking(order.into_iter().map(Rank::One).collect()),
            Self::Scores(points) => Mark::Scores(points),
            Self::Approvals(set) => Mark::Approvals(set),
            Self::Orders(orders) => Mark::Trail(orders),
        })
    }
}

/// Returns the candidates of a ranking. A member's ballot cannot state ties.
pub(super) fn ranked(ranks: &[Rank]) -> impl Iterator<Item = usize> {
    ranks.iter().filter_map(|rank| match rank {
        Rank::One(c) => Some(*c),
        _ => None,
    })
}

/// Returns points as a decimal number.
pub(super) fn points_of(score: Nano) -> f64 {
    score as f64 / NANOS as f64
}

/// Points as decimal numbers.
mod decimal {
    use super::points_of;
    use kd_vote::{Nano, nanos};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        points: &[Option<Nano>],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(points.iter().map(|score| score.map(points_of)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Option<Nano>>, D::Error> {
        let points = Vec::<Option<f64>>::deserialize(from)?;
        Ok(points.into_iter().map(|score| score.map(nanos)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliberation::reader::Reader;
    use kd_vote::nanos;

    #[test]
    fn a_vote_is_recorded_as_before_and_read_back_the_same() {
        let votes = [
            (Mark::Choice(2), r#"{"choice":2}"#),
            (
                Mark::Ranking(vec![Rank::One(1), Rank::One(0)]),
                r#"{"ranking":[1,0]}"#,
            ),
            (
                Mark::Scores(vec![Some(nanos(4.5)), None, Some(nanos(33.3))]),
                r#"{"scores":[4.5,null,33.3]}"#,
            ),
            (Mark::Approvals(vec![0, 2]), r#"{"approvals":[0,2]}"#),
            (Mark::Trail(vec![Some(1), None]), r#"{"orders":[1,null]}"#),
        ];
        for (mark, recorded) in votes {
            let written = Recorded::of(&mark).unwrap();
            assert_eq!(serde_json::to_string(&written).unwrap(), recorded);
            let read: Recorded = serde_json::from_str(recorded).unwrap();
            assert_eq!(read.mark(3), Some(mark), "{recorded}");
        }
        assert_eq!(Recorded::of(&Mark::Unreadable("no".into())), None);
    }

    #[test]
    fn a_recorded_vote_for_a_candidate_that_does_not_exist_is_no_vote() {
        for recorded in [
            r#"{"choice":3}"#,
            r#"{"ranking":[0,7]}"#,
            r#"{"scores":[1.0,2.0,3.0,4.0]}"#,
            r#"{"approvals":[3]}"#,
            r#"{"orders":[0,3]}"#,
        ] {
            let read: Recorded = serde_json::from_str(recorded).unwrap();
            assert_eq!(read.mark(3), None, "{recorded}");
        }
    }

    #[test]
    fn points_with_more_digits_than_are_counted_are_no_other_reading() {
        let now = || Recorded::Scores(vec![Some(nanos(100.0 / 3.0)), None]);
        let first = Reader::default();
        first.read("ballot", "asked", "text", now);
        let mut records = first.take();
        records[0].found = serde_json::json!({"scores": [100.0 / 3.0, null]});
        let recorded = records[0].found.clone();

        let again = Reader::recorded(records.clone());
        assert_eq!(again.read("ballot", "asked", "text", now), now());
        assert_eq!(again.reread(), []);
        assert_eq!(again.take()[0].found, recorded);

        records[0].found = serde_json::json!({"scores": [33.3, null]});
        let other = Reader::recorded(records);
        other.read("ballot", "asked", "text", now);
        assert_eq!(other.reread().len(), 1);
    }
}
