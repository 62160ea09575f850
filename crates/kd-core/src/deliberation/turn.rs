//! One open turn of a deliberation, and a request that waits to become one.

use super::stages::{Asking, Stage};
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
    pub(super) text: String,
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
