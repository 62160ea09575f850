//! Votes: every member that reviewed votes on the findings that it did not make, in as many requests as they need.

use super::{Effects, Review, Turn};
use crate::review::{Cluster, ask, read};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// A member's votes.
#[derive(Clone, Debug, Default)]
pub(super) struct Voting {
    /// Findings of the requests still to be sent.
    batches: VecDeque<Vec<usize>>,
    /// Number of findings that it should have voted on and did not.
    pub(super) missing: usize,
    /// Number of findings that the member was shown or will be shown.
    all: usize,
    why: Option<String>,
}

impl Review {
    /// Deals the findings of others to each member that reviewed.
    pub(super) fn deal_votes(&mut self) {
        let order = self.voting_order();
        for member in 0..self.open.members.len() {
            let name = self.open.members[member].name.as_str();
            let foreign = order.iter().copied().filter(|at| {
                let findings = &self.clusters[*at].findings;
                findings.iter().all(|raw| raw.member != name)
            });
            let foreign: Vec<usize> = foreign.collect();
            if self.sums[member].replied == 0 || foreign.is_empty() {
                continue;
            }
            let bytes = self.plan.bytes;
            self.voting[member].all = foreign.len();
            let batches = ask::batches(&self.open, &self.hidden, &self.clusters, &foreign, bytes);
            self.voting[member].batches = batches;
        }
    }

    /// Returns the findings in the order in which they are voted on, because a limit may leave out the last ones.
    /// Findings with the most finders come first. Among findings with equally many finders, each member gets the same
    /// space: many or long findings of one member displace its own last findings, not the findings of other members.
    fn voting_order(&self) -> Vec<usize> {
        let makers: Vec<Vec<&str>> = self.clusters.iter().map(Cluster::makers).collect();
        let mut order: Vec<usize> = (0..self.clusters.len()).collect();
        order.sort_by_key(|at| {
            let severity = self.clusters[*at].severity();
            (Reverse(makers[*at].len()), Reverse(severity), *at)
        });
        let mut used: BTreeMap<&str, u64> = BTreeMap::new();
        let mut reached = vec![0; self.clusters.len()];
        for at in &order {
            let of = |name: &&&str| used.get(**name).copied().unwrap_or_default();
            if let Some(maker) = makers[*at].iter().min_by_key(of) {
                let used = used.entry(maker).or_default();
                *used += ask::votable_bytes(
                    &self.open,
                    &self.hidden,
                    &self.clusters[*at],
                    self.plan.bytes,
                );
                reached[*at] = *used;
            }
        }
        order.sort_by_key(|at| (Reverse(makers[*at].len()), reached[*at]));
        order
    }

    /// Asks each member for its next votes. Returns whether there were any left.
    pub(super) fn ask_votes(&mut self, fx: &mut Effects) -> bool {
        // A second request for findings may have used what was set aside for the votes of its member: the votes of
        // others come first.
        let late = |member: usize| self.repaired[member] && !self.plan.has_repairs();
        let waits = |member: &usize| !self.voting[*member].batches.is_empty();
        let (first, last): (Vec<usize>, Vec<usize>) = (0..self.voting.len())
            .filter(waits)
            .partition(|member| !late(*member));
        let mut asked = false;
        for member in if first.is_empty() { last } else { first } {
            let Some(batch) = self.voting[member].batches.pop_front() else {
                continue;
            };
            if self.interrupted {
                continue;
            }
            let bytes = self.plan.bytes;
            let (request, shown) = ask::votes(
                &self.open,
                &self.hidden,
                member,
                &self.clusters,
                &batch,
                bytes,
            );
            self.ask((member, 0), request, shown, fx);
            asked = true;
        }
        asked
    }

    /// Takes the votes of a reply.
    pub(super) fn take_votes(&mut self, turn: &Turn, name: &str, text: &str, labels: &[String]) {
        let votes = read::votes(text, labels);
        let voting = &mut self.voting[turn.member];
        if votes.is_empty() {
            voting.why = Some("its reply could not be read".to_owned());
        }
        for (label, at) in &turn.shown {
            match (votes.get(label), self.votes.get_mut(*at)) {
                (Some(vote), Some(of)) => {
                    of.insert(name.to_owned(), *vote);
                }
                _ => voting.missing += 1,
            }
        }
    }

    /// Notes the votes of a request that failed. The member is asked for no more.
    pub(super) fn no_votes(&mut self, turn: &Turn, why: &str) {
        let voting = &mut self.voting[turn.member];
        let left = std::mem::take(&mut voting.batches);
        voting.missing += turn.shown.len() + left.iter().map(Vec::len).sum::<usize>();
        voting.why = Some(why.to_owned());
    }

    /// Adds a notice for each member whose votes are incomplete.
    pub(super) fn tell_missing_votes(&mut self) {
        for (member, voting) in self.open.members.iter().zip(&self.voting) {
            let of = match (voting.missing, voting.all) {
                (0, _) => continue,
                (missing, all) if missing == all => "any finding".to_owned(),
                (missing, all) => format!("{missing} of {all} findings"),
            };
            let why = match &voting.why {
                Some(why) => format!(": {why}"),
                None => String::new(),
            };
            let name = &member.name;
            self.notices
                .push(format!("{name} did not vote on {of}{why}"));
        }
    }
}
