//! One reply of a member: its pieces, cleaned and split as they arrive.

use super::splitter::Splitter;
use crate::event::DuetPhase;
use crate::failure::{Failure, FailureKind};
use crate::hearing::Hearing;
use crate::ids::{SeatName, TurnId};
use crate::request::{Delta, Finish};
use crate::usage::Usage;

/// An open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) seat: SeatName,
    pub(super) phase: DuetPhase,
    /// Estimated tokens of its prompt.
    pub(super) prompt_tokens: u64,
    /// The visible text so far.
    pub(super) spoken: String,
    /// Bytes of text and thinking so far, including tags and their contents.
    bytes: usize,
    /// Cleans before the splitter runs: no escape sequence can hide a tag.
    pub(super) ear: Hearing,
    /// Whether an unusable reply was asked for again.
    redrawn: bool,
    /// Whether a `Cancel` was sent.
    pub(super) stopped: bool,
    /// Set while the message is being written.
    pub(super) end: Option<End>,
    text: Splitter,
    thinking: Splitter,
}

/// The end of a turn whose message is not on disk yet.
#[derive(Debug)]
pub(super) struct End {
    pub(super) result: Result<(), Failure>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<Finish>,
    /// The message to the other member.
    pub(super) council: Option<String>,
}

impl End {
    /// Returns the usage of the turn, whether its answer is complete or not.
    pub(super) fn used(&self) -> Option<&Usage> {
        match &self.result {
            Ok(()) => self.usage.as_ref(),
            Err(failure) => failure.used.as_deref().map(|used| &used.usage),
        }
    }

    /// Returns whether it may have used tokens that were not reported.
    pub(super) fn is_uncounted(&self) -> bool {
        match &self.result {
            Ok(()) => self.usage.is_none(),
            Err(failure) => failure.is_uncounted(),
        }
    }
}

/// The effect of a piece on its turn.
#[derive(Debug)]
pub(super) enum Heard {
    /// The turn continues; this piece is visible to the user.
    More(Option<Delta>),
    /// The text exceeded its limit.
    TooLong,
    /// The reply is complete: the rest of the text, why it ended, its usage, and the message to the other member.
    Whole {
        rest: String,
        finish: Finish,
        usage: Option<Usage>,
        council: Option<String>,
        /// Whether the backend sent the whole visible text.
        restated: bool,
    },
}

impl Turn {
    pub(super) fn new(id: TurnId, seat: SeatName, phase: DuetPhase, prompt_tokens: u64) -> Self {
        Self {
            id,
            seat,
            phase,
            prompt_tokens,
            spoken: String::new(),
            bytes: 0,
            ear: Hearing::default(),
            redrawn: false,
            stopped: false,
            end: None,
            text: Splitter::default(),
            thinking: Splitter::default(),
        }
    }

    /// Processes a piece.
    pub(super) fn hear(&mut self, mut delta: Delta, bytes_max: usize) -> Heard {
        self.ear.clean(&mut delta);
        match &mut delta {
            Delta::Text { text } => {
                self.bytes += text.len();
                if self.bytes > bytes_max {
                    return Heard::TooLong;
                }
                *text = self.text.push(text);
                self.spoken.push_str(text);
                if text.is_empty() {
                    return Heard::More(None);
                }
            }
            Delta::Thinking { text } => {
                self.bytes += text.len();
                if self.bytes > bytes_max {
                    return Heard::TooLong;
                }
                *text = self.thinking.push(text);
                if text.is_empty() {
                    return Heard::More(None);
                }
            }
            // No tools are offered here; a tool call that a service invents is shown and not executed.
            Delta::Started { .. }
            | Delta::Tool { .. }
            | Delta::Call { .. }
            | Delta::Notice { .. } => {}
            Delta::Retrying { failure, .. } => {
                self.redrawn |= failure.kind == FailureKind::Decode;
                self.spoken.clear();
                self.bytes = 0;
                self.text = Splitter::default();
                self.thinking = Splitter::default();
            }
            Delta::Finished {
                finish,
                text,
                usage,
                ..
            } => {
                let restated = text.is_some();
                if let Some(whole) = text {
                    if whole.len() > bytes_max {
                        return Heard::TooLong;
                    }
                    self.text = Splitter::default();
                    self.bytes = whole.len();
                    *whole = self.text.push(whole);
                    self.spoken.clone_from(whole);
                }
                let (rest, messages) = std::mem::take(&mut self.text).finish();
                self.spoken.push_str(&rest);
                return Heard::Whole {
                    rest,
                    finish: *finish,
                    usage: *usage,
                    council: (!messages.is_empty()).then(|| messages.join("\n\n")),
                    restated,
                };
            }
        }
        Heard::More(Some(delta))
    }

    /// Returns whether the reply with this end is complete and the member's first attempt. A cut reply may lack its
    /// doubts.
    pub(super) fn is_sound(&self, end: &End) -> bool {
        !self.redrawn && end.finish.and_then(Finish::cut).is_none()
    }

    /// Estimates the tokens of the reply at four bytes each.
    pub(super) fn reply_tokens(&self) -> u64 {
        (self.bytes as u64).div_ceil(4)
    }

    /// Returns the visible text, trimmed and without the member's own name at the beginning.
    pub(super) fn body(&self) -> &str {
        let text = self.spoken.trim();
        let bare = text
            .strip_prefix(self.seat.as_str())
            .and_then(|rest| rest.strip_prefix(':'))
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        bare.map_or(text, str::trim_start)
    }
}
