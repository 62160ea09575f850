//! Instant-runoff: the lowest candidate is eliminated and its ballots transfer, until one has more than half of the
//! votes that still count.
//!
//! Ballots are read as written: blanks, overvotes, names written twice. Only ballots of an eliminated candidate are
//! read again.

use crate::ballot::Rank;
use crate::limits::{QUADRATIC, TIE_ORDERS};
use crate::poll::{best_of, least_of};
use crate::profile::Profile;
use crate::ties::by_lot;
use crate::{
    Amount, Axiom, Count, Nano, Overvote, Poll, Reads, Round, Rule, Runoff, Sees, TiePolicy,
};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    name: "irv",
    aliases: &[
        "instant-runoff",
        "ranked-choice",
        "instant_runoff(all tied-lowest removed together)",
        "instant_runoff_for_truncated_linear_orders",
        "rctab",
    ],
    doc: "drops the candidate with the fewest ballots and transfers them, until a candidate has more than half of the remaining ballots; if several have the fewest, all of them are dropped, or the one that a setting names (`--ties`)",
    source: "Ware 1871, after Hare 1857; ballots are read as the certified tabulator RCTab reads them",
    caveat: "a compromise that few rank first is dropped early; more votes for a winner can make it lose; where several are dropped together, another order could elect another one (irv-parallel shows all)",
    reads: Reads::Paper,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority],
    method: count,
    candidates_max: QUADRATIC,
    draws_lots: true,
    ..Rule::BASE
};

pub(super) const PARALLEL: Rule = Rule {
    name: "irv-parallel",
    aliases: &["instant_runoff_put(parallel universes)", "irv-put"],
    doc: "runs instant-runoff with every order of dropping candidates that tie for the fewest ballots; the winners of all these runs tie",
    source: "Conitzer, Rognlie and Xia 2009, Preference functions that score rankings (parallel universes)",
    caveat: "same as instant-runoff; with few voters there are many orders, and many winners",
    reads: Reads::Paper,
    weighted: false,
    satisfies: &[Axiom::Anonymous, Axiom::Majority, Axiom::Clones],
    method: parallel,
    candidates_max: TIE_ORDERS,
    ..Rule::BASE
};

/// Maximum number of candidate sets explored; beyond it, all tied lowest are eliminated together, with a note.
const STATES_MAX: usize = 20_000;

fn count(poll: &Poll<'_>) -> Count {
    match poll.rules.runoff.ties {
        TiePolicy::Parallel => parallel(poll),
        _ => Table::of(poll).run(poll),
    }
}

/// The state of the count.
struct Table<'a> {
    papers: Vec<Paper<'a>>,
    /// The ballots that currently count for each candidate.
    piles: Vec<Vec<usize>>,
    sums: Vec<Nano>,
    all: Nano,
    open: Vec<bool>,
    left: Vec<usize>,
    seen: Vec<usize>,
}

struct Paper<'a> {
    ranks: Cow<'a, [Rank]>,
    weight: Nano,
}

impl<'a> Table<'a> {
    fn of(poll: &'a Poll<'_>) -> Self {
        let paper = |ranks: Cow<'a, [Rank]>, weight| Paper { ranks, weight };
        let papers: Vec<Paper<'a>> = poll
            .votes
            .iter()
            .filter_map(|vote| match &vote.sees {
                Sees::Paper(ranks) => Some(paper(Cow::Borrowed(*ranks), vote.weight)),
                Sees::Tiers(tiers) => {
                    let rank = |t: &Vec<usize>| match t.as_slice() {
                        [c] => Rank::One(*c),
                        _ => Rank::Tied(t.clone()),
                    };
                    Some(paper(tiers.iter().map(rank).collect(), vote.weight))
                }
                _ => None,
            })
            .collect();
        let mut open = vec![false; poll.len()];
        poll.standing.iter().for_each(|c| open[*c] = true);
        let mut table = Self {
            all: 0,
            piles: vec![Vec::new(); poll.len()],
            sums: vec![0; poll.len()],
            left: poll.standing.clone(),
            papers,
            open,
            seen: Vec::new(),
        };
        for at in 0..table.papers.len() {
            table.all += table.papers[at].weight;
            table.place(at, &poll.rules.runoff);
        }
        table
    }

