//! A thread as a web page: collects what `kd_page` renders, and follows it for readers.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::host::{Followed, Following};
use crate::threads;
use kd_core::deliberation::{Fact, without_marks};
use kd_core::event::Purpose;
use kd_core::redact::Redactor;
use kd_core::{Event, Input, Member, Record, SeatName, Timestamp, TurnId};
use kd_page::Asked;
use kd_store::{Thread, fork, log};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval between checks whether any reader still follows.
const LOOK: Duration = Duration::from_secs(5);
/// For this long after its turn, a member's stream may still be there.
const LEAVES: Duration = Duration::from_secs(3);
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
        asked: Vec::new(),
    };
    Ok((page, faults))
}

/// Removes from records everything that reveals how the person who asked marks verdicts.
pub(crate) fn unmarked(mut records: Vec<Record>) -> Vec<Record> {
    records.retain_mut(|record| without_marks(&mut record.event));
    records
}

/// Returns the members that any process is asking now: the members with a live stream, with the data of the records
/// about their turns. A program that streams without a record answers.
///
/// # Errors
/// If the streams cannot be read.
pub fn asked(open: &Thread, records: &[Record]) -> Result<Vec<Asked>, UserError> {
    let running = threads::running(open)?;
    if running.is_empty() {
        return Ok(Vec::new());
    }
    let turns = Turns::of(records);
    let now = Timestamp::now();
    let asked = running.into_iter().filter_map(|seat| {
        let of_log = turns.open.iter().rev().find(|turn| turn.seat == seat);
        let (purpose, is_form) = match of_log {
            Some(turn) => (turn.purpose, turns.is_form(turn)),
            None => {
                let ended = turns.ended.get(&seat);
                let left = ended.and_then(|at| Duration::try_from(now.duration_since(*at)).ok());
                if left.is_some_and(|left| left < LEAVES) {
                    return None;
                }
                (Purpose::Answer, false)
            }
        };
        Some(Asked {
            seat: seat.to_string(),
            purpose,
            is_form,
        })
    });
    Ok(asked.collect())
}

/// A turn that has not ended.
struct OpenTurn {
    turn: TurnId,
    seat: SeatName,
    purpose: Purpose,
}

/// The turns of a log, as far as readers of a live page need them.
#[derive(Default)]
struct Turns {
    /// Those that have not ended, in order. A process that was killed leaves some.
    open: Vec<OpenTurn>,
    /// Turns of a deliberation, and whether their answer has a schema.
    deliberated: BTreeMap<TurnId, bool>,
    /// When the last turn of each member ended.
    ended: BTreeMap<SeatName, Timestamp>,
}

impl Turns {
    fn of(records: &[Record]) -> Self {
        let mut turns = Self::default();
        for record in records {
            match &record.event {
                Event::TurnQueued {
                    turn,
                    seat,
                    purpose,
                    ..
                } => {
                    // Each session counts its turns from 1. One that was killed left its own.
                    turns.deliberated.remove(turn);
                    turns.open.retain(|open| open.turn != *turn);
                    turns.open.push(OpenTurn {
                        turn: *turn,
                        seat: seat.clone(),
                        purpose: *purpose,
                    });
                }
                Event::TurnFinished { turn, seat, .. } | Event::TurnFailed { turn, seat, .. } => {
                    turns.open.retain(|open| open.turn != *turn);
                    turns.deliberated.remove(turn);
                    turns.ended.insert(seat.clone(), record.ts);
                }
                Event::Deliberated { fact } => {
                    if let Fact::SeatAsked { turn, schema, .. } = fact.as_ref() {
                        turns.deliberated.insert(*turn, schema.is_some());
                    }
                }
                Event::ThreadOpened { .. }
                | Event::MessageAdded { .. }
                | Event::SayQueued { .. }
                | Event::SayTakenBack { .. }
                | Event::TurnDelta { .. }
                | Event::StreamFound { .. }
                | Event::StreamLost { .. }
                | Event::SeatMuted { .. }
                | Event::ModeSet { .. }
                | Event::OpRefused { .. }
                | Event::SaveFailed { .. }
                | Event::FloorYielded { .. }
                | Event::PhaseBegan { .. }
                | Event::CouncilSaid { .. }
                | Event::DuetEnded { .. }
                | Event::Promised { .. }
                | Event::Reviewed { .. }
                | Event::HeldBack { .. }
                | Event::Noticed { .. } => {}
            }
        }
        turns
    }

