//! Replays a deliberation from its record without a model: from the plan and the replies, every fact must match the
//! record byte for byte.

use super::fact::Fact;
use super::machine::{COUNCIL, Deliberation};
use super::plan::Plan;
use super::reader::{Reading, Reread};
use crate::clean::clean_text;
use crate::event::{Event, Record};
use crate::formats::Newer;
use crate::ids::{MachineId, TurnId};
use crate::machine::{Command, Input, Machine};
use crate::message::{Address, Draft, Message};
use crate::op::Op;
use crate::prompt::PREAMBLE;
use crate::request::{Delta, Request};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// Number of matching events.
    pub agreed: usize,
    /// The first difference: the recorded and the replayed event. Either may be missing.
    pub difference: Option<(Option<String>, Option<String>)>,
    /// The replayed events.
    pub events: Vec<Event>,
    /// Whether the record covers the whole deliberation. A truncated record can still match.
    pub finished: bool,
    /// The replies that the current reader reads differently; the record takes precedence.
    pub reread: Vec<Reread>,
}

/// Checks that this version knows the rules of a deliberation's plan.
///
/// # Errors
/// If a newer kd made the plan.
pub fn check(records: &[Record]) -> Result<(), Newer> {
    let mut plans = records.iter().filter_map(|record| match &record.event {
        Event::Deliberated { fact } => match &**fact {
            Fact::Opened { plan, .. } => Some(plan),
            _ => None,
        },
        _ => None,
    });
    plans.try_for_each(|plan| plan.check())
}

/// Replays a deliberation. `records` belong to one deliberation and start with the event that opened its thread.
/// Deltas are ignored. `None` if they contain no deliberation.
pub fn replay(records: &[Record]) -> Option<Replayed> {
    let beginning = Beginning::of(records)?;
    let records = &beginning.records;
    let (mut machine, opened, mut saves) = beginning.open(beginning.plan.clone());
    let mut found = Replayed {
        events: opened,
        ..Replayed::default()
    };
    decide(&mut machine, records, &mut saves, &mut found);
    let is_whole = found.events.len() == found.agreed;
    if found.difference.is_none() {
        found.events.truncate(found.agreed);
    }
    found.finished = found.difference.is_none()
        && is_whole
        && matches!(
            records.last().map(|r| &r.event),
            Some(Event::FloorYielded { .. })
        );
    found.reread = machine.reread();
    Some(found)
}

/// The beginning of a record.
pub(super) struct Beginning<'r> {
    pub(super) plan: Plan,
    notices: Vec<String>,
    preamble: String,
    /// Number of messages that the thread had.
    pub(super) messages: u32,
    /// The records from the event that opened the thread.
    pub(super) records: Vec<&'r Record>,
}

impl<'r> Beginning<'r> {
    /// Finds the beginning. Leaves out what no deliberation decides: pieces of answers, its answer in a JSON schema, and
    /// notes of the session.
    pub(super) fn of(records: &'r [Record]) -> Option<Self> {
        let formats = |r: &Record| r.event.turn().is_some_and(TurnId::is_format);
        let is_decided = |r: &&Record| {
            !formats(r)
                && !matches!(
                    r.event,
                    Event::TurnDelta { .. }
                        | Event::StreamFound { .. }
                        | Event::StreamLost { .. }
                        | Event::Promised { .. }
                        | Event::HeldBack { .. }
                        | Event::Noticed { .. }
                )
        };
        let mut records: Vec<&Record> = records.iter().filter(is_decided).collect();
        let (at, opened) =
            records
                .iter()
                .enumerate()
                .find_map(|(at, record)| match &record.event {
                    Event::Deliberated { fact } => match &**fact {
                        Fact::Opened { .. } => Some((at, (**fact).clone())),
                        _ => None,
                    },
                    _ => None,
                })?;
        let Fact::Opened {
            plan,
            notices,
            preamble,
        } = opened
        else {
            return None;
        };
        let from = at.checked_sub(1)?;
        let Event::ThreadOpened { messages, .. } = &records.get(from)?.event else {
            return None;
        };
        let messages = *messages;
        records.drain(..from);
        Some(Self {
            plan: *plan,
            notices,
            preamble: preamble.unwrap_or_else(|| PREAMBLE.trim().to_owned()),
            messages,
            records,
        })
    }

