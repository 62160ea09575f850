//! Compares the messages of a thread with those that its log recorded.
//!
//! Input: the log of a thread. Output: the messages whose words differ from it, as `kd replay` names them.

use crate::error::Error;
use crate::forget::TOMBSTONE;
use crate::log;
use crate::thread::Thread;
use kd_core::deliberation::changed_messages;
use kd_core::{Event, Message, Record};
use std::collections::BTreeMap;

/// The messages that a log recorded, by number and sender. Of several records of one message, the last one counts.
#[derive(Debug, Default)]
pub struct Recorded(BTreeMap<(u32, String), Record>);

/// Bytes at the end of a log that are read to show or check messages: another process may let it grow meanwhile.
pub const SHOWN_BYTES: u64 = 8 << 20;

impl Recorded {
    /// Reads the messages from a number up to the newest, from at most the last `most` bytes of the log. Reads it
    /// backwards, so that the newest messages of a long thread cost no more than the end of its log.
    ///
    /// # Errors
    /// If the log cannot be read, or holds a record of a newer version.
    pub fn since(thread: &Thread, seq: u32, most: u64) -> Result<Self, Error> {
        let mut bytes = log::TURNS_BYTES.min(most);
        loop {
            let mut found = BTreeMap::new();
            let is_whole = bytes >= most || log::is_whole(thread, bytes);
            let mut reaches = is_whole;
            log::each_record(thread, bytes, |record, _| {
                if let Event::MessageAdded { message, .. } = &record.event {
                    reaches |= message.seq < seq;
                    if message.seq >= seq {
                        found.insert((message.seq, message.from.clone()), record);
                    }
                }
            })?;
            if reaches {
                return Ok(Self(found));
            }
            bytes = bytes.saturating_mul(8).min(most);
        }
    }

    /// Returns how a message differs from its record: a sentence. `None` if it does not, or if there is no record of its
    /// words: nothing was recorded, or a part of them was forgotten.
    pub fn change(&self, message: &Message) -> Option<String> {
        let record = self.0.get(&(message.seq, message.from.clone()))?;
        if let Event::MessageAdded { message: then, .. } = &record.event
            && then.body.contains(TOMBSTONE)
        {
            return None;
        }
        let changed = changed_messages(std::slice::from_ref(record), std::slice::from_ref(message));
        changed.into_iter().next()
    }
}
