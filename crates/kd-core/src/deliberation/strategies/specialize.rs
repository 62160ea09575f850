//! Specialize: a sub-council for each open issue and, if it finds no answer, one below it, up to the plan's depth; then
//! the council continues with their results.

use super::Next;
use crate::deliberation::board::Board;
use crate::deliberation::frame::{Frame, Kind};
use crate::deliberation::protocols::{FOR_AND_AGAINST, ISSUE};
use crate::memory::sentences;

/// Maximum number of issues with a sub-council after one pass.
const ISSUES_MAX: usize = 2;
/// Maximum number of members of a sub-council.
const SEATS_MAX: usize = 3;

pub(super) fn frames(next: &Next<'_>) -> Vec<Frame> {
    let mut frames = vec![next.pass(
        next.protocol.steps,
        "Settle what is still open, with what the sub-councils found.",
    )];
    if next.plan.iteration.max_depth == 0 {
        return frames;
    }
    let issues = next
        .memory
        .open_questions
        .iter()
        .rev()
        .chain(next.memory.disagreements.iter().rev());
    let seats = experts(next);
    let laid = issues.take(ISSUES_MAX).map(|issue| {
        let board = Board {
            question: format!(
                "A council discusses: {}\nOne issue is open. Settle it: {}",
                next.plan.question, issue.text
            ),
            depth: 1,
            pass: next.last.pass + 1,
            seats: seats.clone(),
            ..Board::default()
        };
        Frame::new(board, ISSUE, Kind::Issue(issue.text.clone()))
    });
    frames.extend(laid);
    frames
}

/// Creates a nested sub-council that argues for and against the two leading answers.
pub(in crate::deliberation) fn deeper(issue: &str, board: &Board) -> Option<Frame> {
    let claim = |at: usize| {
        let candidate = board.candidates.get(at)?;
        sentences(&candidate.text, 1).into_iter().next()
    };
    let (first, second) = (claim(0)?, claim(1)?);
    let board = Board {
        question: format!(
            "{}\nTwo answers stand against each other:\n- {first}\n- {second}",
            board.question
        ),
        depth: board.depth + 1,
        pass: board.pass,
        seats: board.seats.clone(),
        ..Board::default()
    };
    Some(Frame::new(
        board,
        FOR_AND_AGAINST,
        Kind::Issue(issue.to_owned()),
    ))
}

/// Returns experts first, then the other members, in member order.
fn experts(next: &Next<'_>) -> Vec<usize> {
    let mut seats = next.last.seats.clone();
    seats.retain(|s| next.plan.seats[*s].has(crate::roles::Duty::Opine));
    seats.sort_by_key(|s| (next.plan.seats[*s].role != "domain-expert", *s));
    seats.truncate(SEATS_MAX);
    seats.sort_unstable();
    seats
}
