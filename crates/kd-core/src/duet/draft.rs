//! Turns the king's words and a reply that is over into messages that are not on disk yet.

use super::turn::{End, Turn};
use crate::clean::clean_line;
use crate::failure::FailureKind;
use crate::ids::KING;
use crate::message::{Address, Draft, Provenance, Status};
use crate::request::Finish;
use crate::roster::Member;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Front matter of what a seat told the king on the way: `think: update`. The answer has no such key.
pub(super) const THINK: &str = "think";
pub(super) const UPDATE: &str = "update";

/// The king's own words.
pub(super) fn king(body: String, at: Timestamp) -> Draft {
    Draft {
        turn: None,
        from: KING.to_owned(),
        to: Address::All,
        at,
        status: None,
        refs: Vec::new(),
        provenance: Provenance::default(),
        extra: BTreeMap::new(),
        body,
    }
}

/// What the king reads of a turn, or why there is nothing. `update` says that the answer is still to come.
pub(super) fn of_turn(
    turn: &Turn,
    end: &End,
    member: Option<&Member>,
    update: bool,
    at: Timestamp,
) -> Draft {
    let mut extra = BTreeMap::new();
    let mut note = |key: &str, value: &str| extra.insert(key.to_owned(), value.to_owned());
    if update {
        note(THINK, UPDATE);
    }
    if end.finish == Some(Finish::Length) {
        note("finish", "length");
    }
    let mut body = turn.body().to_owned();
    let status = match &end.result {
        Ok(()) => Status::Complete,
        Err(failure) => {
            note("failure", failure.kind.as_str());
            if !body.is_empty() {
                note("reason", &failure.message);
            } else if failure.kind == FailureKind::Cancelled {
                body = "*Interrupted*".to_owned();
            } else {
                body = format!("*Error: {}*", failure.message);
            }
            match failure.kind {
                FailureKind::Timeout => Status::Timeout,
                FailureKind::Cancelled => Status::Interrupted,
                _ => Status::Error,
            }
        }
    };
    Draft {
        turn: Some(turn.id),
        from: turn.seat.to_string(),
        to: Address::King,
        at,
        status: Some(status),
        refs: Vec::new(),
        provenance: provenance(turn, member),
        extra,
        body,
    }
}

fn provenance(turn: &Turn, member: Option<&Member>) -> Provenance {
    let configured = member.and_then(|m| m.model.as_deref());
    let (model, source) = match (&turn.ear.model, configured) {
        (Some(observed), _) => (Some(observed.clone()), Some("observed")),
        (None, Some(configured)) => (Some(clean_line(configured, 120)), Some("configured")),
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
