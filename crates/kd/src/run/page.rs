//! A thread as a web page: collects what `kd_page` renders, and follows it for readers.

use super::export::redacted;
use crate::error::Error;
use crate::render::clean;
use kd_core::redact::Redactor;
use kd_core::{Event, Input, Member, Record, SeatName};
use kd_server::{Followed, Following};
use kd_store::{Thread, fork, log};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How often to check whether anyone still follows.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum pieces queued.
const PIECES: usize = 64;

/// Returns a thread for rendering. Reports unreadable parts on stderr.
pub(super) fn of(open: &Thread, redactor: Option<&mut Redactor>) -> Result<kd_page::Thread, Error> {
    let (page, faults) = read(open, redactor)?;
    for fault in faults {
        let _ = writeln!(io::stderr(), "warning: {}", clean::line(&fault));
    }
    Ok(page)
}

/// Returns a thread for rendering, and its unreadable parts.
pub(super) fn read(
    open: &Thread,
    mut redactor: Option<&mut Redactor>,
) -> Result<(kd_page::Thread, Vec<String>), Error> {
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
    };
    Ok((page, faults))
}

/// A followed thread.
struct Watched {
    _streams: kd_engine::Watch,
}

impl Following for Watched {}

/// Reports what happens in a thread from now on. `members` determine the dialect in which other programs stream. Must
/// be called inside a tokio runtime.
pub(super) fn follow(
    open: Thread,
    members: &[Member],
    tell: mpsc::Sender<Followed>,
) -> Result<Box<dyn Following>, Error> {
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