    /// Opens the machine with a plan, and returns it with its first events.
    pub(super) fn open(&self, plan: Plan) -> (Deliberation, Vec<Event>, Saves) {
        let saves = Saves {
            question: plan.question.clone(),
            ..Saves::default()
        };
        let (machine, opened) = Deliberation::open_with(
            plan,
            self.notices.clone(),
            self.preamble.clone(),
            self.messages,
            readings_of(&self.records),
        );
        (machine, opened.events, saves)
    }
}

/// The commands of the machine: its writes are compared with the recorded messages.
#[derive(Default)]
pub(super) struct Saves {
    question: String,
    pub(super) drafts: Vec<Draft>,
    /// The requests, by turn.
    pub(super) requests: BTreeMap<TurnId, Box<Request>>,
    /// The turns that it cancelled.
    pub(super) cancelled: BTreeSet<TurnId>,
}

impl Saves {
    fn note(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::Save(draft) => self.drafts.push(*draft),
                Command::Ask { turn, request } => {
                    self.requests.insert(turn, request);
                }
                Command::Cancel { turn } => {
                    self.cancelled.insert(turn);
                }
                _ => {}
            }
        }
    }

    /// Returns the expected message if the recorded text differs.
    fn other(&mut self, event: &Event) -> Option<Message> {
        let Event::MessageAdded {
            message,
            turn,
            found: false,
        } = event
        else {
            return None;
        };
        let at = self
            .drafts
            .iter()
            .position(|draft| (&draft.turn, &draft.from) == (turn, &message.from))?;
        let draft = self.drafts.remove(at);
        // The question is already in the plan.
        let body = match message.is_king() {
            true => &self.question,
            false => &draft.body,
        };
        (plain(body) != plain(&message.body)).then(|| Message {
            body: body.as_str().into(),
            ..message.clone()
        })
    }
}

/// The characters that end a line in a message file.
const BREAKS: [char; 7] = [
    '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
];

