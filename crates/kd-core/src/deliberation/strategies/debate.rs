//! Debate: the leading answers are argued for and against, in rounds, and voted on once more.

use super::Next;
use crate::deliberation::course::Frame;
use crate::deliberation::protocols::FOR_AND_AGAINST;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let focus =
        "Argue for the answer that you find best, and name the flaw in the strongest other.";
    vec![next.pass(FOR_AND_AGAINST, focus)]
}
