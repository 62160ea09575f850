//! Forgets marks, including marks of other projects and of deleted threads.

use super::shown_project;
use crate::env::Env;
use crate::error::UserError;
use crate::threads;
use kd_core::display;
use kd_sql::marks::{self, MarkedThread, Marks};
use kd_store::user_dirs::project_key;

/// Maximum names in an error.
const NAMED_MAX: usize = 5;

/// Forgets all marks of the user, and returns how many they were.
///
/// # Errors
/// The file of marks cannot be changed.
pub fn forget_all(env: &Env) -> Result<usize, UserError> {
    Ok(Marks::open(&env.user_dirs())?.forget_all()?)
}

/// Forgets the marks of a thread of this project, or of another one, and returns how many they were.
///
/// `project` is the beginning of the project's name, as [`shown_project`] shows it.
///
/// # Errors
/// No such thread is known, it could be several, or the file of marks cannot be changed.
pub fn forget_thread(id: &str, project: Option<&str>, env: &Env) -> Result<usize, UserError> {
    let dirs = env.user_dirs();
    // Without marks there need not be a file.
    let marked = match marks::count(&dirs)? {
        0 => Vec::new(),
        _ => Marks::open(&dirs)?.threads()?,
    };
    let (project, thread) = match project {
        Some(project) => elsewhere(id, project, &marked)?,
        None => here_or_gone(id, &marked, env)?,
    };
    match marked.is_empty() {
        true => Ok(0),
        false => Ok(Marks::open(&dirs)?.forget(&project, &thread, None, false)?),
    }
}

/// Returns the thread of this project. A deleted thread is found by its marks, with its complete id.
fn here_or_gone(
    id: &str,
    marked: &[MarkedThread],
    env: &Env,
) -> Result<(String, String), UserError> {
    let current = env.find_layout()?.map(|at| project_key(at.root()));
    let not_found = match threads::find(env, Some(id)) {
        Ok((layout, place)) => return Ok((project_key(layout.root()), place.id.0)),
        Err(error) => error,
    };
    let mut of_id = marked.iter().filter(|of| is_id(&of.thread, id));
    let is_here = |of: &&MarkedThread| Some(&of.project) == current.as_ref();
    if let Some(of) = of_id.clone().find(is_here) {
        return Ok((of.project.clone(), of.thread.clone()));
    }
    Err(match of_id.next() {
        Some(of) => UserError::usage(format!(
            "{} has no marks in this project",
            display::line(&of.thread)
        ))
        .next(format!(
            "`kd marks forget {} --project {}`",
            display::line(id),
            shown_project(&of.project)
        )),
        None => not_found,
    })
}

/// Returns the thread of a project that is named as `kd marks` names it, or by a part of that from its beginning.
fn elsewhere(
    id: &str,
    project: &str,
    marked: &[MarkedThread],
) -> Result<(String, String), UserError> {
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
        [] => Err(UserError::usage(format!(
            "no thread {} has marks in a project {}",
            display::line(id),
            display::line(project)
        ))
        .next("`kd marks` lists the marks of all projects with their threads")),
        _ => {
            let named = found.iter().take(NAMED_MAX).map(|of| {
                let thread = display::line(&of.thread);
                format!("{thread} in {}", shown_project(&of.project))
            });
            Err(UserError::usage(format!(
                "{} in {} could be several threads",
                display::line(id),
                display::line(project)
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
