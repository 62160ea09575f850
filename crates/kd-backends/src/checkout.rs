//! Finds the top of the checkout that an agent works in, and git's data outside of it.

use std::path::{Path, PathBuf};

/// Returns the folders outside a checkout, given its top, where git keeps its data. A `.git` file that came with the
/// folder can name any place, so its content has to be checked: `kd_store::git::data_outside` does.
pub type GitData = fn(&Path) -> Vec<PathBuf>;

/// Returns the top of the checkout that a folder is in, like `kd_store::git::top`: the nearest folder that holds
/// `.git`.
pub(crate) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|up| up.join(".git").exists())
}

/// Like [`top`], but ignores an empty `.git`, as git does: killed agent programs leave some behind, in `/tmp` too. For
/// folders that are watched or shown, not for finding settings.
pub(crate) fn top_of_git(folder: &Path) -> Option<&Path> {
    let is_empty = |at: &Path| std::fs::read_dir(at).is_ok_and(|mut files| files.next().is_none());
    folder.ancestors().find(|up| {
        let git = up.join(".git");
        git.exists() && !is_empty(&git)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_git_folder_is_a_top_for_settings_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let sub = dir.path().join("project/sub");
        std::fs::create_dir_all(sub.join(".git")).expect("made");
        std::fs::create_dir_all(dir.path().join("project/.git")).expect("made");
        std::fs::write(dir.path().join("project/.git/HEAD"), "").expect("written");
        assert_eq!(top(&sub), Some(&*sub));
        assert_eq!(top_of_git(&sub), Some(&*dir.path().join("project")));
    }
}
