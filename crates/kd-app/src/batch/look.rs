//! Finding batches.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_sql::batch::{Batch, Batches};
use kd_store::user_dirs::project_key;

/// Returns the batches of the project of the working folder; `None` if there are none.
///
/// # Errors
/// If the database cannot be read.
pub fn of(env: &Env) -> Result<Option<Batches>, UserError> {
    let Some(layout) = env.find_layout()? else {
        return Ok(None);
    };
    Ok(Batches::find(
        &env.user_dirs(),
        &project_key(layout.root()),
    )?)
}

/// Returns a batch by its id or the beginning of one, with or without `batch-`; without one, the newest.
///
/// # Errors
/// If there is no such batch, or several.
pub fn find(batches: Option<&Batches>, id: Option<&str>) -> Result<Batch, UserError> {
    let all = match batches {
        Some(batches) => batches.all()?,
        None => Vec::new(),
    };
    pick(all, id)
}

/// Returns one of these batches, oldest first, as [`find`] does.
///
/// # Errors
/// If there is no such batch, or several.
pub fn pick(all: Vec<Batch>, id: Option<&str>) -> Result<Batch, UserError> {
    let Some(wanted) = id else {
        return newest(all);
    };
    let fits = |batch: &&Batch| {
        let id = batch.about.id.as_str();
        !wanted.is_empty() && (id.starts_with(wanted) || id.starts_with(&format!("batch-{wanted}")))
    };
    let mut found = all.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(first), Some(second)) => Err(UserError::new(
            ErrorKind::AmbiguousThread,
            format!("several batches begin with {wanted}"),
        )
        .because(format!(
            "for example {} and {}",
            first.about.id, second.about.id
        ))
        .next("type more of the id")),
        (None, _) => Err(none(wanted)),
    }
}

/// Returns the newest of these batches, oldest first.
///
/// # Errors
/// If there is none.
pub fn newest(all: Vec<Batch>) -> Result<Batch, UserError> {
    all.into_iter().next_back().ok_or_else(|| {
        UserError::new(ErrorKind::NoThread, "there is no batch in this project")
            .next("kd batch run QUESTIONS -o RESULTS.jsonl")
    })
}

pub(super) fn none(wanted: &str) -> UserError {
    UserError::new(ErrorKind::NoThread, format!("there is no batch {wanted}"))
        .next("`kd batch list` lists them")
}
