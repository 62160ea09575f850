//! Rankings as counting rules use them: first places, last places, Borda points, and pairwise preferences. Candidates
//! that a ballot does not rank are tied below all that it ranks.

use super::amount::{Amount, Nano};
use super::poll::{Poll, Sees};
use std::borrow::Cow;

/// All rankings of a poll.
#[derive(Debug)]
pub(crate) struct Profile<'p> {
    /// Number of candidates.
    pub(crate) len: usize,
    ballots: Vec<(Cow<'p, [Vec<usize>]>, Nano)>,
}

impl<'p> Profile<'p> {
    pub(crate) fn of(poll: &'p Poll<'_>) -> Self {
        let tiers = poll.votes.iter().filter_map(|vote| match &vote.sees {
            Sees::Tiers(tiers) => Some((Cow::Borrowed(tiers.as_slice()), vote.weight)),
            // Runoff ballots are read mark by mark; their rankings are needed only to break ties.
            Sees::Paper(_) => {
                let tiers = poll.tiers(&vote.ballot.mark).ok()?;
                Some((Cow::Owned(tiers), vote.weight))
            }
            _ => None,
        });
        Self {
            len: poll.len(),
            ballots: tiers.collect(),
        }
    }

    /// Returns the weight of all ballots.
    pub(crate) fn weight(&self) -> Amount {
        Amount::of_nanos(self.ballots.iter().map(|(_, w)| w).sum())
    }

    /// Counts how often each of `among` is first among them. Tied candidates share the vote.
    pub(crate) fn firsts(&self, among: &[usize]) -> Vec<Amount> {
        self.shares(among, |tiers| {
            Some(restricted(tiers, among).next().unwrap_or_default())
        })
    }

    /// Counts how often each of `among` is last among them. Tied candidates share the vote; unranked candidates are
    /// last. A ballot that ranks none of them is ignored.
    pub(crate) fn lasts(&self, among: &[usize]) -> Vec<Amount> {
        let mut stands = vec![false; self.len];
        among.iter().for_each(|c| stands[*c] = true);
        self.shares(among, |tiers| {
            let mut unranked = stands.clone();
            tiers.iter().flatten().for_each(|c| unranked[*c] = false);
            let unranked: Vec<usize> = among.iter().copied().filter(|c| unranked[*c]).collect();
            match unranked.len() {
                all if all == among.len() => None,
                0 => {
                    let standing = |tier: &Vec<usize>| -> Vec<usize> {
                        tier.iter().copied().filter(|c| stands[*c]).collect()
                    };
                    tiers
                        .iter()
                        .rev()
                        .map(standing)
                        .find(|tier| !tier.is_empty())
                }
                _ => Some(unranked),
            }
        })
    }

    /// Returns Borda points among `among`: one for each candidate below, one half for each tied.
    pub(crate) fn borda(&self, among: &[usize]) -> Vec<Amount> {
        let n = among.len() as i128;
        let mut doubled = vec![0; self.len];
        for (tiers, weight) in &self.ballots {
            let mut above = 0;
            let mut ranked = vec![false; self.len];
            for tier in restricted(tiers, among) {
                let k = tier.len() as i128;
                for c in tier {
                    doubled[c] += weight * (2 * (n - 1 - above) - (k - 1));
                    ranked[c] = true;
                }
                above += k;
            }
            for &c in among.iter().filter(|c| !ranked[**c]) {
                doubled[c] += weight * (n - 1 - above);
            }
        }
        doubled
            .into_iter()
            .map(|d| {
                Amount::of_nanos(d)
                    .over(&Amount::whole(2))
                    .unwrap_or_else(Amount::zero)
            })
            .collect()
    }

    /// Visits each tier of each ballot: its candidates, how many are above it, the weight.
    pub(crate) fn each_tier(&self, mut visit: impl FnMut(&[usize], usize, Nano)) {
        for (tiers, weight) in &self.ballots {
            let mut above = 0;
            for tier in tiers.iter() {
                visit(tier, above, *weight);
                above += tier.len();
            }
        }
    }

    /// Returns the order of the first ballot, with unranked candidates last, by index: Zavist and Tideman's
    /// tie-breaker.
    pub(crate) fn first_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = self
            .ballots
            .first()
            .map(|(tiers, _)| tiers.iter().flatten().copied().collect())
            .unwrap_or_default();
        order.extend(
            (0..self.len)
                .filter(|c| !order.contains(c))
                .collect::<Vec<_>>(),
        );
        order
    }

    /// Returns the pairwise preferences.
    pub(crate) fn duels(&self) -> Duels {
        let n = self.len;
        let mut prefer = vec![vec![0; n]; n];
        let mut below = vec![true; n];
        for (tiers, weight) in &self.ballots {
            below.fill(true);
            for tier in tiers.iter() {
                for c in tier {
                    below[*c] = false;
                }
                for c in tier {
                    for (sum, below) in prefer[*c].iter_mut().zip(&below) {
                        if *below {
                            *sum += weight;
                        }
                    }
                }
            }
        }
        Duels { prefer }
    }

    fn shares(
        &self,
        among: &[usize],
        pick: impl Fn(&[Vec<usize>]) -> Option<Vec<usize>>,
    ) -> Vec<Amount> {
        let mut whole = vec![0; self.len];
        let mut parts = vec![Amount::zero(); self.len];
        for (tiers, weight) in &self.ballots {
            match pick(tiers).unwrap_or_default().as_slice() {
                [] => {}
                [c] => whole[*c] += weight,
                several => {
                    let part =
                        Amount::of_nanos(*weight).over(&Amount::whole(several.len() as i128));
                    for c in several {
                        parts[*c] += part.clone().unwrap_or_else(Amount::zero);
                    }
                }
            }
        }
        debug_assert!(among.iter().all(|c| *c < self.len));
        whole
            .into_iter()
            .zip(parts)
            .map(|(w, p)| Amount::of_nanos(w) + p)
            .collect()
    }
}

