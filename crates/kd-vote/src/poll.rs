//! Ballots as read by a rule: each either fits, or is an abstention with a reason.

use super::amount::{Amount, NANOS, Nano};
use super::ballot::{Ballot, Mark, Rank};
use super::no_vote::NoVote;
use super::rules::Rules;
use super::tally::Abstention;

/// The kind of ballot that a rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// One choice.
    Choice,
    /// A ranking with ties; it may be incomplete.
    Ranking,
    /// Ranks as written on the ballot, including blanks and overvotes.
    Paper,
    /// Points for each candidate.
    Scores,
    /// Points for each candidate, from a budget per ballot.
    Points,
    /// All approved candidates, up to a maximum.
    Approvals,
    /// One choice per round.
    Rounds,
    /// A judge's choices in two orders of presentation.
    Orders,
}

impl Reads {
    /// Describes what a voter writes.
    pub fn words(self) -> &'static str {
        match self {
            Reads::Choice => "one choice",
            Reads::Ranking => "a ranking, ties and early ends allowed",
            Reads::Paper => "ranks on paper, blanks and overvotes allowed",
            Reads::Scores => "points for each candidate",
            Reads::Points => "points for each candidate out of a fixed purse",
            Reads::Approvals => "every candidate that would do, up to a cap",
            Reads::Rounds => "a choice for each round",
            Reads::Orders => "a judge's choice in both orders",
        }
    }
}

/// A ballot that fits.
#[derive(Clone, Debug)]
pub struct Vote<'a> {
    /// Its effective weight: the count, times the weight if the rules use weights, in billionths.
    pub weight: Nano,
    /// The original ballot.
    pub ballot: &'a Ballot,
    /// The vote as the rule reads it.
    pub sees: Sees<'a>,
}

/// A vote as a rule reads it.
#[derive(Clone, Debug)]
pub enum Sees<'a> {
    /// One choice.
    One(usize),
    /// Tiers from best to worst; no candidate is in two.
    Tiers(Vec<Vec<usize>>),
    /// Ranks as written on the ballot.
    Paper(&'a [Rank]),
    /// Points for each candidate.
    Points(Vec<Nano>),
    /// A set of candidates.
    Set(Vec<usize>),
    /// One choice per round.
    Trail(Vec<Option<usize>>),
}

/// The input of a rule.
#[derive(Clone, Debug)]
pub struct Poll<'a> {
    /// The settings.
    pub rules: &'a Rules,
    /// The candidates that may win, ascending.
    pub standing: Vec<usize>,
    /// The ballots that fit, in the given order.
    pub votes: Vec<Vote<'a>>,
    /// The other ballots.
    pub abstained: Vec<Abstention>,
    /// Number of voters asked.
    pub electorate: u64,
}

impl<'a> Poll<'a> {
    /// Reads ballots for a rule.
    pub fn read(ballots: &'a [Ballot], rules: &'a Rules, reads: Reads, weighted: bool) -> Self {
        let m = rules.candidates.len();
        let standing = (0..m).filter(|c| !rules.excluded.contains(c)).collect();
        let mut poll = Self {
            rules,
            standing,
            votes: Vec::with_capacity(ballots.len()),
            abstained: Vec::new(),
            electorate: ballots
                .iter()
                .fold(0, |n: u64, b| n.saturating_add(b.count)),
        };
        let weighted = weighted || rules.weighted;
        for (place, ballot) in ballots.iter().enumerate() {
            let weight = if weighted { ballot.weight } else { NANOS };
            let read = if !(0..=NANOS * NANOS).contains(&weight) {
                Err(NoVote::Weight)
            } else if ballot.count > u64::from(u32::MAX) {
                Err(NoVote::Count)
            } else {
                poll.sees(&ballot.mark, reads)
            };
            match read {
                Ok(sees) => poll.votes.push(Vote {
                    weight: i128::from(ballot.count) * weight,
                    ballot,
                    sees,
                }),
                Err(why) => poll.abstained.push(Abstention {
                    ballot: place,
                    voter: ballot.voter.clone(),
                    count: ballot.count,
                    why: why.to_string(),
                }),
            }
        }
        poll
    }

    /// Returns the number of candidates, including those that cannot win.
    pub fn len(&self) -> usize {
        self.rules.candidates.len()
    }

    /// Returns whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// Counts the voters whose ballots count.
    pub fn voters(&self) -> u64 {
        self.votes
            .iter()
            .fold(0, |n: u64, v| n.saturating_add(v.ballot.count))
    }

    /// Returns the total weight of the votes that count.
    pub fn weight(&self) -> Nano {
        self.votes.iter().map(|v| v.weight).sum()
    }

