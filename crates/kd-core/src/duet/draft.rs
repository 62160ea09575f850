//! Builds the draft message of a finished reply.

use super::turn::{End, Turn};
use crate::draft::{self, Ended};
use crate::message::Draft;
use crate::roster::Member;
use jiff::Timestamp;

/// Front matter of an intermediate reply to the user: `think: update`. The answer has no such key.
pub(super) const THINK: &str = "think";
pub(super) const UPDATE: &str = "update";

/// Returns the visible text of a turn, or why there is none. `update`: the answer is still to come.
pub(super) fn of_turn(
    turn: &Turn,
    end: &End,
    member: Option<&Member>,
    update: bool,
    at: Timestamp,
) -> Draft {
    let ended = Ended {
        turn: turn.id,
        seat: &turn.seat,
        body: turn.body(),
        result: &end.result,
        finish: end.finish,
        tokens: end.used().map(|used| used.output_tokens),
        model: turn.ear.model.as_deref(),
        version: turn.ear.version.as_deref(),
        member,
    };
    let mut draft = draft::of_turn(&ended, at);
    if update {
        draft.extra.insert(THINK.to_owned(), UPDATE.to_owned());
    }
    draft
}
