//! Removes the answers to questions that were asked again of a thread, once that thread becomes private.

use crate::error::{ErrorKind, UserError};
use crate::kingdom::{Kingdom, layout_now};
use kd_engine::{Engine, written};
use kd_sql::batch::{self, BatchesFile};
use kd_store::forget::Job;
use kd_store::user_dirs::{UserDirs, project_key};
use kd_store::{Layout, Place, Thread};
use std::path::Path;
use std::time::Duration;

/// Maximum wait for writes that were ordered before the sessions ended.
const WRITTEN_WITHIN: Duration = Duration::from_secs(20);

impl Kingdom {
    /// Returns the engine that removes these answers as soon as a session makes a thread private.
    pub(crate) fn unsharing(&self, engine: Engine) -> Engine {
        let (env, opened) = (self.env().clone(), self.opened().cloned());
        engine.becoming_private(move |thread| {
            if let Some(layout) = layout_now(&env, opened.as_ref()) {
                // A report leaves out what cannot be removed now, for example an answer that is being written, and removes
                // it later.
                let _ = unshare(&env.user_dirs(), &layout, &thread.id().0);
            }
        })
    }

    /// Removes these answers if the thread has become private since they were asked for. Its session could not remove
    /// them if one was being written.
    ///
    /// # Errors
    /// If the batches or the threads of the project cannot be read or written, or if sessions of this process are
    /// still writing, because they would write the removed data again.
    pub fn unshare_private(&self, layout: &Layout, folder: &Path) -> Result<(), UserError> {
        let Ok(thread) = Thread::open_folder(folder) else {
            return Ok(());
        };
        match thread.meta().is_private() {
            true => {
                if !written(WRITTEN_WITHIN) {
                    return Err(UserError::new(
                        ErrorKind::Io,
                        "the answers to questions of this thread that were asked again are still there",
                    )
                    .because("sessions of this process are still writing")
                    .next("`kd eval --live --report` removes them"));
                }
                unshare(&self.env().user_dirs(), layout, &thread.id().0)
            }
            false => Ok(()),
        }
    }
}

/// Returns whether the question of a thread may be asked again, as the thread is now: it is there, and not private.
pub fn may_share(folder: &Path) -> bool {
    Thread::open_folder(folder).is_ok_and(|thread| !thread.meta().is_private())
}

/// Removes the answers to the questions of a thread that were asked again in batches, as `eval.share` and
/// `kd eval --live` do. Leaves all of them if one is being written.
pub(super) fn unshare(dirs: &UserDirs, layout: &Layout, thread: &str) -> Result<(), UserError> {
    let file = BatchesFile::new(batch::path(dirs, &project_key(layout.root()))?);
    let mut jobs = Vec::new();
    let all = layout.batch_threads()?;
    let (late, whole): (Vec<Place>, Vec<Place>) = all.into_iter().partition(Place::is_log_alone);
    for place in file.again(thread, whole)?.into_iter().chain(late) {
        let job = Job::of_repeat(layout, vec![&file], &place);
        if job.busy()?.is_some() {
            return Ok(());
        }
        jobs.push(job);
    }
    for job in jobs {
        job.forget()?;
    }
    Ok(file.forget_again(thread)?)
}