/// Returns the tiers of a ballot restricted to `among` (ascending).
fn restricted<'t>(
    tiers: &'t [Vec<usize>],
    among: &'t [usize],
) -> impl Iterator<Item = Vec<usize>> + 't {
    tiers
        .iter()
        .map(|tier| {
            tier.iter()
                .copied()
                .filter(|c| among.binary_search(c).is_ok())
                .collect::<Vec<_>>()
        })
        .filter(|tier| !tier.is_empty())
}

/// Pairwise preferences, in billionths.
#[derive(Clone, Debug)]
pub(crate) struct Duels {
    /// `prefer[a][b]`: the weight of all ballots that rank `a` strictly above `b`.
    pub(crate) prefer: Vec<Vec<Nano>>,
}

/// The measure of a victory's strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    /// The margin.
    Margins,
    /// The number of votes for the winner.
    WinningVotes,
}

impl Duels {
    /// Returns the margin by which `a` beats `b`; negative if it loses.
    pub(crate) fn margin(&self, a: usize, b: usize) -> Nano {
        self.prefer[a][b] - self.prefer[b][a]
    }

    pub(crate) fn beats(&self, a: usize, b: usize) -> bool {
        self.margin(a, b) > 0
    }

    /// Returns the strength of a victory; 0 if there is none.
    pub(crate) fn strength(&self, a: usize, b: usize, by: Strength) -> Nano {
        match by {
            _ if !self.beats(a, b) => 0,
            Strength::Margins => self.margin(a, b),
            Strength::WinningVotes => self.prefer[a][b],
        }
    }

    /// Returns the candidate that beats all others of `among`.
    pub(crate) fn condorcet(&self, among: &[usize]) -> Option<usize> {
        among
            .iter()
            .copied()
            .find(|a| among.iter().all(|b| a == b || self.beats(*a, *b)))
    }

    /// Returns the candidates that no other candidate in `among` beats.
    pub(crate) fn unbeaten(&self, among: &[usize]) -> Vec<usize> {
        among
            .iter()
            .copied()
            .filter(|a| !among.iter().any(|b| self.beats(*b, *a)))
            .collect()
    }

    /// Returns a candidate's greatest loss; 0 if it has none.
    pub(crate) fn worst_loss(&self, c: usize, among: &[usize], by: Strength) -> Nano {
        among
            .iter()
            .map(|b| self.strength(*b, c, by))
            .max()
            .unwrap_or(0)
    }

    /// Computes `paths[a][b]`: the strongest chain of victories from `a` to `b`, as strong as its weakest link.
    pub(crate) fn paths(&self, among: &[usize], by: Strength) -> Vec<Vec<Nano>> {
        let n = self.prefer.len();
        let mut paths = vec![vec![0; n]; n];
        for &a in among {
            for &b in among {
                paths[a][b] = self.strength(a, b, by);
            }
        }
        for &via in among {
            for &a in among {
                for &b in among {
                    if a != b {
                        let through = paths[a][via].min(paths[via][b]);
                        paths[a][b] = paths[a][b].max(through);
                    }
                }
            }
        }
        paths
    }

    /// Returns the candidates without a defeat that remains after split cycle removes the weakest of each cycle.
    pub(crate) fn undefeated(&self, among: &[usize], by: Strength) -> Vec<usize> {
        let paths = self.paths(among, by);
        let defeats = |b: usize, a: usize| self.strength(b, a, by) > paths[a][b];
        among
            .iter()
            .copied()
            .filter(|a| !among.iter().any(|b| defeats(*b, *a)))
            .collect()
    }

    /// Returns the smallest set whose members all beat every candidate outside (Smith).
    pub(crate) fn smith(&self, among: &[usize]) -> Vec<usize> {
        self.top(among, |a, b| a != b && !self.beats(b, a))
    }

    /// Returns the union of the smallest sets that no candidate outside beats (Schwartz).
    pub(crate) fn schwartz(&self, among: &[usize]) -> Vec<usize> {
        self.top(among, |a, b| self.beats(a, b))
    }

    /// Returns the candidates that reach every candidate that reaches them.
    fn top(&self, among: &[usize], step: impl Fn(usize, usize) -> bool) -> Vec<usize> {
        let n = self.prefer.len();
        let mut reach = vec![vec![false; n]; n];
        for &a in among {
            for &b in among {
                reach[a][b] = step(a, b);
            }
        }
        for &via in among {
            for &a in among {
                for &b in among {
                    reach[a][b] |= reach[a][via] && reach[via][b];
                }
            }
        }
        among
            .iter()
            .copied()
            .filter(|a| among.iter().all(|b| !reach[*b][*a] || reach[*a][*b]))
            .collect()
    }
}
