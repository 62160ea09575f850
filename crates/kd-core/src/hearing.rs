//! Cleans the output of backends where it enters the program.
//!
//! Input: the deltas of one turn, in order. Output: the same deltas, clean, and what the backend reports about itself.
//! All state machines use this, so that no raw model output reaches a front end, a file or a prompt.

use crate::clean::{Cleaner, clean_line};
use crate::request::Delta;

/// Maximum characters of a name: a tool's, a model's version.
const NAME_CHARS_MAX: usize = 120;
/// Maximum length of the name of a tool that a client offers, in characters.
pub(crate) const TOOL_CHARS_MAX: usize = 128;
/// Maximum characters of a line.
const LINE_CHARS_MAX: usize = 400;

/// The cleaning state of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hearing {
    text: Cleaner,
    thinking: Cleaner,
    /// The model, as reported by the backend.
    pub model: Option<String>,
    /// The version of the agent program.
    pub version: Option<String>,
}

impl Hearing {
    /// Cleans a piece in place. A retry resets the state, including a partial escape sequence.
    pub fn clean(&mut self, delta: &mut Delta) {
        match delta {
            Delta::Text { text } => self.text.clean_in_place(text),
            Delta::Thinking { text } => self.thinking.clean_in_place(text),
            Delta::Started { model, version, .. } => {
                for (ours, theirs) in [(&mut self.model, model), (&mut self.version, version)] {
                    if let Some(said) = theirs {
                        *said = clean_line(said, NAME_CHARS_MAX);
                        *ours = Some(said.clone());
                    }
                }
            }
            Delta::Tool { name, detail } => {
                *name = clean_line(name, NAME_CHARS_MAX);
                *detail = clean_line(detail, LINE_CHARS_MAX);
            }
            // The tool is looked up by name and its arguments are parsed as data: only the name is shown.
            Delta::Call { call } => call.name = clean_line(&call.name, TOOL_CHARS_MAX),
            Delta::Notice { text } => *text = clean_line(text, LINE_CHARS_MAX),
            Delta::Retrying { failure, .. } => {
                failure.message = clean_line(&failure.message, LINE_CHARS_MAX);
                self.text = Cleaner::default();
                self.thinking = Cleaner::default();
            }
            Delta::Finished {
                text: Some(whole), ..
            } => Cleaner::default().clean_in_place(whole),
            Delta::Finished { text: None, .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, FailureKind};
    use crate::request::{Finish, ToolCall};

    /// Hostile model output: an escape sequence, a bell, a second line.
    const HOSTILE: &str = "a\u{1b}[2J\u{7}\nking: b";

    fn hostile() -> Vec<Delta> {
        let text = || HOSTILE.to_owned();
        vec![
            Delta::Started {
                model: Some(text()),
                version: Some(text()),
                session: None,
            },
            Delta::Text { text: text() },
            Delta::Thinking { text: text() },
            Delta::Tool {
                name: text(),
                detail: text(),
            },
            Delta::Call {
                call: ToolCall {
                    name: text(),
                    id: String::new(),
                    arguments: serde_json::Value::Null,
                    ..ToolCall::default()
                },
            },
            Delta::Notice { text: text() },
            Delta::Retrying {
                attempt: 1,
                after: std::time::Duration::ZERO,
                failure: Failure::new(FailureKind::Overloaded, HOSTILE),
            },
            Delta::Finished {
                finish: Finish::Stop,
                text: Some(text()),
                usage: None,
                choices: Vec::new(),
            },
        ]
    }

    #[test]
    fn no_piece_of_any_kind_stays_hostile() {
        for mut delta in hostile() {
            Hearing::default().clean(&mut delta);
            let shown = serde_json::to_string(&delta).unwrap();
            assert!(
                !shown.contains("\\u001b") && !shown.contains("\\u0007"),
                "{shown}"
            );
            let of_one_line = !matches!(
                delta,
                Delta::Text { .. } | Delta::Thinking { .. } | Delta::Finished { .. }
            );
            assert!(!of_one_line || !shown.contains("\\n"), "{shown}");
        }
    }

    #[test]
    fn a_sequence_cut_in_two_is_known_and_a_retry_forgets_its_first_half() {
        let mut ear = Hearing::default();
        let mut said = String::new();
        for piece in ["one\u{1b}", "[2Jtwo\u{1b}"] {
            let mut delta = Delta::Text { text: piece.into() };
            ear.clean(&mut delta);
            if let Delta::Text { text } = delta {
                said += &text;
            }
        }
        assert_eq!(said, "onetwo");
        ear.clean(&mut Delta::Retrying {
            attempt: 1,
            after: std::time::Duration::ZERO,
            failure: Failure::new(FailureKind::Overloaded, "dropped"),
        });
        let mut delta = Delta::Text { text: "[x]".into() };
        ear.clean(&mut delta);
        assert_eq!(delta, Delta::Text { text: "[x]".into() });
    }
}
