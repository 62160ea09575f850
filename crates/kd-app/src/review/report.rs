//! A stored report, with the data that its formats need besides the members' text: commits, and the lines of the diff.

use super::kinds::is_of_kd;
use super::names::first_of;
use crate::words::count;
use kd_core::review::{Report, Reported, Vote};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum names in the line about parts that were not checked.
const UNSEEN_MAX: usize = 5;

/// The version of [`Kept`].
pub const VERSION: u32 = kd_core::formats::REVIEWS.version;

/// A report as stored and as printed by `--format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// [`VERSION`].
    pub version: u32,
    /// The thread of the review.
    pub thread: String,
    /// The commit before the change, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    /// The reviewed commit, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_commit: Option<String>,
    /// Files, added lines and removed lines.
    pub size: (usize, usize, usize),
    /// The lines of the diff that code hosts show.
    pub places: Vec<Place>,
    /// The files of the change that members did not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The ids of the findings that the user has dismissed, in their own data. They meet no condition.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub dismissed: BTreeSet<String>,
    /// The conditions of `--fail-on`, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<FailOn>,
    /// The findings and the members.
    pub report: Report,
}

/// The conditions of `--fail-on`, and the findings that meet them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailOn {
    /// The conditions, as typed.
    pub conditions: Vec<String>,
    /// The conditions that each finding meets, by its id.
    pub met: BTreeMap<String, Vec<String>>,
    /// The parts of the change that may hold code and that no member saw: files, or lines of a diff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

impl FailOn {
    /// Adds the files that may hold code, and the lines of a diff that were not read.
    pub(super) fn with_unseen(mut self, left_out: &[LeftOut], is_unread: bool) -> Self {
        let files = left_out.iter().filter(|one| one.may_hold_code);
        self.unseen = files.map(|one| one.file.clone()).collect();
        if is_unread {
            self.unseen.push("lines of the diff".to_owned());
        }
        self
    }
}

/// A file of the change that members did not see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path.
    pub file: String,
    /// The reason.
    pub why: String,
    /// Whether it may hold code: then a review with `--fail-on` is incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_hold_code: bool,
}

impl LeftOut {
    /// A file that may hold code, and the reason.
    pub fn of(file: &str, why: &str) -> Self {
        Self {
            file: file.to_owned(),
            why: why.to_owned(),
            may_hold_code: true,
        }
    }

    /// A binary file.
    pub fn binary(file: &str, may_hold_code: bool) -> Self {
        Self {
            may_hold_code,
            ..Self::of(file, "binary")
        }
    }

    /// A file in the folder of `kd`.
    pub fn own(file: &str) -> Self {
        Self {
            may_hold_code: !is_of_kd(file),
            ..Self::of(file, "in the folder of kd")
        }
    }
}

/// The lines of a file that a diff shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The path after the change.
    pub file: String,
    /// The path before.
    pub old: String,
    /// Runs of lines: first, last, and the old number of the first if the lines are unchanged.
    pub rows: Vec<(u32, u32, Option<u32>)>,
}

impl Place {
    /// Returns whether the diff shows a line, and its old number if unchanged.
    pub fn find(&self, line: u32) -> Option<Option<u32>> {
        let within = |(first, last, _): &&(u32, u32, Option<u32>)| (*first..=*last).contains(&line);
        let (first, _, old) = self.rows.iter().find(within)?;
        Some(old.map(|old| old.saturating_add(line - first)))
    }
}

impl Kept {
    /// Formats how many reviews arrived: `3 members reviewed`, or `1 of 3 members reviewed`.
    pub fn reviewers(&self) -> String {
        let all = count(self.report.members.len() as u64, "member");
        match self.reviewed() == self.report.members.len() {
            true => format!("{all} reviewed"),
            false => format!("{} of {all} reviewed", self.reviewed()),
        }
    }

