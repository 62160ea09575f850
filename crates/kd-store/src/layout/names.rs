//! Names that modules below the layout need, and the boundary of a `.kd` folder.

use std::path::Path;

/// The index of a thread's messages.
pub(crate) const INDEX_FILE: &str = ".kd-index.jsonl";

/// The folder of a project.
pub(crate) const KD: &str = ".kd";

/// Worktrees of kingdom-cli.
const WORKTREES_FOLDER: &str = "worktrees";

/// Returns whether a path is a `.kd` folder.
pub(crate) fn is_base(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == KD)
}

/// Returns whether a path is below a `.kd`, where links are not followed.
pub fn is_ours(path: &Path) -> bool {
    is_base(split(path).0)
}

/// Splits a path at its `.kd`; the whole path and an empty one if there is none. Worktrees of kingdom-cli in
/// `.kd/worktrees` are not below `.kd` in this sense: they are the project's files.
pub(crate) fn split(path: &Path) -> (&Path, &Path) {
    let whole = (path, Path::new(""));
    let Some(base) = path.ancestors().find(|dir| is_base(dir)) else {
        return whole;
    };
    match path.strip_prefix(base) {
        Ok(below) if !below.starts_with(WORKTREES_FOLDER) => (base, below),
        _ => whole,
    }
}
