//! STAR: score, then automatic runoff.

use super::points;
use crate::poll::best_of;
use crate::{Amount, Axiom, Count, NANOS, Nano, Poll, Reads, Round, Rule};

pub(super) const RULE: Rule = Rule {
    name: "star",
    aliases: &["score-then-automatic-runoff"],
    doc: "the two candidates with the greatest sums meet; the one that more voters score higher wins",
    source: "Equal Vote Coalition 2014; Frohnmayer",
    caveat: "a clone of the leader takes the second place of the runoff",
    reads: Reads::Scores,
    weighted: false,
    satisfies: &[Axiom::Anonymous],
    method: count,
    ..Rule::BASE
};

fn count(poll: &Poll<'_>) -> Count {
    let board = Board::of(poll);
    if poll.standing.len() < 2 {
        return Count {
            winners: poll.standing.clone(),
            scores: board.shown(poll),
            ..Count::default()
        };
    }
    let mut notes = Vec::new();
    let mut winners = Vec::new();
    let pairs = board.finalists(poll, &mut notes);
    for (a, b) in &pairs {
        winners.extend(board.runoff(*a, *b, &mut notes));
    }
    winners.sort_unstable();
    winners.dedup();
    let score_round = Round {
        tally: poll
            .standing
            .iter()
            .map(|c| (*c, board.amount(*c)))
            .collect(),
        ..Round::default()
    };
    let runoffs = pairs.iter().map(|(a, b)| Round {
        tally: vec![
            (*a, Amount::of_nanos(board.prefer[*a][*b])),
            (*b, Amount::of_nanos(board.prefer[*b][*a])),
        ],
        elected: winners
            .iter()
            .copied()
            .filter(|w| w == a || w == b)
            .collect(),
        ..Round::default()
    });
    let rounds = std::iter::once(score_round).chain(runoffs).collect();
    notes.sort();
    notes.dedup();
    Count {
        winners,
        scores: board.shown(poll),
        rounds,
        notes,
    }
}

/// The values that STAR compares.
struct Board {
    sums: Vec<Nano>,
    /// Number of voters who gave each candidate the greatest score on any ballot.
    tops: Vec<Nano>,
    prefer: Vec<Vec<Nano>>,
}

impl Board {
    fn of(poll: &Poll<'_>) -> Self {
        let m = poll.len();
        let top = poll
            .votes
            .iter()
            .flat_map(|v| points(v).iter().copied())
            .max()
            .unwrap_or(0);
        let mut board = Self {
            sums: vec![0; m],
            tops: vec![0; m],
            prefer: vec![vec![0; m]; m],
        };
        for vote in &poll.votes {
            let given = points(vote);
            for a in 0..given.len() {
                board.sums[a] += given[a] * vote.weight;
                if given[a] == top {
                    board.tops[a] += vote.weight;
                }
                for b in 0..given.len() {
                    if given[a] > given[b] {
                        board.prefer[a][b] += vote.weight;
                    }
                }
            }
        }
        board
    }

    /// Returns all possible pairs of finalists: one, unless ties remain after pairwise victories and top scores.
    fn finalists(&self, poll: &Poll<'_>, notes: &mut Vec<String>) -> Vec<(usize, usize)> {
        let leaders = best_of(&poll.standing, |c| self.sums[c]);
        let (seated, tied) = match leaders.as_slice() {
            [one] => {
                let rest: Vec<usize> = poll.standing.iter().copied().filter(|c| c != one).collect();
                (vec![*one], best_of(&rest, |c| self.sums[c]))
            }
            _ => (Vec::new(), leaders),
        };
        let wanted = 2 - seated.len();
        if tied.len() > wanted {
            notes
                .push("the score round is tied: victories one against one, then top scores".into());
        }
        let mut pairs = Vec::new();
        for set in self.seat(&tied, wanted) {
            let mut pair = seated.clone();
            pair.extend(set);
            if let [a, b] = pair.as_slice() {
                pairs.push((*a.min(b), *a.max(b)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Returns all ways to choose `wanted` of the tied candidates by the official order of criteria.
    fn seat(&self, tied: &[usize], wanted: usize) -> Vec<Vec<usize>> {
        if wanted == 0 {
            return vec![Vec::new()];
        }
        if tied.len() <= wanted {
            return vec![tied.to_vec()];
        }
        let wins = |c: usize| {
            tied.iter()
                .filter(|b| self.prefer[c][**b] > self.prefer[**b][c])
                .count()
        };
        let mut first = best_of(tied, wins);
        if first.len() > wanted {
            first = best_of(&first, |c| self.tops[c]);
        }
        let mut ways = Vec::new();
        for &c in &first {
            let rest: Vec<usize> = tied.iter().copied().filter(|t| *t != c).collect();
            for mut way in self.seat(&rest, wanted - 1) {
                way.push(c);
                ways.push(way);
            }
        }
        ways
    }

    /// Returns the winner of two: more voters, then the greater sum, then more top scores; otherwise both.
    fn runoff(&self, a: usize, b: usize, notes: &mut Vec<String>) -> Vec<usize> {
        let key = |c: usize, d: usize| (self.prefer[c][d], self.sums[c], self.tops[c]);
        if self.prefer[a][b] == self.prefer[b][a] {
            notes.push("the runoff is tied: the greater sum, then more top scores".into());
        }
        let other = |c: usize| if c == a { b } else { a };
        best_of(&[a, b], |c| key(c, other(c)))
    }

    fn amount(&self, c: usize) -> Amount {
        Amount::of_nanos(self.sums[c])
            .over(&Amount::whole(NANOS))
            .unwrap_or_else(Amount::zero)
    }

    fn shown(&self, poll: &Poll<'_>) -> Vec<Option<Amount>> {
        (0..poll.len())
            .map(|c| poll.standing.contains(&c).then(|| self.amount(c)))
            .collect()
    }
}
