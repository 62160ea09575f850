//! The set of open turns. Each is opened once and ends exactly once.
//!
//! A turn runs while its pieces arrive, then waits while its message is written; later input for it is ignored. Text in
//! `<council>` tags or tags of thinking is private, here as in a debate: it is removed before anybody sees it.

use crate::duet::splitter::Splitter;
use crate::event::Purpose;
use crate::failure::Failure;
use crate::hearing::Hearing;
use crate::ids::{SeatName, TurnId};
use crate::prompt::Manner;
use crate::request::{Delta, Finish};
use crate::usage::Usage;
use std::collections::BTreeMap;

/// The open turns, by number.
#[derive(Debug, Default)]
pub(super) struct Floor {
    open: BTreeMap<TurnId, Turn>,
    last: u32,
}

/// One open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) seat: SeatName,
    pub(super) purpose: Purpose,
    pub(super) manner: Manner,
    /// The failed message that its answer replaces.
    pub(super) replaces: Option<u32>,
    /// The answer so far, clean and without private text.
    pub(super) text: String,
    /// Removes private text from the pieces.
    splitter: Splitter,
    /// Bytes of the answer so far, including private text.
    bytes: usize,
    /// Cleans the pieces, and keeps what the backend reports about itself.
    pub(super) ear: Hearing,
    /// Number of tool uses.
    pub(super) tools: u32,
    /// Characters of thinking.
    pub(super) thought: u32,
    /// Whether a `Cancel` was sent.
    pub(super) stopped: bool,
    /// Set while the message is being written.
    pub(super) end: Option<End>,
}

/// The end of a turn whose message is not on disk yet.
#[derive(Debug)]
pub(super) struct End {
    pub(super) result: Result<(), Failure>,
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<Finish>,
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
    /// The turn continues.
    More,
    /// The turn continues, with nothing to show.
    Nothing,
    /// The text exceeded its limit.
    TooLong,
    /// The answer is complete; it may be empty.
    Whole(Whole),
}

/// A complete answer.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) finish: Finish,
    pub(super) usage: Option<Usage>,
    /// The end of the text that was held back, unless the backend sent the whole text.
    pub(super) rest: String,
    /// The text in `<council>` tags.
    pub(super) council: Option<String>,
}

impl Floor {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Opens a turn under a new number.
    pub(super) fn open(
        &mut self,
        seat: SeatName,
        purpose: Purpose,
        manner: Manner,
        replaces: Option<u32>,
    ) -> TurnId {
        self.last += 1;
        let id = TurnId::new(self.last);
        let turn = Turn {
            seat,
            purpose,
            manner,
            replaces,
            text: String::new(),
            splitter: Splitter::default(),
            bytes: 0,
            ear: Hearing::default(),
            tools: 0,
            thought: 0,
            stopped: false,
            end: None,
        };
        self.open.insert(id, turn);
        id
    }

    /// Returns the purpose of an open turn.
    pub(super) fn purpose(&self, id: TurnId) -> Option<Purpose> {
        self.open.get(&id).map(|turn| turn.purpose)
    }

    /// Returns a turn that still accepts pieces.
    pub(super) fn running(&mut self, id: TurnId) -> Option<&mut Turn> {
        self.open.get_mut(&id).filter(|t| t.end.is_none())
    }

    /// Marks running turns of one member, or of all members, as stopped. Returns the turns that were not stopped
    /// before.
    pub(super) fn stop(&mut self, seat: Option<&SeatName>) -> Vec<TurnId> {
        let mut stopped = Vec::new();
        for (id, turn) in &mut self.open {
            let meant = seat.is_none_or(|s| s == &turn.seat);
            if meant && turn.end.is_none() && !turn.stopped {
                turn.stopped = true;
                stopped.push(*id);
            }
        }
        stopped
    }

    /// Returns whether a member has an open turn.
    pub(super) fn holds(&self, seat: &SeatName) -> bool {
        self.open.values().any(|t| &t.seat == seat)
    }

