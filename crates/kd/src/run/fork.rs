//! `kd fork` and forks in a chat: creates a thread that shares the beginning of another.

use super::here::Here;
use super::thread;
use crate::args::fork::Fork;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::{json, words};
use crate::render::clean;
use kd_core::fork::{Cut, NoStage};
use kd_core::{Message, SeatName, slash};
use kd_store::fork::{ForkError, Lineage};
use kd_store::{Layout, Thread, fork};
use serde_json::json as object;
use std::io::{self, Write};

pub(super) fn run(args: &Fork, here: &Here) -> Result<(), Error> {
    let (layout, place) = thread::find(here, args.id.as_deref())?;
    let source = Thread::open(&place)?;
    let cut = match (args.before, &args.stage) {
        (Some(number), _) => Cut::Before(number),
        (None, Some(stage)) => Cut::Stage(stage.clone()),
        (None, None) => Cut::End,
    };
    let running = thread::running(&source)?;
    let forked = make(&layout, &source, &cut, !args.stay)?;
    let mut out = io::stdout().lock();
    if args.json {
        let value = object!({
            "v": kd_core::formats::FORK.version,
            "thread_id": forked.id(),
            "fork": forked.meta().lineage(),
            "current": !args.stay,
            "still_answering": running,
        });
        writeln!(out, "{}", json::text(&value, true)?)?;
        return Ok(());
    }
    for line in told(&forked, &running) {
        writeln!(out, "{line}")?;
    }
    let styles = here.err_styles();
    let id = &forked.id().0;
    let go_on = match (&cut, args.stay) {
        (Cut::Stage(_), _) => format!("see it: kd why {id}"),
        (_, false) => "go on:  kd ask --continue \"…\"".to_owned(),
        (_, true) => format!("go on:  kd ask --thread {id} \"…\""),
    };
    let _ = writeln!(io::stderr(), "{}", styles.dim(&go_on));
    Ok(())
}

/// Forks a thread; `switch` makes the fork the current one.
pub(super) fn make(
    layout: &Layout,
    source: &Thread,
    cut: &Cut,
    switch: bool,
) -> Result<Thread, Error> {
    let forked = fork::fork(layout, source, cut)?;
    if switch {
        layout.set_current_thread(forked.id())?;
    }
    Ok(forked)
}

/// Forks the thread of a chat, and makes the fork the current one.
pub(super) fn of_chat(
    layout: &Layout,
    source: &Thread,
    wanted: slash::Fork,
) -> Result<Thread, Error> {
    let cut = match wanted {
        slash::Fork::Whole => Cut::End,
        slash::Fork::Before(number) => Cut::Before(number),
        slash::Fork::Rewind(back) => rewind(&source.messages()?.messages, back)?,
    };
    make(layout, source, &cut, true)
}

/// Describes a fork in lines.
pub(super) fn told(forked: &Thread, running: &[SeatName]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(lineage) = forked.meta().lineage() {
        lines.push(format!(
            "{}: fork of {}, with {}",
            clean::line(&forked.id().0),
            origin(&lineage),
            words::count(u64::from(lineage.messages), "message"),
        ));
    }
    if !running.is_empty() {
        let names: Vec<&str> = running.iter().map(SeatName::as_str).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        lines.push(format!(
            "note: {} {verb} still answering there; the fork has only the saved messages",
            names.join(", ")
        ));
    }
    lines
}

/// Describes where a thread was forked from, in one line: `council-a94d before message 7`.
pub(super) fn origin(lineage: &Lineage) -> String {
    let branch = lineage.branch.as_ref();
    let branch = branch.map_or(String::new(), |branch| format!(" (branch {branch})"));
    clean::line(&format!("{}{branch} {}", lineage.of, lineage.words()))
}

/// Returns the cut that removes the user's newest messages and the answers to them.
fn rewind(messages: &[Message], back: u32) -> Result<Cut, Error> {
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
        _ => Err(Error::new(
            "out_of_range",
            Exit::Usage,
            format!(
                "you asked {} here: rewinding {back} leaves nothing",
                words::count(asked.len() as u64, "question")
            ),
        )
        .next("`/new` starts an empty thread")),
    }
}

impl From<ForkError> for Error {
    fn from(error: ForkError) -> Self {
        let what = error.to_string();
        let (kind, next) = match &error {
            ForkError::Store(_) => ("io", String::new()),
            ForkError::OutOfRange { last, .. } => (
                "out_of_range",
                format!(
                    "`--before {last}` leaves out the last message; without it the fork has all"
                ),
            ),
            ForkError::Empty { .. } => (
                "out_of_range",
                "`kd chat` and `kd ask` start an empty thread".to_owned(),
            ),
            ForkError::NoMessages(_) => (
                "no_messages",
                "`kd ask \"…\"` asks the first question".to_owned(),
            ),
            ForkError::Stage(NoStage::NoDeliberation) => (
                "no_deliberation",
                "`--before N` forks before message N; `kd council show --all` shows the numbers"
                    .to_owned(),
            ),
            ForkError::Stage(NoStage::Unknown { stages, .. }) => {
                ("no_stage", format!("its stages: {}", stages.join(", ")))
            }
        };
        match error {
            ForkError::Store(error) => error.into(),
            _ => Error::new(kind, Exit::Usage, clean::line(&what)).next(clean::line(&next)),
        }
    }
}
