//! The marks that the user has: which can be read, how many there are, and the projects they are of.

use crate::env::Env;
use crate::error::UserError;
use kd_core::{Timestamp, display};
pub use kd_sql::marks::Readable;
use kd_store::user_dirs::project_key;

/// Characters of the hash of a project's folder that are shown.
const HASH_CHARS: usize = 8;

/// Reads the marks of all projects; empty if nothing was ever marked.
///
/// # Errors
/// The file of marks cannot be read.
pub fn all(env: &Env) -> Result<Readable, UserError> {
    Ok(kd_sql::marks::read_readable(&env.user_dirs())?)
}

/// Counts the verdicts with a mark, readable or not.
///
/// # Errors
/// The file of marks cannot be read.
pub fn total(env: &Env) -> Result<u64, UserError> {
    Ok(kd_sql::marks::count(&env.user_dirs())?)
}

/// Checks that the marks can be read as a promise made at this time needs them.
///
/// # Errors
/// They cannot.
pub fn check(now: Timestamp, env: &Env) -> Result<(), UserError> {
    kd_sql::marks::of_kind(&env.user_dirs(), "", now)?;
    Ok(())
}

/// Returns the project of the working folder, as marks name it; `None` if there is none.
pub fn current_project(env: &Env) -> Option<String> {
    let layout = env.find_layout().ok().flatten();
    layout.map(|layout| project_key(layout.root()))
}

/// Returns the name of a project for people: the name of its folder, and the beginning of its hash.
pub fn shown_project(project: &str) -> String {
    let (name, hash) = project.rsplit_once('-').unwrap_or((project, ""));
    let hash: String = hash.chars().take(HASH_CHARS).collect();
    display::line(&format!("{name}-{hash}"))
}