    /// Removes a turn that was never asked.
    pub(super) fn take_back(&mut self, id: TurnId) {
        self.open.remove(&id);
    }

    /// Removes a turn whose message was being written.
    pub(super) fn close(&mut self, id: TurnId) -> Option<(Turn, End)> {
        let end = self.open.get_mut(&id)?.end.take()?;
        self.open.remove(&id).map(|turn| (turn, end))
    }
}

impl Turn {
    /// Processes a piece, cleaning it in place.
    pub(super) fn hear(&mut self, delta: &mut Delta, text_bytes_max: usize) -> Heard {
        self.ear.clean(delta);
        match delta {
            Delta::Text { text } => {
                self.bytes += text.len();
                if self.bytes > text_bytes_max {
                    return Heard::TooLong;
                }
                *text = self.splitter.push(text);
                self.text.push_str(text);
                if text.is_empty() {
                    return Heard::Nothing;
                }
            }
            Delta::Retrying { .. } => {
                self.text.clear();
                self.bytes = 0;
                self.splitter = Splitter::default();
                self.thought = 0;
            }
            Delta::Tool { .. } => self.tools = self.tools.saturating_add(1),
            Delta::Thinking { text } => {
                let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                self.thought = self.thought.saturating_add(chars);
            }
            Delta::Finished {
                finish,
                text,
                usage,
                ..
            } => {
                let restated = text.is_some();
                if let Some(whole) = text {
                    if whole.len() > text_bytes_max {
                        return Heard::TooLong;
                    }
                    self.splitter = Splitter::default();
                    self.text = self.splitter.push(whole);
                }
                let (rest, council) = std::mem::take(&mut self.splitter).finish();
                self.text.push_str(&rest);
                if let Some(whole) = text {
                    whole.clone_from(&self.text);
                }
                return Heard::Whole(Whole {
                    finish: *finish,
                    usage: *usage,
                    rest: if restated { String::new() } else { rest },
                    council: (!council.is_empty()).then(|| council.join("\n\n")),
                });
            }
            // No tools are offered here; a tool call that a service invents is shown and not executed.
            Delta::Started { .. } | Delta::Call { .. } | Delta::Notice { .. } => {}
        }
        Heard::More
    }

    /// Returns the answer for the file: trimmed, and without the member's own name at the beginning, which models that
    /// read a history like to repeat.
    pub(super) fn body(&self) -> &str {
        let text = self.text.trim();
        let bare = text
            .strip_prefix(self.seat.as_str())
            .and_then(|rest| rest.strip_prefix(": "));
        bare.map_or(text, str::trim_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_once_and_hears_nothing_after_its_end() {
        let mut floor = Floor::default();
        let seat = SeatName::new("claude").unwrap();
        let id = floor.open(seat.clone(), Purpose::Answer, Manner::Answer, None);
        assert!(floor.close(id).is_none(), "it has not ended yet");
        let turn = floor.running(id).unwrap();
        turn.end = Some(End {
            result: Ok(()),
            usage: None,
            finish: None,
        });
        assert!(floor.running(id).is_none());
        assert!(floor.stop(None).is_empty());
        assert!(floor.holds(&seat));
        assert!(floor.close(id).is_some());
        assert!(floor.close(id).is_none());
        assert!(floor.is_empty());
        assert_ne!(floor.open(seat, Purpose::Answer, Manner::Answer, None), id);
    }

    #[test]
    fn an_echo_of_the_own_name_is_no_part_of_the_answer() {
        let mut floor = Floor::default();
        let id = floor.open(
            SeatName::new("claude").unwrap(),
            Purpose::Answer,
            Manner::Answer,
            None,
        );
        let turn = floor.running(id).unwrap();
        for (text, body) in [
            ("\n\nclaude: Yes.\n", "Yes."),
            ("claude is right", "claude is right"),
            ("claude:\n- a", "claude:\n- a"),
        ] {
            turn.text = text.into();
            assert_eq!(turn.body(), body);
        }
    }
}