    /// Returns whether the text of a turn is a form that the program reads, such as a ballot.
    fn is_form(&self, turn: &OpenTurn) -> bool {
        let schema = self.deliberated.get(&turn.turn);
        match turn.purpose {
            Purpose::Answer | Purpose::Revise | Purpose::Exchange => schema == Some(&true),
            // The verdict is composed from it.
            Purpose::Conclude => schema.is_some(),
            Purpose::Plan
            | Purpose::Review
            | Purpose::Vote
            | Purpose::Compress
            | Purpose::Arbitrate
            | Purpose::Format => true,
        }
    }
}

/// A followed thread.
struct Watched {
    _streams: kd_engine::Watch,
}

impl Following for Watched {}

/// Reports the events of a thread from now on. `members` determine the dialect in which other programs stream. Must
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
                Input::FoundGone { .. } => (Some(Followed::Changed), None),
                Input::FoundDelta { seat, delta } => (Some(Followed::Piece(seat, delta)), None),
                Input::FoundEnd { seat } => (Some(Followed::Ended(seat)), None),
                Input::Op(_)
                | Input::Delta { .. }
                | Input::Failed { .. }
                | Input::Freed { .. }
                | Input::Saved { .. }
                | Input::SaveFailed { .. }
                | Input::FoundWaiting
                | Input::Kept { .. }
                | Input::KeepFailed { .. }
                | Input::Woke { .. } => (None, None),
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

#[cfg(test)]
mod tests {
    use super::*;
    use kd_core::deliberation::Spent;
    use kd_core::request::Prompt;
    use serde_json::{Value, json};

    fn record(event: Value) -> Record {
        let mut record =
            json!({"v": 1, "seq": 1, "ts": "2026-01-01T00:00:00Z", "thread": "council-0001"});
        let (Some(all), Value::Object(event)) = (record.as_object_mut(), event) else {
            unreachable!("objects");
        };
        all.extend(event);
        serde_json::from_value(record).expect("a record")
    }

    fn queued(turn: u32, seat: &str, purpose: &str) -> Record {
        record(json!({"event": "turn_queued", "turn": turn, "seat": seat, "purpose": purpose}))
    }

    /// The record of a question in a deliberation, with a schema for the answer or without one.
    fn asked(turn: u64, schema: Option<Value>) -> Record {
        let mut record = queued(1, "ann", "answer");
        let fact = Fact::SeatAsked {
            turn: turn.into(),
            seat: SeatName::new("ann").expect("a name"),
            stage: "opinions".into(),
            labels: Vec::new(),
            prompt: Prompt::default(),
            schema,
            reserved: Spent::default(),
        };
        record.event = Event::Deliberated {
            fact: Box::new(fact),
        };
        record
    }

    #[test]
    fn forms_are_what_the_program_reads_and_an_ended_turn_is_not_open() {
        let forms = |log: &[Record]| -> Vec<bool> {
            let turns = Turns::of(log);
            turns.open.iter().map(|turn| turns.is_form(turn)).collect()
        };
        let log = [
            queued(1, "ann", "answer"),
            queued(2, "ben", "review"),
            queued(3, "cat", "conclude"),
            queued(4, "dee", "vote"),
        ];
        assert_eq!(forms(&log), [false, true, false, true]);
        // A deliberation composes its verdict; an answer is a form where it has a schema.
        let asked = [asked(1, None), asked(3, None), asked(4, None)];
        assert_eq!(
            forms(&[&log[..], &asked].concat()),
            [false, true, true, true]
        );
        let schema = self::asked(1, Some(json!({"type": "object"})));
        assert_eq!(
            forms(&[&log[..], &[schema]].concat()),
            [true, true, false, true]
        );
        // A later session counts its turns from 1 again.
        let schema = self::asked(1, Some(json!({"type": "object"})));
        let killed = [queued(1, "ann", "answer"), schema];
        let again = [queued(1, "ann", "answer")];
        assert_eq!(forms(&[&killed[..], &again].concat()), [false]);
        let ended = json!({"event": "turn_finished", "turn": 2, "seat": "ben", "message": 2, "usage": null, "tools": 0,
            "finish": "complete"});
        let turns = Turns::of(&[&log[..], &[record(ended)]].concat());
        let open: Vec<&str> = turns.open.iter().map(|turn| turn.seat.as_str()).collect();
        assert_eq!(open, ["ann", "cat", "dee"]);
        assert!(
            turns
                .ended
                .contains_key(&SeatName::new("ben").expect("a name"))
        );
    }
}
