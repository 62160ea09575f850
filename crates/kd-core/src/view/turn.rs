//! One turn of a member, from its queueing to its end. Input: the events about it. Output: the same fields for every
//! front end: state, text, thinking, times and usage.

use crate::event::{DuetPhase, Purpose};
use crate::failure::Failure;
use crate::ids::{SeatName, TurnId};
use crate::message::Message;
use crate::request::{Delta, Finish, ToolCall};
use crate::usage::Usage;
use jiff::Timestamp;
use std::borrow::Cow;
use std::time::Duration;

/// Maximum bytes of thinking kept per turn; up to twice that between two cuts.
pub(super) const THINKING_BYTES_MAX: usize = 256 << 10;

/// A turn: an arriving answer, or a finished one.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its number; `None` if another process asked.
    pub id: Option<TurnId>,
    /// The member.
    pub seat: SeatName,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its phase in a debate.
    pub phase: Option<DuetPhase>,
    /// The number of the failed message it replaces, on a retry.
    pub replaces: Option<u32>,
    /// The usage of the failed turns that it replaces.
    pub(super) earlier: Option<Usage>,
    /// Its state.
    pub state: State,
    /// The answer so far.
    pub text: String,
    /// Characters of `text`.
    pub chars: usize,
    /// The thinking so far; only the end if very long. Moves to the panel of its message.
    pub thinking: String,
    /// Characters of all thinking so far.
    pub thinking_chars: usize,
    /// Number of tool uses.
    pub tools: u32,
    /// The calls of a client's tools, which the client makes.
    pub calls: Vec<ToolCall>,
    /// The model's own name, once reported.
    pub model: Option<String>,
    /// The times of the queueing and of the last change, if records give them.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The time when it ended, if the records have it.
    pub ended: Option<Timestamp>,
    /// Its message, once on disk.
    pub message: Option<Box<Message>>,
    /// Its usage, once reported.
    pub usage: Option<Usage>,
    /// The position of its panel, while it is open.
    pub(super) panel: Option<usize>,
}

/// The state of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum State {
    /// No response yet.
    #[default]
    Waiting,
    /// The backend accepted the request.
    Started,
    /// Thinking.
    Thinking,
    /// Using a tool.
    Tool {
        /// The tool.
        name: String,
        /// The target of the tool, such as a file name.
        detail: String,
    },
    /// Text is arriving.
    Answering,
    /// The attempt failed and another follows.
    Retrying {
        /// The number of the attempt that failed.
        attempt: u32,
        /// The time when the next one begins, if the records have it.
        at: Option<Timestamp>,
        /// The reason.
        failure: Failure,
    },
    /// The answer is complete and is being written.
    Whole(Finish),
    /// It ended with a complete answer.
    Done,
    /// It ended without a complete answer.
    Failed(Failure),
}

impl Turn {
    /// Creates a turn queued now.
    pub(crate) fn queued(
        id: Option<TurnId>,
        seat: SeatName,
        purpose: Purpose,
        now: Option<Timestamp>,
    ) -> Self {
        Self {
            id,
            seat,
            purpose,
            phase: None,
            replaces: None,
            earlier: None,
            state: State::Waiting,
            text: String::new(),
            chars: 0,
            thinking: String::new(),
            thinking_chars: 0,
            tools: 0,
            calls: Vec::new(),
            model: None,
            span: now.map(|now| (now, now)),
            ended: None,
            message: None,
            usage: None,
            panel: None,
        }
    }

    /// Returns whether it has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Done | State::Failed(_))
    }

    /// Returns whether it ended without text for the user: all of it was for another member.
    pub fn is_silent(&self) -> bool {
        self.state == State::Done && self.message.is_none() && self.text.trim().is_empty()
    }

    /// Returns the reason if it failed.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Failed(failure) => Some(failure),
            State::Waiting
            | State::Started
            | State::Thinking
            | State::Tool { .. }
            | State::Answering
            | State::Retrying { .. }
            | State::Whole(_)
            | State::Done => None,
        }
    }

    /// Returns the time from the queueing to the end, or until now; zero if records give no times.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        let Some((since, _)) = self.span else {
            return Duration::ZERO;
        };
        let until = self.ended.unwrap_or(now);
        Duration::try_from(until.duration_since(since)).unwrap_or_default()
    }

    /// Returns the time from the queueing to the end; `None` while it is open.
    pub fn took(&self) -> Option<Duration> {
        self.ended.map(|ended| self.elapsed(ended))
    }

    /// Returns the final text as it is shown: with a mark if it was cut.
    pub fn shown(&self) -> Cow<'_, str> {
        match self.cut_mark() {
            Some(mark) => Cow::Owned(format!("{}{mark}", self.body().trim_end())),
            None => Cow::Borrowed(self.body()),
        }
    }

    /// Returns the mark at the end of an answer that was cut.
    pub fn cut_mark(&self) -> Option<String> {
        let tokens = self
            .usage
            .map(|usage| usage.output_tokens)
            .filter(|n| *n > 0);
        let message = self
            .message
            .as_ref()
            .filter(|_| self.state == State::Done)?;
        message.cut_mark_at(tokens)
    }

    /// Returns the final text: the text of its message if the turn succeeded, otherwise the text received so far.
    pub fn body(&self) -> &str {
        match (&self.message, &self.state) {
            (Some(message), State::Done) => &message.body,
            // The file of a failed turn may contain the error as body; the received text is here.
            _ => &self.text,
        }
    }

    /// Folds in a piece of the answer.
    pub(super) fn hear(&mut self, delta: &Delta, now: Option<Timestamp>) {
        if let (Some(span), Some(now)) = (&mut self.span, now) {
            span.1 = now;
        }
        match delta {
            Delta::Started { model, .. } => {
                if model.is_some() {
                    self.model.clone_from(model);
                }
                if self.text.is_empty() {
                    self.state = State::Started;
                }
            }
            Delta::Text { text } => {
                self.text.push_str(text);
                self.chars += text.chars().count();
                self.state = State::Answering;
            }
            Delta::Thinking { text } => {
                self.think(text);
                self.state = State::Thinking;
            }
            Delta::Tool { name, detail } => {
                self.tools = self.tools.saturating_add(1);
                self.state = State::Tool {
                    name: name.clone(),
                    detail: detail.clone(),
                };
            }
            Delta::Retrying {
                attempt,
                after,
                failure,
            } => {
                self.restate(String::new());
                self.calls.clear();
                self.thinking.clear();
                self.thinking_chars = 0;
                self.state = State::Retrying {
                    attempt: *attempt,
                    at: now.map(|now| now.checked_add(*after).unwrap_or(now)),
                    failure: failure.clone(),
                };
            }
            Delta::Call { call } => self.calls.push(call.clone()),
            Delta::Notice { .. } => {}
            Delta::Finished {
                finish,
                text,
                usage,
                ..
            } => {
                if let Some(text) = text {
                    self.restate(text.clone());
                }
                self.usage = usage.or(self.usage);
                self.state = State::Whole(*finish);
            }
        }
    }

    /// Replaces the text.
    fn restate(&mut self, text: String) {
        self.chars = text.chars().count();
        self.text = text;
    }

    fn think(&mut self, text: &str) {
        self.thinking.push_str(text);
        self.thinking_chars += text.chars().count();
        if self.thinking.len() > 2 * THINKING_BYTES_MAX {
            let cut = self.thinking.len() - THINKING_BYTES_MAX;
            let cut = self.thinking.ceil_char_boundary(cut);
            self.thinking.drain(..cut);
        }
    }
}
