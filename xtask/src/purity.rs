//! Pure crates do not touch the outside world. Input: their sources. Output: paths of the standard library that reach it.

use crate::sources::{Error, Sources};
use std::path::Path;

/// Crates that decide and compute only.
pub const PURE: &[&str] = &[
    "kd-core",
    "kd-eval",
    "kd-forum",
    "kd-page",
    "kd-reading",
    "kd-records",
    "kd-vote",
];

/// Parts of the standard library that reach files, the network, processes, the environment, threads and clocks.
const OUTSIDE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "net"],
    &["std", "os"],
    &["std", "process"],
    &["std", "env"],
    &["std", "thread"],
    &["std", "io", "stdin"],
    &["std", "io", "stdout"],
    &["std", "io", "stderr"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
    &["std", "time", "UNIX_EPOCH"],
    &["jiff", "Timestamp", "now"],
    &["jiff", "Zoned", "now"],
];

/// Functions of these parts that only compute.
const HARMLESS: &[&[&str]] = &[
    &["std", "env", "join_paths"],
    &["std", "env", "split_paths"],
];

/// Each place of a crate that names the outside world, below the root file of its sources.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn faults(root: &Path) -> Result<Vec<String>, Error> {
    let mut faults = Vec::new();
    for module in &Sources::read(root)?.modules {
        let named = module.imports.values().chain(&module.globs);
        let written = module.paths.iter().map(|path| {
            // `fs::read` after `use std::fs`.
            let mut whole = module.imports.get(&path[0]).cloned().unwrap_or_default();
            let known = usize::from(!whole.is_empty());
            whole.extend_from_slice(&path[known..]);
            whole
        });
        for path in named.cloned().chain(written) {
            let is_of = |parts: &[&[&str]]| parts.iter().any(|part| begins(&path, part));
            if is_of(OUTSIDE) && !is_of(HARMLESS) {
                faults.push(format!(
                    "{} names {}",
                    module.file.display(),
                    path.join("::")
                ));
            }
        }
    }
    faults.sort();
    faults.dedup();
    Ok(faults)
}

fn begins(path: &[String], with: &[&str]) -> bool {
    path.len() >= with.len() && path.iter().zip(with).all(|(a, b)| a == b)
}
