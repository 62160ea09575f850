//! Where the checkout begins that an agent works in, and where git keeps the rest of it.

use std::path::{Path, PathBuf};

/// Returns the folders outside of a checkout, given by its top, where git keeps its data. A `.git` file that came with the
/// folder can name any place, so what it says has to be checked: `kd_store::git::data_outside` does.
pub type GitData = fn(&Path) -> Vec<PathBuf>;

/// The top of the checkout that a folder is in, as `kd_store::git::top` has it: the nearest folder that holds `.git`.
pub(crate) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|up| up.join(".git").exists())
}

/// The same, but an empty `.git` does not count, as it does not for git: agent programs that are killed leave some behind,
/// in `/tmp` too. For what is watched or shown, not for where a program may find settings.
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
