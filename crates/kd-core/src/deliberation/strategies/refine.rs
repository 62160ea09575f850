//! Refine: the same seats improve on what there is.

use super::Next;
use crate::deliberation::course::Frame;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let focus = "Improve the leading answer: meet its open issues, or give a better one.";
    vec![next.pass(next.protocol.steps, focus)]
}