/// Normalizes a text as files store it: without white space at the ends of its lines.
fn plain(text: &str) -> String {
    let text = clean_text(text).replace("\r\n", "\n");
    let lines = text.split(BREAKS).map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Names the recorded messages that are missing from the thread or were changed.
pub fn changed_messages(records: &[Record], messages: &[Message]) -> Vec<String> {
    let recorded = records.iter().filter_map(|record| match &record.event {
        Event::MessageAdded { message, .. } => Some(message),
        _ => None,
    });
    let change = |message: &Message| {
        let number = message.seq;
        let there = messages
            .iter()
            .find(|m| m.seq == number && m.from == message.from);
        match there {
            None => Some(format!("message {number} of {} is gone", message.from)),
            Some(there) if plain(&there.body) != plain(&message.body) => Some(format!(
                "message {number} of {} has other words than were recorded",
                message.from
            )),
            Some(_) => None,
        }
    };
    recorded.filter_map(change).collect()
}

/// Runs the machine as far as it matches the record. Without a difference, events behind those of the record follow from
/// its last one.
pub(super) fn decide(
    machine: &mut Deliberation,
    records: &[&Record],
    saves: &mut Saves,
    found: &mut Replayed,
) {
    let mut said = false;
    let mut next = 0;
    loop {
        // Compare the events so far with the record.
        while next < found.events.len() {
            // The rest of a step is missing: its process was killed.
            let Some(record) = records.get(next) else {
                return;
            };
            let (then, now) = (written(&record.event), written(&found.events[next]));
            if then != now {
                found.difference = Some((Some(then), Some(now)));
                return;
            }
            found.agreed += 1;
            next += 1;
        }
        let Some(record) = records.get(next) else {
            return;
        };
        let is_first = !said;
        if is_first {
            // The question is saved before anything else can happen.
            let asked = machine.step(record.ts, Input::Op(say()));
            saves.note(asked.commands);
            found.events.extend(without_deltas(asked.events));
            said = true;
        }
        if let Some(message) = saves.other(&record.event) {
            let then = written(&record.event);
            let mut now = record.event.clone();
            if let Event::MessageAdded { message: m, .. } = &mut now {
                *m = message;
            }
            found.difference = Some((Some(then), Some(written(&now))));
            return;
        }
        let input = match input(&record.event, machine.id()) {
            Some(input) => input,
            None if is_first => Input::Op(say()),
            None => {
                found.difference = Some((Some(written(&record.event)), None));
                return;
            }
        };
        let before = found.events.len();
        // A partial answer arrived before the failure.
        if let Event::Deliberated { fact } = &record.event
            && let Fact::SeatFailed { turn, text, .. } = &**fact
            && !text.is_empty()
        {
            let delta = Delta::Text { text: text.clone() };
            let turn = machine.id().turn(turn.number);
            let heard = machine.step(record.ts, Input::Delta { turn, delta });
            saves.note(heard.commands);
            found.events.extend(without_deltas(heard.events));
        }
        let decided = machine.step(record.ts, input);
        saves.note(decided.commands);
        found.events.extend(without_deltas(decided.events));
        if found.events.len() == before {
            found.difference = Some((Some(written(&record.event)), None));
            return;
        }
    }
}

/// Returns the records of a log's last deliberation, from the event that opened its thread, for [`replay`] and
/// [`View::of`](crate::view::View::of). Records of other messages in the conversation are removed, and turns get
/// their numbers within the deliberation.
pub fn last(records: Vec<Record>) -> Option<Vec<Record>> {
    let mut records = Newest::of(records)?.records;
    for record in &mut records {
        if let Some(turn) = record.event.turn_mut() {
            *turn = turn.alone();
        }
    }
    Some(records)
}

/// A log's newest deliberation.
pub(super) struct Newest {
    /// Its records, from the event that opened its thread. Turns have the numbers of their machine.
    pub(super) records: Vec<Record>,
    /// The machine that asked: 0, or the number of an aside.
    pub(super) machine: MachineId,
    /// The highest number of a message before it.
    pub(super) before: u32,
    /// Whether something else was asked after it began.
    pub(super) gone_on: bool,
}

impl Newest {
    pub(super) fn of(mut records: Vec<Record>) -> Option<Self> {
        let at = records.iter().rposition(|r| {
            matches!(&r.event, Event::Deliberated { fact } if matches!(**fact, Fact::Opened { .. }))
        })?;
        let opens = |r: &Record| matches!(r.event, Event::ThreadOpened { .. });
        if let Some(from) = at.checked_sub(1).filter(|from| opens(&records[*from])) {
            records.drain(..from);
            // Later questions belong to another conversation.
            let end = records.iter().skip(1).position(opens);
            records.truncate(end.map_or(records.len(), |end| end + 1));
            return Some(Self {
                records,
                machine: MachineId::default(),
                before: 0,
                gone_on: end.is_some(),
            });
        }
        let numbers = records[..at].iter().filter_map(|r| match &r.event {
            Event::MessageAdded { message, .. } => Some(message.seq),
            Event::ThreadOpened { messages, .. } => Some(*messages),
            _ => None,
        });
        let before = numbers.max().unwrap_or(0);
        Self::of_aside(records.split_off(at), before)
    }

    /// Collects the records of an aside, from its plan on. If another session of the chat continued it, the log has
    /// the opening of that session in between, and its turns that were asked again are queued twice.
    fn of_aside(records: Vec<Record>, before: u32) -> Option<Self> {
        let Event::Deliberated { fact } = &records.first()?.event else {
            return None;
        };
        let Fact::Opened { plan, .. } = &**fact else {
            return None;
        };
        let question = plain(&plan.question);
        let opened = Event::ThreadOpened {
            members: plan.seats.iter().map(|s| s.name().clone()).collect(),
            messages: 0,
        };
        let mut own = vec![Record {
            event: opened,
            ..records[0].clone()
        }];
        let mut machine = None;
        let mut queued: BTreeSet<TurnId> = BTreeSet::new();
        let (mut asked, mut reopened, mut gone_on) = (false, false, false);
        for record in records {
            let yielded = matches!(record.event, Event::FloorYielded { .. });
            let belongs = match (&record.event, record.event.turn()) {
                (Event::TurnQueued { .. }, Some(turn)) => {
                    if machine.is_none() && turn.machine.0 > 0 {
                        machine = Some(turn.machine);
                    }
                    gone_on |= machine != Some(turn.machine);
                    machine == Some(turn.machine) && queued.insert(turn)
                }
                (_, Some(turn)) => machine == Some(turn.machine),
                (Event::MessageAdded { message, .. }, None) if message.is_king() => {
                    let is_own =
                        !std::mem::replace(&mut asked, true) && plain(&message.body) == question;
                    gone_on |= !is_own;
                    // A question of a later session follows. Its end is not the end of the deliberation.
                    if gone_on && reopened {
                        break;
                    }
                    is_own
                }
                (Event::MessageAdded { message, .. }, None) => message.from == COUNCIL,
                (
                    Event::Deliberated { .. } | Event::Promised { .. } | Event::SaveFailed { .. },
                    None,
                ) => true,
                (Event::ThreadOpened { .. }, None) => {
                    reopened = true;
                    false
                }
                _ => yielded,
            };
            if belongs {
                own.push(record);
            }
            if yielded {
                break;
            }
        }
        Some(Self {
            records: own,
            machine: machine.unwrap_or(MachineId(1)),
            before,
            gone_on,
        })
    }
}

/// Returns the recorded readings.
fn readings_of(records: &[&Record]) -> Vec<Reading> {
    let facts = records.iter().filter_map(|r| match &r.event {
        Event::Deliberated { fact } => Some(&**fact),
        _ => None,
    });
    let readings = facts.filter_map(|fact| match fact {
        Fact::Readings { readings } => Some(readings.clone()),
        _ => None,
    });
    readings.flatten().collect()
}

pub(super) fn say() -> Op {
    Op::Say {
        body: String::new(),
        to: Address::All,
    }
}

/// Returns the external input that led to this event of a machine. Facts name turns without their machine.
fn input(event: &Event, id: MachineId) -> Option<Input> {
    Some(match event {
        Event::MessageAdded {
            message,
            found: true,
            ..
        } => Input::Found {
            message: message.clone(),
        },
        Event::MessageAdded { message, turn, .. } => Input::Saved {
            turn: *turn,
            message: message.clone(),
        },
        Event::SaveFailed { turn, why } => Input::SaveFailed {
            turn: *turn,
            why: why.clone(),
        },
        Event::OpRefused { .. } => Input::Op(Op::Retry { seat: None }),
        Event::Deliberated { fact } => match &**fact {
            Fact::SeatReplied {
                turn,
                text,
                finish,
                usage,
                ..
            } => Input::Delta {
                turn: id.turn(turn.number),
                delta: Delta::Finished {
                    finish: *finish,
                    text: Some(text.clone()),
                    usage: *usage,
                    choices: Vec::new(),
                },
            },
            Fact::SeatFailed { turn, failure, .. } => Input::Failed {
                turn: id.turn(turn.number),
                failure: failure.clone(),
            },
            Fact::Stopped => Input::Op(Op::Interrupt),
            Fact::BellRang { over } => Input::Woke {
                timer: super::machine::timer(id, *over),
            },
            _ => return None,
        },
        _ => return None,
    })
}

fn without_deltas(events: Vec<Event>) -> impl Iterator<Item = Event> {
    events.into_iter().filter(|e| {
        !matches!(
            e,
            Event::TurnDelta { .. } | Event::StreamFound { .. } | Event::StreamLost { .. }
        )
    })
}

/// Serializes an event as in the record.
fn written(event: &Event) -> String {
    serde_json::to_string(event).unwrap_or_default()
}
