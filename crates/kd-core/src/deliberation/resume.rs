//! Continues a deliberation that has not ended: one forked at a stage, or one whose process was killed. It may be an
//! aside of a chat.
//!
//! Input: its records, and its plan with the members as they are configured now. Output: the machine in the state at
//! the end of the record, and the remaining work: requests without a reply, messages without a file, events that
//! followed from the last record. The new events and the old record form one record, and are replayed as one.

use super::forecast::forecast;
use super::ledger::Cut;
use super::machine::{Deliberation, Phase};
use super::plan::{ITERATE, Plan};
use super::replay::{Beginning, Newest, Replayed, Saves, decide, say};
use crate::event::{Event, Record};
use crate::failure::{Failure, FailureKind};
use crate::ids::{MachineId, TurnId};
use crate::machine::{Command, Effects, Input, Machine};
use crate::message::{Draft, Message};
use crate::spending::{Spent, pico};
use crate::view::View;
use jiff::Timestamp;

/// A deliberation that continues.
#[derive(Debug)]
pub struct Resumed {
    /// The machine.
    pub machine: Deliberation,
    /// The commands that remain to be executed.
    pub effects: Effects,
    /// The number of the last message in the record.
    pub messages: u32,
    /// The deliberation so far, for front ends.
    pub view: View,
    /// Its recorded events, with those that put its answer into a JSON schema.
    pub events: Vec<Event>,
}

impl Resumed {
    /// Estimates the spending that is still to come: all passes of the plan minus the amount spent so far, within its
    /// limits.
    pub fn rest(&self) -> Spent {
        let plan = self.machine.plan();
        let passes = match plan.iteration.enabled {
            true => u64::from(plan.iteration.max_iterations.max(1)),
            false => 1,
        };
        let (pass, used) = (forecast(plan), self.machine.ledger.used());
        let left = |each: u64, limit: Option<u64>, used: u64| {
            let all = each.saturating_mul(passes).min(limit.unwrap_or(u64::MAX));
            all.saturating_sub(used)
        };
        let limits = plan.limits.ceiling();
        let usd_max = limits.micro_usd.map(|micro| pico(micro as f64 / 1e6));
        Spent {
            // Something is left to be asked or saved.
            calls: left(pass.calls, limits.calls, used.calls).max(1),
            tokens: left(pass.tokens, limits.tokens, used.tokens),
            pico_usd: left(pass.usd.map_or(0, pico), usd_max, used.pico_usd),
            ..Spent::default()
        }
    }

    /// Records a message that is in the thread and not in the record, instead of writing it again: the process was killed
    /// between the two. Returns whether the message is one that remained to be written.
    pub fn found(&mut self, message: &Message, now: Timestamp) -> bool {
        let is_it =
            |draft: &Draft| draft.from == message.from && draft.body.trim() == message.body.trim();
        let mut commands = self.effects.commands.iter();
        let Some(at) = commands.position(|c| matches!(c, Command::Save(draft) if is_it(draft)))
        else {
            return false;
        };
        let Command::Save(draft) = self.effects.commands.remove(at) else {
            return false;
        };
        self.messages = self.messages.max(message.seq);
        let saved = Input::Saved {
            turn: draft.turn,
            message: message.clone(),
        };
        self.machine.also(now, saved, &mut self.effects);
        true
    }
}

/// The reason why a deliberation cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotResume {
    /// The records contain no deliberation.
    #[error("the thread has no deliberation")]
    None,
    /// It has ended.
    #[error("its deliberation has ended")]
    Ended,
    /// Another question was asked after it.
    #[error("another question was asked after its deliberation")]
    GoneOn,
    /// The machine decides otherwise than the record says.
    #[error("record {at} of its deliberation differs from what would be decided")]
    Differs {
        /// The index of the record, from 1.
        at: usize,
    },
}

/// Returns the plan of a log's newest deliberation, if it can be continued.
///
/// # Errors
/// If it cannot.
pub fn resumable(log: &[Record]) -> Result<Plan, CannotResume> {
    let newest = newest(log)?;
    let beginning = Beginning::of(&newest.records);
    Ok(beginning.ok_or(CannotResume::None)?.plan)
}

/// Returns the machine that the newest deliberation of a log was, if it can be continued: 0, or the number of an aside.
pub fn unfinished(log: &[Record]) -> Option<MachineId> {
    newest(log).ok().map(|newest| newest.machine)
}

