//! Majority judgment: the best median grade.

use super::points;
use crate::{Amount, Axiom, Count, Nano, Poll, Reads, Rule};
use std::cmp::Ordering;

pub(super) const RULE: Rule = Rule {
    name: "median",
    aliases: &["majority-judgment", "majority-judgement"],
    doc: "the best (lower) median grade wins; on a tie median grades are removed one by one until they differ; a blank is 0",
    source: "Balinski and Laraki 2007, A theory of measuring, electing and ranking",
    caveat: "two extremes can tie or beat a candidate that all voters prefer to the other",
    reads: Reads::Scores,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let unit = poll
        .votes
        .iter()
        .map(|v| v.weight)
        .filter(|w| *w > 0)
        .fold(0, gcd)
        .max(1);
    let grades = |c: usize| {
        let mut given: Vec<(Nano, Nano)> = poll
            .votes
            .iter()
            .filter(|v| v.weight > 0)
            .map(|v| (points(v)[c], v.weight / unit))
            .collect();
        given.sort_unstable();
        Grades(given)
    };
    let all: Vec<Grades> = (0..poll.len()).map(grades).collect();
    let mut winners: Vec<usize> = Vec::new();
    for &c in &poll.standing {
        match winners.first().map(|w| all[c].compare(&all[*w])) {
            Some(Ordering::Less) => {}
            Some(Ordering::Equal) => winners.push(c),
            _ => winners = vec![c],
        }
    }
    let median = |c: usize| {
        all[c]
            .median()
            .map(|(at, _)| Amount::of_nanos(all[c].0[at].0))
    };
    let scores = (0..poll.len()).map(|c| {
        if poll.standing.contains(&c) {
            median(c)
        } else {
            None
        }
    });
    Count {
        winners,
        scores: scores.collect(),
        ..Count::default()
    }
}

fn gcd(a: Nano, b: Nano) -> Nano {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Grades from worst to best with their counts.
#[derive(Clone)]
struct Grades(Vec<(Nano, Nano)>);

impl Grades {
    /// Returns the index of the lower median, and how many grades come before its run.
    fn median(&self) -> Option<(usize, Nano)> {
        let all: Nano = self.0.iter().map(|(_, n)| n).sum();
        let wanted = (all + 1) / 2;
        let mut before = 0;
        for (at, (_, n)) in self.0.iter().enumerate() {
            if before + n >= wanted && *n > 0 {
                return Some((at, before));
            }
            before += n;
        }
        None
    }

    /// Returns the number of times that the median can be removed before another run holds it.
    fn stays(&self, at: usize, before: Nano) -> Nano {
        let all: Nano = self.0.iter().map(|(_, n)| n).sum();
        let run = self.0[at].1;
        // After r removals the lower median is at ceil((all - r) / 2), which must lie within the remaining run.
        let within = |r: Nano| {
            let place = (all - r + 1) / 2;
            before < place && place <= before + run - r
        };
        let (mut sure, mut not) = (0, run + 1);
        while not - sure > 1 {
            let middle = sure + (not - sure) / 2;
            if within(middle) {
                sure = middle;
            } else {
                not = middle;
            }
        }
        // One more removal moves the median.
        (sure + 1).min(run)
    }

    fn compare(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = (self.clone(), other.clone());
        loop {
            let (Some((i, before_a)), Some((j, before_b))) = (a.median(), b.median()) else {
                return Ordering::Equal;
            };
            let order = a.0[i].0.cmp(&b.0[j].0);
            if order != Ordering::Equal {
                return order;
            }
            let n = a.stays(i, before_a).min(b.stays(j, before_b)).max(1);
            a.0[i].1 -= n;
            b.0[j].1 -= n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_medians_in_blocks_is_taking_them_one_by_one() {
        let slow = |g: &[Nano]| {
            let mut left = g.to_vec();
            left.sort_unstable();
            let mut taken = Vec::new();
            while !left.is_empty() {
                taken.push(left.remove(left.len().div_ceil(2) - 1));
            }
            taken
        };
        let runs = |g: &[Nano]| {
            let mut g = g.to_vec();
            g.sort_unstable();
            Grades(
                g.chunk_by(|a, b| a == b)
                    .map(|run| (run[0], run.len() as Nano))
                    .collect(),
            )
        };
        let mut polls = vec![Vec::new()];
        for _ in 0..6 {
            polls = polls
                .iter()
                .flat_map(|p: &Vec<Nano>| (0..3).map(|g| [p.as_slice(), &[g]].concat()))
                .collect();
        }
        for a in &polls {
            for b in polls.iter().step_by(7) {
                assert_eq!(
                    runs(a).compare(&runs(b)),
                    slow(a).cmp(&slow(b)),
                    "{a:?} {b:?}"
                );
            }
        }
    }
}
