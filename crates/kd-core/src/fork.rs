//! Decides which records of a thread a fork keeps: pure, and the same for every front end.
//!
//! Input: the records of a log, and where to cut. Output: the indexes of the records in the prefix, and the number of
//! the first message left out. A turn answered after the cut is open again in the prefix, so a deliberation can
//! continue from it.

use crate::deliberation::Fact;
use crate::event::{Event, Record};
use crate::ids::TurnId;
use std::collections::{BTreeMap, BTreeSet};

/// The point at which a fork leaves its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// After the last message.
    #[default]
    End,
    /// Before the message with this number.
    Before(u32),
    /// The point after this stage of the newest deliberation was asked and before it was answered.
    Stage(String),
}

/// The part that a fork shares with its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The number of the first message left out; `None` keeps all.
    pub before: Option<u32>,
    /// The indexes of the kept records, in order.
    pub records: Vec<usize>,
}

/// A stage at which forking is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStage {
    /// The log contains no deliberation.
    #[error("the thread has no deliberation, so it has no stages")]
    NoDeliberation,
    /// The deliberation has no such stage.
    #[error("the deliberation has no stage `{wanted}`")]
    Unknown {
        /// The requested stage.
        wanted: String,
        /// Its stages, in start order.
        stages: Vec<String>,
    },
}

/// Finds the prefix that a fork keeps.
///
/// # Errors
/// If the cut names a stage that did not begin.
pub fn prefix(records: &[Record], cut: &Cut) -> Result<Prefix, NoStage> {
    let (end, before) = match cut {
        Cut::End => (records.len(), None),
        Cut::Before(number) => (before_message(records, *number), Some(*number)),
        Cut::Stage(wanted) => {
            let end = after_asking(records, wanted)?;
            (end, Some(messages_until(&records[..end]) + 1))
        }
    };
    let kept = &records[..end];
    let unfinished = unfinished(kept);
    let is_open = |at: usize| unfinished.contains(&at);
    // The record of a parsed reply follows the reply, and is kept or removed with it.
    let is_of_open = |at: usize| is_open(at) || at > 0 && is_reading(kept, at) && is_open(at - 1);
    let records = (0..end).filter(|at| !is_of_open(*at));
    Ok(Prefix {
        before,
        records: records.collect(),
    })
}

/// Returns the stages of the newest deliberation, each once, in start order.
pub fn stages(records: &[Record]) -> Vec<String> {
    let from = newest_deliberation(records).unwrap_or(records.len());
    let mut stages: Vec<String> = Vec::new();
    for record in &records[from..] {
        if let Some(Fact::StageBegan { stage, .. }) = fact(&record.event)
            && !stages.contains(stage)
        {
            stages.push(stage.clone());
        }
    }
    stages
}

/// Returns the index of the first record left out by a fork before a message, including records that only prepare it.
fn before_message(records: &[Record], number: u32) -> usize {
    let is_out = |record: &Record| matches!(&record.event, Event::MessageAdded { message, .. } if message.seq >= number);
    let mut end = records.iter().position(is_out).unwrap_or(records.len());
    let asked = matches!(records.get(end).map(|r| &r.event),
        Some(Event::MessageAdded { message, .. }) if message.is_king());
    while asked && end > 0 && prepares(&records[end - 1].event) {
        end -= 1;
    }
    end
}

/// Returns whether an event only prepares a question of the user.
fn prepares(event: &Event) -> bool {
    match event {
        Event::ThreadOpened { .. } | Event::SayQueued { .. } | Event::SayTakenBack { .. } => true,
        Event::Deliberated { fact } => matches!(**fact, Fact::Opened { .. }),
        _ => false,
    }
}

/// Returns the index after the requests of a stage.
fn after_asking(records: &[Record], wanted: &str) -> Result<usize, NoStage> {
    let from = newest_deliberation(records).ok_or(NoStage::NoDeliberation)?;
    let begins = |record: &Record| matches!(fact(&record.event), Some(Fact::StageBegan { stage, .. }) if stage == wanted);
    let Some(at) = records[from..].iter().position(begins) else {
        return Err(NoStage::Unknown {
            wanted: wanted.to_owned(),
            stages: stages(records),
        });
    };
    let asks = |record: &&Record| match &record.event {
        // A chat tells of its asides in between.
        Event::TurnQueued { .. } | Event::Noticed { .. } => true,
        event => matches!(fact(event), Some(Fact::SeatAsked { .. } | Fact::Cut { .. })),
    };
    let began = from + at + 1;
    Ok(began + records[began..].iter().take_while(asks).count())
}

/// Returns the position at which the newest deliberation of a log was opened.
fn newest_deliberation(records: &[Record]) -> Option<usize> {
    let opens = |record: &Record| matches!(fact(&record.event), Some(Fact::Opened { .. }));
    records.iter().rposition(opens)
}

fn messages_until(records: &[Record]) -> u32 {
    let added = records.iter().filter_map(|record| match &record.event {
        Event::MessageAdded { message, .. } => Some(message.seq),
        _ => None,
    });
    added.max().unwrap_or(0)
}

/// Returns the indexes of recorded replies whose turns have no message or end.
fn unfinished(records: &[Record]) -> BTreeSet<usize> {
    // Facts name turns without their machine: the turn queued last under a number is meant. Numbers restart with each
    // session and deliberation.
    let mut queued: BTreeMap<u32, TurnId> = BTreeMap::new();
    let mut open: BTreeMap<TurnId, usize> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        match &record.event {
            Event::TurnQueued { turn, .. } => {
                queued.insert(turn.number, *turn);
            }
            Event::Deliberated { fact } => match &**fact {
                Fact::SeatReplied { turn, .. } | Fact::SeatFailed { turn, .. } => {
                    let turn = queued.get(&turn.number).copied().unwrap_or(*turn);
                    open.insert(turn, at);
                }
                _ => {}
            },
            Event::MessageAdded {
                turn: Some(turn), ..
            }
            | Event::TurnFinished { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::SaveFailed {
                turn: Some(turn), ..
            } => {
                open.remove(turn);
            }
            _ => {}
        }
    }
    open.into_values().collect()
}

fn is_reading(records: &[Record], at: usize) -> bool {
    matches!(fact(&records[at].event), Some(Fact::Readings { .. }))
}

fn fact(event: &Event) -> Option<&Fact> {
    match event {
        Event::Deliberated { fact } => Some(fact),
        _ => None,
    }
}
