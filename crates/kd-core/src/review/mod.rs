//! A code review by several members: findings as data, merged, voted on and reported with the share of them that is
//! expected to be real.
//!
//! [`Report`] is the result. Text of members is data: it is limited and cleaned when parsed, and never treated as
//! consent, identity or markup.

mod ask;
mod budget;
pub mod chance;
pub mod check;
mod machine;
pub mod merge;
mod message;
mod open;
mod prompts;
mod published;
pub mod read;
pub mod shares;

pub use budget::JUDGES_MAX;
pub use chance::Marks;
pub use machine::Review;
pub use open::OpenReview;
pub use published::TABLE;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of [`Report`]'s format.
pub const REPORT_VERSION: u32 = crate::formats::REVIEWS.version;

/// The severity of a finding. Ordered: a blocker is the highest.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Style or wording; the change can be merged without it.
    Nit,
    /// A small defect.
    #[default]
    Minor,
    /// A defect that users will encounter.
    Major,
    /// A defect with which the change must not be merged.
    Blocker,
}

impl Severity {
    /// All severities, highest first.
    pub const ALL: [Self; 4] = [Self::Blocker, Self::Major, Self::Minor, Self::Nit];

    /// Returns the word in JSON, in prompts and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocker => "blocker",
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Nit => "nit",
        }
    }
}

/// A range of lines, 1-based and inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lines {
    /// The first line.
    pub first: u32,
    /// The last line, at least `first`.
    pub last: u32,
}

/// A defect that a member found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The path from the root of the reviewed tree, with `/`.
    pub file: String,
    /// The lines on the new side of the diff.
    pub lines: Lines,
    /// The lines of code concerned, as in the tree.
    pub quote: String,
    /// The problem, in one or two sentences.
    pub claim: String,
    /// The severity.
    pub severity: Severity,
    /// The evidence: a path to the failure, an input, a caller.
    pub evidence: String,
    /// The suggested change. Never applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A finding and the member that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raw {
    /// The member's name.
    pub member: String,
    /// The finding.
    pub finding: Finding,
}

/// A finding that the tree does not confirm. It counts against its member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The member's name.
    pub member: String,
    /// The finding, as the member reported it.
    pub finding: Finding,
    /// The reason why it was dropped.
    pub why: String,
}

/// A vote on a finding by a member that did not make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// The defect exists.
    Real,
    /// The defect does not exist.
    NotReal,
    /// The code shown is not sufficient to decide.
    CannotTell,
}

impl Vote {
    /// Returns the words in prompts and replies.
    pub fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::NotReal => "not real",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// Findings of one or more members that describe the same defect. Never empty; the first finding represents it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The findings, most representative first: see [`merge::clusters`].
    pub findings: Vec<Raw>,
    /// The origin of each merge: a rule, or a member that judged. Judges that kept findings apart are there too.
    pub how: Vec<String>,
}

impl Cluster {
    /// Returns the members that made it, without duplicates, in the order of their findings.
    pub fn makers(&self) -> Vec<&str> {
        self.severities()
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    /// Returns the severity: the highest that any of its members names.
    ///
    /// The words of a hostile change can make a member repeat a blocker as a nit, so that it passes `--fail-on`. With
    /// this rule no member can lower a severity. A member can raise it, but it could also report its own blocker,
    /// and [`Cluster::severities`] records who named which.
    pub fn severity(&self) -> Severity {
        let all = self.findings.iter().map(|raw| raw.finding.severity);
        all.max().unwrap_or_default()
    }

    /// Returns the highest severity that each member names, in the order of their findings.
    pub fn severities(&self) -> Vec<(&str, Severity)> {
        let mut out: Vec<(&str, Severity)> = Vec::new();
        for raw in &self.findings {
            let severity = raw.finding.severity;
            match out.iter_mut().find(|(name, _)| *name == raw.member) {
                Some((_, highest)) => *highest = severity.max(*highest),
                None => out.push((&raw.member, severity)),
            }
        }
        out
    }

    /// Returns the findings whose claims differ from those before them.
    pub fn other_wordings(&self) -> Vec<&Raw> {
        let claim = |raw: &Raw| raw.finding.claim.trim().to_lowercase();
        let mut seen: BTreeSet<String> = self.findings.first().map(claim).into_iter().collect();
        let others = self.findings.iter().skip(1);
        others.filter(|raw| seen.insert(claim(raw))).collect()
    }
}

/// The source of a [`Chance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The published table: councils of `of` members, `agreeing` of which made the same finding.
    Published {
        /// Members that agree.
        agreeing: u32,
        /// Members of the council.
        of: u32,
    },
    /// The published table, and findings that users of this repository accepted or dismissed.
    Marks {
        /// Number of marks at this level of agreement.
        marks: u32,
    },
}

