//! Waits for the end of a round.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::council::Started;
use crate::error::{ErrorKind, UserError};
use kd_core::event::Outcome;
use kd_core::view::{Content, View};
use kd_core::{Event, Failure, Message, SeatName, ThreadId, Usage};
use kd_engine::Update;

/// The answers of a round.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answers {
    /// The thread.
    pub thread: ThreadId,
    /// The outcome of the round.
    pub outcome: Outcome,
    /// The messages of the members, in the order in which they were written; the chair's conclusion is the last.
    pub messages: Vec<Message>,
    /// The members that failed.
    pub failures: Vec<(SeatName, Failure)>,
    /// The tokens that were used.
    pub usage: Usage,
}

impl Started {
    /// Asks the question, and waits until everyone has answered or failed. Everything is on disk then. Dropping the future
    /// cancels the round.
    ///
    /// # Errors
    /// If the question cannot be asked or written.
    pub async fn answers(self) -> Result<Answers, UserError> {
        let thread = self.session.thread().clone();
        let view = self.finished().await?;
        let Some((outcome, usage)) = view.yielded() else {
            return Err(UserError::new(
                ErrorKind::Engine,
                "the round ended too early",
            ));
        };
        let (messages, failures) = collected(view);
        Ok(Answers {
            thread,
            outcome,
            messages,
            failures,
            usage,
        })
    }

    /// Asks the question, and returns the view of the round when it is over; it is incomplete if the session ended early.
    /// Everything is on disk then.
    ///
    /// # Errors
    /// As [`Started::answers`].
    pub(crate) async fn finished(mut self) -> Result<View, UserError> {
        let (mut view, mut updates) = self.session.follow();
        self.session.send(self.say.clone())?;
        while let Some(update) = updates.next().await {
            match update {
                Update::Record(record) => {
                    view.fold_record(&record);
                    match &record.event {
                        Event::OpRefused { why } | Event::SaveFailed { turn: None, why } => {
                            self.opened.discard_unsaid();
                            return Err(refused(why));
                        }
                        Event::FloorYielded { .. } => break,
                        // The view holds them.
                        Event::ThreadOpened { .. }
                        | Event::MessageAdded { .. }
                        | Event::SayQueued { .. }
                        | Event::SayTakenBack { .. }
                        | Event::TurnQueued { .. }
                        | Event::TurnDelta { .. }
                        | Event::StreamFound { .. }
                        | Event::StreamLost { .. }
                        | Event::TurnFinished { .. }
                        | Event::TurnFailed { .. }
                        | Event::SeatMuted { .. }
                        | Event::ModeSet { .. }
                        | Event::SaveFailed { .. }
                        | Event::PhaseBegan { .. }
                        | Event::CouncilSaid { .. }
                        | Event::DuetEnded { .. }
                        | Event::Deliberated { .. }
                        | Event::Promised { .. }
                        | Event::Reviewed { .. }
                        | Event::HeldBack { .. }
                        | Event::Noticed { .. } => {}
                    }
                }
                Update::Lagged(now) => {
                    view = *now;
                    if view.outcome.is_some() && !view.is_busy() {
                        break;
                    }
                }
            }
        }
        self.session.close().await;
        Ok(view)
    }
}

fn refused(why: &str) -> UserError {
    UserError::new(ErrorKind::Refused, "cannot ask the question").because(why)
}

/// The answers and failures since the newest message of the user.
fn collected(view: View) -> (Vec<Message>, Vec<(SeatName, Failure)>) {
    let (mut messages, mut failures) = (Vec::new(), Vec::new());
    for panel in view.round() {
        match &panel.content {
            Content::Message {
                message, failure, ..
            } if !message.is_king() => {
                let seat = SeatName::sender(&message.from).ok();
                match (failure, seat) {
                    (Some(failure), Some(seat)) => failures.push((seat, failure.clone())),
                    _ => messages.push(Message::clone(message)),
                }
            }
            Content::Lost { seat, failure, .. } => failures.push((seat.clone(), failure.clone())),
            Content::Message { .. }
            | Content::Turn(_)
            | Content::Stream(_)
            | Content::Notice(_)
            | Content::Refusal(_) => {}
        }
    }
    (messages, failures)
}
