//! The messages of a round, and the prompt for its value.

use super::Mismatch;
use crate::event::{Event, Purpose};
use crate::ids::{SeatName, TurnId};
use crate::message::Message;
use crate::names::COUNCIL;
use crate::prompt::{HISTORY_END, render};
use crate::request::Prompt;
use crate::roster::Member;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum bytes of the answers shown besides the question and the conclusion. If there are more, none of them is
/// shown.
const ANSWERS_BYTES_MAX: usize = 64 << 10;

const RULES: &str =
    "You put the answer of a council into JSON. You add nothing to it and change nothing in it.";

/// The messages of the inner machine's round.
#[derive(Default)]
pub(super) struct Round {
    /// The question and the sound answers to it.
    pub(super) said: Vec<Message>,
    /// The open turns that conclude.
    concludes: BTreeMap<TurnId, SeatName>,
    /// The member that concluded last, and the number of its message or of the council's.
    pub(super) concluded: Option<SeatName>,
    answer: Option<u32>,
    /// Whether its value is written.
    pub(super) has_value: bool,
}

/// The request to a member.
pub(super) struct Task<'a> {
    pub(super) seat: &'a SeatName,
    /// The members whose names may begin messages.
    pub(super) members: &'a [Member],
    /// The schema, if the member gets it in no other way.
    pub(super) in_words: Option<&'a Value>,
    /// The last reply, and its mistakes.
    pub(super) wrong: Option<(&'a str, &'a Mismatch)>,
}

impl Round {
    pub(super) fn note(&mut self, event: &Event) {
        match event {
            Event::MessageAdded {
                found: false,
                message,
                turn,
            } => {
                if message.is_king() {
                    *self = Self::default();
                    self.said.push(message.clone());
                } else if turn.is_some_and(TurnId::is_format) {
                    self.has_value = true;
                } else if message.is_sound() && !message.is_pass() {
                    let concluder = turn.and_then(|turn| self.concludes.get(&turn));
                    if message.from == COUNCIL || concluder.is_some() {
                        self.answer = Some(message.seq);
                    }
                    self.said.push(message.clone());
                }
            }
            Event::TurnQueued {
                turn,
                seat,
                purpose: Purpose::Conclude,
                ..
            } => {
                self.concludes.insert(*turn, seat.clone());
            }
            Event::TurnFinished { turn, .. } => {
                if let Some(seat) = self.concludes.remove(turn) {
                    self.concluded = Some(seat);
                }
            }
            Event::DuetEnded {
                answer: Some(answer),
                ..
            } => {
                let author = self.said.iter().find(|message| message.seq == *answer);
                let author = author.and_then(|message| SeatName::sender(&message.from).ok());
                self.concluded = author.or(self.concluded.take());
                self.answer = Some(*answer);
            }
            _ => {}
        }
    }

    /// Returns whether anybody answered.
    pub(super) fn is_answered(&self) -> bool {
        self.said.iter().any(|message| !message.is_king())
    }

    /// Asks a member for the value.
    pub(super) fn prompt(&self, task: &Task<'_>) -> Prompt {
        let schema = task.in_words;
        let schema = schema.map(|json| format!(" that this JSON schema allows:\n{json}"));
        let what = match self.answer {
            Some(_) => "The last message above is the answer of the council.",
            None => "The messages above are the answers of the council.",
        };
        let again = task.wrong.map(|(reply, wrong)| {
            let end = reply.floor_char_boundary(ANSWERS_BYTES_MAX);
            let reply = reply.get(..end).unwrap_or_default();
            format!(
                "\n\nYour last reply was:\n{reply}\n\nIt cannot be used: {wrong}. Correct that."
            )
        });
        Prompt {
            rules: RULES.to_owned(),
            history: render(self.shown(), task.members.iter().map(|m| &m.name)).text,
            turn: format!(
                "{HISTORY_END}\nYou are {}. {what} Write it as one JSON value and nothing else{}.{}",
                task.seat,
                schema.unwrap_or_default(),
                again.unwrap_or_default()
            ),
            ..Prompt::default()
        }
    }

    /// Returns the messages that the value is made from: the question, the answers, and the conclusion last.
    fn shown(&self) -> Vec<&Message> {
        let is_answer = |message: &&Message| Some(message.seq) == self.answer;
        let (mut shown, others): (Vec<&Message>, Vec<&Message>) =
            self.said.iter().partition(|message| message.is_king());
        let answer = others.iter().copied().find(is_answer);
        let others = others.into_iter().filter(|message| !is_answer(message));
        let others: Vec<&Message> = others.collect();
        let bytes: usize = others.iter().map(|message| message.body.len()).sum();
        if answer.is_none() || bytes <= ANSWERS_BYTES_MAX {
            shown.extend(others);
        }
        shown.extend(answer);
        shown
    }
}
