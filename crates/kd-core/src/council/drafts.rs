//! Turns ends into messages that are not on disk yet.

use super::Words;
use super::floor::{End, Turn};
use crate::clean::clean_line;
use crate::event::Purpose;
use crate::failure::{Failure, FailureKind};
use crate::ids::{KING, SeatName, TurnId};
use crate::message::{Address, Draft, Message, PASS, Provenance, REPLACES, Status};
use crate::request::Finish;
use crate::roster::Member;
use crate::speech::is_pass;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Front matter of a conclusion: `purpose: conclude`. Ordinary answers have no such key.
pub(super) const PURPOSE: &str = "purpose";
const CONCLUDE: &str = "conclude";
/// Front matter of a failed turn: its kind, and its reason where the body holds the text that came.
const FAILURE: &str = "failure";
const REASON: &str = "reason";
/// Front matter of an answer that the token limit cut: `finish: length`.
const FINISH: &str = "finish";
/// The most characters of a reason.
const REASON_CHARS_MAX: usize = 400;

/// The king's own words.
pub(super) fn king(words: &Words, at: Timestamp) -> Draft {
    Draft {
        turn: None,
        from: KING.to_owned(),
        to: words.to.clone(),
        at,
        status: None,
        refs: Vec::new(),
        provenance: Provenance {
            delivery_id: words.id.clone(),
            ..Provenance::default()
        },
        extra: BTreeMap::new(),
        body: words.body.clone(),
    }
}

/// The failed message of a seat since the king last spoke, if its last one failed: a new answer takes its place.
pub(super) fn failed_before(history: &[Message], seat: &SeatName, purpose: Purpose) -> Option<u32> {
    let round = history.iter().rev().take_while(|m| !m.is_king());
    let last = round
        .filter(|m| m.from == seat.as_str())
        .find(|m| m.extra.contains_key(PURPOSE) == (purpose == Purpose::Conclude))?;
    (!last.is_sound()).then(|| last.replaces().unwrap_or(last.seq))
}

/// A turn's message: the answer, or what came of it, or why nothing came.
pub(super) fn of_turn(
    id: TurnId,
    turn: &Turn,
    end: &End,
    member: Option<&Member>,
    delivery: Option<String>,
    at: Timestamp,
) -> Draft {
    let mut extra = BTreeMap::new();
    if turn.purpose == Purpose::Conclude {
        extra.insert(PURPOSE.to_owned(), CONCLUDE.to_owned());
    }
    if end.finish == Some(Finish::Length) {
        extra.insert(FINISH.to_owned(), "length".to_owned());
    }
    if let Some(seq) = turn.replaces {
        extra.insert(REPLACES.to_owned(), seq.to_string());
    }
    let mut body = turn.body().to_owned();
    if end.result.is_ok() && turn.purpose == Purpose::Answer && is_pass(&body) {
        extra.insert(PASS.to_owned(), "yes".to_owned());
    }
    if let Err(failure) = &end.result {
        let reason = clean_line(&failure.message, REASON_CHARS_MAX);
        extra.insert(FAILURE.to_owned(), failure.kind.as_str().to_owned());
        if body.is_empty() {
            body = match failure.kind {
                FailureKind::Cancelled => "*Interrupted*".to_owned(),
                _ => format!("*Error: {reason}*"),
            };
        } else {
            extra.insert(REASON.to_owned(), reason);
        }
    }
    Draft {
        turn: Some(id),
        from: turn.seat.to_string(),
        to: Address::King,
        at,
        status: Some(status(&end.result)),
        refs: Vec::new(),
        provenance: Provenance {
            delivery_id: delivery,
            ..provenance(turn, member)
        },
        extra,
        body,
    }
}

fn status(result: &Result<(), Failure>) -> Status {
    match result {
        Ok(()) => Status::Complete,
        Err(failure) => match failure.kind {
            FailureKind::Timeout => Status::Timeout,
            FailureKind::Cancelled => Status::Interrupted,
            _ => Status::Error,
        },
    }
}

fn provenance(turn: &Turn, member: Option<&Member>) -> Provenance {
    let configured = member
        .and_then(|m| m.model.as_deref())
        .map(|m| clean_line(m, 120));
    let (model, source) = match (&turn.ear.model, configured) {
        (Some(observed), _) => (Some(observed.clone()), Some("observed")),
        (None, Some(configured)) => (Some(configured), Some("configured")),
        (None, None) => (None, None),
    };
    Provenance {
        backend: member.map(|m| clean_line(&m.backend, 80)),
        model,
        model_source: source.map(str::to_owned),
        cli_version: turn.ear.version.clone(),
        ..Provenance::default()
    }
}