    /// Adds up weights for each candidate.
    pub fn add_up<'p>(&'p self, each: impl Fn(&'p Vote<'a>) -> Vec<(usize, Nano)>) -> Vec<Nano> {
        let mut sums = vec![0; self.len()];
        for vote in &self.votes {
            for (candidate, weight) in each(vote) {
                if let Some(sum) = sums.get_mut(candidate) {
                    *sum += weight;
                }
            }
        }
        sums
    }

    /// Returns the eligible candidates with the greatest value.
    pub fn best<V: Ord>(&self, value: impl Fn(usize) -> V) -> Vec<usize> {
        best_of(&self.standing, value)
    }

    /// Converts amounts in billionths to scores; candidates that cannot win have none.
    pub fn scores(&self, nanos: &[Nano]) -> Vec<Option<Amount>> {
        (0..self.len())
            .map(|c| {
                self.standing
                    .contains(&c)
                    .then(|| Amount::of_nanos(nanos[c]))
            })
            .collect()
    }

    /// Returns the candidates that a vote ranks first, if any.
    pub fn firsts(&self, vote: &Vote<'_>) -> Vec<usize> {
        match &vote.sees {
            Sees::One(c) => vec![*c],
            Sees::Tiers(tiers) => tiers.first().cloned().unwrap_or_default(),
            Sees::Paper(_) => self
                .tiers(&vote.ballot.mark)
                .ok()
                .and_then(|t| t.into_iter().next())
                .unwrap_or_default(),
            Sees::Points(points) => best_of(&self.standing, |c| points[c]),
            Sees::Set(set) => set.clone(),
            Sees::Trail(trail) => trail.iter().rev().flatten().take(1).copied().collect(),
        }
    }

    fn sees(&self, mark: &'a Mark, reads: Reads) -> Result<Sees<'a>, NoVote> {
        if let Mark::Unreadable(why) = mark {
            return Err(NoVote::Unreadable(why.clone()));
        }
        self.names_stand(mark)?;
        match reads {
            Reads::Choice => self.one(mark).map(Sees::One),
            Reads::Ranking => self.tiers(mark).map(Sees::Tiers),
            Reads::Paper => match mark {
                Mark::Ranking(ranks) => Ok(Sees::Paper(ranks)),
                _ => self.tiers(mark).map(Sees::Tiers),
            },
            Reads::Scores => self.points(mark).map(Sees::Points),
            Reads::Points => {
                let points = self.points(mark)?;
                let spent: Nano = points.iter().sum();
                if points.iter().any(|p| *p < 0) {
                    return Err(NoVote::NegativePoints);
                }
                if spent > i128::from(self.rules.points) * NANOS {
                    let purse = self.rules.points;
                    return Err(NoVote::PointsOver { spent, purse });
                }
                Ok(Sees::Points(points))
            }
            Reads::Approvals => self.set(mark).map(Sees::Set),
            Reads::Rounds | Reads::Orders => self.trail(mark, reads).map(Sees::Trail),
        }
    }

    /// Checks for indices beyond the list of candidates, which come from a faulty parser: they count for nobody.
    fn names_stand(&self, mark: &Mark) -> Result<(), NoVote> {
        let known = |c: &usize| *c < self.len();
        let fits = match mark {
            Mark::Choice(c) => known(c),
            Mark::Ranking(ranks) => ranks.iter().all(|rank| match rank {
                Rank::One(c) => known(c),
                Rank::Tied(several) => several.iter().all(known),
                _ => true,
            }),
            Mark::Scores(points) => points.len() <= self.len(),
            Mark::Approvals(set) => set.iter().all(known),
            Mark::Trail(trail) => trail.iter().flatten().all(known),
            Mark::Unreadable(_) => true,
        };
        fits.then_some(()).ok_or(NoVote::Unknown)
    }

    fn stands(&self, c: usize) -> bool {
        self.standing.binary_search(&c).is_ok()
    }

    fn one(&self, mark: &Mark) -> Result<usize, NoVote> {
        let first = match mark {
            Mark::Choice(c) => vec![*c],
            Mark::Trail(trail) => trail.last().copied().flatten().into_iter().collect(),
            Mark::Approvals(set) => set.clone(),
            _ => self.tiers(mark)?.into_iter().next().unwrap_or_default(),
        };
        match first.as_slice() {
            [c] if self.stands(*c) => Ok(*c),
            [_] => Err(NoVote::CannotWin),
            [] => Err(NoVote::Nobody),
            _ => Err(NoVote::SeveralFirst),
        }
    }

    /// Converts a vote to tiers, from best to worst.
    pub(super) fn tiers(&self, mark: &Mark) -> Result<Vec<Vec<usize>>, NoVote> {
        let mut tiers: Vec<Vec<usize>> = Vec::new();
        match mark {
            Mark::Choice(c) => tiers.push(vec![*c]),
            Mark::Trail(trail) => tiers.extend(trail.last().copied().flatten().map(|c| vec![c])),
            Mark::Approvals(set) => tiers.push(set.clone()),
            Mark::Scores(points) => {
                let mut order: Vec<(Nano, usize)> = points
                    .iter()
                    .enumerate()
                    .filter_map(|(c, p)| p.map(|p| (-p, c)))
                    .collect();
                order.sort_unstable();
                let mut last = None;
                for (p, c) in order {
                    if last != Some(p) {
                        tiers.push(Vec::new());
                    }
                    last = Some(p);
                    if let Some(tier) = tiers.last_mut() {
                        tier.push(c);
                    }
                }
            }
            Mark::Ranking(ranks) => {
                for rank in ranks {
                    match rank {
                        Rank::One(c) => tiers.push(vec![*c]),
                        Rank::Tied(several) => tiers.push(several.clone()),
                        Rank::Skipped | Rank::Nobody => {}
                        Rank::Overvote => return Err(NoVote::Overvote),
                    }
                }
            }
            Mark::Unreadable(why) => return Err(NoVote::Unreadable(why.clone())),
        }
        let mut seen = vec![false; self.len()];
        for tier in &mut tiers {
            tier.sort_unstable();
            tier.retain(|c| self.stands(*c) && !std::mem::replace(&mut seen[*c], true));
        }
        tiers.retain(|tier| !tier.is_empty());
        if tiers.is_empty() {
            return Err(NoVote::RanksNobody);
        }
        Ok(tiers)
    }

    fn points(&self, mark: &Mark) -> Result<Vec<Nano>, NoVote> {
        let mut given = vec![0; self.len()];
        match mark {
            Mark::Scores(points) => {
                if points.iter().all(Option::is_none) {
                    return Err(NoVote::ScoresNobody);
                }
                for (slot, p) in given.iter_mut().zip(points) {
                    *slot = p.unwrap_or(0);
                }
                if given.iter().any(|p| p.abs() > NANOS * NANOS) {
                    return Err(NoVote::ScoreTooLarge);
                }
            }
            // A single mark is a score of one, because a yes-or-no voter means that.
            Mark::Choice(c) => given[*c] = NANOS,
            Mark::Approvals(set) => set.iter().for_each(|c| given[*c] = NANOS),
            _ => return Err(NoVote::NoPoints),
        }
        for (c, slot) in given.iter_mut().enumerate() {
            if !self.stands(c) {
                *slot = 0;
            }
        }
        Ok(given)
    }

    fn set(&self, mark: &Mark) -> Result<Vec<usize>, NoVote> {
        let mut set = match mark {
            Mark::Approvals(set) => set.clone(),
            Mark::Choice(c) => vec![*c],
            _ => return Err(NoVote::ApprovesNobody),
        };
        set.sort_unstable();
        set.dedup();
        let cap = self
            .rules
            .approvals_max
            .unwrap_or(self.standing.len().div_ceil(2));
        if set.len() > cap {
            return Err(NoVote::ApprovesOver {
                approved: set.len(),
                cap,
            });
        }
        set.retain(|c| self.stands(*c));
        if set.is_empty() {
            return Err(NoVote::ApprovesNoWinner);
        }
        Ok(set)
    }

    fn trail(&self, mark: &Mark, reads: Reads) -> Result<Vec<Option<usize>>, NoVote> {
        let trail = match mark {
            Mark::Trail(trail) => trail.clone(),
            Mark::Choice(c) if reads == Reads::Rounds => vec![Some(*c)],
            _ => return Err(NoVote::NoTrail),
        };
        let trail: Vec<Option<usize>> = trail
            .into_iter()
            .map(|c| c.filter(|c| self.stands(*c)))
            .collect();
        if reads == Reads::Orders {
            return match trail.as_slice() {
                [Some(a), Some(b)] if a == b => Ok(trail),
                [Some(_), Some(_)] => Err(NoVote::OrderDecides),
                _ => Err(NoVote::OneOrder),
            };
        }
        if trail.iter().all(Option::is_none) {
            return Err(NoVote::EmptyTrail);
        }
        Ok(trail)
    }
}

/// Returns the candidates with the greatest value, in the given order.
pub(crate) fn best_of<V: Ord>(among: &[usize], value: impl Fn(usize) -> V) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    let mut top: Option<V> = None;
    for &c in among {
        let v = value(c);
        match top.as_ref().map(|t| v.cmp(t)) {
            Some(std::cmp::Ordering::Less) => {}
            Some(std::cmp::Ordering::Equal) => best.push(c),
            _ => {
                best = vec![c];
                top = Some(v);
            }
        }
    }
    best
}

/// Returns the candidates with the least value, in the given order.
pub(crate) fn least_of<V: Ord>(among: &[usize], value: impl Fn(usize) -> V) -> Vec<usize> {
    best_of(among, |c| std::cmp::Reverse(value(c)))
}
