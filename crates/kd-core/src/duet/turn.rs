//! One reply of a seat: its pieces cleaned and split as they arrive.

use super::splitter::Splitter;
use crate::event::DuetPhase;
use crate::failure::Failure;
use crate::hearing::Hearing;
use crate::ids::{SeatName, TurnId};
use crate::request::{Delta, Finish, Usage};

/// An open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) seat: SeatName,
    pub(super) phase: DuetPhase,
    /// Tokens of its prompt, as we guess them.
    pub(super) prompt_tokens: u64,
    /// What the king has read of it.
    pub(super) spoken: String,
    /// Bytes of text and thinking so far, tags and their contents included.
    bytes: usize,
    /// Cleans before the splitters look: no escape sequence can hide a tag.
    pub(super) ear: Hearing,
    /// A `Cancel` is out.
    pub(super) stopped: bool,
    /// Set while the message is being written.
    pub(super) end: Option<End>,
    text: Splitter,
    thinking: Splitter,
}

/// How a turn ended, before its message is on disk.
#[derive(Debug)]
pub(super) struct End {
    pub(super) result: Result<(), Failure>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<Finish>,
    /// What it wrote to the other seat.
    pub(super) council: Option<String>,
}

impl End {
    /// What the turn used, whether its answer is whole or not.
    pub(super) fn used(&self) -> Option<&Usage> {
        match &self.result {
            Ok(()) => self.usage.as_ref(),
            Err(failure) => failure.used.as_deref().map(|used| &used.usage),
        }
    }

    /// Whether it may have used tokens that nobody told of.
    pub(super) fn is_uncounted(&self) -> bool {
        match &self.result {
            Ok(()) => self.usage.is_none(),
            Err(failure) => failure.is_uncounted(),
        }
    }
}

/// What a piece means for its turn.
#[derive(Debug)]
pub(super) enum Heard {
    /// The turn goes on; the king reads this.
    More(Option<Delta>),
    /// The text outgrew its bound.
    TooLong,
    /// The reply is whole: the last of the text, why it ended, what it used, what is for the other seat.
    Whole {
        rest: String,
        finish: Finish,
        usage: Option<Usage>,
        council: Option<String>,
        /// The whole spoken text, where the backend restated it.
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
            stopped: false,
            end: None,
            text: Splitter::default(),
            thinking: Splitter::default(),
        }
    }

    /// Takes a piece in.
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
            // No tools are offered here; what a service makes up is shown and not carried out.
            Delta::Started { .. }
            | Delta::Tool { .. }
            | Delta::Call { .. }
            | Delta::Notice { .. } => {}
            Delta::Retrying { .. } => {
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

    /// Tokens of the reply, as we guess them: four bytes each.
    pub(super) fn reply_tokens(&self) -> u64 {
        (self.bytes as u64).div_ceil(4)
    }

    /// What the king has read, without white space around it and without the seat's own name in front.
    pub(super) fn body(&self) -> &str {
        let text = self.spoken.trim();
        let bare = text
            .strip_prefix(self.seat.as_str())
            .and_then(|rest| rest.strip_prefix(':'))
            .filter(|rest| rest.is_empty() || rest.starts_with(' '));
        bare.map_or(text, str::trim_start)
    }
}
