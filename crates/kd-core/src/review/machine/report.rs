//! The report at the end of a review.

use super::Review;
use crate::models;
use crate::review::chance::chance;
use crate::review::{Cluster, MemberSum, REPORT_VERSION, Report, Reported, Vote, counted, message};
use crate::seating::LOCAL;
use std::collections::{BTreeMap, BTreeSet};

impl Review {
    /// Builds the report.
    pub(super) fn report(&mut self) -> Report {
        let all = self.sums.iter().filter(|sum| sum.replied > 0).count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut findings: Vec<Reported> = Vec::new();
        let votes = std::mem::take(&mut self.votes);
        let clusters = std::mem::take(&mut self.clusters);
        for ((at, cluster), votes) in clusters.into_iter().enumerate().zip(votes) {
            let of = self.reviewed(at);
            let makers = cluster.makers();
            let models = self.models(&makers);
            findings.push(Reported {
                id: message::id(&cluster),
                severity: Some(cluster.severity()),
                missing_votes: self.without_vote(&cluster, &votes),
                independent: (models < makers.len()).then_some(count(models)),
                chance: chance(count(models), count(of), &self.open.marks),
                of: (of < all).then_some(count(of)),
                cluster,
                votes,
            });
        }
        findings.sort_by(|a, b| {
            (b.chance.share.total_cmp(&a.chance.share))
                .then_with(|| b.votes_for(Vote::Real).cmp(&a.votes_for(Vote::Real)))
                .then_with(|| a.votes_for(Vote::NotReal).cmp(&b.votes_for(Vote::NotReal)))
                .then_with(|| b.severity().cmp(&a.severity()))
                .then_with(|| a.id.cmp(&b.id))
        });
        message::unique(&mut findings);
        self.tell_missing_votes();
        let missing = self.sums.iter().any(|sum| !sum.failed.is_empty());
        if missing || self.voting.iter().any(|voting| voting.missing > 0) {
            self.notices.extend(self.plan.shortage.take());
        }
        if self.interrupted {
            self.notices
                .push("the review was interrupted: findings and votes are incomplete".into());
        }
        let parts = self.open.parts.len();
        let members = self.open.members.iter().zip(&self.sums);
        for (member, sum) in members.clone().filter(|(_, s)| s.replied > 0) {
            if let Some(why) = sum.failed.first() {
                let n = sum.failed.len();
                self.notices.push(format!(
                    "{}: {n} of {parts} parts not reviewed: {why}",
                    member.name
                ));
            }
        }
        let share = super::share(self.open.members.len());
        for (member, sum) in members.clone().filter(|(_, sum)| sum.surplus > 0) {
            let surplus = counted(sum.surplus, "finding");
            self.notices.push(format!(
                "{}: {surplus} beyond the limit of {share} per member left out",
                member.name
            ));
        }
        Report {
            version: REPORT_VERSION,
            base: self.open.base.clone(),
            head: self.open.head.clone(),
            findings,
            dropped: std::mem::take(&mut self.dropped),
            members: members
                .map(|(member, sum)| MemberSum {
                    name: member.name.to_string(),
                    findings: sum.findings,
                    dropped: sum.dropped,
                    failed: sum.failed.first().filter(|_| sum.replied == 0).cloned(),
                })
                .collect(),
            notices: self.notices.clone(),
        }
    }

    /// Counts the models of these members. Members of one vendor count as one, as in a deliberation: they make the same
    /// mistakes. So do members without a model of their own that the built-in one answers for.
    fn models(&self, names: &[&str]) -> usize {
        let members = self.open.members.iter();
        let members = members.filter(|member| names.contains(&member.name.as_str()));
        let kin = members.map(|member| {
            let agent = match member.backend == LOCAL {
                true => LOCAL,
                false => member.name.as_str(),
            };
            models::kin(&member.backend, member.model.as_deref(), agent)
        });
        kin.collect::<BTreeSet<String>>().len()
    }

    /// Returns the members that reviewed and did neither make a finding nor vote on it: their requests failed, were
    /// refused by a limit or stopped, or their replies hold no vote on it.
    fn without_vote(&self, cluster: &Cluster, votes: &BTreeMap<String, Vote>) -> Vec<String> {
        let makers = cluster.makers();
        let members = self.open.members.iter().zip(&self.sums);
        let names = members
            .filter(|(_, sum)| sum.replied > 0)
            .map(|(member, _)| member.name.as_str());
        names
            .filter(|name| !makers.contains(name) && !votes.contains_key(*name))
            .map(str::to_owned)
            .collect()
    }

    /// Counts the members that reviewed the parts of a cluster's findings: only they could agree.
    fn reviewed(&self, cluster: usize) -> usize {
        let findings = self.merged.clusters.get(cluster).into_iter().flatten();
        let parts = findings.filter_map(|at| self.sources.get(*at));
        let members: BTreeSet<usize> = parts
            .filter_map(|part| self.covered.get(*part))
            .flatten()
            .copied()
            .collect();
        members.len()
    }
}