    /// Adds a ballot to the pile of the candidate that it currently counts for, or to none.
    fn place(&mut self, at: usize, rules: &Runoff) {
        if let Some(c) = reads(&self.papers[at].ranks, &self.open, rules, &mut self.seen) {
            self.piles[c].push(at);
            self.sums[c] += self.papers[at].weight;
        }
    }

    fn drop(&mut self, out: &[usize], rules: &Runoff) {
        for c in out {
            self.open[*c] = false;
        }
        self.left.retain(|c| !out.contains(c));
        for c in out {
            self.sums[*c] = 0;
            for at in std::mem::take(&mut self.piles[*c]) {
                self.place(at, rules);
            }
        }
    }

    fn run(mut self, poll: &Poll<'_>) -> Count {
        let rules = &poll.rules.runoff;
        let mut rounds: Vec<Round> = Vec::new();
        let mut winners: Vec<usize> = Vec::new();
        loop {
            let counted: Nano = self.left.iter().map(|c| self.sums[*c]).sum();
            let mut round = Round {
                tally: self
                    .left
                    .iter()
                    .map(|c| (*c, Amount::of_nanos(self.sums[*c])))
                    .collect(),
                exhausted: Some(Amount::of_nanos(self.all - counted)),
                ..Round::default()
            };
            if winners.is_empty() {
                let elected = self.elected(poll, counted, &rounds, &mut round.notes);
                round.elected.clone_from(&elected);
                winners = elected;
                if !winners.is_empty() && !rules.until_two {
                    rounds.push(round);
                    break;
                }
            }
            if self.left.len() <= 2 && !winners.is_empty() || self.left.is_empty() {
                rounds.push(round);
                break;
            }
            if round.elected.is_empty() {
                let out = self.lowest(poll, &winners, &rounds, &mut round.notes);
                if out.len() >= self.left.len() {
                    winners.clone_from(&self.left);
                    round.elected.clone_from(&self.left);
                    rounds.push(round);
                    break;
                }
                self.drop(&out, rules);
                round.eliminated = out;
            }
            rounds.push(round);
        }
        let scores = rounds.last().map(|last| {
            let mut scores = vec![None; poll.len()];
            last.tally
                .iter()
                .for_each(|(c, a)| scores[*c] = Some(a.clone()));
            scores
        });
        Count {
            winners,
            scores: scores.unwrap_or_default(),
            rounds,
            notes: Vec::new(),
        }
    }

