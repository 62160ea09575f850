//! Debate: members argue for and against the leading answers, in rounds, and vote again.

use super::Next;
use crate::deliberation::frame::Frame;
use crate::deliberation::protocols::FOR_AND_AGAINST;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let focus =
        "Argue for the answer that you find best, and name the flaw in the strongest other.";
    vec![next.pass(FOR_AND_AGAINST, focus)]
}
