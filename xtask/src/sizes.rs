//! The share of the lines that each crate holds.

use std::io;
use std::path::Path;

/// Maximum share of the lines of all crates, in percent: a crate with more has more than one subject.
const SHARE_MAX: usize = 20;

/// Returns the crates below `root` that hold too many of the lines.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn faults(root: &Path) -> io::Result<Vec<String>> {
    let mut sizes: Vec<(String, usize)> = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let entry = entry?;
        let src = entry.path().join("src");
        if src.is_dir() {
            sizes.push((
                entry.file_name().to_string_lossy().into_owned(),
                lines(&src)?,
            ));
        }
    }
    sizes.sort();
    let all: usize = sizes.iter().map(|(_, lines)| lines).sum();
    let is_large = |(_, lines): &&(String, usize)| lines * 100 > all * SHARE_MAX;
    let large = sizes.iter().filter(is_large);
    Ok(large
        .map(|(name, lines)| {
            let share = *lines as f64 * 100.0 / all as f64;
            format!("{name} holds {share:.1} % of the lines ({lines} of {all}); the maximum is {SHARE_MAX} %: split it")
        })
        .collect())
}

/// Counts the lines of all Rust files below a folder.
fn lines(folder: &Path) -> io::Result<usize> {
    let mut all = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all += lines(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += std::fs::read_to_string(&path)?.lines().count();
        }
    }
    Ok(all)
}
