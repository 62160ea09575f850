//! Adds data of a thread's log to messages that were read from its folder: seconds, tokens, price, tools, thinking, and
//! the order in which the members were asked.

use super::{Content, Panel, Trace, View};
use crate::event::{Event, Record};
use crate::failure::Failure;
use crate::ids::{SeatName, TurnId};
use crate::message::Message;
use crate::usage::Usage;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The turn that wrote a message.
#[derive(Clone, Debug)]
struct Wrote {
    /// The member that the log names: a message of another one with this number is not of this turn.
    seat: SeatName,
    /// Its place among all turns of the log.
    order: usize,
    usage: Option<Usage>,
    /// The usage of the failed turns that it replaced.
    earlier: Option<Usage>,
    failure: Option<Failure>,
    trace: Trace,
}

impl View {
    /// Adds data of a thread's records to its messages, as a session shows them: their facts, and the order of a
    /// round. Messages whose facts are known already stay as they are.
    pub fn recall(&mut self, records: &[Record]) {
        let wrote = wrote(records, &self.deliveries());
        if wrote.is_empty() {
            return;
        }
        let late: BTreeSet<u32> = self
            .panels
            .iter()
            .filter_map(|panel| panel.content.message())
            .filter(|m| of(&wrote, m).is_some_and(|wrote| self.is_late(m, &wrote.trace)))
            .map(|m| m.seq)
            .collect();
        let mut known = Vec::new();
        for panel in &mut self.panels {
            let Content::Message {
                message,
                failure,
                usage,
                earlier,
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
            let mut spent = wrote.usage;
            // Those that were shown here are counted already.
            if earlier.is_none() {
                *earlier = wrote.earlier;
                spent = super::sum(spent, wrote.earlier);
            }
            *failure = wrote.failure.clone().filter(|_| !message.is_sound());
            // The thinking is not in the log; it was seen if the answer was streamed here.
            let mut told = wrote.trace.clone();
            told.late = late.contains(&message.seq);
            if let Some(seen) = trace.take().filter(|seen| !seen.thinking.is_empty()) {
                told.thinking = seen.thinking;
            }
            *trace = Some(Box::new(told));
            self.revision += 1;
            panel.revision = self.revision;
            known.push((message.from.clone(), spent));
        }
        for (from, spent) in known {
            if let Ok(seat) = SeatName::sender(from) {
                self.spend(&seat, spent.as_ref());
            }
        }
        self.order(&wrote);
    }

    /// Returns the ids of the deliveries that the messages belong to.
    fn deliveries(&self) -> BTreeMap<u32, String> {
        let messages = self.panels.iter().filter_map(|p| p.content.message());
        let id = |m: &Message| Some((m.seq, m.provenance.delivery_id.clone()?));
        messages.filter_map(id).collect()
    }

    /// Returns whether the usage or the failure of the turn that wrote a message is known; true if it is not shown.
    pub fn knows_turn(&self, seq: u32) -> bool {
        let is_it = |panel: &&Panel| panel.content.message().is_some_and(|m| m.seq == seq);
        let panel = self.panels.iter().rfind(is_it);
        panel.is_none_or(|panel| match &panel.content {
            Content::Message { failure, usage, .. } => usage.is_some() || failure.is_some(),
            Content::Turn(_)
            | Content::Stream(_)
            | Content::Lost { .. }
            | Content::Notice(_)
            | Content::Refusal(_) => true,
        })
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
fn wrote(records: &[Record], deliveries: &BTreeMap<u32, String>) -> BTreeMap<u32, Wrote> {
    // Two sessions of one thread may log turns of the same number at a time, also of the same member: one waits for it.
    let mut begun: BTreeMap<Key<'_>, Vec<Begun<'_>>> = BTreeMap::new();
    let mut ends: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    for (key, ..) in records.iter().filter_map(|r| ended(&r.event)) {
        *ends.entry(key).or_default() += 1;
    }
    let mut delivery = None;
    let mut wrote: BTreeMap<u32, Wrote> = BTreeMap::new();
    // The newest message of each chain of repeated answers, by the first.
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        if let Event::MessageAdded { message, .. } = &record.event {
            delivery = message.provenance.delivery_id.as_deref();
        }
        if let Event::TurnQueued {
            turn,
            seat,
            replaces,
            ..
        } = &record.event
        {
            // A repeated answer takes the place of the failed one.
            let old = replaces
                .and_then(|seq| wrote.get(last.get(&seq).unwrap_or(&seq)))
                .filter(|old| old.seat == *seat);
            let open = Begun {
                from: record.ts,
                delivery,
                order: old.map_or(at, |old| old.order),
                replaces: *replaces,
                earlier: old.and_then(|old| super::sum(old.earlier, old.usage)),
            };
            begun.entry((*turn, seat)).or_default().push(open);
        }
        let Some((key, seq, usage, failure, trace)) = ended(&record.event) else {
            continue;
        };
        let left = ends.get_mut(&key);
        let left = left.map_or(0, |left| std::mem::replace(left, left.saturating_sub(1)));
        let all = begun.get_mut(&key);
        let delivery = deliveries.get(&seq).map(String::as_str);
        if let Some(began) = all.and_then(|all| take(all, delivery, left)) {
            let trace = Trace {
                span: Some((began.from, record.ts)),
                ..trace
            };
            last.extend(began.replaces.map(|first| (first, seq)));
            wrote.insert(
                seq,
                Wrote {
                    seat: key.1.clone(),
                    order: began.order,
                    usage,
                    earlier: began.earlier,
                    failure,
                    trace,
                },
            );
        }
    }
    wrote
}

/// Takes the turn that ended with a message of this delivery, of those that have the same number and member. Turns of a killed
/// session never end: `left` is how many do.
fn take<'a>(all: &mut Vec<Begun<'a>>, delivery: Option<&str>, left: usize) -> Option<Begun<'a>> {
    let last = all.len().checked_sub(1)?;
    let mut of_it = (0..all.len()).filter(|at| all[*at].delivery == delivery);
    let at = match delivery {
        // A session that goes on after it was killed asks again.
        Some(_) => of_it.next_back(),
        // The member answers one after the other.
        None => of_it.next().filter(|_| left >= all.len()),
    };
    Some(all.remove(at.unwrap_or(last)))
}

