//! `kd replay` and `kd why`: inspect a deliberation's record in its thread.

use super::super::here::Here;
use super::super::notices::tell_changed;
use super::whatif;
use crate::args::deliberate::{Format, Replay, Why};
use crate::error::Error;
use crate::exit::Exit;
use crate::face::deliberation::export::{self, Form};
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::fold;
use kd_app::page;
use kd_app::threads::Thread;
use kd_core::Record;
use kd_core::deliberation;
use kd_core::deliberation::Reread;
use kd_core::view::View;
use serde_json::json as object;
use std::io::{self, IsTerminal, Write};

/// Returns the records of a thread's last deliberation.
pub(in crate::run) fn records(
    here: &Here,
    id: Option<&str>,
) -> Result<(Thread, Vec<Record>), Error> {
    let (_, place) = kd_app::threads::find(here, id)?;
    let open = Thread::open(&place)?;
    let records = kd_app::marks::records(&open)?.ok_or_else(|| {
        Error::new(
            "no_deliberation",
            Exit::Error,
            format!("{} has no deliberation", place.id),
        )
        .next("`kd deliberate \"…\"` starts one; `kd list` has all threads")
    })?;
    Ok((open, records))
}

/// Recomputes the decision and compares.
pub(in crate::run) fn replay(args: &Replay, here: &Here) -> Result<Exit, Error> {
    let (open, records) = records(here, args.id.as_deref())?;
    if args.is_what_if() {
        if let Some(line) = kd_app::threads::shortened(&open) {
            let _ = writeln!(crate::out::stderr(), "note: {line}");
        }
        return whatif::run(args, here, open.id(), &records);
    }
    let replayed = deliberation::replay(&records).ok_or_else(|| {
        Error::new(
            "no_deliberation",
            Exit::Error,
            "the record does not start with its plan",
        )
    })?;
    let changed = deliberation::changed_messages(&records, &open.messages()?.messages);
    let same = replayed.difference.is_none() && replayed.finished && changed.is_empty();
    let mut view = View::default();
    replayed.events.iter().for_each(|event| view.fold(event));
    let report = view.report;
    let heading = report.verdict.as_ref().map(|v| v.heading.clone());
    let mut out = crate::out::stdout().lock();
    if args.json {
        let value = object!({"v": kd_core::formats::REPLAY.version, "thread_id": open.id(), "agrees": same, "events": replayed.agreed,
            "finished": replayed.finished, "changed_messages": changed, "forgotten": open.meta().forgotten(),
            "verdict": report.verdict, "read_otherwise_today": replayed.reread, "difference": replayed.difference.as_ref().map(|(then, now)| object!({"recorded": then, "decided": now}))});
        writeln!(out, "{}", json::text(&value, true)?)?;
    } else if let Some((then, now)) = &replayed.difference {
        let none = "nothing".to_owned();
        writeln!(
            out,
            "{} events agree; then the record and the decision differ:",
            replayed.agreed
        )?;
        writeln!(
            out,
            "recorded: {}",
            clean::line(then.as_ref().unwrap_or(&none))
        )?;
        writeln!(
            out,
            "decided:  {}",
            clean::line(now.as_ref().unwrap_or(&none))
        )?;
    } else {
        writeln!(
            out,
            "{} events were decided again without a model and agree byte for byte",
            replayed.agreed
        )?;
        if let Some(heading) = heading {
            writeln!(out, "{}", clean::line(&heading))?;
        }
    }
    if !args.json {
        if replayed.difference.is_none() && !replayed.finished {
            writeln!(
                out,
                "The record is incomplete: the deliberation was stopped, killed or cut off, or is still running."
            )?;
        }
        for line in &changed {
            writeln!(out, "{}", clean::line(line))?;
        }
        show_reread(&replayed.reread, &mut out)?;
        if let Some(line) = kd_app::threads::shortened(&open) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(if same { Exit::Done } else { Exit::Error })
}

/// Shows what this version of `kd` parses differently from the one that wrote the record.
fn show_reread(reread: &[Reread], out: &mut impl Write) -> io::Result<()> {
    for reading in reread {
        let shown = |found: &serde_json::Value| clean::line(&clipped(&found.to_string()));
        writeln!(
            out,
            "note: the record decides, but this version of kd reads one {} differently: {} instead of {}",
            clean::line(&reading.sought),
            shown(&reading.today),
            shown(&reading.recorded)
        )?;
    }
    Ok(())
}

/// Returns the beginning of a text.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(FOUND_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Maximum characters shown of a parsed reply.
const FOUND_CHARS_MAX: usize = 80;

/// Explains the decision.
pub(in crate::run) fn why(args: &Why, here: &Here) -> Result<Exit, Error> {
    let (open, records) = records(here, args.id.as_deref())?;
    let report = View::of(&records).report;
    let is_whole = open.meta().forgotten().is_empty();
    let changed = match is_whole {
        true => deliberation::changed_messages(&records, &open.messages()?.messages),
        // What was forgotten is said below.
        false => kd_app::threads::all_changed(&open)?,
    };
    let agrees = deliberation::replay(&records).is_none_or(|again| again.difference.is_none());
    let mut out = crate::out::stdout().lock();
    if let Some(format) = args.export {
        tell_changed(&changed);
        let text = |form| Ok::<_, Error>(export::text(form, &report, &open.messages()?.messages)?);
        let text = match format {
            Format::Md => text(Form::Markdown)?,
            Format::Json => text(Form::Json)?,
            Format::Html => kd_page::document(&[page::of(&open, None, here)?]),
        };
        out.write_all(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    if args.json {
        let explained = object!({
            "v": kd_core::formats::WHY.version,
            "thread_id": open.id(),
            "heading": report.verdict.as_ref().map(|verdict| &verdict.heading),
            "explanation": deliberation::why(&report),
            "robustness": whatif::sentence(&records, &report),
            "forgotten": open.meta().forgotten(),
            "changed_messages": changed,
            "agrees": agrees,
        });
        writeln!(out, "{}", json::text(&explained, true)?)?;
        return Ok(Exit::Done);
    }
    let mut lines = deliberation::why(&report);
    lines.extend(whatif::sentence(&records, &report).map(|line| format!("{line}.")));
    lines.extend(kd_app::threads::shortened(&open));
    lines.extend(changed.iter().map(|line| format!("Changed since: {line}.")));
    if !agrees && is_whole {
        lines.push(
            "The record does not agree with itself: `kd replay` shows the first difference."
                .to_owned(),
        );
    }
    let columns = io::stdout().is_terminal().then(|| here.columns());
    for line in lines {
        let line = clean::line(&line);
        // Without a terminal, each sentence is one line for other programs.
        let parts = match columns {
            Some(columns) => fold(&line, columns.saturating_sub(1), 0),
            None => vec![line],
        };
        for part in parts {
            writeln!(out, "{part}")?;
        }
    }
    Ok(Exit::Done)
}
