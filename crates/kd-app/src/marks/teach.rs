//! Names the unmarked verdicts whose marks would teach most, at most once a week.

use super::verdict;
use crate::env::Env;
use crate::error::UserError;
use kd_core::clean::clean_line;
use kd_core::{Timestamp, deliberation::report::Report};
use kd_eval::marks::{Mark, teaching};
use kd_store::user_dirs::make_private;
use kd_store::{Layout, Place, Thread, Verdicts, private};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

/// The number of verdicts named.
const LESSONS: usize = 5;
/// The newest threads that are looked at.
const THREADS_MAX: usize = 300;
/// Seconds between two hints.
const WEEK_SECS: i64 = 7 * 24 * 60 * 60;
/// Maximum bytes of the file with the time of the last hint.
const HINT_BYTES_MAX: u64 = 64;
/// Maximum characters of a question or an answer.
const TEXT_CHARS: usize = 80;

/// An unmarked verdict whose mark would teach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lesson {
    /// The thread.
    pub thread: String,
    /// The kind of question.
    pub kind: String,
    /// The verdict, in one line.
    pub verdict: String,
    /// The question, in one line.
    pub question: String,
}

/// Returns the unmarked verdicts of this project whose marks would teach most, best first.
///
/// # Errors
/// The marks or the threads cannot be read. A thread that cannot be read is left out, and one whose record may be
/// somebody else's.
pub fn lessons(env: &Env) -> Result<Vec<Lesson>, UserError> {
    let Some(layout) = env.find_layout()? else {
        return Ok(Vec::new());
    };
    let marks = kd_sql::marks::read_readable(&env.user_dirs())?.marks;
    let marked: BTreeSet<(&str, &str, u32)> = (marks.iter())
        .map(|mark| (mark.project.as_str(), mark.thread.as_str(), mark.message))
        .collect();
    let mut unmarked: Vec<Mark> = Vec::new();
    let mut reports: Vec<Report> = Vec::new();
    let fell = layout.verdicts()?;
    for place in newest(&layout)? {
        let Some((mark, report)) = readable(&layout, &place, &fell) else {
            continue;
        };
        if !marked.contains(&(&mark.project, &mark.thread, mark.message)) {
            unmarked.push(mark);
            reports.push(report);
        }
    }
    let lesson = |at: usize| {
        let (mark, report) = (unmarked.get(at)?, reports.get(at)?);
        let plan = report.plan.as_ref();
        let winner = report.verdict.as_ref().and_then(|v| v.winner.as_deref());
        let verdict = mark.winner.as_deref().or(winner).unwrap_or_default();
        Some(Lesson {
            thread: mark.thread.clone(),
            kind: mark.kind.clone(),
            verdict: clean_line(verdict, TEXT_CHARS),
            question: clean_line(plan.map_or("", |plan| &plan.question), TEXT_CHARS),
        })
    };
    let chosen = teaching(&marks, &unmarked, LESSONS);
    Ok(chosen.into_iter().filter_map(lesson).collect())
}

/// Returns the newest threads of the project, without the archive.
fn newest(layout: &Layout) -> Result<Vec<Place>, UserError> {
    let mut places = layout.all_threads(false)?;
    places.extend(layout.batch_threads()?);
    let changed = |place: &Place| {
        let meta = place.path.symlink_metadata();
        meta.and_then(|meta| meta.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    places.sort_by_cached_key(|place| (std::cmp::Reverse(changed(place)), place.id.0.clone()));
    places.truncate(THREADS_MAX);
    Ok(places)
}

/// Returns the verdict of a thread, unless it is private, may be somebody else's or cannot be read.
fn readable(layout: &Layout, place: &Place, fell: &Verdicts) -> Option<(Mark, Report)> {
    let thread = Thread::open(place).ok()?;
    if thread.meta().is_private() {
        return None;
    }
    verdict(layout, &thread, fell).ok()?
}

fn hint_file(env: &Env) -> Result<PathBuf, UserError> {
    Ok(env.user_dirs().state()?.join("marks-hint"))
}

/// Returns whether the last hint is at least seven days old. A file that cannot be read counts as a recent hint: it
/// must not be shown each time.
pub fn is_hint_due(env: &Env) -> bool {
    let read = || -> Result<_, UserError> {
        Ok((env.now()?, private::read(&hint_file(env)?, HINT_BYTES_MAX)?))
    };
    match read() {
        Err(_) => false,
        Ok((_, None)) => true,
        Ok((now, Some(bytes))) => {
            let text = String::from_utf8_lossy(&bytes);
            let last: Option<Timestamp> = text.trim().parse().ok();
            let age = |last: Timestamp| now.as_second() - last.as_second();
            // A time in the future comes from a clock that was wrong.
            last.is_none_or(|last| !(0..WEEK_SECS).contains(&age(last)))
        }
    }
}

/// Notes that the hint was shown.
///
/// # Errors
/// The user's state folder cannot be written.
pub fn hinted(env: &Env) -> Result<(), UserError> {
    make_private(env.user_dirs().state()?)?;
    Ok(private::replace_synced(
        &hint_file(env)?,
        env.now()?.to_string().as_bytes(),
    )?)
}
