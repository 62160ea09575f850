//! Files that a line names: attaches them, or asks first.

use super::keyboard::Typed;
use super::{Room, Stay};
use crate::error::Error;
use crate::face::chat::ChatLines;
use kd_app::{ErrorKind, Unsaid, UserError};
use kd_core::slash::{Line, Slash, Way};
use kd_core::{Roster, SeatName};
use std::time::Instant;

/// A message whose files need consent.
pub(super) struct Asked {
    /// The protocol, if it is the question of an aside.
    pub(super) way: Option<Way>,
    /// The message.
    pub(super) body: String,
    /// The time when the question was shown.
    at: Instant,
}

impl Asked {
    /// Returns the line that sends the message.
    fn line(self) -> Line {
        match self.way {
            Some(way) => Line::Slash(Slash::Aside(way, Some(self.body))),
            None => Line::Say(self.body),
        }
    }
}

/// The part of a line that is about a question.
pub(super) enum Answer {
    /// This message is sent, with its files.
    Yes(Line),
    /// It is not.
    No,
    /// The line is not an answer, so the message is not sent.
    Other,
}

impl Stay {
    /// Reads a line as the answer to the question about files, if there is one. A line from before the question does not
    /// answer it.
    pub(super) fn answer(&mut self, text: &str, typed: &Typed) -> Option<Answer> {
        let asked = self.asked.take()?;
        let is_later = typed.at.is_some_and(|at| at > asked.at);
        Some(match text.trim().to_lowercase().as_str() {
            "y" | "yes" if is_later => Answer::Yes(asked.line()),
            "n" | "no" | "" if is_later => Answer::No,
            _ => Answer::Other,
        })
    }
}

impl Room<'_> {
    /// Attaches the files that a message, or the question of an aside, names; `None` if the user is asked about them.
    pub(super) fn attached(
        &self,
        (way, body): (Option<Way>, String),
        agreed: bool,
        roster: &Roster,
        face: &mut ChatLines,
        stay: &mut Stay,
    ) -> Result<Option<String>, Error> {
        let members: Vec<SeatName> = roster.members().iter().map(|m| m.name.clone()).collect();
        let attach = || self.chat.attach(&body, &body, &members, agreed);
        // Files may be large, or on a slow disk.
        let said = match tokio::task::block_in_place(attach) {
            Ok(said) => said,
            Err(Unsaid::Failed(error)) => return Err(error.into()),
            Err(Unsaid::Asks { doubts, .. }) if self.keyboard.is_terminal => {
                let question = format!("not sent yet: {doubts}. Attach it? [y/N]");
                stay.show(|out| face.kd(&question, out));
                let at = Instant::now();
                stay.asked = Some(Asked { way, body, at });
                return Ok(None);
            }
            Err(Unsaid::Asks { doubts, options }) => {
                let refused = UserError::new(ErrorKind::Refused, format!("not sent: {doubts}"));
                let next = format!("kd ask --continue {options} \"…\" attaches it");
                return Err(refused.next(next).into());
            }
        };
        for line in said.told {
            stay.show(|out| face.kd(&line, out));
        }
        Ok(Some(said.body))
    }
}
