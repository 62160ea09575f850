//! A thread as a web page: collects what `kd_page` renders, and follows it for readers.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::host::{Followed, Following};
use kd_core::deliberation::without_marks;
use kd_core::redact::Redactor;
use kd_core::{Event, Input, Member, Record, SeatName};
use kd_store::{Thread, fork, log};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval between checks whether any reader still follows.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum pieces queued.
const PIECES: usize = 64;

/// Returns a message or record without private data.
///
/// # Errors
/// If it cannot be written as JSON.
pub(crate) fn redacted<T: Serialize + DeserializeOwned>(
    message: T,
    redactor: Option<&mut Redactor>,
) -> Result<T, UserError> {
    let Some(redactor) = redactor else {
        return Ok(message);
    };
    let fault = |e: serde_json::Error| {
        UserError::new(ErrorKind::Redact, "a message could not be redacted").because(e.to_string())
    };
    let mut value = serde_json::to_value(&message).map_err(fault)?;
    redactor.value(&mut value);
    serde_json::from_value(value).map_err(fault)
}

/// Returns a thread for rendering. Reports unreadable parts.
///
/// # Errors
/// If the thread cannot be read.
pub fn of(
    open: &Thread,
    redactor: Option<&mut Redactor>,
    env: &Env,
) -> Result<kd_page::Thread, UserError> {
    let (page, faults) = read(open, redactor)?;
    for fault in faults {
        env.warn(format!("warning: {fault}"));
    }
    Ok(page)
}

/// Returns a thread for rendering, and its unreadable parts.
///
/// # Errors
/// If the thread cannot be read.
pub fn read(
    open: &Thread,
    mut redactor: Option<&mut Redactor>,
) -> Result<(kd_page::Thread, Vec<String>), UserError> {
    let read = open.messages()?;
    let mut faults: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    let mut messages = Vec::with_capacity(read.messages.len());
    for message in read.messages {
        messages.push(redacted(message, redactor.as_deref_mut())?);
    }
    let records = log::read(open).map(|logged| logged.records);
    let records = records.unwrap_or_else(|error| {
        faults.push(format!("the page shows messages alone: {error}"));
        Vec::new()
    });
    // What the user marked is private too.
    let records: Vec<Record> = match redactor {
        None => records,
        Some(_) => unmarked(records),
    };
    let pieces = |record: &Record| !matches!(record.event, Event::TurnDelta { .. });
    let mut kept = Vec::new();
    for record in records.into_iter().filter(pieces) {
        kept.push(redacted(record, redactor.as_deref_mut())?);
    }
    let meta = open.meta();
    let members = meta
        .members
        .iter()
        .filter(|name| *name != kd_core::names::KING);
    let origin = meta
        .lineage()
        .map(|from: fork::Lineage| format!("{} {}", from.of, from.words()));
    let page = kd_page::Thread {
        id: open.id().clone(),
        opened: meta.created(),
        members: members.cloned().collect(),
        origin,
        private: meta.is_private(),
        forgotten: meta.forgotten().iter().map(|one| one.message).collect(),
        messages,
        records: kept,
        family: Vec::new(),
    };
    Ok((page, faults))
}

/// Leaves out of records what tells how the person who asked marks verdicts.
pub(crate) fn unmarked(mut records: Vec<Record>) -> Vec<Record> {
    records.retain_mut(|record| without_marks(&mut record.event));
    records
}

/// A followed thread.
struct Watched {
    _streams: kd_engine::Watch,
}

impl Following for Watched {}

/// Reports what happens in a thread from now on. `members` determine the dialect in which other programs stream. Must
/// be called inside a tokio runtime.
///
/// # Errors
/// If its folder cannot be watched.
pub fn follow(
    open: Thread,
    members: &[Member],
    tell: mpsc::Sender<Followed>,
) -> Result<Box<dyn Following>, UserError> {
    let seen = open
        .tail(1)?
        .messages
        .last()
        .map_or(0, |message| message.seq);
    let changes = kd_store::Watch::new(open.path())?;
    let open = Arc::new(open);
    let (told, mut inputs) = mpsc::channel(PIECES);
    let streams = kd_engine::Watch::start(open.clone(), seen, members, told)?;
    let to = tell.clone();
    tokio::spawn(async move {
        while let Some(input) = inputs.recv().await {
            let (first, second) = match input {
                Input::Found { message } => {
                    let ended = SeatName::sender(&message.from).ok().map(Followed::Ended);
                    (Some(Followed::Changed), ended)
                }
                Input::FoundDelta { seat, delta } => (Some(Followed::Piece(seat, delta)), None),
                Input::FoundEnd { seat } => (Some(Followed::Ended(seat)), None),
                _ => (None, None),
            };
            for followed in first.into_iter().chain(second) {
                if to.send(followed).await.is_err() {
                    return;
                }
            }
        }
    });
    std::thread::Builder::new()
        .name("kd-page".into())
        .spawn(move || {
            let mut size = log::size(&open);
            while !tell.is_closed() {
                // A growing stream also causes a wakeup, but only records count.
                if !changes.wait(LOOK) || std::mem::replace(&mut size, log::size(&open)) == size {
                    continue;
                }
                if tell.blocking_send(Followed::Changed).is_err() {
                    return;
                }
            }
        })?;
    Ok(Box::new(Watched { _streams: streams }))
}
