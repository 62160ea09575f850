//! The request for a review.

use super::condition::Condition;
use crate::request::Terms;
use std::path::PathBuf;

/// The change to review; by default, the difference of this branch and the uncommitted changes from their base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeRequest {
    /// Two commits, `FROM..TO`: what the second changes.
    pub range: Option<String>,
    /// What is staged.
    pub staged: bool,
    /// This branch and uncommitted changes, against this base; empty means the usual one.
    pub branch: Option<String>,
    /// A unified diff, or a mail with one, in this file; `-` is stdin.
    pub pr: Option<PathBuf>,
}

/// A review to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReviewRequest {
    /// The change.
    pub change: ChangeRequest,
    /// The members; empty means `council.review_members`, else `council.members`.
    pub members: Vec<String>,
    /// Maximum time of an answer, in seconds.
    pub timeout_secs: Option<u64>,
    /// Conditions that the report checks; one is enough.
    pub conditions: Vec<Condition>,
    /// Limits, privacy, downloads.
    pub terms: Terms,
}
