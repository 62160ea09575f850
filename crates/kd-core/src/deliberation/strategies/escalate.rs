//! Escalate: more seats join each time, from those in reserve.

use super::Next;
use crate::deliberation::course::Frame;

/// How many seats join at a time.
const JOIN: usize = 2;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let focus = "New members have joined. Look at the question afresh, then at the open issues.";
    let mut frames = vec![next.pass(next.protocol.steps, focus)];
    join(next, &mut frames, JOIN);
    frames
}

/// Seats in reserve join the pass at the bottom.
pub(super) fn join(next: &Next<'_>, frames: &mut [Frame], count: usize) {
    if let Some(pass) = frames.first_mut() {
        pass.board.seats.extend(next.reserves.iter().take(count));
        pass.board.seats.sort_unstable();
    }
}