/// The number of a turn, and its member.
type Key<'a> = (TurnId, &'a SeatName);

/// A turn of the log that has not ended.
struct Begun<'a> {
    from: Timestamp,
    /// The delivery of the question.
    delivery: Option<&'a str>,
    order: usize,
    /// The first message of the chain of answers that it repeats.
    replaces: Option<u32>,
    /// The usage of the failed turns of that chain.
    earlier: Option<Usage>,
}

/// A turn that ended with a message: its number and member, the number of the message, its usage, its failure, and its
/// trace without times.
type Ended<'a> = (
    (TurnId, &'a SeatName),
    u32,
    Option<Usage>,
    Option<Failure>,
    Trace,
);

/// Returns the end of a turn that an event reports.
fn ended(event: &Event) -> Option<Ended<'_>> {
    let trace = |tools, thought| Trace {
        thinking: String::new(),
        thought,
        tools,
        span: None,
        late: false,
    };
    if let Event::TurnFinished {
        turn,
        seat,
        message: Some(message),
        usage,
        tools,
        thought,
    } = event
    {
        let trace = trace(*tools, *thought as usize);
        return Some(((*turn, seat), *message, *usage, None, trace));
    }
    if let Event::TurnFailed {
        turn,
        seat,
        message: Some(message),
        failure,
    } = event
    {
        let usage = super::used(failure);
        let failure = Some(failure.clone());
        return Some(((*turn, seat), *message, usage, failure, trace(0, 0)));
    }
    None
}