    /// Formats how many findings are shown, and how many of them are dismissed. Without any review, "no finding" would
    /// say too much.
    pub fn found(&self, shown: &[&Reported]) -> String {
        let dismissed = shown.iter().filter(|one| self.is_dismissed(one)).count();
        match (self.reviewed(), shown.len(), dismissed) {
            (0, 0, _) => "no review".to_owned(),
            (_, 0, _) => "no finding".to_owned(),
            (_, n, 0) => count(n as u64, "finding"),
            (_, n, dismissed) => {
                format!("{}, {dismissed} dismissed", count(n as u64, "finding"))
            }
        }
    }

    /// Returns whether the user has dismissed a finding.
    pub fn is_dismissed(&self, finding: &Reported) -> bool {
        self.dismissed.contains(&finding.id)
    }

    /// Takes the ids of the findings that the user has dismissed: they meet no condition.
    pub(super) fn dismiss(&mut self, dismissed: BTreeSet<String>) {
        if let Some(fail_on) = &mut self.fail_on {
            fail_on.met.retain(|id, _| !dismissed.contains(id));
        }
        self.dismissed = dismissed;
    }

    /// Formats the two sides: `main to HEAD`. A diff that applies to no commit has no base.
    pub fn sides(&self) -> String {
        match self.report.base.as_str() {
            "" => self.report.head.clone(),
            base => format!("{base} to {}", self.report.head),
        }
    }

    /// Returns failures and dropped findings, a line for each member.
    pub fn lacks(&self) -> Vec<String> {
        let members = &self.report.members;
        let failed = members.iter().filter_map(|member| {
            let why = member.failed.as_ref()?;
            Some(format!("{} gave no review: {why}", member.name))
        });
        let dropped = members.iter().filter(|member| member.dropped > 0);
        let dropped = dropped.map(|member| {
            let findings = count(member.dropped.into(), "finding");
            format!("dropped {findings} of {}: not in the code", member.name)
        });
        failed.chain(dropped).collect()
    }

    /// Returns the number of members that delivered a review.
    pub fn reviewed(&self) -> usize {
        let members = self.report.members.iter();
        members.filter(|member| member.failed.is_none()).count()
    }

    /// Returns the number of members that could have made a finding.
    pub fn reviewers_of(&self, finding: &Reported) -> u32 {
        let all = || u32::try_from(self.reviewed()).unwrap_or(u32::MAX);
        finding.of.unwrap_or_else(all)
    }

    /// Returns the options that a finding meets: `--fail-on P>=0.7 and --fail-on major`.
    pub fn meets(&self, finding: &Reported) -> Option<String> {
        let met = self.fail_on.as_ref()?.met.get(&finding.id)?;
        let met: Vec<String> = met.iter().map(|one| format!("--fail-on {one}")).collect();
        Some(met.join(" and "))
    }

    /// Describes which findings meet the conditions of `--fail-on`; `None` if there were no conditions.
    pub fn verdict(&self) -> Option<String> {
        let FailOn {
            conditions,
            met,
            unseen,
        } = self.fail_on.as_ref()?;
        let conditions = conditions.join(" or ");
        let ids: Vec<&str> = met.keys().map(String::as_str).collect();
        let unseen = match first_of(unseen, UNSEEN_MAX) {
            Some(unseen) => format!("; not checked, because no member saw it: {unseen}"),
            None => String::new(),
        };
        let met = match ids.len() {
            0 => format!("--fail-on {conditions} is met by no finding"),
            n => format!(
                "--fail-on {conditions} is met by {}: {}",
                count(n as u64, "finding"),
                ids.join(", ")
            ),
        };
        Some(met + &unseen)
    }

    /// Splits the findings into findings that are shown and findings that only one of several reviewers found or
    /// voted for. Findings that meet a condition of `--fail-on` are shown: they explain the exit code. Findings on which
    /// votes are missing are shown too: a missing vote is no vote against them.
    pub fn folded(&self) -> (Vec<&Reported>, Vec<&Reported>) {
        let alone = |finding: &&Reported| {
            self.reviewers_of(finding) > 1
                && self.meets(finding).is_none()
                && !finding.is_unconfirmed()
                && finding.agreeing() < 2
                && finding.votes_for(Vote::Real) == 0
        };
        let (alone, shown) = self.report.findings.iter().partition(alone);
        (shown, alone)
    }
}
