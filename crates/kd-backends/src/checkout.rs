//! Where the checkout begins that an agent works in, and where git keeps the rest of it.

use std::path::{Path, PathBuf};

/// Returns the folders outside of a checkout, given by its top, where git keeps its data. A `.git` file that came with the
/// folder can name any place, so what it says has to be checked: `kd_store::git::data_outside` does.
pub type GitData = fn(&Path) -> Vec<PathBuf>;

/// The top of the checkout that a folder is in, as `kd_store::git::top` has it: the nearest folder that holds `.git`.
pub(crate) fn top(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|up| up.join(".git").exists())
}