/// The share of findings like this one that were real, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// The share, from 0 to 1.
    pub share: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The source of the numbers.
    pub source: Source,
}

impl Chance {
    /// Returns the share in whole percent, as reports show it and as conditions compare it.
    pub fn percent(&self) -> u32 {
        percent(self.share)
    }
}

/// Formats a number with its noun: `1 finding`, `2 findings`.
fn counted(n: impl TryInto<u64>, noun: &str) -> String {
    match n.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Rounds a share to whole percent, a half up.
pub fn percent(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// A finding of the review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The id: stable for the same file, code and claim.
    pub id: String,
    /// The severity, for programs. Older reports lack it; [`Reported::severity`] returns it for them too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The findings behind it.
    pub cluster: Cluster,
    /// Votes of members that did not make it.
    pub votes: BTreeMap<String, Vote>,
    /// The members that reviewed, did not make it, and whose vote is missing, for whatever reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_votes: Vec<String>,
    /// The probability that the finding is real.
    pub chance: Chance,
    /// The number of different models among the members that made it; `None` if each is another one. Members of one vendor
    /// or of one model count once in `chance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent: Option<u32>,
    /// The number of members that reviewed the part of the change with the finding; `None` if all reviewers did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
}

impl Reported {
    /// Returns the members that made it, without duplicates, in the order of their findings.
    pub fn makers(&self) -> Vec<&str> {
        self.cluster.makers()
    }

    /// Returns the severity: see [`Cluster::severity`].
    pub fn severity(&self) -> Severity {
        self.severity.unwrap_or_else(|| self.cluster.severity())
    }

    /// Returns the finding that represents the cluster.
    pub fn finding(&self) -> Option<&Finding> {
        self.cluster.findings.first().map(|raw| &raw.finding)
    }

    /// Returns a fingerprint that stays the same between runs: a hash of the file and of the quoted lines, without
    /// spacing. Members do not repeat their words, so the claim is not part of it. Of several quotes, the one that most
    /// members give counts, so that it does not matter which finding represents the cluster.
    pub fn fingerprint(&self) -> String {
        message::fingerprint(&self.cluster)
    }

    /// Counts the members that found it independently. Votes do not count: agreeing with a finding is weaker than
    /// finding it, and the published table is based on reviewers that did not see each other's findings.
    pub fn agreeing(&self) -> u32 {
        u32::try_from(self.makers().len()).unwrap_or(u32::MAX)
    }

    /// Returns whether only one member made it, no other voted for it, and votes are missing: nobody has confirmed it, and
    /// not everybody could.
    pub fn is_unconfirmed(&self) -> bool {
        self.agreeing() < 2 && self.votes_for(Vote::Real) == 0 && !self.missing_votes.is_empty()
    }

    /// Counts the members that found it, those of one vendor or model once: their agreement says less than that of the
    /// products in the published table.
    pub fn independent(&self) -> u32 {
        self.independent.unwrap_or_else(|| self.agreeing())
    }

    /// Counts the votes of this kind.
    pub fn votes_for(&self, kind: Vote) -> usize {
        self.votes.values().filter(|vote| **vote == kind).count()
    }
}

/// The contribution of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberSum {
    /// The member's name.
    pub name: String,
    /// Findings confirmed by the tree.
    pub findings: u32,
    /// Findings that were dropped.
    pub dropped: u32,
    /// The reason why the member returned no review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The result of a review.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format: [`REPORT_VERSION`].
    pub version: u32,
    /// The base that the change is compared with.
    pub base: String,
    /// The reviewed side.
    pub head: String,
    /// The findings, most likely to be real first.
    pub findings: Vec<Reported>,
    /// The findings that the tree does not confirm.
    pub dropped: Vec<Dropped>,
    /// The members, in council order.
    pub members: Vec<MemberSum>,
    /// Notices for the user about this review.
    pub notices: Vec<String>,
}
