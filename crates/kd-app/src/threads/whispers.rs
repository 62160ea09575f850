//! Messages that members write to each other and not into the thread, from its log.

use crate::error::UserError;
use kd_core::{Event, Message, SeatName};
use kd_store::{Thread, log};

/// A message between members, as logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whisper {
    /// The number of the preceding message.
    pub after: u32,
    /// Who wrote it.
    pub from: SeatName,
    /// Who read it.
    pub to: SeatName,
    /// What it says.
    pub text: String,
}

/// Returns the messages between members in these turns, in order.
///
/// # Errors
/// The log cannot be read.
pub fn whispers(thread: &Thread, turns: &[&[Message]]) -> Result<Vec<Whisper>, UserError> {
    let mut shown = turns.iter().flat_map(|turn| turn.iter()).map(|m| m.seq);
    let first = shown.next().unwrap_or(u32::MAX);
    let last = shown.next_back().unwrap_or(first);
    let mut after = 0;
    let mut found = Vec::new();
    for record in log::read(thread)?.records {
        if let Event::MessageAdded { message, .. } = &record.event {
            after = message.seq;
        }
        if let Event::CouncilSaid {
            from,
            to,
            text: Some(text),
            ..
        } = record.event
            && (first..=last).contains(&after)
        {
            found.push(Whisper {
                after,
                from,
                to,
                text,
            });
        }
    }
    Ok(found)
}
