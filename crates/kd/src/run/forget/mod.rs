//! `kd forget`: shows where a thread left traces, asks, and removes them.

mod elsewhere;
mod posts;

use super::agreed::agreed;
use super::here::Here;
use crate::args::forget::Forget;
use crate::error::Error;
use crate::exit::Exit;
use crate::face::json;
use crate::render::clean;
use crate::render::wrap::wrap;
use elsewhere::Elsewhere;
use kd_app::review::Reviews;
use kd_core::{ThreadId, Timestamp};
use kd_sql::batch::{self, BatchesFile};
use kd_sql::forget::MarksFile;
use kd_sql::marks;
use kd_store::forget::{self, Busy, Found, Holder, Job, Scope};
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Place};
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// A thread to forget, and what was found of it.
struct Looked<'j> {
    place: Place,
    message: Option<u32>,
    job: Job<'j>,
    found: Vec<Found>,
    /// Remaining messages that quote it.
    quotes: Vec<(ThreadId, u32)>,
}

pub(super) fn run(args: &Forget, here: &Here) -> Result<Exit, Error> {
    let layout = here.layout()?;
    let reviews = kd_app::review::reviews(here).ok();
    let marks = marks::path(&here.user_dirs()).ok().map(MarksFile::new);
    let project = project_key(layout.root());
    let batches = batch::path(&here.user_dirs(), &project)
        .ok()
        .map(BatchesFile::new);
    let (forums, mut stays) = posts::forums(&layout, here)?;
    let holders = || -> Vec<&dyn Holder> {
        let marks = marks.iter().map(|file| file as &dyn Holder);
        let erased = forums.iter().filter(|_| args.posts);
        marks
            .chain(batches.iter().map(|file| file as &dyn Holder))
            .chain(erased.map(|forum| forum as &dyn Holder))
            .collect()
    };
    let places = match (&args.id, args.older) {
        (_, Some(age)) => older(&layout, age)?,
        (id, None) => vec![kd_app::threads::resolve(&layout, id.as_deref())?],
    };
    let mut all: Vec<(Place, Option<u32>)> = Vec::new();
    for place in places {
        // Threads that asked the same question again are deleted with it completely: any of their messages may repeat the question.
        let again = match &batches {
            Some(file) => file.again(&place.id.0, layout.batch_threads()?)?,
            None => Vec::new(),
        };
        all.push((place, args.message));
        all.extend(again.into_iter().map(|place| (place, None)));
    }
    let (looked, busy) = look(args, &layout, reviews.as_ref(), &holders, all)?;
    if let Some(error) = busy.first().filter(|_| args.older.is_none()) {
        return Err(refused(error));
    }
    let mut err = crate::out::stderr();
    for error in &busy {
        writeln!(err, "left alone: {}", refused(error).as_line())?;
    }
    let places: Vec<&Place> = looked
        .iter()
        .flat_map(|one| one.job.targets().iter().map(|target| &target.place))
        .collect();
    match places.is_empty() {
        true => stays.clear(),
        false => stays.extend(elsewhere::found(&layout, &places, here)),
    }
    for place in &places {
        if let Some(batch) = batches.as_ref().and_then(|file| file.of_fleet(&place.path)) {
            let short = crate::face::batch::short(&batch);
            stays.push(Elsewhere {
                path: place.path.clone(),
                why: format!(
                    "it came from a database, which keeps it: kd batch forget {short} --store URL"
                ),
            });
        }
        let outputs = batches.as_ref().map(|file| file.outputs(&place.id.0));
        for path in outputs.transpose()?.unwrap_or_default() {
            stays.push(Elsewhere {
                path,
                why:
                    "your file of results has its answer; `kd batch run` writes it again without it"
                        .to_owned(),
            });
        }
    }
    if !args.posts {
        stays.extend(posts::kept(&forums, looked.iter().map(|one| &one.job))?);
    }
    if !args.json || !args.yes {
        let mut shown: Box<dyn Write> = match args.json {
            true => Box::new(io::sink()),
            false => Box::new(crate::out::stdout().lock()),
        };
        let columns = io::stdout().is_terminal().then(|| here.columns());
        show((&layout, here), &looked, &stays, columns, &mut shown)?;
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

type IsBusy = (ThreadId, Busy);

/// Collects what exists of each thread, and the threads in use.
fn look<'j>(
    args: &Forget,
    layout: &'j Layout,
    reviews: Option<&'j Reviews>,
    holders: &dyn Fn() -> Vec<&'j dyn Holder>,
    places: Vec<(Place, Option<u32>)>,
) -> Result<(Vec<Looked<'j>>, Vec<IsBusy>), Error> {
    let (mut looked, mut is_busy) = (Vec::new(), Vec::new());
    for (place, message) in places {
        let job = Job::new(
            layout,
            reviews,
            holders(),
            &place,
            message,
            !args.keep_copies,
        )?;
        if let Some(busy) = job.busy()? {
            is_busy.push(busy);
            continue;
        }
        looked.push(Looked {
            found: job.look()?,
            quotes: job.quotes()?,
            message,
            place,
            job,
        });
    }
    Ok((looked, is_busy))
}

/// Returns the threads without activity for at least `age`.
fn older(layout: &Layout, age: Duration) -> Result<Vec<Place>, Error> {
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    let before = Timestamp::now().as_second().saturating_sub(seconds);
    let mut places = Vec::new();
    for place in layout.all_threads(true)? {
        // A thread of unknown age is not old.
        if forget::newest(&place)?.is_some_and(|at| at.as_second() < before) {
            places.push(place);
        }
    }
    Ok(places)
}

fn refused((id, busy): &IsBusy) -> Error {
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

fn title(one: &Looked<'_>) -> String {
    let id = clean::line(&one.place.id.0);
    match one.message {
        Some(number) => format!("message {number} of {id}"),
        None => id,
    }
}

fn show(
    (layout, here): (&Layout, &Here),
    looked: &[Looked<'_>],
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
fn kept(one: &Looked<'_>) -> Vec<String> {
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

fn as_json(args: &Forget, looked: &[Looked<'_>], stays: &[Elsewhere]) -> Value {
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
