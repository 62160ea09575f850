//! Forks: threads that share the beginning of another.

use crate::error::{ErrorKind, UserError};
use crate::words;
use kd_core::clean::clean_text;
use kd_core::fork::{Cut, NoStage};
use kd_core::{Message, slash};
use kd_store::fork::ForkError;
use kd_store::{Layout, Thread, fork};

/// Forks a thread; `switch` makes the fork the current one.
///
/// # Errors
/// If it cannot be forked there.
pub fn make(
    layout: &Layout,
    source: &Thread,
    cut: &Cut,
    switch: bool,
) -> Result<Thread, UserError> {
    let forked = fork::fork(layout, source, cut)?;
    if switch {
        layout.set_current_thread(forked.id())?;
    }
    Ok(forked)
}

/// Forks the thread of a chat, and makes the fork the current one.
///
/// # Errors
/// If it cannot be forked there.
pub fn of_chat(layout: &Layout, source: &Thread, wanted: slash::Fork) -> Result<Thread, UserError> {
    let cut = match wanted {
        slash::Fork::Whole => Cut::End,
        slash::Fork::Before(number) => Cut::Before(number),
        slash::Fork::Rewind(back) => rewind(&source.messages()?.messages, back)?,
    };
    make(layout, source, &cut, true)
}

/// Returns the cut that removes the user's newest messages and the answers to them.
fn rewind(messages: &[Message], back: u32) -> Result<Cut, UserError> {
    let asked: Vec<u32> = messages
        .iter()
        .filter(|m| m.is_king())
        .map(|m| m.seq)
        .collect();
    let back = back.max(1) as usize;
    match asked.len().checked_sub(back).and_then(|at| asked.get(at)) {
        Some(number) if messages.first().is_some_and(|m| m.seq < *number) => {
            Ok(Cut::Before(*number))
        }
        _ => Err(UserError::new(
            ErrorKind::OutOfRange,
            format!(
                "you asked {} here: rewinding {back} leaves nothing",
                words::count(asked.len() as u64, "question")
            ),
        )
        .next("`/new` starts an empty thread")),
    }
}

impl From<ForkError> for UserError {
    fn from(error: ForkError) -> Self {
        let what = error.to_string();
        let (kind, next) = match &error {
            ForkError::Store(_) => (ErrorKind::Io, String::new()),
            ForkError::OutOfRange { last, .. } => (
                ErrorKind::OutOfRange,
                format!(
                    "`--before {last}` leaves out the last message; without it the fork has all"
                ),
            ),
            ForkError::Empty { .. } => (
                ErrorKind::OutOfRange,
                "`kd chat` and `kd ask` start an empty thread".to_owned(),
            ),
            ForkError::NoMessages(_) => (
                ErrorKind::NoMessages,
                "`kd ask \"…\"` asks the first question".to_owned(),
            ),
            ForkError::Stage(NoStage::NoDeliberation) => (
                ErrorKind::NotDeliberated,
                "`--before N` forks before message N; `kd council show --all` shows the numbers"
                    .to_owned(),
            ),
            ForkError::Stage(NoStage::Unknown { stages, .. }) => (
                ErrorKind::NoStage,
                format!("its stages: {}", stages.join(", ")),
            ),
        };
        match error {
            ForkError::Store(error) => error.into(),
            _ => UserError::new(kind, clean_text(&what)).next(clean_text(&next)),
        }
    }
}