/// Returns a log's newest deliberation, if it has not ended.
fn newest(log: &[Record]) -> Result<Newest, CannotResume> {
    // The log was cut: the events before its first record are unknown.
    if matches!(
        log.first().map(|r| &r.event),
        Some(Event::Deliberated { .. })
    ) {
        return Err(CannotResume::None);
    }
    let newest = Newest::of(log.to_vec()).ok_or(CannotResume::None)?;
    if newest.gone_on {
        return Err(CannotResume::GoneOn);
    }
    let ended = |r: &Record| matches!(r.event, Event::FloorYielded { .. });
    match newest.records.iter().any(ended) {
        true => Err(CannotResume::Ended),
        false => Ok(newest),
    }
}

/// Continues the newest deliberation of a log. `plan` is [`resumable`]'s; only how its members are started may differ.
///
/// # Errors
/// If it cannot be continued.
pub fn resume(log: &[Record], plan: Plan, now: Timestamp) -> Result<Resumed, CannotResume> {
    let newest = newest(log)?;
    let beginning = Beginning::of(&newest.records).ok_or(CannotResume::None)?;
    let records = &beginning.records;
    let (machine, opened, mut saves) = beginning.open(plan);
    let mut machine = machine.numbered(newest.machine);
    let mut found = Replayed {
        events: opened,
        ..Replayed::default()
    };
    decide(&mut machine, records, &mut saves, &mut found);
    // Events that followed from the last record, and that are not recorded yet.
    if found.difference.is_some() {
        let at = found.agreed + 1;
        return Err(CannotResume::Differs { at });
    }
    let events = found.events.split_off(found.agreed);
    let mut effects = Effects {
        events,
        ..Effects::default()
    };
    machine.paid = machine.ledger.used();
    let last = records.last().map_or(now, |record| record.ts);
    machine.start_over(last, now, &mut effects);
    machine.redo(saves, now, &mut effects);
    let added = newest.records.iter().filter_map(|r| match &r.event {
        Event::MessageAdded { message, .. } => Some(message.seq),
        _ => None,
    });
    let messages = added.fold(beginning.messages.max(newest.before), u32::max);
    let mut view = View::default();
    for record in records {
        view.fold_record(record);
    }
    // The records of a session are numbered from 1.
    view.seq = 0;
    // The plan of a deliberation that goes on cannot change.
    view.report.notices.retain(|notice| notice != ITERATE);
    // A promise in the record is not a promise of this session.
    view.report.promised = None;
    Ok(Resumed {
        messages,
        view,
        effects,
        machine,
        events: newest.records.into_iter().map(|r| r.event).collect(),
    })
}

impl Deliberation {
    /// Lets the time limit run on as if no time had passed since the last record.
    fn start_over(&mut self, last: Timestamp, now: Timestamp, fx: &mut Effects) {
        let Some(started) = self.started else {
            return;
        };
        let used = last.duration_since(started);
        let started = now.checked_sub(used).unwrap_or(now);
        self.started = Some(started);
        if self.cut != Some(Cut::Time) {
            self.set_timers(started, fx);
        }
    }

    /// Gives the commands again that have no recorded result.
    fn redo(&mut self, saves: Saves, now: Timestamp, fx: &mut Effects) {
        if matches!(self.phase, Phase::Waiting) {
            return self.also(now, Input::Op(say()), fx);
        }
        for draft in saves.drafts {
            let waits = match draft.turn {
                Some(turn) => self.open.get(&turn).is_some_and(|t| !t.speaks()),
                None => matches!(self.phase, Phase::Saving | Phase::Writing(_)),
            };
            if waits {
                fx.commands.push(Command::Save(Box::new(draft)));
            }
        }
        let open = self.open.iter().filter(|(_, turn)| turn.speaks());
        let open: Vec<TurnId> = open.map(|(id, _)| *id).collect();
        for turn in open {
            match saves.requests.get(&turn) {
                Some(request) if !saves.cancelled.contains(&turn) => {
                    let request = request.clone();
                    fx.commands.push(Command::Ask { turn, request });
                }
                _ => {
                    let failure = Failure::new(FailureKind::Cancelled, "it was stopped");
                    self.also(now, Input::Failed { turn, failure }, fx);
                }
            }
        }
    }

    fn also(&mut self, now: Timestamp, input: Input, fx: &mut Effects) {
        let more = self.step(now, input);
        fx.commands.extend(more.commands);
        fx.events.extend(more.events);
    }
}
