//! `kd marks forget`: removes marks, also those of other projects and of threads that are gone.

use super::shown_project;
use crate::error::Error;
use crate::exit::Exit;
use crate::render::clean;
use crate::run::agreed::agreed;
use crate::run::here::Here;
use kd_app::words::count;
use kd_sql::marks::{self, MarkedThread, Marks};
use kd_store::user_dirs::project_key;
use std::io::{self, IsTerminal, Write};

/// Maximum names in an error.
const NAMED_MAX: usize = 5;

/// Forgets all marks, after asking: they cannot be earned again soon.
pub(super) fn all(yes: bool, here: &Here) -> Result<Exit, Error> {
    let dirs = here.user_dirs();
    let known = marks::count(&dirs)?;
    let words = count(known, "mark");
    if known == 0 {
        return told(0);
    }
    if !yes && !io::stdin().is_terminal() {
        let what = format!("all your marks would be forgotten: {words}");
        let next = "`kd marks export > marks.jsonl` keeps them; confirm with --yes, or run it in a terminal";
        return Err(Error::usage(what).next(next));
    }
    if !yes && !agreed(&format!("Forget all your marks ({words})?"))? {
        writeln!(crate::out::stderr(), "nothing was changed")?;
        return Ok(Exit::Interrupted);
    }
    told(Marks::open(&dirs)?.forget_all()?)
}

/// Forgets the marks of a thread of this project, or of another one.
pub(super) fn of_thread(id: &str, project: Option<&str>, here: &Here) -> Result<Exit, Error> {
    let dirs = here.user_dirs();
    // Without marks there need not be a file.
    let marked = match marks::count(&dirs)? {
        0 => Vec::new(),
        _ => Marks::open(&dirs)?.threads()?,
    };
    let (project, thread) = match project {
        Some(project) => elsewhere(id, project, &marked)?,
        None => here_or_gone(id, &marked, here)?,
    };
    if marked.is_empty() {
        return told(0);
    }
    told(Marks::open(&dirs)?.forget(&project, &thread, None, false)?)
}

fn told(gone: usize) -> Result<Exit, Error> {
    let mut out = crate::out::stdout().lock();
    writeln!(out, "forgot {}", count(gone as u64, "mark"))?;
    Ok(Exit::Done)
}

/// Returns the thread of this project. One that is gone is found by its marks, with its complete id.
fn here_or_gone(id: &str, marked: &[MarkedThread], here: &Here) -> Result<(String, String), Error> {
    let current = here.find_layout()?.map(|at| project_key(at.root()));
    let not_found = match kd_app::threads::find(here, Some(id)) {
        Ok((layout, place)) => return Ok((project_key(layout.root()), place.id.0)),
        Err(error) => error,
    };
    let mut of_id = marked.iter().filter(|of| is_id(&of.thread, id));
    let is_here = |of: &&MarkedThread| Some(&of.project) == current.as_ref();
    if let Some(of) = of_id.clone().find(is_here) {
        return Ok((of.project.clone(), of.thread.clone()));
    }
    Err(match of_id.next() {
        Some(of) => Error::usage(format!(
            "{} has no marks in this project",
            clean::line(&of.thread)
        ))
        .next(format!(
            "`kd marks forget {} --project {}`",
            clean::line(id),
            shown_project(&of.project)
        )),
        None => not_found.into(),
    })
}

/// Returns the thread of a project that is named as `kd marks` names it, or by a part of that from its beginning.
fn elsewhere(id: &str, project: &str, marked: &[MarkedThread]) -> Result<(String, String), Error> {
    let of_project: Vec<&MarkedThread> = (marked.iter())
        .filter(|of| of.project.starts_with(project))
        .collect();
    let exact = of_project.iter().find(|of| is_id(&of.thread, id));
    let begins = |of: &&&MarkedThread| {
        let short = of.thread.strip_prefix("council-").unwrap_or(&of.thread);
        of.thread.starts_with(id) || short.starts_with(id)
    };
    let found: Vec<&MarkedThread> = match exact {
        Some(_) => of_project
            .iter()
            .filter(|of| is_id(&of.thread, id))
            .copied()
            .collect(),
        None => of_project.iter().filter(begins).copied().collect(),
    };
    match found[..] {
        [of] => Ok((of.project.clone(), of.thread.clone())),
        [] => Err(Error::usage(format!(
            "no thread {} has marks in a project {}",
            clean::line(id),
            clean::line(project)
        ))
        .next("`kd marks` lists the marks of all projects with their threads")),
        _ => {
            let named = found.iter().take(NAMED_MAX).map(|of| {
                let thread = clean::line(&of.thread);
                format!("{thread} in {}", shown_project(&of.project))
            });
            Err(Error::usage(format!(
                "{} in {} could be several threads",
                clean::line(id),
                clean::line(project)
            ))
            .because(named.collect::<Vec<_>>().join(", "))
            .next("give more of the thread's id, or more of the project's name"))
        }
    }
}

/// Returns whether a thread has this id, with or without `council-`.
fn is_id(thread: &str, id: &str) -> bool {
    thread == id || thread.strip_prefix("council-") == Some(id)
}
