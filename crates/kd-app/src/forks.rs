//! Forks: threads that share the beginning of another.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use crate::threads::{self, LeftOut};
use crate::words;
use kd_core::clean::clean_text;
use kd_core::fork::{Cut, NoStage};
use kd_core::{Message, SeatName, ThreadId, slash};
use kd_page::Relative;
use kd_store::fork::{ForkError, Lineage};
use kd_store::{Layout, Thread, fork};
use std::collections::BTreeSet;

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

/// Forks a thread for a question that is about to be asked in the fork. Tells who is still answering in the source.
pub(crate) fn to_ask_in(layout: &Layout, source: &Thread, env: &Env) -> Result<Thread, UserError> {
    if let Some(line) = still_answering(&threads::running(source)?) {
        env.note(line);
    }
    make(layout, source, &Cut::End, false)
}

/// Says that a fork lacks what these members are still writing; `None` if there are none.
pub fn still_answering(running: &[SeatName]) -> Option<String> {
    let names: Vec<&str> = running.iter().map(SeatName::as_str).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| {
        format!(
            "{} {verb} still answering there; the fork has only the saved messages",
            names.join(", ")
        )
    })
}

/// Returns a thread and every fork of it, each below its source. Tells which threads a newer `kd` wrote, which
/// are left out.
///
/// # Errors
/// A thread cannot be read.
pub fn with_forks(layout: &Layout, top: Thread, env: &Env) -> Result<Vec<Thread>, UserError> {
    let mut threads = Vec::new();
    let mut left_out = LeftOut::default();
    for place in layout.all_threads(true)? {
        if place.id != *top.id() {
            threads.extend(left_out.open(&place)?);
        }
    }
    left_out.tell(env);
    threads.retain(|thread| thread.meta().lineage().is_some());
    threads.sort_by(|a, b| {
        let key = |t: &Thread| (t.meta().created(), t.id().clone());
        key(a).cmp(&key(b))
    });
    threads.insert(0, top);
    let lineages: Vec<_> = threads
        .iter()
        .enumerate()
        // The origin of the first one is not part of the tree.
        .map(|(at, t)| (t.id().clone(), t.meta().lineage().filter(|_| at > 0)))
        .collect();
    let below = fork::tree(&lineages).into_iter().enumerate();
    let below = below.take_while(|(line, (depth, _))| *line == 0 || *depth > 0);
    let order: Vec<usize> = below.map(|(_, (_, at))| at).collect();
    let mut threads: Vec<Option<Thread>> = threads.into_iter().map(Some).collect();
    Ok(order
        .into_iter()
        .filter_map(|at| threads[at].take())
        .collect())
}

/// Maximum lines of a tree of forks.
const FAMILY_MAX: usize = 200;

/// Returns the tree of forks that a thread is in, if there is one. `page` returns the address of a thread's page.
pub fn family(
    threads: &[(ThreadId, Option<Lineage>)],
    here: &ThreadId,
    page: impl Fn(&ThreadId) -> Option<String>,
) -> Vec<Relative> {
    let lines = fork::tree(threads);
    let at = lines.iter().position(|(_, at)| threads[*at].0 == *here);
    let Some(at) = at else {
        return Vec::new();
    };
    let top = lines[..=at].iter().rposition(|(depth, _)| *depth == 0);
    let top = top.unwrap_or(0);
    let below = lines[top + 1..].iter().take_while(|(depth, _)| *depth > 0);
    let end = top + 1 + below.count();
    if end - top < 2 {
        return Vec::new();
    }
    let relative = |(depth, at): &(usize, usize)| {
        let (id, lineage) = &threads[*at];
        Relative {
            id: id.clone(),
            depth: *depth,
            left: lineage.as_ref().map(Lineage::words),
            page: page(id),
        }
    };
    lines[top..end]
        .iter()
        .take(FAMILY_MAX)
        .map(relative)
        .collect()
}

/// Returns the forks of every branch and the threads they came from, with their lineages.
///
/// # Errors
/// If the folder cannot be read.
pub fn lineages(layout: &Layout) -> Result<Vec<(ThreadId, Option<Lineage>)>, UserError> {
    let mut found = Vec::new();
    let mut left_out = LeftOut::default();
    for place in layout.all_threads(true)? {
        if let Some(thread) = left_out.open(&place)? {
            found.push((
                thread.meta().created(),
                thread.id().clone(),
                thread.meta().lineage(),
            ));
        }
    }
    // Most threads are not part of a tree.
    let sources: BTreeSet<ThreadId> = found
        .iter()
        .filter_map(|(.., lineage)| Some(lineage.as_ref()?.of.clone()))
        .collect();
    found.retain(|(_, id, lineage)| lineage.is_some() || sources.contains(id));
    found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    Ok(found
        .into_iter()
        .map(|(_, id, lineage)| (id, lineage))
        .collect())
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
    let forked = fork::fork(layout, source, &cut).map_err(|error| match &error {
        ForkError::OutOfRange { last, .. } => {
            let next = format!("/fork {last} leaves out the last message");
            UserError::from(error).next(next)
        }
        ForkError::Empty { .. } | ForkError::NoMessages(_) => {
            UserError::from(error).next("/new starts an empty thread")
        }
        _ => error.into(),
    })?;
    layout.set_current_thread(forked.id())?;
    Ok(forked)
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
                "`--before N` forks before message N; `kd show --all` shows the numbers".to_owned(),
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
