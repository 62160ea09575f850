//! Escalate: reserve members join with each pass.

use super::Next;
use crate::deliberation::frame::Frame;

/// Number of members that join per pass.
const JOIN: usize = 2;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let focus = "New members have joined. Look at the question afresh, then at the open issues.";
    let mut frames = vec![next.pass(next.protocol.steps, focus)];
    join(next, &mut frames, JOIN);
    frames
}

/// Adds reserve members to the bottom pass.
pub(super) fn join(next: &Next<'_>, frames: &mut [Frame], count: usize) {
    if let Some(pass) = frames.first_mut() {
        pass.board.seats.extend(next.reserves.iter().take(count));
        pass.board.seats.sort_unstable();
    }
}
