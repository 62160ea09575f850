//! Front ends drop no event by accident. Input: the sources of the crates that show events. Output: files that match on
//! events without the lint that forbids a wildcard arm, with which a new event would be dropped in silence.

use crate::sources::{Error, Sources};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates that draw, print, serve or log events.
pub const SHOWING: &[&str] = &["kd", "kd-app", "kd-page", "kd-server", "kd-store", "kd-tui"];

/// Enums of `kd-core` of which every variant must be handled or dropped by name.
const EVENTS: &[&str] = &["Event", "Fact"];

/// The lint, denied for a file or a function.
const LINT: &str = "deny(clippy::wildcard_enum_match_arm)";

/// Returns the files below the root file of a crate that match on events and do not name the lint.
///
/// # Errors
/// A file that cannot be read or parsed.
pub fn faults(root: &Path) -> Result<Vec<String>, Error> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for module in &Sources::read(root)?.modules {
        let is_event = |path: &Vec<String>| {
            // `Event::Noticed` after `use kd_core::Event`.
            let mut whole = module.imports.get(&path[0]).cloned().unwrap_or_default();
            let known = usize::from(!whole.is_empty());
            whole.extend_from_slice(&path[known..]);
            let of = whole.iter().rev().nth(1);
            whole[0] == "kd_core" && of.is_some_and(|of| EVENTS.contains(&of.as_str()))
        };
        if module.matched.iter().any(is_event) {
            files.insert(module.file.clone());
        }
    }
    let mut faults = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|e| Error::Read(file.clone(), e))?;
        if !text.contains(LINT) {
            faults.push(format!(
                "{} matches on events: write `#![{LINT}]` below its header, or `if let` for a single event",
                file.display()
            ));
        }
    }
    Ok(faults)
}
