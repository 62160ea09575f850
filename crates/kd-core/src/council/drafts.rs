//! Builds draft messages from finished turns.

use super::Words;
use super::floor::{End, Turn};
use crate::draft::{self, Ended};
use crate::event::Purpose;
use crate::ids::{SeatName, TurnId};
use crate::message::{CHOSEN, Draft, Message, PASS, REPLACES};
use crate::roster::Member;
use crate::speech::is_pass;
use jiff::Timestamp;

/// Front matter of a conclusion, `purpose: conclude`, and of an answer in a JSON schema, `purpose: format`. Ordinary answers
/// have no such key.
pub const PURPOSE: &str = "purpose";
const CONCLUDE: &str = "conclude";

/// Returns whether a message is a conclusion.
pub fn concludes(message: &Message) -> bool {
    message
        .extra
        .get(PURPOSE)
        .is_some_and(|purpose| purpose == CONCLUDE)
}

/// Returns the user's message.
pub(super) fn king(words: &Words, at: Timestamp) -> Draft {
    let mut draft = draft::king(words.body.clone(), words.to.clone(), words.id.clone(), at);
    let chosen = words.chosen.map(|seq| (CHOSEN.to_owned(), seq.to_string()));
    draft.extra.extend(chosen);
    draft
}

/// Returns the failed message of a member's last turn since the user's last message; a new answer replaces it.
pub(super) fn failed_before(history: &[Message], seat: &SeatName, purpose: Purpose) -> Option<u32> {
    let round = history.iter().rev().take_while(|m| !m.is_question(history));
    let last = round
        .filter(|m| m.from == seat.as_str())
        .filter(|m| concludes(m) || !m.extra.contains_key(PURPOSE))
        .find(|m| concludes(m) == (purpose == Purpose::Conclude))?;
    (!last.is_sound()).then(|| last.replaces().unwrap_or(last.seq))
}

/// Returns the message of a turn: the answer, a partial answer, or the reason there is none.
pub(super) fn of_turn(
    id: TurnId,
    turn: &Turn,
    end: &End,
    member: Option<&Member>,
    delivery: Option<String>,
    at: Timestamp,
) -> Draft {
    let body = turn.body();
    let ended = Ended {
        turn: id,
        seat: &turn.seat,
        body,
        result: &end.result,
        finish: end.finish,
        tokens: end.used().map(|used| used.output_tokens),
        model: turn.ear.model.as_deref(),
        version: turn.ear.version.as_deref(),
        member,
    };
    let mut draft = draft::of_turn(&ended, at);
    draft.provenance.delivery_id = delivery;
    let mut note = |key: &str, value: String| draft.extra.insert(key.to_owned(), value);
    if turn.purpose == Purpose::Conclude {
        note(PURPOSE, CONCLUDE.to_owned());
    }
    if let Some(seq) = turn.replaces {
        note(REPLACES, seq.to_string());
    }
    if end.result.is_ok() && turn.purpose == Purpose::Answer && is_pass(body) {
        note(PASS, "yes".to_owned());
    }
    draft
}
