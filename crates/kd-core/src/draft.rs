//! What the king said, and what a turn that has ended leaves behind, as messages that are not on disk yet: the same for
//! every machine.

use crate::clean::clean_line;
use crate::failure::{Failure, FailureKind};
use crate::ids::{KING, SeatName, TurnId};
use crate::message::{Address, BROKEN_OFF, Draft, INTERRUPTED, Provenance, Status};
use crate::request::Finish;
use crate::roster::Member;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Front matter of a failed turn: its kind, and its reason where the body holds the text that came.
const FAILURE: &str = "failure";
const REASON: &str = "reason";
/// Front matter of an answer that the token limit cut: `finish: length`.
pub(crate) const FINISH: &str = "finish";
pub(crate) const LENGTH: &str = "length";
/// The most characters of a reason.
const REASON_CHARS_MAX: usize = 400;

/// The king's own words.
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

/// A turn that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) turn: TurnId,
    pub(crate) seat: &'a SeatName,
    /// The text that came.
    pub(crate) body: &'a str,
    pub(crate) result: &'a Result<(), Failure>,
    pub(crate) finish: Option<Finish>,
    /// What the backend said about itself.
    pub(crate) model: Option<&'a str>,
    pub(crate) version: Option<&'a str>,
    /// Who sits there.
    pub(crate) member: Option<&'a Member>,
}

/// A turn's message: the answer, or what came of it, or why nothing came.
pub(crate) fn of_turn(ended: &Ended<'_>, at: Timestamp) -> Draft {
    let mut extra = BTreeMap::new();
    if ended.finish == Some(Finish::Length) {
        extra.insert(FINISH.to_owned(), LENGTH.to_owned());
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

/// Who answered: the model as the backend told it, else as it is configured.
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
