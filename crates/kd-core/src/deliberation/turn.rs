//! One open turn of a deliberation, and a request that waits to become one.

use super::hide;
use super::plan::{PRIVATE, Plan};
use super::spoken;
use super::stages::{Asking, Stage};
use crate::duet::splitter::Splitter;
use crate::failure::Failure;
use crate::hearing::Hearing;
use crate::usage::Usage;

/// One open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) seat: usize,
    pub(super) sample: u32,
    pub(super) stage: &'static Stage,
    pub(super) items: Vec<usize>,
    /// The text as it arrived.
    pub(super) text: String,
    /// The part that is shown while it arrives.
    pub(super) live: Splitter,
    /// The stand-ins in its prompt, each with its name.
    pub(super) stand_ins: Vec<(String, String)>,
    pub(super) ear: Hearing,
    /// The original reply and its message, if this turn asks for it to be restated.
    pub(super) repairs: Option<(String, Option<u32>)>,
    /// Whether it was cancelled because it can no longer matter.
    pub(super) needless: bool,
    /// Set while its message is being written.
    pub(super) reply: Option<(String, Option<Usage>)>,
    /// The reason why the answer broke off; set while the partial answer is being written.
    pub(super) broken: Option<Failure>,
}

impl Turn {
    /// Returns whether its text is a message of the conversation.
    pub(super) fn is_spoken(&self) -> bool {
        self.stage.spoken && self.repairs.is_none()
    }

    /// Returns a reply without its private parts, and with the names behind stand-ins.
    pub(super) fn heard(&self, plan: &Plan, reply: &str) -> String {
        if plan.reading < PRIVATE {
            return reply.trim().to_owned();
        }
        let text = spoken::spoken(plan.reading, reply);
        match self.stand_ins.is_empty() {
            true => text,
            false => spoken::changed(&text, &|text| {
                hide::named(plan.reading, &self.stand_ins, text)
            }),
        }
    }

    /// Takes a piece of the reply; returns the part of it to show. JSON is shown as it arrives.
    pub(super) fn push(&mut self, plan: &Plan, piece: &str) -> String {
        self.text.push_str(piece);
        let is_json = self.text.trim_start().starts_with(['{', '[']);
        match plan.reading < PRIVATE || is_json {
            true => piece.to_owned(),
            false => self.live.push(piece),
        }
    }

    /// Returns whether its text is still arriving.
    pub(super) fn speaks(&self) -> bool {
        self.reply.is_none() && self.broken.is_none()
    }
}

/// A request that waits until an open turn has left room for it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) stage: &'static Stage,
    pub(super) seat: usize,
    pub(super) sample: u32,
    pub(super) asking: Asking,
}
