//! Finds and repairs problems in the folders of threads.

use crate::env::Env;
use crate::error::UserError;
use crate::threads;
pub use kd_store::fsck::{Finding, Remedy, Report};

use kd_store::fsck;
use kd_store::stream::PATIENCE;
use std::path::PathBuf;
use std::time::Duration;

/// What to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsckRequest<'a> {
    /// Only this thread; else `.kd`, the threads of the branch, and the branch itself.
    pub thread: Option<&'a str>,
    /// The threads of all branches, of the archive and of batches.
    pub all: bool,
    /// Whether to repair what can be.
    pub repair: bool,
}

/// A folder, and the problems found in it.
#[derive(Debug)]
pub struct Checked {
    /// Its name: a thread, `.kd` or a branch.
    pub name: String,
    /// The branch, or the batch.
    pub branch: String,
    /// The folder.
    pub folder: PathBuf,
    /// What was found.
    pub report: Report,
}

/// Checks a project. Without a single thread, the first folder is `.kd`, and the last one the branch.
///
/// # Errors
/// There is no project, no such thread, or a folder cannot be read.
pub fn check(request: FsckRequest<'_>, env: &Env) -> Result<Vec<Checked>, UserError> {
    let layout = env.layout()?;
    // Threads can be repaired even if the settings cannot be read.
    let patience = env.settings(Some(&layout)).map_or(PATIENCE, |loaded| {
        Duration::from_secs(loaded.config.council.timeout)
    });
    let mut checked = Vec::new();
    if request.thread.is_none() {
        let mut report = fsck::check_base(&layout)?;
        if request.repair {
            fsck::repair_base(&mut report)?;
        }
        checked.push(Checked {
            name: ".kd".to_owned(),
            branch: layout.branch().to_owned(),
            folder: layout.kd(),
            report,
        });
    }
    let places = match (request.thread, request.all) {
        (Some(id), _) => Ok(vec![threads::resolve(&layout, Some(id))?]),
        (None, true) => layout.all_threads(true).and_then(|mut all| {
            all.extend(layout.batch_threads()?);
            Ok(all)
        }),
        (None, false) => layout.threads(),
    };
    let places = match places {
        // Reported above: the folder of the threads is a link, or not a folder.
        Err(error) if error.is_refused_file() => Vec::new(),
        places => places?,
    };
    for place in places {
        let mut report = fsck::check(&place, patience)?;
        if request.repair {
            fsck::repair(&place, &mut report)?;
        }
        checked.push(Checked {
            name: place.id.0,
            branch: place.branch,
            folder: place.path,
            report,
        });
    }
    if request.thread.is_none() {
        let mut report = fsck::check_branch(&layout)?;
        if request.repair {
            fsck::repair_branch(&layout, &mut report)?;
        }
        checked.push(Checked {
            name: format!("branch {}", layout.branch()),
            branch: layout.branch().to_owned(),
            folder: layout.branch_folder(),
            report,
        });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kd_store::{Layout, Thread};

    #[test]
    fn threads_of_batches_are_checked_with_all_others() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join(".kd")).unwrap();
        let layout = Layout::find(top.path(), &|_| None).unwrap();
        Thread::create(&layout, &[]).unwrap();
        let batch = layout.in_batch("batch-1");
        let thread = Thread::create_for(&batch, &[], "batch").unwrap();
        std::fs::write(thread.path().join("thread.json"), "{").unwrap();
        let env = Env::of([("HOME", top.path())]).in_folder(top.path());
        let look = |all| {
            let request = FsckRequest {
                all,
                ..FsckRequest::default()
            };
            let checked = check(request, &env).unwrap();
            let of_batch = checked.into_iter().find(|one| one.branch == "batch-1");
            of_batch.map(|one| (one.name, one.report.findings.len()))
        };
        assert_eq!(look(false), None);
        assert_eq!(look(true), Some((thread.id().0.clone(), 1)));
    }
}