    /// Returns the winner of this round: more than half of the counting votes, or the better of the last two.
    fn elected(
        &self,
        poll: &Poll<'_>,
        counted: Nano,
        before: &[Round],
        notes: &mut Vec<String>,
    ) -> Vec<usize> {
        let rules = &poll.rules.runoff;
        let able: Vec<usize> = self
            .left
            .iter()
            .copied()
            .filter(|c| !rules.drop_first.contains(c))
            .collect();
        if let Some(c) = able.iter().find(|c| self.sums[**c] * 2 > counted) {
            return vec![*c];
        }
        match (self.left.as_slice(), able.as_slice()) {
            ([_], [one]) => vec![*one],
            ([_, _], [a, b]) => {
                let tied = [*a, *b];
                match &rules.ties {
                    TiePolicy::Batch | TiePolicy::Parallel => tied.to_vec(),
                    _ => {
                        let loser = self.loser(poll, &tied, true, before, notes);
                        tied.into_iter().filter(|c| *c != loser).collect()
                    }
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns the candidates to eliminate in this round.
    fn lowest(
        &self,
        poll: &Poll<'_>,
        winners: &[usize],
        before: &[Round],
        notes: &mut Vec<String>,
    ) -> Vec<usize> {
        let rules = &poll.rules.runoff;
        let write_ins: Vec<usize> = self
            .left
            .iter()
            .copied()
            .filter(|c| rules.drop_first.contains(c) && self.sums[*c] > 0)
            .collect();
        if !write_ins.is_empty() && write_ins.len() < self.left.len() {
            return write_ins;
        }
        let few: Vec<usize> = self
            .left
            .iter()
            .copied()
            .filter(|c| rules.least.is_some_and(|least| self.sums[*c] < least))
            .collect();
        if !few.is_empty() && few.len() < self.left.len() {
            notes.push(format!("{} have fewer votes than agreed", few.len()));
            return few;
        }
        // After a win, the count continues down to two candidates, not fewer.
        let keep = if winners.is_empty() { 1 } else { 2 };
        if rules.drop_hopeless {
            let hopeless = self.hopeless(keep);
            if hopeless.len() > 1 {
                notes.push(format!(
                    "{} together cannot catch up with the next",
                    hopeless.len()
                ));
                return hopeless;
            }
        }
        let tied = least_of(&self.left, |c| self.sums[c]);
        match &rules.ties {
            _ if tied.len() == 1 => tied,
            TiePolicy::Batch | TiePolicy::Parallel
                if self.left.len() - tied.len() >= keep || winners.is_empty() =>
            {
                tied
            }
            _ => vec![self.loser(poll, &tied, false, before, notes)],
        }
    }

    /// Returns the largest group of lowest candidates that together have fewer votes than the next one.
    fn hopeless(&self, keep: usize) -> Vec<usize> {
        let mut order = self.left.clone();
        order.sort_by_key(|c| (self.sums[*c], *c));
        let mut sure = 0;
        let mut together = 0;
        for (at, c) in order.iter().enumerate() {
            if together < self.sums[*c] && order.len() - at >= keep.max(1) {
                sure = at;
            }
            together += self.sums[*c];
        }
        order.truncate(sure);
        order.sort_unstable();
        order
    }

    /// Returns the loser among tied candidates, and adds a note about how it was determined.
    fn loser(
        &self,
        poll: &Poll<'_>,
        tied: &[usize],
        last_two: bool,
        before: &[Round],
        notes: &mut Vec<String>,
    ) -> usize {
        let then = |round: &Round, c: usize| {
            round
                .tally
                .iter()
                .find(|(t, _)| *t == c)
                .map(|(_, a)| a.clone())
        };
        let narrowed = |rounds: &mut dyn Iterator<Item = &Round>| {
            let mut among = tied.to_vec();
            for round in rounds {
                among = least_of(&among, |c| then(round, c));
            }
            among
        };
        let (how, among) = match &poll.rules.runoff.ties {
            TiePolicy::Backward => (
                "the latest round in which they differed",
                narrowed(&mut before.iter().rev()),
            ),
            TiePolicy::Forward => (
                "the earliest round in which they differed",
                narrowed(&mut before.iter()),
            ),
            TiePolicy::Borda => {
                let borda = self.borda(poll);
                ("their Borda scores", least_of(tied, |c| &borda[c]))
            }
            TiePolicy::Order(order) => {
                let place = |c: usize| order.iter().position(|o| *o == c).unwrap_or(usize::MAX);
                ("the agreed order", best_of(tied, place))
            }
            TiePolicy::Answers(answers) => {
                let named = answers
                    .get(before.len())
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                // If two candidates are left, the answer names the winner; otherwise it names the eliminated candidate.
                let goes = |c: &usize| named.contains(c) != last_two;
                let told = tied.iter().any(|c| named.contains(c));
                (
                    "the answer given",
                    tied.iter().copied().filter(|c| told && goes(c)).collect(),
                )
            }
            TiePolicy::Batch | TiePolicy::Parallel | TiePolicy::Seeded => {
                ("the lot", tied.to_vec())
            }
        };
        let names: Vec<&str> = tied
            .iter()
            .map(|c| poll.rules.candidates[*c].as_str())
            .collect();
        let names = names.join(", ");
        if let [one] = among.as_slice() {
            notes.push(format!("tied: {names}; decided by {how}"));
            return *one;
        }
        notes.push(format!(
            "tied: {names}; decided by lot with seed {}",
            poll.rules.seed
        ));
        let among = if among.is_empty() {
            tied.to_vec()
        } else {
            among
        };
        by_lot(poll, among).pop().unwrap_or(tied[0])
    }

    /// Returns Borda points among all initial candidates.
    fn borda(&self, poll: &Poll<'_>) -> Vec<Amount> {
        let ballots: Vec<_> = poll.votes.iter().map(|v| v.ballot.clone()).collect();
        let read = Poll::read(&ballots, poll.rules, Reads::Ranking, false);
        Profile::of(&read).borda(&poll.standing)
    }
}

/// Returns the candidate that a ballot counts for, given who is still in, by RCTab's rules.
fn reads(ranks: &[Rank], open: &[bool], rules: &Runoff, seen: &mut Vec<usize>) -> Option<usize> {
    let read = rules.ranks_max.unwrap_or(ranks.len()).min(ranks.len());
    let mut blanks = 0;
    seen.clear();
    for rank in &ranks[..read] {
        if matches!(rank, Rank::Skipped) {
            blanks += 1;
            continue;
        }
        if rules.skips_max.is_some_and(|max| blanks > max) {
            return None;
        }
        blanks = 0;
        let named: &[usize] = match rank {
            Rank::One(c) => std::slice::from_ref(c),
            Rank::Tied(several) => several,
            _ => &[],
        };
        if rules.exhaust_on_duplicate {
            if named.iter().any(|c| seen.contains(c)) {
                return None;
            }
            seen.extend_from_slice(named);
        }
        let several = matches!(rank, Rank::Overvote) || named.len() > 1;
        let mut still = named.iter().copied().filter(|c| open[*c]);
        match rules.overvote {
            Overvote::Exhaust if several => return None,
            Overvote::Skip if several => continue,
            Overvote::ExhaustIfSeveralStay if matches!(rank, Rank::Overvote) => return None,
            _ => {}
        }
        if let Some(c) = still.next() {
            return still.next().is_none().then_some(c);
        }
    }
    None
}

/// Returns the winners over all orders of eliminating tied lowest candidates.
fn parallel(poll: &Poll<'_>) -> Count {
    let mut search = Search {
        poll,
        table: Table::of(poll),
        seen: BTreeSet::new(),
        winners: BTreeSet::new(),
    };
    let batch = Table::of(poll).run(poll);
    if !search.follow(&poll.standing.clone()) {
        let notes =
            vec!["too many ties to follow every order: all tied lowest went together".to_owned()];
        return Count { notes, ..batch };
    }
    let winners: Vec<usize> = search.winners.into_iter().collect();
    // Rounds are reported as far as all orders share them.
    let shared = batch
        .rounds
        .iter()
        .position(|r| r.eliminated.len() > 1)
        .unwrap_or(batch.rounds.len());
    let mut rounds = batch.rounds;
    let mut notes = Vec::new();
    if shared < rounds.len() {
        rounds.truncate(shared + 1);
        if let Some(last) = rounds.last_mut() {
            last.eliminated.clear();
            last.notes
                .push("several are lowest: every order was followed from here".into());
        }
        notes.push(format!("{} states followed", search.seen.len()));
    }
    Count {
        winners,
        rounds,
        notes,
        ..Count::default()
    }
}

struct Search<'a, 'p> {
    poll: &'a Poll<'p>,
    table: Table<'a>,
    seen: BTreeSet<Vec<usize>>,
    winners: BTreeSet<usize>,
}

impl Search<'_, '_> {
    /// Explores all orders from here; returns whether the search stayed within its limit.
    fn follow(&mut self, left: &[usize]) -> bool {
        if self.seen.contains(left) {
            return true;
        }
        if self.seen.len() >= STATES_MAX {
            return false;
        }
        self.seen.insert(left.to_vec());
        let mut open = vec![false; self.poll.len()];
        left.iter().for_each(|c| open[*c] = true);
        let mut sums: Vec<Nano> = vec![0; self.poll.len()];
        let mut all = 0;
        for paper in &self.table.papers {
            if let Some(c) = reads(
                &paper.ranks,
                &open,
                &self.poll.rules.runoff,
                &mut self.table.seen,
            ) {
                sums[c] += paper.weight;
                all += paper.weight;
            }
        }
        if let Some(c) = left.iter().find(|c| sums[**c] * 2 > all) {
            self.winners.insert(*c);
            return true;
        }
        if left.len() == 1 || all == 0 {
            self.winners.extend(left);
            return true;
        }
        let lowest = least_of(left, |c| sums[c]);
        if lowest.iter().all(|c| sums[*c] == 0) {
            // In every order, candidates without votes are eliminated before all others.
            let rest: Vec<usize> = left
                .iter()
                .copied()
                .filter(|c| !lowest.contains(c))
                .collect();
            return self.follow(&rest);
        }
        lowest.iter().all(|out| {
            let rest: Vec<usize> = left.iter().copied().filter(|c| c != out).collect();
            self.follow(&rest)
        })
    }
}
