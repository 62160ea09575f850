//! `kd mark` and `kd marks`: record which verdicts were right.

mod file;
mod forget;
mod gold;
pub(super) mod next;

use super::deliberate::record::records;
use super::here::Here;
use crate::args::mark::{Mark as Args, Marks as MarksArgs, MarksCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use kd_app::marks::{self as kept, Readable, shown_project};
use kd_core::deliberation;
use kd_core::formats;
use kd_eval::marks::By;
use serde_json::json as object;
use std::io::{self, Write};
use std::process::Command;

/// Maximum characters of an answer in the list.
const ANSWER_CHARS_MAX: usize = 60;

pub(super) fn mark(args: &Args, here: &Here) -> Result<Exit, Error> {
    if let Some(file) = &args.gold {
        return gold::mark(args, file, here);
    }
    let (id, word) = match (args.words.as_slice(), &args.by) {
        ([], None) => {
            return Err(Error::usage("a mark is missing")
                .next("`kd mark right`, `kd mark wrong`, or the right answer"));
        }
        ([word], None) => (None, Some(word.as_str())),
        ([id, word], None) => (Some(id.as_str()), Some(word.as_str())),
        ([], Some(_)) => (None, None),
        ([id], Some(_)) => (Some(id.as_str()), None),
        _ => {
            return Err(
                Error::usage("`--by` replaces the mark").next("kd mark THREAD --by 'cargo test'")
            );
        }
    };
    if args.by.as_deref().is_some_and(|by| by.trim().is_empty()) {
        return Err(
            Error::usage("the command of `--by` is empty; nothing was marked")
                .next("kd mark --by 'cargo test'"),
        );
    }
    match (id, word) {
        (None, Some(word)) => check_not_thread(word, here)?,
        (Some(id), Some(word)) => check_order(id, word, here)?,
        _ => {}
    }
    let layout = here.layout()?;
    let (thread, records) = records(here, id)?;
    let (mut mark, report) = kept::verdict_of(&layout, &thread, &records)?;
    match (word, &args.by) {
        (Some(word), _) => {
            deliberation::judge(&mut mark, word, &report).map_err(|why| kept::unjudged(&why))?
        }
        (None, Some(command)) => {
            mark.by = By::Command;
            mark.credit = f64::from(u8::from(succeeds(command)?));
        }
        (None, None) => {}
    }
    let marked = kept::keep(mark, here)?;
    let mut out = crate::out::lines(args.json);
    if args.json {
        let value = object!({"v": formats::MARKED.version, "mark": marked.mark, "before": marked.before, "marks": marked.count});
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else {
        writeln!(out, "{}", marked.line())?;
    }
    Ok(Exit::Done)
}

/// Returns whether a word is the ID of a thread.
fn is_thread(word: &str, here: &Here) -> Result<bool, Error> {
    let is_it = |id: &str| id == word || id.strip_prefix("council-") == Some(word);
    let threads = here.layout()?.all_threads(true)?;
    Ok(threads.iter().any(|place| is_it(&place.id.0)))
}

/// Rejects a mark before its thread: it would be taken for a thread.
fn check_order(id: &str, word: &str, here: &Here) -> Result<(), Error> {
    if !matches!(id, "right" | "wrong") || is_thread(id, here)? || !is_thread(word, here)? {
        return Ok(());
    }
    let word = clean::line(word);
    Err(Error::usage(format!(
        "the thread comes before its mark, and `{id}` is the mark"
    ))
    .next(format!("`kd mark {word} {id}`")))
}

/// Rejects a thread ID in place of a mark: it would be taken for the right answer.
fn check_not_thread(word: &str, here: &Here) -> Result<(), Error> {
    if !is_thread(word, here)? {
        return Ok(());
    }
    let word = clean::line(word);
    Err(
        Error::usage(format!("`{word}` is a thread: its mark is missing")).next(format!(
            "`kd mark {word} right`, or `kd mark THREAD {word}` if it is the right answer"
        )),
    )
}

/// Runs a command of the user. Its output goes to stderr: `--json` prints a single object.
fn succeeds(command: &str) -> Result<bool, Error> {
    let status = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(io::stderr())
        .status();
    let status = status.map_err(|e| Error::usage("the command cannot be run").because(e))?;
    match status.code() {
        Some(126 | 127) => Err(Error::usage(format!(
            "`{}` cannot be run: nothing was marked",
            clean::line(command)
        ))),
        Some(code) => Ok(code == 0),
        None => Err(Error::new(
            "killed",
            Exit::Interrupted,
            "the command was killed: nothing was marked",
        )),
    }
}

pub(super) fn marks(args: &MarksArgs, here: &Here) -> Result<Exit, Error> {
    match &args.command {
        None => {
            let exit = list(args.json, here)?;
            if !args.json {
                next::hint(here);
            }
            Ok(exit)
        }
        Some(MarksCommand::Next { json }) => next::next(*json, here),
        Some(MarksCommand::Export) => file::export(here),
        Some(MarksCommand::Import { file }) => file::import(file, here),
        Some(MarksCommand::Forget {
            id, project, yes, ..
        }) => match id {
            Some(id) => forget::of_thread(id, project.as_deref(), here),
            None => forget::all(*yes, here),
        },
    }
}

/// Names on stderr the rows that were passed over, and the places of marks that no import would take, with the reasons.
fn name_unreadable(all: &Readable, unfit: &[(String, String)]) -> Result<Exit, Error> {
    if all.unreadable.is_empty() && unfit.is_empty() {
        return Ok(Exit::Done);
    }
    let rows = (all.unreadable.iter()).map(|(row, why)| (format!("row {row} of marks.db"), why));
    let marks = (unfit.iter()).map(|(place, why)| (format!("the mark of {place}"), why));
    let mut err = crate::out::stderr().lock();
    for (what, why) in rows.chain(marks) {
        writeln!(err, "kd: {what} was passed over: {}", clean::line(why))?;
    }
    writeln!(
        err,
        "  → `kd marks export > marks.jsonl` saves the others; then `kd marks forget --all` and `kd marks import marks.jsonl`"
    )?;
    Ok(Exit::Partial)
}

fn list(as_json: bool, here: &Here) -> Result<Exit, Error> {
    let found = kept::all(here)?;
    let all = &found.marks;
    let mut out = crate::out::lines(as_json);
    if as_json {
        writeln!(
            out,
            "{}",
            json::text(
                &object!({"v": formats::MARK_LIST.version, "marks": all}),
                true
            )?
        )?;
        return name_unreadable(&found, &[]);
    }
    if all.is_empty() && found.unreadable.is_empty() {
        writeln!(
            out,
            "no marks yet: `kd mark right` marks the newest verdict"
        )?;
        return Ok(Exit::Done);
    }
    let styles = here.out_styles();
    let current = kept::current_project(here);
    for mark in all {
        let answer: String = mark
            .winner
            .as_deref()
            .unwrap_or("(open text)")
            .chars()
            .take(ANSWER_CHARS_MAX)
            .collect();
        let at: String = mark.at.to_string().chars().take(10).collect();
        let named = match &mark.answer {
            Some(right) if Some(right) != mark.winner.as_ref() => {
                format!(", it was {}", clean::line(right))
            }
            _ => String::new(),
        };
        writeln!(
            out,
            "{}  {}  {}  {}{named}  {}{}",
            clean::line(&at),
            styles.bold(&kept::place(mark)),
            clean::line(&mark.kind),
            kept::credit(mark),
            styles.dim(&clean::line(&answer)),
            elsewhere(&mark.project, current.as_deref())
        )?;
    }
    name_unreadable(&found, &[])
}

/// Names the project of a mark if it is not the current one.
fn elsewhere(project: &str, current: Option<&str>) -> String {
    match current == Some(project) {
        true => String::new(),
        false => format!("  in project {}", shown_project(project)),
    }
}
