//! What a thread's log tells about messages that were read from its folder: seconds, tokens, price, tools, thinking, and
//! the order in which the members were asked.

use super::{Content, Panel, Trace, View};
use crate::event::{Event, Record};
use crate::failure::Failure;
use crate::ids::{SeatName, TurnId};
use crate::message::Message;
use crate::usage::Usage;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The turn that wrote a message.
#[derive(Clone, Debug)]
struct Wrote {
    /// The member that the log names: a message of another one with this number is not of this turn.
    seat: SeatName,
    /// Its place among all turns of the log.
    order: usize,
    usage: Option<Usage>,
    failure: Option<Failure>,
    trace: Trace,
}

impl View {
    /// Adds what the records of a thread tell about its messages, as a session shows it: their facts, and the order of a
    /// round. Messages whose facts are known already stay as they are.
    pub fn recall(&mut self, records: &[Record]) {
        let wrote = wrote(records);
        if wrote.is_empty() {
            return;
        }
        let mut known = Vec::new();
        for panel in &mut self.panels {
            let Content::Message {
                message,
                failure,
                usage,
                trace,
            } = &mut panel.content
            else {
                continue;
            };
            let Some(wrote) = of(&wrote, message) else {
                continue;
            };
            if usage.is_some() || failure.is_some() {
                continue;
            }
            *usage = wrote.usage;
            *failure = wrote.failure.clone().filter(|_| !message.is_sound());
            // The thinking is not in the log; it was seen if the answer was streamed here.
            let mut told = wrote.trace.clone();
            if let Some(seen) = trace.take().filter(|seen| !seen.thinking.is_empty()) {
                told.thinking = seen.thinking;
            }
            *trace = Some(Box::new(told));
            self.revision += 1;
            panel.revision = self.revision;
            known.push((message.from.clone(), wrote.usage));
        }
        for (from, usage) in known {
            if let Ok(seat) = SeatName::sender(from) {
                self.spend(&seat, usage.as_ref());
            }
        }
        self.order(&wrote);
    }

    /// Puts the messages of each round into the order in which their members were asked.
    fn order(&mut self, wrote: &BTreeMap<u32, Wrote>) {
        let mut places: Vec<(usize, usize)> = Vec::new();
        for at in 0..=self.panels.len() {
            let panel = self.panels.get(at);
            let message = panel.and_then(|panel| panel.content.message());
            let ends = panel.is_none() || message.is_some_and(Message::is_king);
            if ends {
                self.sort(&std::mem::take(&mut places));
            } else if let Some(wrote) = message.and_then(|message| of(wrote, message)) {
                places.push((at, wrote.order));
            }
        }
    }

    /// Sorts the panels at these places by their order.
    fn sort(&mut self, places: &[(usize, usize)]) {
        if places.is_sorted_by_key(|(_, order)| *order) {
            return;
        }
        let mut from: Vec<(usize, usize)> = places.to_vec();
        from.sort_by_key(|(_, order)| *order);
        let panels: Vec<Panel> = from
            .iter()
            .filter_map(|(at, _)| self.panels.get(*at))
            .cloned()
            .collect();
        for ((at, _), mut panel) in places.iter().zip(panels) {
            self.revision += 1;
            panel.revision = self.revision;
            if let Some(place) = self.panels.get_mut(*at) {
                *place = panel;
            }
        }
    }
}

/// Returns the turn that wrote a message.
fn of<'a>(wrote: &'a BTreeMap<u32, Wrote>, message: &Message) -> Option<&'a Wrote> {
    let wrote = wrote.get(&message.seq)?;
    (wrote.seat.as_str() == message.from).then_some(wrote)
}

/// Returns the turns that wrote messages, by the number of the message.
fn wrote(records: &[Record]) -> BTreeMap<u32, Wrote> {
    let mut begun: BTreeMap<TurnId, (usize, Timestamp, &SeatName)> = BTreeMap::new();
    let mut wrote: BTreeMap<u32, Wrote> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        if let Event::TurnQueued {
            turn,
            seat,
            replaces,
            ..
        } = &record.event
        {
            // A repeated answer takes the place of the failed one.
            let order = replaces
                .and_then(|seq| wrote.get(&seq))
                .map_or(at, |old| old.order);
            begun.insert(*turn, (order, record.ts, seat));
        }
        let Some((seq, usage, failure, trace)) = ended(&record.event) else {
            continue;
        };
        let began = record.event.turn().and_then(|turn| begun.remove(&turn));
        if let Some((order, from, seat)) = began {
            let trace = Trace {
                span: Some((from, record.ts)),
                ..trace
            };
            wrote.insert(
                seq,
                Wrote {
                    seat: seat.clone(),
                    order,
                    usage,
                    failure,
                    trace,
                },
            );
        }
    }
    wrote
}

/// Returns the message of a turn that ended, its usage, its failure, and its trace without times.
fn ended(event: &Event) -> Option<(u32, Option<Usage>, Option<Failure>, Trace)> {
    let trace = |tools, thought| Trace {
        thinking: String::new(),
        thought,
        tools,
        span: None,
    };
    if let Event::TurnFinished {
        message,
        usage,
        tools,
        thought,
        ..
    } = event
    {
        return Some((
            *message.as_ref()?,
            *usage,
            None,
            trace(*tools, *thought as usize),
        ));
    }
    if let Event::TurnFailed {
        message, failure, ..
    } = event
    {
        let usage = failure.used.as_deref().map(|used| used.usage);
        return Some((
            *message.as_ref()?,
            usage,
            Some(failure.clone()),
            trace(0, 0),
        ));
    }
    None
}
