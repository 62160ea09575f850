//! The top of a checkout, found without git.

use std::fs;
use std::path::Path;

/// Returns the top of the checkout that a folder is in: the nearest folder, itself included, that contains any `.git`.
/// Git and agent programs search no further up either.
pub fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|up| up.join(".git").exists())
}

/// Like [`top`], but ignores an empty `.git`, as git does: killed agent programs leave some behind, in `/tmp` too. For
/// the scope of a decision, not for finding a program's settings.
pub fn top_of_git(folder: &Path) -> Option<&Path> {
    let is_empty = |at: &Path| fs::read_dir(at).is_ok_and(|mut files| files.next().is_none());
    folder.ancestors().find(|up| {
        let git = up.join(".git");
        git.exists() && !is_empty(&git)
    })
}
