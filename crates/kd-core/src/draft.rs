//! Builds draft messages from the user's input and from finished turns, for all state machines.

use crate::clean::clean_line;
use crate::failure::{Failure, FailureKind};
use crate::ids::{SeatName, TurnId};
use crate::message::{
    Address, BROKEN_OFF, CUT_AT, Draft, FINISH, INTERRUPTED, Provenance, REASON, REASON_CHARS_MAX,
    Status,
};
use crate::names::KING;
use crate::request::Finish;
use crate::roster::Member;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Front matter of a failed turn: its kind. Its reason is there too if the body holds a partial answer.
const FAILURE: &str = "failure";

/// Returns the user's message.
pub(crate) fn king(body: String, to: Address, delivery: Option<String>, at: Timestamp) -> Draft {
    Draft {
        turn: None,
        from: KING.to_owned(),
        to,
        at,
        status: None,
        refs: Vec::new(),
        provenance: Provenance {
            delivery_id: delivery,
            ..Provenance::default()
        },
        extra: BTreeMap::new(),
        body,
    }
}

/// A finished turn.
pub(crate) struct Ended<'a> {
    pub(crate) turn: TurnId,
    pub(crate) seat: &'a SeatName,
    /// The text received.
    pub(crate) body: &'a str,
    pub(crate) result: &'a Result<(), Failure>,
    pub(crate) finish: Option<Finish>,
    /// The tokens of its answer, if the backend counts them.
    pub(crate) tokens: Option<u64>,
    /// The model, as reported by the backend.
    pub(crate) model: Option<&'a str>,
    pub(crate) version: Option<&'a str>,
    /// The member.
    pub(crate) member: Option<&'a Member>,
}

/// Returns the message of a turn: the answer, a partial answer, or the reason there is none.
pub(crate) fn of_turn(ended: &Ended<'_>, at: Timestamp) -> Draft {
    let mut extra = BTreeMap::new();
    if let Some(cut) = ended.finish.and_then(Finish::cut) {
        extra.insert(FINISH.to_owned(), cut.to_owned());
        if let Some(tokens) = ended.tokens.filter(|tokens| *tokens > 0) {
            extra.insert(CUT_AT.to_owned(), tokens.to_string());
        }
    }
    let mut body = ended.body.to_owned();
    if let Err(failure) = ended.result {
        let reason = clean_line(&failure.message, REASON_CHARS_MAX);
        extra.insert(FAILURE.to_owned(), failure.kind.as_str().to_owned());
        if body.is_empty() {
            body = match failure.kind {
                FailureKind::Cancelled => INTERRUPTED.to_owned(),
                _ => format!("*Error: {reason}*"),
            };
        } else {
            extra.insert(REASON.to_owned(), reason);
            if failure.kind == FailureKind::Cancelled {
                body = format!("{body}\n\n{BROKEN_OFF}");
            }
        }
    }
    Draft {
        turn: Some(ended.turn),
        from: ended.seat.to_string(),
        to: Address::King,
        at,
        status: Some(status(ended.result)),
        refs: Vec::new(),
        provenance: provenance(ended.member, ended.model, ended.version),
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

/// Returns the origin of an answer: the model as reported by the backend, otherwise as configured.
pub(crate) fn provenance(
    member: Option<&Member>,
    told: Option<&str>,
    version: Option<&str>,
) -> Provenance {
    let configured = member.and_then(|m| m.model.as_deref());
    let (model, source) = match (told, configured) {
        (Some(told), _) => (Some(told.to_owned()), Some("observed")),
        (None, Some(configured)) => (Some(clean_line(configured, 120)), Some("configured")),
        (None, None) => (None, None),
    };
    Provenance {
        backend: member.map(|m| clean_line(&m.backend, 80)),
        model,
        model_source: source.map(str::to_owned),
        cli_version: version.map(str::to_owned),
        ..Provenance::default()
    }
}
