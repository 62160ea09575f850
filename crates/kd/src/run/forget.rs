//! `kd forget`: shows where a thread left traces, asks, and removes them.

use super::agreed::agreed;
use super::here::Here;
use super::trust;
use crate::args::forget::Forget;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::wrap;
use kd_app::forget::{Busy, Elsewhere, Holders, Scope, Traced, Traces, older};
use kd_app::threads::Layout;
use kd_core::ThreadId;
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

pub(super) fn run(args: &Forget, here: &Here) -> Result<Exit, Error> {
    let layout = here.layout()?;
    let config = trust::settings(here, Some(&layout))?.config;
    let holders = Holders::open(layout, &config, args.posts, here)?;
    let layout = holders.layout();
    let places = match (&args.id, args.older) {
        (_, Some(age)) => older(layout, age)?,
        (id, None) => vec![kd_app::threads::resolve(layout, id.as_deref())?],
    };
    let found = holders.look(places, args.message, !args.keep_copies)?;
    let Traces {
        threads: looked,
        busy,
    } = found;
    if let Some(error) = busy.first().filter(|_| args.older.is_none()) {
        return Err(refused(error));
    }
    let mut err = crate::out::stderr();
    for error in &busy {
        writeln!(err, "left alone: {}", refused(error).as_line())?;
    }
    let stays = holders.stays(&looked, here)?;
    if !args.json || !args.yes {
        let mut shown: Box<dyn Write> = match args.json {
            true => Box::new(io::sink()),
            false => Box::new(crate::out::stdout().lock()),
        };
        let columns = io::stdout().is_terminal().then(|| here.columns());
        show((layout, here), &looked, &stays, columns, &mut shown)?;
    }
    let is_nothing = looked.iter().all(|one| one.found.is_empty());
    if !args.dry_run && !args.yes && !is_nothing {
        if !io::stdin().is_terminal() || args.json {
            return Err(Error::usage(
                "nothing was removed: there is no terminal to ask for confirmation",
            )
            .next("`--yes` removes what is listed, `--dry-run` only lists it"));
        }
        let count = kd_app::words::count(looked.len() as u64, "thread");
        let question = match &looked[..] {
            [one] => format!("Forget {}?", title(one)),
            _ => format!("Forget {count}?"),
        };
        if !agreed(&question)? {
            writeln!(err, "nothing was removed")?;
            return Ok(Exit::Interrupted);
        }
    }
    if !args.dry_run {
        for one in &looked {
            // A member may have started to answer while the user read the prompt.
            if let Some(busy) = one.job.busy()? {
                return Err(refused(&busy));
            }
            one.job.forget().map_err(|error| {
                Error::from(error).next("the rest is still there; the same command finishes it")
            })?;
        }
    }
    if args.json {
        let value = as_json(args, &looked, &stays);
        writeln!(crate::out::stdout().lock(), "{}", json::text(&value, true)?)?;
    } else if !args.dry_run && !is_nothing {
        let names: Vec<String> = looked.iter().map(title).collect();
        writeln!(
            crate::out::stdout().lock(),
            "forgotten: {}",
            names.join(", ")
        )?;
    }
    Ok(match busy.is_empty() {
        true => Exit::Done,
        false => Exit::Partial,
    })
}

fn refused((id, busy): &(ThreadId, Busy)) -> Error {
    let id = clean::line(&id.0);
    let (what, next) = match busy {
        Busy::Answering(members) => (
            format!("{} answering in {id}", are(members)),
            "wait, or stop them with Ctrl+C where they were asked",
        ),
        Busy::Open(processes) => {
            let processes: Vec<String> = processes.iter().map(u32::to_string).collect();
            let noun = if processes.len() == 1 {
                "process"
            } else {
                "processes"
            };
            (
                format!("{id} is open in {noun} {}", processes.join(", ")),
                "close the chat or the server that has it open",
            )
        }
    };
    Error::new("busy", Exit::Error, format!("nothing was removed: {what}")).next(next)
}

fn are(members: &[String]) -> String {
    let verb = if members.len() == 1 { "is" } else { "are" };
    clean::line(&format!("{} {verb}", members.join(", ")))
}

fn title(one: &Traced<'_>) -> String {
    let id = clean::line(&one.place.id.0);
    match one.message {
        Some(number) => format!("message {number} of {id}"),
        None => id,
    }
}

