//! Finding batches.

use crate::env::Env;
use crate::error::{ErrorKind, UserError};
pub use kd_core::batch::Overview;
use kd_sql::batch::{Batch, Batches};
use kd_store::user_dirs::project_key;
use kd_store::{Layout, Place};

/// Failed questions of a batch that are shown.
const DEAD_SHOWN: usize = 5;

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

/// Returns the threads of a batch of a project, or the threads that were fetched from a batch in a database.
///
/// # Errors
/// If there is no such batch, or several, or the project cannot be read.
pub fn threads(layout: &Layout, batch: &str, env: &Env) -> Result<Vec<Place>, UserError> {
    let error = match find(of(env)?.as_ref(), Some(batch)) {
        Ok(found) => return Ok(layout.in_batch(&found.about.id).threads()?),
        // Several, or a database that cannot be read: no batch is named by that.
        Err(error) if error.kind != ErrorKind::NoThread => return Err(error),
        Err(error) => error,
    };
    let mut places = layout.batch_threads()?;
    let whole = format!("batch-{batch}");
    places.retain(|place| place.branch.starts_with(batch) || place.branch.starts_with(&whole));
    let first = places.first().map(|place| place.branch.clone());
    let is_one = first.is_some_and(|first| places.iter().all(|place| place.branch == first));
    match is_one && !batch.is_empty() {
        true => Ok(places),
        false => Err(error),
    }
}

/// Returns whether a process runs a batch.
fn is_running(batches: &Batches, batch: &Batch) -> Result<bool, UserError> {
    Ok(!batch.counts.is_over() && batches.lock(&batch.about.id)?.is_none())
}

/// Returns the newest batches of the project of the working folder at a glance, newest first.
///
/// # Errors
/// If the database cannot be read.
pub fn overview(env: &Env, most: usize) -> Result<Vec<Overview>, UserError> {
    let Some(batches) = of(env)? else {
        return Ok(Vec::new());
    };
    let all = batches.all()?;
    let newest = all.into_iter().rev().take(most);
    newest.map(|batch| glance(&batches, batch)).collect()
}

fn glance(batches: &Batches, batch: Batch) -> Result<Overview, UserError> {
    let id = batch.about.id.as_str();
    let parcels = batches.parcels(id)?;
    let counts = &batch.counts;
    Ok(Overview {
        running_now: is_running(batches, &batch)?,
        failures: batches.failure_kinds(id)?,
        at_providers: parcels.iter().map(|one| one.items.len() as u64).sum(),
        id: id.to_owned(),
        method: batch.about.method.clone(),
        questions: batch.about.source.clone(),
        created_at: batch.created,
        cancelled: batch.cancelled,
        states: counts.states(),
        cached: counts.cached,
        calls: batch.spent.calls,
        tokens: batch.spent.tokens,
        usd: batch.spent.usd(),
        certainty: batch.spent.certainty,
        seconds: batch.time.as_millis() as f64 / 1e3,
        dead: match counts.failed {
            0 => Vec::new(),
            _ => batches.dead(id, DEAD_SHOWN)?,
        },
        ..Overview::default()
    })
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