fn show(
    (layout, here): (&Layout, &Here),
    looked: &[Traced<'_>],
    stays: &[Elsewhere],
    columns: Option<usize>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if looked.is_empty() {
        writeln!(out, "no thread is that old")?;
        return Ok(());
    }
    for one in looked {
        writeln!(out, "{}", title(one))?;
        if one.found.is_empty() {
            writeln!(out, "  nothing is left of it")?;
        }
        for found in &one.found {
            let at = short(layout, &found.path, here);
            write_wrapped(&format!("- {}: {at}", found.what), columns, out)?;
        }
        for line in kept(one) {
            write_wrapped(&line, columns, out)?;
        }
    }
    if !stays.is_empty() {
        writeln!(out, "not removed:")?;
        for one in stays {
            let at = short(layout, &one.path, here);
            write_wrapped(&format!("{at}: {}", clean::line(&one.why)), columns, out)?;
        }
    }
    Ok(())
}

/// Writes an indented line; on a terminal it is wrapped between words.
fn write_wrapped(line: &str, columns: Option<usize>, out: &mut dyn Write) -> Result<(), Error> {
    let lines = match columns {
        Some(columns) => wrap(line, columns.saturating_sub(5)),
        None => vec![line.to_owned()],
    };
    for (at, line) in lines.iter().enumerate() {
        let indent = if at == 0 { "  " } else { "    " };
        writeln!(out, "{indent}{line}")?;
    }
    Ok(())
}

/// Lists the copies that stay in `.kd`; the last line is the command that removes them.
fn kept(one: &Traced<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for target in one.job.targets().iter().filter(|target| target.is_copy) {
        let id = clean::line(&target.place.id.0);
        lines.push(match &target.scope {
            Scope::Whole => format!("with {id}, which has only copies"),
            Scope::Messages(numbers) => {
                let count = kd_app::words::count(numbers.len() as u64, "message");
                format!("with copies of {count} in {id}; its other messages stay")
            }
        });
    }
    for (place, count) in one.job.keeps() {
        let id = clean::line(&place.id.0);
        let count = kd_app::words::count(*count as u64, "message");
        lines.push(format!("{id} keeps copies of {count}: kd forget {id}"));
    }
    let mut quotes: BTreeMap<&ThreadId, BTreeSet<u32>> = BTreeMap::new();
    for (id, number) in &one.quotes {
        quotes.entry(id).or_default().insert(*number);
    }
    for (id, numbers) in quotes {
        let id = clean::line(&id.0);
        let (noun, verb, which) = match numbers.len() {
            1 => ("message", "quotes", numbers.first().map(u32::to_string)),
            _ => ("messages", "quote", None),
        };
        let which = which.unwrap_or_else(|| "N".to_owned());
        lines.push(format!(
            "{noun} {} of {id} {verb} it: kd forget {id} --message {which}",
            ranges(&numbers)
        ));
    }
    lines
}

/// Formats numbers in order: `2, 5–7`.
fn ranges(numbers: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let runs = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Shortens a path: relative to the project, or to the home folder.
fn short(layout: &Layout, path: &Path, here: &Here) -> String {
    let home = here.var_os("HOME");
    let text = match (path.strip_prefix(layout.root()), home) {
        (Ok(below), _) => below.display().to_string(),
        (_, Some(home)) => match path.strip_prefix(&home) {
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => path.display().to_string(),
        },
        _ => path.display().to_string(),
    };
    clean::line(&text)
}

fn as_json(args: &Forget, looked: &[Traced<'_>], stays: &[Elsewhere]) -> Value {
    let mut threads = Vec::new();
    for one in looked {
        let copies = one.job.targets().iter().filter(|target| target.is_copy);
        let copies: Vec<&str> = copies.map(|target| target.place.id.0.as_str()).collect();
        let keeps = one.job.keeps().iter();
        threads.push(object!({
            "thread_id": one.place.id,
            "message": one.message,
            "removed": one.found,
            "copies": copies,
            "kept_copies": keeps.map(|(place, count)| object!({"thread_id": place.id, "messages": count})).collect::<Vec<_>>(),
            "quotes": one.quotes.iter().map(|(id, number)| object!({"thread_id": id, "message": number})).collect::<Vec<_>>(),
        }));
    }
    let stays: Vec<Value> = stays
        .iter()
        .map(|one| object!({"path": one.path, "why": one.why}))
        .collect();
    object!({"v": kd_core::formats::FORGET.version, "dry_run": args.dry_run, "threads": threads, "not_removed": stays})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_told_as_a_range() {
        for (numbers, told) in [
            (&[][..], ""),
            (&[2], "2"),
            (&[2, 3], "2, 3"),
            (&[2, 3, 4, 7, 9, 10], "2–4, 7, 9, 10"),
            (
                &[u32::MAX - 2, u32::MAX - 1, u32::MAX],
                "4294967293–4294967295",
            ),
        ] {
            assert_eq!(ranges(&numbers.iter().copied().collect()), told);
        }
    }
}
